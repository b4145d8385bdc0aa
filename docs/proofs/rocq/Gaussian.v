(* Gaussian.v: mechanisms that answer once, with any finite distribution; and one with
   Gaussian-like noise, whose zCDP does not come from its pure loss. *)
Require Import Preamble Accounting Machine Behaviour Filter View Summed Hidden Pure Renyi Approximate RandomizedResponse.
Local Open Scope ring_scope.

Section Once.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK : Type) (BA : eqType) (bdecl : BK -> C) (a0 : BA) (as_ : seq BA).
Hypothesis as_uniq : uniq as_.
Hypothesis a0_in : a0 \in as_.
(* On the data set b the mechanism k answers the j-th answer of as_ with the probability
   dist b k j, once; afterwards it answers a0. *)
Variable dist : bool -> BK -> nat -> F.
Hypothesis dist_ge0 : forall b k j, 0 <= dist b k j.
Hypothesis dist_total : forall b k, \sum_(j <- iota 0 (size as_)) dist b k j = 1.
Definition once_step (s : BK * bool) (q : unit) : outs ((F * F)%type * BA * (BK * bool)) :=
  if s.2 then Outs 1 (fun _ => (1, a0, s))
  else Outs (size as_) (fun j => ((dist false s.1 j, dist true s.1 j), nth a0 as_ j, (s.1, true))).
Definition once_init (k : BK) : BK * bool := (k, false).
Notation once b := (beh c0 cadd cle once_init bdecl (project (sel F b) once_step)).
Lemma sel_dist b k j : sel F b (dist false k j, dist true k j) = dist b k j. Proof. by case: b. Qed.

Lemma once_all b s q j : (j < card (project (sel F b) once_step s q))%N ->
  (out (project (sel F b) once_step s q) j).1.2 \in as_.
Proof. by rewrite /project /once_step /=; case: s.2 => //= h; rewrite mem_nth. Qed.
Lemma once_total b s q : \sum_(j <- iota 0 (card (project (sel F b) once_step s q)))
  (out (project (sel F b) once_step s q) j).1.1 = 1.
Proof.
rewrite /project /once_step /=; case: s.2 => /=; first by rewrite big_cons big_nil addr0; case: (b).
by rewrite -(dist_total b s.1); apply: eq_bigr => j _; rewrite sel_dist.
Qed.
Lemma once_nonneg b s q j : (j < card (project (sel F b) once_step s q))%N ->
  0 <= (out (project (sel F b) once_step s q) j).1.1.
Proof.
by rewrite /project /once_step /=; case: s.2 => /= _; rewrite ?sel_dist // rmorph1 ler01.
Qed.
(* At each transcript: the same on both data sets, or a multiple of some dist b k j. *)
Lemma once_after k h : exists2 v, 0 <= v & forall b, once b (SB C (k, true)) h = v.
Proof.
elim: h => [|[q r] h [v v0 e]]; first by exists 1.
exists (if (if q is QB _ then RB a0 else RBad BA) == r then v else 0) => [|b]; first by case: ifP.
by case: q => [q|j i|j c|m q]; rewrite /= big_cons big_nil /= ?rmorph1 mul1r addr0 e; case: ifP.
Qed.
Lemma once_split k h : exists2 v, 0 <= v & (forall b, once b (SB C (k, false)) h = v) \/
  exists j, forall b, once b (SB C (k, false)) h = dist b k j * v.
Proof.
elim: h => [|[q r] h [v v0 e]]; first by exists 1 => //; left.
case nq : (to_base q); last first.
  have s b : once b (SB C (k, false)) ((q, r) :: h) = if RBad BA == r then once b (SB C (k, false)) h else 0.
    by case: q nq => // [j i|j c|m q] _; rewrite /= big_cons big_nil /= mul1r addr0.
  exists (if RBad BA == r then v else 0); first by case: ifP.
  by case: e => [e|[j e]]; [left=> b|right; exists j => b]; rewrite s; case: ifP => _; rewrite ?e ?mulr0.
case: q nq => // q _.
have [w w0 ew] := once_after k h.
case E: (r \in [seq RB a | a <- as_]); last first.
  exists 0 => //; left=> b; rewrite beh_cons big_seq_cond big1 // => j.
  rewrite mem_iota add0n => /andP[/= hj /eqP er]; by move: E; rewrite -er map_f // mem_nth.
case/mapP: E => a ha ->; exists w => //; right; exists (index a as_) => b.
by rewrite beh_cons sum_index //= sel_dist ew.
Qed.
(* Pure DP: the largest ratio of two probabilities of the same answer. *)
Variable e : C -> F.
Lemma once_pure c k : 1 <= e c -> (forall b j, dist b k j <= e c * dist (~~ b) k j) ->
  forall h, pure e c (fun b => once b (SB C (once_init k)) h).
Proof.
move=> c1 r h; rewrite /pure /once_init; have [v v0 [E|[j E]]] := once_split k h; rewrite !E.
  by split; rewrite // ler_pemull.
by split; rewrite ?mulr_ge0 // mulrA ler_wpmul2r // (r false, r true).
Qed.
(* Renyi DP: the sum over the answers. *)
Lemma once_renyi a c k : (forall j, dist true k j = 0 <-> dist false k j = 0) -> 1 <= c ->
  (forall b, \sum_(j <- iota 0 (size as_)) dist b k j ^+ a.+1 / dist (~~ b) k j ^+ a <= c) ->
  renyi as_ a c (fun b h => once b (SB C (once_init k)) h).
Proof.
move=> abs c1 bound; split=> [h|b n S].
  rewrite /ac /once_init; have [v v0 [E|[j E]]] := once_split k h; rewrite !E //.
  by split=> /eqP; rewrite mulf_eq0 => /orP[/eqP/abs->|/eqP->]; rewrite ?mul0r ?mulr0.
have all s q j : (j < card (once_step s q))%N -> (out (once_step s q) j).1.2 \in as_ by apply: once_all.
have distinct s q : uniq (replies (once_step s q)).
  rewrite /once_step; case: s.2 => //=; rewrite -[replies _]/(mkseq (nth a0 as_) (size as_)).
  by rewrite mkseq_nth.
pose v := val c0 cadd cle once_init bdecl once_step as_ (rphi b a).
have step m S1 s := @valS _ _ c0 cadd cle _ _ _ _ once_init bdecl once_step _ as_uniq all distinct _ _
  (rphi0 F b a) (rphi1 F b a) (@rphiM F b a) m S1 s; rewrite -/v in step.
have nothing S1 s : v 0%N S1 s = 1 := val0 _ _ _ _ _ _ _ (rphi1 F b a) S1 s.
have one m S1 : v m S1 (SB C (k, true)) = 1.
  elim: m S1 => [|m IH] S1 //; rewrite step; case: (S1 [::]) => // -[q|j i|j x|i q];
    by rewrite /= big_cons big_nil IH (rphi1 F b a) mulr1 addr0.
rewrite (_ : moment _ _ _ _ _ _ = v n S (SB C (k, false))); last first.
  by apply: eq_bigr => h _; rewrite /once_init !beh_project.
elim: n S => [|n IH] S; first by rewrite nothing.
rewrite step; case: (S [::]) => // -[q|j i|j x|i q];
  try by rewrite /= big_cons big_nil (rphi1 F b a) mul1r addr0.
apply: le_trans (bound b); rewrite le_eqVlt; apply/orP; left; apply/eqP.
by apply: eq_bigr => j _; rewrite one mulr1 /rphi /= !sel_dist.
Qed.
End Once.

(* --- Gaussian-like noise --------------------------------------------------------- *)
(* The integers x = -2, ..., 2 have probabilities proportional to 2^(-x^2), as the Gaussian with
   sigma^2 = 1 / (2 ln 2), and 2 is followed by -2.  The data set true shifts the noise by 1. *)
Definition residues : seq nat := iota 0 5.
Definition noise (j : nat) : rat :=
  match j with 0 | 4 => 1 / 34%:R | 1 | 3 => 4%:R / 17%:R | 2 => 8%:R / 17%:R | _ => 0 end.
Definition shifted (b : bool) (k : unit) (j : nat) : rat :=
  if b then (if j is j'.+1 then if (j' < 4)%N then noise j' else 0 else noise 4) else noise j.
Definition gprice (k : unit) : nat := 1%N.
Ltac each j := do 5 ! (case: j => [|j]; first by vm_compute).
Lemma shifted_ge0 b k j : 0 <= shifted b k j.
Proof. by case: b; each j. Qed.
Lemma shifted_total b k : \sum_(j <- iota 0 (size residues)) shifted b k j = 1.
Proof. by rewrite unlock; case: b; apply/eqP; vm_compute. Qed.
(* Its ratios are up to 2^3: its price in pure DP is 3. *)
Lemma shifted_ratio b k j : shifted b k j <= e2 3 * shifted (~~ b) k j.
Proof. by case: b; each j; rewrite /= mulr0. Qed.
(* Its price in zCDP is 1, that of this Gaussian (rho = ln 2): the moments of order
   a + 1 are at most 2^(a (a + 1)).  Up to a = 1 they are computed; from a = 2 on, 2^(3 a)
   is not larger. *)
Lemma shifted_moment a b k :
  \sum_(j <- iota 0 (size residues)) shifted b k j ^+ a.+1 / shifted (~~ b) k j ^+ a <= ez a 1.
Proof.
case: (leqP 2 a) => [h2|]; last first.
  by rewrite unlock; case: b; case: a => [|[|a]] // _; vm_compute.
apply: le_trans (_ : e2 (3 * a) * (\sum_(j <- iota 0 (size residues)) shifted b k j) <= _); last first.
  by rewrite shifted_total mulr1 /e2 /ez muln1 ler_weexpn2l // [(3 * a)%N]mulnC leq_mul2l ltnS h2 orbT.
rewrite mulr_sumr; apply: ler_sum => j _.
have := shifted_ratio b k j; have := shifted_ge0 (~~ b) k j; have := shifted_ge0 b k j.
move: (shifted b k j) (shifted (~~ b) k j) => x y x0 y0 xy.
case: (eqVneq y 0) => [z|nz].
  by rewrite z expr0n (gtn_eqF (ltnW h2)) invr0 mulr0 mulr_ge0 // exprn_ge0.
rewrite ler_pdivr_mulr ?exprn_gt0 ?lt_neqAle 1?eq_sym ?nz // exprSr mulrAC /e2 exprM -exprMn.
by apply: ler_wpmul2r => //; apply: ler_expn2r; rewrite ?nnegrE ?mulr_ge0 ?exprn_ge0.
Qed.
Notation gauss b := (beh 0%N addn leq (@once_init unit) gprice (project (sel rat_realFieldType b) (once_step 0%N residues shifted))).
(* In filters nested to any depth, against any analyst: zCDP for the bound R. *)
Theorem gauss_filter R : zcdp residues ez R (fun b h => gauss b (FILTER R) h).
Proof.
apply: (@zcdp_filter _ _ 0%N addn leq nat_laws unit unit _ gprice _ (fun=> @once_init unit)
  (fun b => project (sel _ b) (once_step 0%N residues shifted)) 0%N residues _ _ _ _ ez ez_laws _ (leq0n R)).
- by [].
- exact: once_all.
- exact: once_total shifted_total.
- exact: once_nonneg shifted_ge0.
- move=> k a; apply: once_renyi => [||||b].
  + by [].
  + by [].
  + by move=> j; each j.
  + by apply: exprn_ege1.
  + exact: shifted_moment.
Qed.

(* --- computed ----------------------------------------------------------------- *)
(* Two copies under the bound 2, a third launch is refused.  The answer 2 of both is
   e(2) = 4 times as probable on one data set; the answer 1 of both 64 times: pure DP with the
   bound 2 would not allow it. *)
Notation ASK i := (QSub i (QB nat unit tt)).
Notation LAUNCH := (QLaunch unit None (NB nat tt)).
Definition heard x y : seq (query nat unit unit * resp nat) :=
  [:: (LAUNCH, RLaunched nat); (LAUNCH, RLaunched nat); (LAUNCH, RRefused nat);
      (ASK 1%N, RB x); (ASK 0%N, RB y)].
Notation both x y := (gauss false (FILTER 2%N) (heard x y), gauss true (FILTER 2%N) (heard x y)).
Goal [:: both 2 2; both 1 1] = [::
  ((8%:R / 17%:R) ^+ 2, (4%:R / 17%:R) ^+ 2); ((4%:R / 17%:R) ^+ 2, (1 / 34%:R) ^+ 2)] :> seq (rat * rat).
Proof. by rewrite -!computedE; apply/eqP; vm_compute. Qed.
(* The moment of order 2 of one copy: 809/272, and the bound of its price is 4. *)
Goal \sum_(j <- iota 0 5) shifted false tt j ^+ 2 / shifted true tt j = 809%:R / 272%:R.
Proof. by rewrite unlock; apply/eqP; vm_compute. Qed.
