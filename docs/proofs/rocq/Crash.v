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
      if caps_ok c0 cle (Open j b) then
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
Lemma subseq_losses (rs xs : seq entry) : subseq rs xs -> subseq (losses rs) (losses xs).
Proof. exact: map_subseq. Qed.
Lemma subseq_at i (rs xs : seq entry) : subseq rs xs -> subseq (losses_at i rs) (losses_at i xs).
Proof. by move=> h; apply: map_subseq; rewrite subseq_filter filter_all (subseq_trans (filter_subseq _ _) h). Qed.
Lemma subseq_take (X : eqType) (rs cs : seq X) k : subseq rs (take k cs) -> subseq rs cs.
Proof. by move=> h; apply: subseq_trans h (take_subseq _ _). Qed.
Lemma subseq_rcons_both (X : eqType) (rs cs : seq X) c : subseq rs cs -> subseq (rcons rs c) (rcons cs c).
Proof. by move=> h; rewrite -!cats1 cat_subseq. Qed.

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
have [sz sub] := charge_all E ep; split.
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
   no account on disk has passed its bound.  While a launch is under way, its charge is the last one, and has not run. *)
Definition sound (s : system) : Prop :=
  [/\ books (stored s) (charges s), books (memory s) (take (known s) (charges s)),
      [/\ filt_ok cle (stored s), tree_ok c0 (stored s) & size (fsubs (memory s)) = size (fsubs (stored s))],
      subseq (ran s) (take (known s) (charges s)) &
      match under_way s with
      | Idle => True
      | Decided T x => exists2 j, pathof (stored s) j = Some x.1 & charge_at (stored s) j x.2 = Some T
      | Durable x => exists2 cs, charges s = rcons cs x & (known s <= size cs)%N
      | Charged x => exists2 cs, take (known s) (charges s) = rcons cs x & subseq (ran s) cs
      end].
Lemma reread_sound s : sound s -> sound (reread s).
Proof. by move=> [h1 h2 [h3 h3' _] /subseq_take h4 _]; split; rewrite //= take_size. Qed.
Lemma act_sound a s : sound s -> known s <= size (charges s) -> sound (act a s).
Proof.
move=> h hk; have h' := reread_sound h; have [h1 h2 [h3 h3' h3''] h4 h5] := h.
rewrite /act; case: a => [j c|||||j b] //.
- case E: (under_way s) h5 => [|T x|x|x] // _; case ep: (pathof _ _) => [p|] //.
  by case A: (charge_at _ _ _) => [T|] //; split=> //=; exists j.
- case E: (under_way s) h5 => [|T [p c]||] // [j ep A]; split=> /=.
  + exact: books_charge ep A h1.
  + by rewrite -cats1 takel_cat.
  + split; [|exact: charge_tree A|by have [-> _] := charge_all A ep].
    have := @replay1_ok C c0 cadd cle (stored s) (Launch j c) h3 isT.
    by move: A; rewrite /= /Accounting.charge_at ep => ->.
  + by rewrite -cats1 takel_cat.
  + by exists (charges s).
- case E: (under_way s) h5 => [||x|] // [cs e1 e2]; split=> //=; rewrite ?take_size //.
    exact: subseq_take h4.
  by exists cs => //; move: h4; rewrite e1 -cats1 takel_cat // => /subseq_take.
- case E: (under_way s) h5 => [|||x] // [cs e1 e2]; split=> //=.
  by rewrite e1; apply: subseq_rcons_both.
- case E: (under_way s) h5 => [|||] // _; case B: (caps_ok _ _ _) => //.
  case A: (open_acct _ _ _) => [T|] //; have bo := books_open A h1.
  split; rewrite //= ?take_size //; last exact: subseq_take h4.
  split=> //; last exact: open_tree A.
  by have := @replay1_ok C c0 cadd cle (stored s) (Open j b) h3 B; rewrite /= A.
Qed.
Lemma act_known a s : known s <= size (charges s) -> known (act a s) <= size (charges (act a s)).
Proof.
move=> h; rewrite /act; case: a => [j c|||||j b]; case: (under_way s) => [|T x|x|x] //=.
- by case: (pathof _ _) => [p|] //; case: (charge_at _ _ _) => [T|].
- by rewrite size_rcons leqW.
- by case: (if b is Some _ then _ else _) => //; case: (open_acct _ _ _) => [T|].
Qed.
Lemma start_sound B : within cle c0 B -> sound (start B).
Proof. by move=> ok; split=> //=; split; rewrite // /filt_ok /= ok. Qed.
Fixpoint acts (es : seq action) s := if es is e :: es' then acts es' (act e s) else s.
Lemma acts_sound es s : sound s -> known s <= size (charges s) ->
  sound (acts es s) /\ known (acts es s) <= size (charges (acts es s)).
Proof. by elim: es s => //= e es IH s h hk; apply: IH; [apply: act_sound|apply: act_known]. Qed.

(* Charge before run: whatever happens, in whichever order, and wherever it crashes,
   each mechanism that has run has a charge of its own on disk, at the accounts that it
   was launched at; the reading of each account on disk is the sum of the charges at or
   below it; and no account has passed its bound. *)
Theorem charge_before_run B es : within cle c0 B -> let s := acts es (start B) in
  [/\ subseq (ran s) (charges s), fspent (stored s) = total (losses (charges s)),
      forall i, i < size (fsubs (stored s)) -> aspent (at_ (stored s) i) = total (losses_at i (charges s)) &
      filt_ok cle (stored s)].
Proof.
move=> ok s; have [[[h1 _ h2 _] _ [h3 _ _] /subseq_take h4 _] _] := @acts_sound es _ (start_sound ok) isT.
by split.
Qed.

(* A charge that was written stays, whatever happens. *)
Lemma charges_stay es s : exists more, charges (acts es s) = charges s ++ more.
Proof.
elim: es s => [|e es IH] s /=; first by exists [::]; rewrite cats0.
have [more ->] := IH (act e s).
have [one ->] : exists one, charges (act e s) = charges s ++ one.
  rewrite /act; case: e => [j c|||||j b]; case: (under_way s) => [|T x|x|x];
    try by exists [::]; rewrite cats0.
  - by case: (pathof _ _) => [p|]; [case: (charge_at _ _ _) => [T|]|]; exists [::]; rewrite cats0.
  - by exists [:: x]; rewrite cats1.
  - by case: (caps_ok _ _ _); [case: (open_acct _ _ _) => [T|]|]; exists [::]; rewrite cats0.
by exists (one ++ more); rewrite catA.
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

(* No account vanishes. *)
Lemma accounts_stay es s i : sound s -> known s <= size (charges s) ->
  i < size (fsubs (stored s)) -> i < size (fsubs (stored (acts es s))).
Proof.
elim: es s => //= e es IH s h hk hi; apply: IH; [exact: act_sound|exact: act_known|].
have [_ _ _ _ h5] := h; rewrite /act; case: e => [j c|||||j b].
- by case: (under_way s) => //; case: (pathof _ _) => [p|] //; case: (charge_at _ _ _).
- by case: (under_way s) h5 => //= T x [j ep A]; have [-> _] := charge_all A ep.
- by case: (under_way s).
- by case: (under_way s).
- by [].
- case: (under_way s) => //; case: (caps_ok _ _ _) => //; case A: (open_acct _ _ _) => [T|] //=.
  by have [p _ [-> _ _]] := open_all A; apply: leqW.
Qed.
(* Never refund: no reading on disk ever falls, neither that of the root nor that of any
   account, whatever happens; and no account vanishes. *)
Theorem never_refund (O : order_laws c0 cadd cle) B es es' : within cle c0 B ->
  let T := stored (acts es (start B)) in let T' := stored (acts es' (acts es (start B))) in
  cle (fspent T) (fspent T') /\ forall i, i < size (fsubs T) ->
    i < size (fsubs T') /\ cle (aspent (at_ T i)) (aspent (at_ T' i)).
Proof.
move=> ok; have [h hk] := @acts_sound es _ (start_sound ok) isT; move: (acts es _) h hk => s h hk.
have [[[e1 p1 e2 _] _ _ _ _] _] := acts_sound es' h hk; have [[e3 p3 e4 _] _ _ _ _] := h.
have [more em] := charges_stay es' s.
have a : subseq (charges s) (charges (acts es' s)) by rewrite em prefix_subseq.
split=> [|i hi]; first by rewrite e1 e3; apply: (subseq_total O) p1; apply: subseq_losses.
have hi' := accounts_stay es' h hk hi; split=> //.
by rewrite e2 // e4 //; apply: (subseq_total O); [apply: subseq_at|apply: losses_at_ge0].
Qed.
(* On disk >= in memory >= what has run, for the root and for each account. *)
Theorem disk_memory_run (O : order_laws c0 cadd cle) B es : within cle c0 B -> let s := acts es (start B) in
  [/\ cle (total (losses (ran s))) (fspent (memory s)), cle (fspent (memory s)) (fspent (stored s)) &
      forall i, i < size (fsubs (memory s)) ->
        cle (total (losses_at i (ran s))) (aspent (at_ (memory s) i)) /\
        cle (aspent (at_ (memory s) i)) (aspent (at_ (stored s) i))].
Proof.
move=> ok s; have [[[e1 p1 e2 _] [e3 p3 e4 _] [_ _ sz] h4 _] _] := @acts_sound es _ (start_sound ok) isT.
have a : subseq (take (known s) (charges s)) (charges s) by apply: take_subseq.
split.
- by rewrite e3; apply: (subseq_total O) p3; apply: subseq_losses.
- by rewrite e3 e1; apply: (subseq_total O) p1; apply: subseq_losses.
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
