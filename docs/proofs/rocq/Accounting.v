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

Notation at_ T i := (nth dacct (fsubs T) i).
(* What they do to the accounts that are there. *)
Lemma charge_all T j c T' : charge_at T j c = Some T' -> exists2 p, pathof T j = Some p &
  [/\ size (fsubs T') = size (fsubs T), all (fun i => aok c (at_ T i)) p &
      forall i, i < size (fsubs T) -> at_ T' i = if i \in p then aadd c (at_ T i) else at_ T i].
Proof.
rewrite /charge_at; case: (pathof T j) => // p; rewrite /charge; case: ifP => // /and3P[_ _ h] [<-].
exists p => //; rewrite /= size_map size_iota; split=> // i hi.
by rewrite (nth_map 0) ?size_iota // nth_iota // add0n.
Qed.
Lemma open_all T j b T' : open_acct T j b = Some T' -> exists2 p, pathof T j = Some p &
  [/\ size (fsubs T') = (size (fsubs T)).+1, at_ T' (size (fsubs T)) = Acct b c0 (size (fsubs T) :: p) &
      forall i, i < size (fsubs T) -> at_ T' i = at_ T i].
Proof.
rewrite /open_acct; case: (pathof T j) => // p [<-]; exists p => //=.
by rewrite size_rcons nth_rcons ltnn eqxx; split=> // i hi; rewrite nth_rcons hi.
Qed.

(* The root and all accounts below it are within their bounds. *)
Definition acct_ok a := within (aspent a) (abound a).
Definition filt_ok T := within (fspent T) (fbound T) && all acct_ok (fsubs T).
(* A limit is opened with a bound of at least zero. *)
Definition cap_ok (b : option C) := if b is Some d then cle c0 d else true.
Lemma charge_ok T j c T' : charge_at T j c = Some T' -> filt_ok T -> filt_ok T'.
Proof.
move=> E /andP[_ /(all_nthP dacct) h]; have [_ _ _ h1] := charge_root E; rewrite /filt_ok h1 /=.
have [p _ [sz /allP h2 sub]] := charge_all E.
apply/(all_nthP dacct) => i; rewrite sz => hi; rewrite sub //; case: ifP => [/h2//|_]; exact: h.
Qed.
Lemma open_ok T j b T' : cap_ok b -> open_acct T j b = Some T' -> filt_ok T -> filt_ok T'.
Proof.
rewrite /open_acct; case: (pathof T j) => // p hb [<-] /andP[h1 h2].
by rewrite /filt_ok /= h1 all_rcons h2 /= /acct_ok /= andbT; case: b hb.
Qed.

(* --- parents ------------------------------------------------------------------ *)
(* What is needed of charges to compare two readings. *)
Record order_laws : Prop := OrderLaws {
  le_00 : cle c0 c0;
  le_add2 : forall a b c, cle a b -> cle (cadd a c) (cadd b c);
  le_addr : forall a b c, cle c0 c -> cle a b -> cle a (cadd b c) }.
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
Lemma charge_tree T j c T' : charge_at T j c = Some T' -> tree_ok T -> tree_ok T'.
Proof.
move=> E tr; have [p _ [sz _ h]] := charge_all E; move=> i k; rewrite sz => hi.
have path x : x < size (fsubs T) -> apath (at_ T' x) = apath (at_ T x).
  by move=> /h ->; case: ifP.
by rewrite path // => /(tr i k hi)[hk hs]; rewrite path.
Qed.
Lemma open_tree T j b T' : open_acct T j b = Some T' -> tree_ok T -> tree_ok T'.
Proof.
move=> E tr; have [p ep [sz new old]] := open_all E => i k.
rewrite sz ltnS leq_eqVlt => /orP[/eqP->|hi]; last first.
  by rewrite old // => /(tr i k hi)[hk hs]; rewrite (old k hk); split=> //; rewrite ltnS ltnW.
rewrite new /= inE => /orP[/eqP->|kp]; first by split; rewrite // new.
have [hk hs] := tree_path tr ep kp; rewrite old //; split; first exact: leqW.
by move=> x /hs; rewrite inE => ->; rewrite orbT.
Qed.
Lemma charge_parents (O : order_laws) T j c T' : charge_at T j c = Some T' ->
  tree_ok T -> parents_ok T -> parents_ok T'.
Proof.
move=> E tr [r0 h]; have [_ e1 hc _] := charge_root E; have [p ep [sz _ sub]] := charge_all E.
split=> [|i]; first by rewrite e1; apply: (le_addr O).
rewrite sz e1 => hi; have [h0 h1 h2] := h i hi; rewrite sub //.
case ip: (i \in p) => /=.
  split; [exact: (le_addr O)|exact: (le_add2 O)|].
  move=> k kp; have [hk _] := tr i k hi kp; have [_ hs] := tree_path tr ep ip.
  by rewrite sub // hs //=; apply/(le_add2 O)/h2.
split=> //; first exact: (le_addr O).
move=> k kp; have [hk _] := tr i k hi kp; rewrite sub //.
by case: ifP => _ /=; [apply: (le_addr O) => //; apply: h2|apply: h2].
Qed.
Lemma open_parents (O : order_laws) T j b T' : open_acct T j b = Some T' ->
  tree_ok T -> parents_ok T -> parents_ok T'.
Proof.
move=> E tr [r0 h]; have [_ e1] := open_root E; have [p ep [sz new old]] := open_all E.
split=> [|i]; first by rewrite e1.
rewrite sz e1 ltnS leq_eqVlt => /orP[/eqP->|hi]; last first.
  have [h0 h1 h2] := h i hi; rewrite old //; split=> // k kp.
  by have [hk _] := tr i k hi kp; rewrite old //; apply: h2.
rewrite new /=; split=> //; first exact: (le_00 O).
move=> k; rewrite inE => /orP[/eqP->|kp]; first by rewrite new; apply: (le_00 O).
by have [hk _] := tree_path tr ep kp; rewrite old //; have [] := h k hk.
Qed.
End Acct.
(* Natural numbers have them. *)
Lemma nat_order : order_laws 0 addn leq.
Proof. by split=> [|a b c|a b c h]; rewrite ?leq_add2r // => /leq_trans-> //; apply: leq_addr. Qed.
