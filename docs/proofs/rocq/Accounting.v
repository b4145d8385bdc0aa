(* Accounting.v: the account, as a program.
   An account is a tree.  Its root is a filter (it has a bound) or an odometer
   (it has none).  Below the root there are child odometers (without a bound) and
   limits (with one); each lies below the root or below another of them. *)
Require Import Preamble.

(* What the theorems need of charges.  It holds for rationals with + and <=, and
   componentwise for lists of them (curves). *)
Record charge_laws (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool) : Prop :=
  ChargeLaws {
    le_add0 : forall a d, cle a d -> cle (cadd a c0) d;
    le_0add : forall a d, cle (cadd c0 a) d -> cle a d;
    le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d;
    le_add0A : forall a c d, cle (cadd a c) d -> cle (cadd a (cadd c0 c)) d;
    le_addl : forall a c d, cle c0 c -> cle (cadd a c) d -> cle a d }.

Section Acct.
(* Charges (privacy losses): C with a zero, a sum and a decidable order.  Nothing
   else is known of them in this file. *)
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).

(* A child odometer or limit: its bound, what was charged to it, and its path:
   the places of itself and of those that it lies below. *)
Record acct := Acct { abound : option C; aspent : C; apath : seq nat }.
(* The whole account: bound, what was charged, and all accounts below the root. *)
Record filt := Filt { fbound : option C; fspent : C; fsubs : seq acct }.
Definition newfilt R := Filt (Some R) c0 [::].   (* a filter with the bound R *)
Definition newodo := Filt None c0 [::].          (* an odometer *)
Definition dacct := Acct (Some c0) c0 [::].      (* never used: for places that do not exist *)

(* c is at most the bound b, if there is one. *)
Definition within c (b : option C) := if b is Some d then cle c d else true.
(* The account a admits the charge c; a after it. *)
Definition aok c a := within (cadd (aspent a) c) (abound a).
Definition aadd c a := Acct (abound a) (cadd (aspent a) c) (apath a).

(* The path of the account j; None is the root, whose path is empty. *)
Definition pathof (T : filt) (j : option nat) : option (seq nat) :=
  if j is Some i then if drop i (fsubs T) is a :: _ then Some (apath a) else None
  else Some [::].

(* Charge c to the root and to all accounts of the path p, or refuse and change
   nothing: if c is below zero, or a bound would be passed. *)
Definition charge (T : filt) (p : seq nat) (c : C) : option filt :=
  if [&& cle c0 c, within (cadd (fspent T) c) (fbound T) &
      all (fun i => aok c (nth dacct (fsubs T) i)) p]
  then Some (Filt (fbound T) (cadd (fspent T) c)
       [seq if i \in p then aadd c (nth dacct (fsubs T) i)
            else nth dacct (fsubs T) i | i <- iota 0 (size (fsubs T))])
  else None.
Definition charge_at T j c :=
  if pathof T j is Some p then charge T p c else None.

(* Open a limit (b is its bound) or a child odometer (b = None) below the account j. *)
Definition open_acct (T : filt) (j : option nat) (b : option C) : option filt :=
  if pathof T j is Some p then
    Some (Filt (fbound T) (fspent T)
           (rcons (fsubs T) (Acct b c0 (size (fsubs T) :: p))))
  else None.

(* What a charge and an opening do to the root. *)
Lemma charge_root T j c T' : charge_at T j c = Some T' ->
  [/\ fbound T' = fbound T, fspent T' = cadd (fspent T) c, cle c0 c &
      within (fspent T') (fbound T')].
Proof.
rewrite /charge_at; case: (pathof T j) => // p; rewrite /charge.
by case: ifP => // /and3P[h1 h2 _] [<-] /=.
Qed.
Lemma open_root T j b T' : open_acct T j b = Some T' ->
  fbound T' = fbound T /\ fspent T' = fspent T.
Proof. by rewrite /open_acct; case: (pathof T j) => // p [<-]. Qed.

(* What they do to an account i that is there. *)
Lemma charge_sub T j c T' p i : charge_at T j c = Some T' -> pathof T j = Some p ->
  i < size (fsubs T) ->
  i < size (fsubs T') /\
  nth dacct (fsubs T') i =
    (if i \in p then aadd c (nth dacct (fsubs T) i) else nth dacct (fsubs T) i) /\
  (i \in p -> aok c (nth dacct (fsubs T) i)).
Proof.
rewrite /charge_at => ch pj hi; move: ch; rewrite pj /charge.
case: ifP => // /and3P[_ _ /allP h] [<-] /=; rewrite size_map size_iota; split=> //; split.
  by rewrite (nth_map 0) ?size_iota // nth_iota // add0n.
exact: h.
Qed.
Lemma open_sub T j b T' i : open_acct T j b = Some T' -> i < size (fsubs T) ->
  i < size (fsubs T') /\ nth dacct (fsubs T') i = nth dacct (fsubs T) i.
Proof.
rewrite /open_acct; case: (pathof T j) => // p [<-] /= hi.
by rewrite size_rcons ltnW // nth_rcons hi.
Qed.

(* Events of another implementation, replayed one after the other. *)
Inductive event := Launch (j : option nat) (c : C) | Open (j : option nat) (b : option C).
Inductive verdict := Granted | Refused | NoAccount.
Definition replay1 (T : filt) (e : event) : filt * verdict :=
  match e with
  | Launch j c => if pathof T j is Some p then
      (if charge T p c is Some T' then (T', Granted) else (T, Refused))
      else (T, NoAccount)
  | Open j b => if open_acct T j b is Some T' then (T', Granted) else (T, NoAccount)
  end.
Fixpoint replay (T : filt) (es : seq event) : filt * seq verdict :=
  if es is e :: es' then
    let: (T1, v) := replay1 T e in let: (T2, vs) := replay T1 es' in (T2, v :: vs)
  else (T, [::]).

(* The root and all accounts below it are within their bounds. *)
Definition acct_ok a := within (aspent a) (abound a).
Definition filt_ok T := within (fspent T) (fbound T) && all acct_ok (fsubs T).
(* A limit is opened with a bound of at least zero. *)
Definition caps_ok e := if e is Open _ (Some b) then cle c0 b else true.
Lemma replay1_ok T e : filt_ok T -> caps_ok e -> filt_ok (replay1 T e).1.
Proof.
case: e => [j c|j b] /=.
- case: (pathof T j) => [p|] // ok _; rewrite /charge; case: ifP => //=.
  move=> /and3P[_ h2 /allP h3]; case/andP: ok => _ ok.
  rewrite /filt_ok /= h2 /= all_map; apply/allP => i; rewrite mem_iota /= add0n => hi.
  case: ifP => ip; last by move/(all_nthP dacct): ok; apply.
  by move: (h3 _ ip); rewrite /aok /acct_ok /=.
- rewrite /open_acct; case: (pathof T j) => [p|] //= /andP[h1 h2] hb.
  by rewrite /filt_ok /= h1 all_rcons h2 /= /acct_ok /= andbT; case: b hb.
Qed.
(* After any events, no account has passed its bound. *)
Theorem replay_ok es T : filt_ok T -> all caps_ok es -> filt_ok (replay T es).1.
Proof.
elim: es T => [|e es IH] T //= ok /andP[h1 h2].
have := replay1_ok ok h1; case: (replay1 T e) => T1 v /= ok1.
by have := IH T1 ok1 h2; case: (replay T1 es) => T2 vs.
Qed.

(* --- parents ------------------------------------------------------------------ *)
(* What is needed of charges to compare two readings. *)
Record order_laws : Prop := OrderLaws {
  le_00 : cle c0 c0;
  le_add2 : forall a b c, cle a b -> cle (cadd a c) (cadd b c);
  le_addr : forall a b c, cle c0 c -> cle a b -> cle a (cadd b c) }.
Notation at_ T i := (nth dacct (fsubs T) i).
(* Each account on the path of another one is there, and its path is a part of that path. *)
Definition tree_ok T := forall i k, i < size (fsubs T) -> k \in apath (at_ T i) ->
  k < size (fsubs T) /\ {subset apath (at_ T k) <= apath (at_ T i)}.
(* No account has a reading below zero, or above that of an account above it, or above
   that of the root. *)
Definition parents_ok T := cle c0 (fspent T) /\ forall i, i < size (fsubs T) ->
  [/\ cle c0 (aspent (at_ T i)), cle (aspent (at_ T i)) (fspent T) &
      forall k, k \in apath (at_ T i) -> cle (aspent (at_ T i)) (aspent (at_ T k))].
(* The path of an account of a tree. *)
Lemma tree_path T j p k : tree_ok T -> pathof T j = Some p -> k \in p ->
  k < size (fsubs T) /\ {subset apath (at_ T k) <= p}.
Proof.
move=> tr; case: j => [i|] /=; last by case=> <-.
case E: (drop i (fsubs T)) => [|a l] //= [<-] kp.
have hi : i < size (fsubs T).
  by rewrite ltnNge; apply/negP => /drop_oversize; rewrite E.
have ea : at_ T i = a by move: E; rewrite (drop_nth dacct hi); case.
by rewrite -ea in kp *; exact: (tr i k hi kp).
Qed.
(* What a charge and an opening do to all accounts. *)
Lemma charge_all T j c T' p : charge_at T j c = Some T' -> pathof T j = Some p ->
  size (fsubs T') = size (fsubs T) /\
  forall i, i < size (fsubs T) -> at_ T' i = if i \in p then aadd c (at_ T i) else at_ T i.
Proof.
move=> E ep; split; last by move=> i hi; have [_ []] := charge_sub E ep hi.
by move: E; rewrite /charge_at ep /charge; case: ifP => // _ [<-]; rewrite /= size_map size_iota.
Qed.
Lemma open_all T j b T' : open_acct T j b = Some T' -> exists2 p, pathof T j = Some p &
  [/\ size (fsubs T') = (size (fsubs T)).+1, at_ T' (size (fsubs T)) = Acct b c0 (size (fsubs T) :: p) &
      forall i, i < size (fsubs T) -> at_ T' i = at_ T i].
Proof.
move=> E; have sub i := open_sub E (i := i); move: E; rewrite /open_acct.
case: (pathof T j) => [p|] // [e]; exists p => //; split=> [||i /sub[]] //.
  by rewrite -e /= size_rcons.
by rewrite -e /= nth_rcons ltnn eqxx.
Qed.
Lemma charge_tree T j c T' : tree_ok T -> charge_at T j c = Some T' -> tree_ok T'.
Proof.
move=> tr E; case ep: (pathof T j) => [p|]; last by move: E; rewrite /charge_at ep.
have [sz h] := charge_all E ep => i k; rewrite sz => hi.
have path x : x < size (fsubs T) -> apath (at_ T' x) = apath (at_ T x).
  by move=> /h ->; case: ifP.
by rewrite path // => /(tr i k hi)[hk hs]; rewrite path.
Qed.
Lemma open_tree T j b T' : tree_ok T -> open_acct T j b = Some T' -> tree_ok T'.
Proof.
move=> tr E; have [p ep [sz new old]] := open_all E => i k.
rewrite sz ltnS leq_eqVlt => /orP[/eqP->|hi]; last first.
  by rewrite old // => /(tr i k hi)[hk hs]; rewrite (old k hk); split=> //; rewrite ltnS ltnW.
rewrite new /= inE => /orP[/eqP->|kp]; first by split; rewrite // new.
have [hk hs] := tree_path tr ep kp; rewrite old //; split; first exact: leqW.
by move=> x /hs; rewrite inE => ->; rewrite orbT.
Qed.
Lemma replay1_tree T e : tree_ok T -> tree_ok (replay1 T e).1.
Proof.
case: e => [j c|j b] /= tr; last by case E: (open_acct _ _ _) => [T'|] //; apply: open_tree E.
case ep: (pathof T j) => [p|] //; case E: (charge T p c) => [T'|] //=.
by apply: (@charge_tree T j c) => //; rewrite /charge_at ep.
Qed.
Lemma replay1_parents (O : order_laws) T e : tree_ok T -> parents_ok T -> parents_ok (replay1 T e).1.
Proof.
move=> tr [r0 h]; case: e => [j c|j b] /=.
- case ep: (pathof T j) => [p|] //; case E': (charge T p c) => [T'|] //=.
  have E : charge_at T j c = Some T' by rewrite /charge_at ep.
  have [_ e1 hc _] := charge_root E; have [sz sub] := charge_all E ep.
  split=> [|i]; first by rewrite e1; apply: (le_addr O).
  rewrite sz e1 => hi; have [h0 h1 h2] := h i hi; rewrite sub //.
  case ip: (i \in p) => /=.
    split; [exact: (le_addr O)|exact: (le_add2 O)|].
    move=> k kp; have [hk _] := tr i k hi kp; have [_ hs] := tree_path tr ep ip.
    by rewrite sub // hs //=; apply/(le_add2 O)/h2.
  split=> //; first exact: (le_addr O).
  move=> k kp; have [hk _] := tr i k hi kp; rewrite sub //.
  by case: ifP => _ /=; [apply: (le_addr O) => //; apply: h2|apply: h2].
- case E: (open_acct T j b) => [T'|] //=.
  have [_ e1] := open_root E; have [p ep [sz new old]] := open_all E.
  split=> [|i]; first by rewrite e1.
  rewrite sz e1 ltnS leq_eqVlt => /orP[/eqP->|hi]; last first.
    have [h0 h1 h2] := h i hi; rewrite old //; split=> // k kp.
    by have [hk _] := tr i k hi kp; rewrite old //; apply: h2.
  rewrite new /=; split=> //; first exact: (le_00 O).
  move=> k; rewrite inE => /orP[/eqP->|kp]; first by rewrite new; apply: (le_00 O).
  by have [hk _] := tree_path tr ep kp; rewrite old //; have [] := h k hk.
Qed.
(* Parent >= child.  After any events, from a filter or an odometer: the reading of each
   account is at most that of each account above it, and at most that of the root. *)
Theorem parent_child (O : order_laws) es b : parents_ok (replay (Filt b c0 [::]) es).1.
Proof.
have : tree_ok (Filt b c0 [::]) by [].
have : parents_ok (Filt b c0 [::]) by split=> //; apply: (le_00 O).
elim: es (Filt b c0 [::]) => [|e es IH] T //= pk tr.
have := @replay1_parents O T e tr pk; have := @replay1_tree T e tr.
case: (replay1 T e) => T1 v /= tr1 pk1.
by have := IH T1 pk1 tr1; case: (replay T1 es) => T2 vs.
Qed.
End Acct.

(* --- computed ----------------------------------------------------------------- *)
Lemma nat_order : order_laws 0 addn leq.
Proof. by split=> [|a b c|a b c h]; rewrite ?leq_add2r // => /leq_trans-> //; apply: leq_addr. Qed.
(* A limit of 3 below an odometer, a child odometer below the limit.  A launch at the child
   odometer, one at the limit, one that the limit refuses, one at the root. *)
Definition events := [:: Open None (Some 3); Open (Some 0) None; Launch (Some 1) 1; Launch (Some 0) 2;
  Launch (Some 1) 1; Launch None 4].
Definition replayed := replay 0 addn leq (newodo 0) events.
Goal (fspent replayed.1, map (@aspent nat) (fsubs replayed.1), map (@apath nat) (fsubs replayed.1)) =
  (7, [:: 3; 1], [:: [:: 0]; [:: 1; 0]]).
Proof. by vm_compute. Qed.
Goal replayed.2 = [:: Granted; Granted; Granted; Granted; Refused; Granted]. Proof. by vm_compute. Qed.
Goal parents_ok 0 leq replayed.1. Proof. exact: (parent_child nat_order events None). Qed.
