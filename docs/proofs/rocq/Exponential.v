(* Exponential.v: real numbers.  Losses are real, and e(c) = exp(c).  This file alone uses
   axioms, those of the real numbers of mathcomp-analysis: functional and propositional
   extensionality and choice. *)
Require Import Preamble Accounting Machine Behaviour Filter View Hidden Pure Renyi Approximate Gaussian.
From mathcomp.analysis Require Import reals sequences exp.
Local Open Scope ring_scope.

Section Exponential.
Variable R : realType.
Notation plus := (fun x y : R => x + y).
Notation least := (fun x y : R => x <= y).
(* Real numbers are charges; exp is the ratio of a charge. *)
Lemma real_laws : charge_laws 0 plus least.
Proof.
split=> [a d|a d|a b c d|a c d|a c d]; rewrite ?addr0 ?add0r ?addrA //.
by move=> h; apply: le_trans; rewrite ler_addl.
Qed.
Lemma exp_laws : ratio_laws 0 plus least (@expR R).
Proof. by split=> [|c|a b|a b]; rewrite ?expR0 ?expR_gt0 ?expRD ?ler_expR. Qed.
(* exp (a alpha rho) bounds the moment of order alpha = a + 1: rho-zCDP. *)
Definition zexp (a : nat) (rho : R) : R := expR ((a * a.+1)%:R * rho).
Lemma zexp_laws a : ratio_laws 0 plus least (zexp a).
Proof.
split=> [|c|b c|b c h]; rewrite /zexp ?mulr0 ?expR0 ?expR_gt0 ?mulrDr ?expRD //.
by rewrite ler_expR; apply: ler_wpmul2l h; rewrite ler0n.
Qed.

(* rho-zCDP as one statement: if each mechanism of the price rho has, for all integers
   a >= 0 at once and for all analysts, a moment of order a + 1 of at most exp (a (a + 1) rho),
   then a filter with the bound B has one of at most exp (a (a + 1) B). *)
Section ZCDP.
Variables (BK BQ : Type) (BA : eqType) (rho : BK -> R) (BS : bool -> Type).
Variables (init : forall b, BK -> BS b) (step : forall b, BS b -> BQ -> outs (R * BA * BS b)).
Notation beh b := (beh 0 plus least (init b) rho (@step b)).
Variables (a0 : BA) (as_ : seq BA).
Theorem exp_zcdp B : uniq as_ ->
  (forall b s q j, (j < card (@step b s q))%N -> (out (step s q) j).1.2 \in as_) ->
  (forall b s q, \sum_(j <- iota 0 (card (@step b s q))) (out (step s q) j).1.1 = 1) ->
  (forall b s q j, (j < card (@step b s q))%N -> 0 <= (out (step s q) j).1.1) -> 0 <= B ->
  (forall k, zcdp as_ zexp (rho k) (fun b h => beh b (SB R (init b k)) h)) ->
  zcdp as_ zexp B (fun b h => beh b (SF (newfilt 0 B) [::]) h).
Proof. by move=> u m t p; apply: (zcdp_filter real_laws a0 u m t p zexp_laws). Qed.
End ZCDP.

(* Randomised response for each real number k: the true bit with the probability
   exp |k| / (1 + exp |k|). *)
Definition bits := [:: true; false].
Definition bit (b : bool) (k : R) (j : nat) : R :=
  if (j < 2)%N then (if b == (j == 0%N) then expR `|k| else 1) / (1 + expR `|k|) else 0.
Lemma exp_ge1 (k : R) : 1 <= expR `|k| :> R.
Proof. by rewrite -[1](@expR0 R) ler_expR normr_ge0. Qed.
Lemma denom_gt0 (k : R) : 0 < 1 + expR `|k| :> R.
Proof. by rewrite addr_gt0 ?ltr01 ?expR_gt0. Qed.
Lemma bit_ge0 b k j : 0 <= bit b k j.
Proof.
rewrite /bit; case: ifP => // _; apply: mulr_ge0; last by rewrite invr_ge0 ltW ?denom_gt0.
by case: ifP => _; rewrite ?ler01 // ltW ?expR_gt0.
Qed.
Lemma bit_total b k : \sum_(j <- iota 0 (size bits)) bit b k j = 1.
Proof.
rewrite /bit /= !big_cons big_nil addr0 /= -mulrDl.
by case: b => /=; rewrite 1?[_ + 1]addrC divff // gt_eqF ?denom_gt0.
Qed.
Lemma bit_ratio b k j : bit b k j <= expR `|k| * bit (~~ b) k j.
Proof.
rewrite /bit; case: ifP => _; last by rewrite mulr0.
rewrite mulrA ler_pmul2r ?invr_gt0 ?denom_gt0 //; have e1 := exp_ge1 k.
by case: b; case: (j == 0%N) => /=; rewrite ?mulr1 // mulr_ege1.
Qed.
(* In pure DP its price is |k|. *)
Notation noisy price b := (beh 0 plus least (@once_init R) price (project (sel R b) (once_step true bits bit))).
Lemma bit_pure (price : R -> R) k h :
  pure (@expR R) `|k| (fun b => noisy price b (SB R (once_init k)) h).
Proof. by apply: once_pure => [|||b j] //; [exact: bit_ge0|exact: exp_ge1|exact: bit_ratio]. Qed.
Theorem exp_view (T : Type) (K : seq (R * T)) As n S (E : T -> pred _) B b :
  0 <= B -> all (fun x => 0 <= x.1) K ->
  view_prob K As n S (noisy (fun k => `|k|) b (SF (newfilt 0 B) [::])) E <=
  expR B * view_prob K As n S (noisy (fun k => `|k|) (~~ b) (SF (newfilt 0 B) [::])) E.
Proof. exact: (pure_view real_laws exp_laws (@bit_pure (fun k => `|k|))). Qed.
(* In zCDP |k| / 2 suffices (from pure DP; for |k| < 1 the papers have less: k^2 / 2). *)
Definition half (k : R) := `|k| / 2%:R.
Theorem exp_bit_zcdp B : 0 <= B ->
  zcdp bits zexp B (fun b h => noisy half b (SF (newfilt 0 B) [::]) h).
Proof.
move=> B0; apply: (exp_zcdp true) => // [b|b|b|k a]; [exact: once_all|exact: (once_total true bit_total)|move=> s q j; exact: (once_nonneg bit_ge0)|].
have all b := @once_all R R _ true bits isT bit b.
have [h1 h2] := pure_renyi (isT : uniq bits) all (once_total true bit_total) a (@bit_pure half k).
split=> // b n S; apply: le_trans (h2 b n S) _; rewrite -expRMm /zexp ler_expR /half.
case: a {h1 h2} => [|a]; first by rewrite !mul0r.
rewrite natrM mulrACA ler_pemulr ?mulr_ge0 ?ler0n ?normr_ge0 //.
by rewrite ler_pdivl_mulr ?ltr0n // mul1r ler_nat.
Qed.
End Exponential.
(* There are such numbers: those of the standard library. *)
From mathcomp.analysis Require Rstruct.
Goal realType. exact: Rstruct.real_realType. Qed.
Goal True. idtac "Exponential.exp_view". Abort. Print Assumptions exp_view.
Goal True. idtac "Exponential.exp_zcdp". Abort. Print Assumptions exp_zcdp.
Goal True. idtac "Exponential.exp_bit_zcdp". Abort. Print Assumptions exp_bit_zcdp.
