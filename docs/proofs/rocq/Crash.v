(* Crash.v: an account whose charges are kept on disk, as a transition system.  A
   launch takes four steps; between any two of them the process may crash, and what is
   in memory is then read from the disk again. *)
Require Import Preamble Accounting.

Section Crash.
Variables (C : eqType) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Notation charge_at := (charge_at c0 cadd cle).
Notation open_acct := (open_acct c0).
Notation at_ T i := (nth (dacct c0) (fsubs T) i).
(* A launch that was admitted: the accounts that it is charged to, besides the root, and
   its loss. *)
Notation entry := (seq nat * C)%type.
(* Where a launch is: not begun, admitted, its charge is on disk, its charge is
   also in memory. *)
Inductive phase := Idle | Decided (T : filt C) (x : entry) | Durable (x : entry) | Charged (x : entry).
(* The account on disk and in memory, the launch that is under way, and the mechanisms
   that have run.  charges is a record for the theorems: all charges that were
   ever written, and how many of them are in memory. *)
Record system := System { stored : filt C; memory : filt C; under_way : phase; ran : seq entry;
                          charges : seq entry; known : nat }.
Inductive action := Decide (j : option nat) (c : C) | Write | Take | Run | Crashes
  | Opens (j : option nat) (b : option C).
Definition reread s := System (stored s) (stored s) Idle (ran s) (charges s) (size (charges s)).
(* One step.  A limit below zero is not opened. *)
Definition act (a : action) (s : system) : system :=
  match a, under_way s with
  | Decide j c, Idle =>
      if pathof (stored s) j is Some p then
        if charge_at (stored s) j c is Some T
        then System (stored s) (memory s) (Decided T (p, c)) (ran s) (charges s) (known s)
        else reread s
      else reread s
  | Write, Decided T x =>
      System T (memory s) (Durable x) (ran s) (rcons (charges s) x) (known s)
  | Take, Durable x =>
      System (stored s) (stored s) (Charged x) (ran s) (charges s) (size (charges s))
  | Run, Charged x =>
      System (stored s) (memory s) Idle (rcons (ran s) x) (charges s) (known s)
  | Crashes, _ => reread s
  | Opens j b, Idle =>
      if cap_ok c0 cle b then
        if open_acct (stored s) j b is Some T
        then System T T Idle (ran s) (charges s) (size (charges s)) else s
      else s
  | _, _ => s
  end.
(* A new filter with the bound B, or an odometer if there is none. *)
Definition start B := System (Filt B c0 [::]) (Filt B c0 [::]) Idle [::] [::] 0.

(* The sum of losses; the losses of some launches, and of those at or below the account i. *)
Definition total (cs : seq C) := foldl cadd c0 cs.
Definition losses (xs : seq entry) := [seq x.2 | x <- xs].
Definition losses_at i (xs : seq entry) := losses [seq x <- xs | i \in x.1].
Lemma total_rcons cs c : total (rcons cs c) = cadd (total cs) c.
Proof. by rewrite /total -cats1 foldl_cat. Qed.

(* Some launches, in their order: their losses are some of the losses. *)
Lemma subseq_at i (rs xs : seq entry) : subseq rs xs -> subseq (losses_at i rs) (losses_at i xs).
Proof.
by move=> h; apply: map_subseq; rewrite subseq_filter filter_all (subseq_trans (filter_subseq _ _) h).
Qed.
Lemma subseq_take (X : eqType) (rs cs : seq X) k : subseq rs (take k cs) -> subseq rs cs.
Proof. by move=> h; apply: subseq_trans h (take_subseq _ _). Qed.

(* The account T has exactly the charges xs: the reading of the root is their sum, that of
   each account is the sum of those at or below it. *)
Definition books (T : filt C) (xs : seq entry) := 
  [/\ fspent T = total (losses xs), all (cle c0) (losses xs),
      forall i, i < size (fsubs T) -> aspent (at_ T i) = total (losses_at i xs) &
      forall i, size (fsubs T) <= i -> losses_at i xs = [::]].
Lemma books_charge T j p c T' xs : tree_ok c0 T -> pathof T j = Some p ->
  charge_at T j c = Some T' -> books T xs -> books T' (rcons xs (p, c)).
Proof.
move=> tr ep E [h1 h2 h3 h4]; have [_ e1 e2 _] := charge_root E.
have [p' + [sz _ sub]] := charge_all E; rewrite ep => -[e]; rewrite -{p'}e in sub; split.
- by rewrite e1 h1 /losses map_rcons total_rcons.
- by rewrite /losses map_rcons all_rcons e2.
- move=> i; rewrite sz => hi; rewrite sub // /losses_at filter_rcons /=.
  by case: ifP => ip; rewrite ?[losses (rcons _ _)]map_rcons ?total_rcons /= h3.
- move=> i; rewrite sz => hi; rewrite /losses_at filter_rcons /=.
  case: ifP => ip; last exact: h4.
  by have [] := tree_path tr ep ip; rewrite ltnNge hi.
Qed.
Lemma books_open T j b T' xs : open_acct T j b = Some T' -> books T xs -> books T' xs.
Proof.
move=> E [h1 h2 h3 h4]; have [_ e1] := open_root E; have [p ep [sz new old]] := open_all E.
split; rewrite ?e1 // => i; rewrite sz; last by move=> hi; apply/h4/ltnW.
by rewrite ltnS leq_eqVlt => /orP[/eqP->|hi]; [rewrite new h4|rewrite old // h3].
Qed.

(* What holds after any steps.  The accounts in memory are those on disk; the charges in
   memory are the first ones of those on disk; the mechanisms that have run are among them;
   no account on disk has passed its bound.  While a launch is under way, its charge is the
   last one, and has not run. *)
Definition sound (s : system) : Prop :=
  [/\ books (stored s) (charges s), books (memory s) (take (known s) (charges s)),
      [/\ filt_ok cle (stored s), tree_ok c0 (stored s), known s <= size (charges s) &
          size (fsubs (memory s)) = size (fsubs (stored s))],
      subseq (ran s) (take (known s) (charges s)) &
      match under_way s with
      | Idle => True
      | Decided T x => exists2 j, pathof (stored s) j = Some x.1 & charge_at (stored s) j x.2 = Some T
      | Durable x => exists2 cs, charges s = rcons cs x & known s <= size cs
      | Charged x => exists2 cs, take (known s) (charges s) = rcons cs x & subseq (ran s) cs
      end].
(* From s to s': the charges that were written stay, and no account vanishes. *)
Definition later (s s' : system) : Prop := [/\ sound s',
  exists more, charges s' = charges s ++ more & size (fsubs (stored s)) <= size (fsubs (stored s'))].
Lemma act_later a s : sound s -> later s (act a s).
Proof.
move=> h; have [h1 h2 [h3 h3' hk h3''] h4 h5] := h.
have stay s' : sound s' -> charges s' = charges s -> stored s' = stored s -> later s s'.
  by move=> h' e1 e2; split=> //; rewrite ?e2 //; exists [::]; rewrite cats0.
have again : later s (reread s).
  by apply: stay => //; split; rewrite //= take_size //; apply: subseq_take h4.
rewrite /act; case: a => [j c|||||j b] //.
- case E: (under_way s) h5 => [|T x|x|x] // _; try exact: stay.
  case ep: (pathof _ _) => [p|] //; case A: (charge_at _ _ _) => [T|] //.
  by apply: stay => //; split=> //=; exists j.
- case E: (under_way s) h5 => [|T [p c]|x|x] // h5; try exact: stay.
  case: h5 => j ep A; have [p' _ [sz _ _]] := charge_all A; split=> /=; rewrite ?sz //.
    split=> /=; [exact: books_charge ep A h1| | | |by exists (charges s)].
    + by rewrite -cats1 takel_cat.
    + by split; rewrite ?size_rcons ?sz // ?leqW //; [apply: charge_ok A h3|apply: charge_tree A h3'].
    + by rewrite -cats1 takel_cat.
  by exists [:: (p, c)]; rewrite cats1.
- case E: (under_way s) h5 => [|T x|x|x] // h5; try exact: stay.
  case: h5 => cs e1 e2; apply: stay => //; split=> //=; rewrite ?take_size //.
    exact: subseq_take h4.
  by exists cs => //; move: h4; rewrite e1 -cats1 takel_cat // => /subseq_take.
- case E: (under_way s) h5 => [|T x|x|x] // h5; try exact: stay.
  by case: h5 => cs e1 e2; apply: stay => //; split=> //=; rewrite e1 -!cats1 cat_subseq.
- case E: (under_way s) h5 => [|T x|x|x] // _; try exact: stay.
  case B: (cap_ok _ _ _); last exact: stay.
  case A: (open_acct _ _ _) => [T|]; last exact: stay.
  have bo := books_open A h1; have [p _ [sz _ _]] := open_all A.
  split=> /=; last by rewrite sz.
    split; rewrite //= ?take_size //; last exact: subseq_take h4.
    by split=> //; [apply: open_ok B A h3|apply: open_tree A h3'].
  by exists [::]; rewrite cats0.
Qed.
Lemma start_sound B : within cle c0 B -> sound (start B).
Proof. by move=> ok; split=> //=; split; rewrite // /filt_ok /= ok. Qed.
Fixpoint acts (es : seq action) s := if es is e :: es' then acts es' (act e s) else s.
Lemma acts_later es s : sound s -> later s (acts es s).
Proof.
elim: es s => [|e es IH] s h /=; first by split=> //; exists [::]; rewrite cats0.
have [h1 [m1 e1] z1] := act_later e h; have [h2 [m2 e2] z2] := IH _ h1.
by split=> //; [exists (m1 ++ m2); rewrite e2 e1 catA|apply: leq_trans z2].
Qed.

(* Charge before run: whatever happens, in whichever order, and wherever it crashes,
   each mechanism that has run has a charge of its own on disk, at the accounts that it
   was launched at; the reading of each account on disk is the sum of the charges at or
   below it; and no account has passed its bound. *)
Theorem charge_before_run B es : within cle c0 B -> let s := acts es (start B) in
  [/\ subseq (ran s) (charges s), fspent (stored s) = total (losses (charges s)),
      forall i, i < size (fsubs (stored s)) -> aspent (at_ (stored s) i) = total (losses_at i (charges s)) &
      filt_ok cle (stored s)].
Proof.
move=> ok s; have [[[h1 _ h2 _] _ [h3 _ _ _] /subseq_take h4 _] _ _] := acts_later es (start_sound ok).
by split.
Qed.

(* Some of some losses, none of which is below zero, have no larger sum. *)
Lemma subseq_total (O : order_laws c0 cadd cle) rs cs : subseq rs cs -> all (cle c0) cs ->
  cle (total rs) (total cs).
Proof.
case/subseqP=> m sm -> pos; rewrite /total.
suff H x y : cle x y -> size m = size cs -> all (cle c0) cs ->
    cle (foldl cadd x (mask m cs)) (foldl cadd y cs) by apply: H sm pos; apply: (le_00 O).
elim: cs m {sm pos} x y => [|c cs IH] [|b m] //= x y xy [sm] /andP[hc pos].
by case: b; apply: IH => //; [apply: (le_add2 O)|apply: (le_addr O)].
Qed.
Lemma losses_at_ge0 i xs : all (cle c0) (losses xs) -> all (cle c0) (losses_at i xs).
Proof. by elim: xs => //= x xs IH /andP[h /IH h']; rewrite /losses_at /=; case: ifP; rewrite //= h. Qed.

(* Never refund: no reading on disk ever falls, neither that of the root nor that of any
   account, whatever happens; and no account vanishes. *)
Theorem never_refund (O : order_laws c0 cadd cle) B es es' : within cle c0 B ->
  let T := stored (acts es (start B)) in let T' := stored (acts es' (acts es (start B))) in
  cle (fspent T) (fspent T') /\ forall i, i < size (fsubs T) ->
    i < size (fsubs T') /\ cle (aspent (at_ T i)) (aspent (at_ T' i)).
Proof.
move=> ok; have [h _ _] := acts_later es (start_sound ok); move: (acts es _) h => s h.
have [[[e1 p1 e2 _] _ _ _ _] [more em] sz] := acts_later es' h; have [[e3 p3 e4 _] _ _ _ _] := h.
have a : subseq (charges s) (charges (acts es' s)) by rewrite em prefix_subseq.
split=> [|i hi]; first by rewrite e1 e3; apply: (subseq_total O) p1; apply: map_subseq.
have hi' := leq_trans hi sz; split=> //.
by rewrite e2 // e4 //; apply: (subseq_total O); [apply: subseq_at|apply: losses_at_ge0].
Qed.
(* On disk >= in memory >= what has run, for the root and for each account. *)
Theorem disk_memory_run (O : order_laws c0 cadd cle) B es : within cle c0 B -> let s := acts es (start B) in
  [/\ cle (total (losses (ran s))) (fspent (memory s)), cle (fspent (memory s)) (fspent (stored s)) &
      forall i, i < size (fsubs (memory s)) ->
        cle (total (losses_at i (ran s))) (aspent (at_ (memory s) i)) /\
        cle (aspent (at_ (memory s) i)) (aspent (at_ (stored s) i))].
Proof.
move=> ok s; have [[[e1 p1 e2 _] [e3 p3 e4 _] [_ _ _ sz] h4 _] _ _] := acts_later es (start_sound ok).
have a : subseq (take (known s) (charges s)) (charges s) by apply: take_subseq.
split.
- by rewrite e3; apply: (subseq_total O) p3; apply: map_subseq.
- by rewrite e3 e1; apply: (subseq_total O) p1; apply: map_subseq.
- move=> i hi; rewrite e4 // e2 -?sz //.
  by split; apply: (subseq_total O); [apply: subseq_at|apply: losses_at_ge0|apply: subseq_at|apply: losses_at_ge0].
Qed.
End Crash.
Arguments Write {C}. Arguments Take {C}. Arguments Run {C}. Arguments Crashes {C}.

(* --- computed ----------------------------------------------------------------- *)
(* Under the bound 3, a limit of 2 and a child odometer below it: a launch at the odometer
   crashes after its charge is written, so that it is charged and does not run; a second one
   runs; the limit refuses a third one; beside the limit one more runs; then the root
   refuses. *)
Notation steps j := [:: Decide j 1; Write; Take; Run].
Definition before := [:: Opens None (Some 2); Opens (Some 0) None; Decide (Some 1) 1; Write].
Definition since := Crashes :: steps (Some 1) ++ steps (Some 1) ++ steps None ++ steps None.
Definition at_first := acts 0 addn leq before (start 0 (Some 3)).
Definition at_last := acts 0 addn leq since at_first.
Notation readings T := (fspent T, map (@aspent nat) (fsubs T)).
Goal (ran at_last, charges at_last) =
  ([:: ([:: 1; 0], 1); ([::], 1)], [:: ([:: 1; 0], 1); ([:: 1; 0], 1); ([::], 1)]).
Proof. by vm_compute. Qed.
(* On disk and in memory, before the crash and at last. *)
Goal [seq readings T | T <- [:: stored at_first; memory at_first; stored at_last; memory at_last]] =
  [:: (1, [:: 1; 1]); (0, [:: 0; 0]); (3, [:: 2; 2]); (3, [:: 2; 2])].
Proof. by vm_compute. Qed.
(* The theorems hold for this system. *)
Goal fspent (stored at_first) <= fspent (stored at_last).
Proof. by have [] := @never_refund _ _ _ _ nat_order (Some 3) before since isT. Qed.
