(* Theorems.v: the three statements, and instances of their hypotheses. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From Coq Require List.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import Accounting Machine Pointwise Summed.
Import Order.TTheory GRing.Theory Num.Theory.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Thms.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
(* What the theorems need of charges: true of rationals with +, <= (see below). *)
Hypothesis le_add0 : forall a d, cle a d -> cle (cadd a c0) d.
Hypothesis le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d.
Hypothesis le_0add : forall a d, cle (cadd c0 a) d -> cle a d.
Variables (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).

Section Two.   (* two data sets; weights are pairs (P0, P1) *)
Variable bstep : BS -> BQ -> outs ((F * F)%type * BA * BS).
Notation RUN := (run c0 cadd cle binit bdecl bstep).
Notation REACH := (reach c0 cadd cle binit bdecl bstep).
Notation FILTER R := (SF (newfilt c0 R) [::]).
Variable e : C -> F.   (* the ratio of a charge: exp, or the identity on ratios *)
Hypothesis e0 : e c0 = 1.
Hypothesis e_gt0 : forall c, 0 < e c.
Hypothesis eM : forall a b, e a * e b <= e (cadd a b).
Hypothesis e_mono : forall a b, cle a b -> e a <= e b.

(* 1. pure *)
Definition pure c (w : F * F) :=
  [/\ 0 <= w.1, 0 <= w.2, w.1 <= e c * w.2 & w.2 <= e c * w.1].
Lemma pure1 : pure c0 (1 : F * F).
Proof. by split; rewrite /= ?e0 ?mul1r ?ler01. Qed.
Lemma pureM a b (x y : F * F) : pure a x -> pure b y -> pure (cadd a b) (x * y).
Proof.
have M (p q p' q' : F) : 0 <= p -> 0 <= p' -> 0 <= q -> 0 <= q' ->
    p <= e a * q -> p' <= e b * q' -> p * p' <= e (cadd a b) * (q * q').
  move=> h1 h2 h3 h4 h5 h6; apply: le_trans (ler_pmul h1 h2 h5 h6) _.
  rewrite mulrACA; apply: ler_wpmul2r; [exact: mulr_ge0|exact: eM].
by case=> h1 h2 h3 h4 [k1 k2 k3 k4]; split; [apply: mulr_ge0|apply: mulr_ge0|apply: M|apply: M].
Qed.
Lemma pure_mono a b (x : F * F) : cle a b -> pure a x -> pure b x.
Proof.
move=> hab [h1 h2 h3 h4]; have h := e_mono hab.
by split=> //; [apply: le_trans h3 _|apply: le_trans h4 _]; apply: ler_wpmul2r.
Qed.

Theorem pure_filter :
  (forall k n S w, REACH n S (SB C (binit k)) w -> pure (bdecl k) w) ->
  forall R n S y, cle c0 R -> List.In y (RUN n S (FILTER R)) ->
    y.1.1 <= e R * y.1.2 /\ y.1.2 <= e R * y.1.1.
Proof.
move=> base R n S y ok hy; have h := run_reach hy.
by have [] := filter_good le_add0 le_addA le_0add pure1 pureM pure_mono base ok h.
Qed.
Theorem pure_filter_sets :
  (forall k n S w, REACH n S (SB C (binit k)) w -> pure (bdecl k) w) ->
  forall R n S (E : pred _), cle c0 R ->
    \sum_(y <- RUN n S (FILTER R) | E y.2) y.1.1 <= e R * \sum_(y <- RUN n S (FILTER R) | E y.2) y.1.2.
Proof.
move=> base R n S E ok.
have : forall y, List.In y (RUN n S (FILTER R)) -> y.1.1 <= e R * y.1.2.
  by move=> y hy; have [] := pure_filter base ok hy.
elim: (RUN _ _ _) => [|y l IH] h; first by rewrite !big_nil mulr0.
have IH' := IH (fun z hz => h z (or_intror hz)).
rewrite !big_cons; case: (E y.2) => //; rewrite mulrDr.
by apply: ler_add => //; apply: (h y (or_introl erefl)).
Qed.

(* 2. Renyi of order a+1 >= 2 (one direction; swap the pair for the other).
   x/0 = 0 here, so absolute continuity is a separate conjunct. *)
Variable a : nat.
Definition rphi (w : F * F) : F := w.1 ^+ a.+1 / w.2 ^+ a.
Definition ac (w : F * F) := w.2 = 0 -> w.1 = 0.
Lemma rphi1 : rphi 1 = 1.
Proof. by rewrite /rphi /= !expr1n divr1. Qed.
Lemma rphiM x y : rphi (x * y) = rphi x * rphi y.
Proof. by rewrite /rphi /= !exprMn invfM mulrACA. Qed.
Theorem renyi_filter :
  (forall b q j, (j < card (bstep b q))%N ->
     0 <= (out (bstep b q) j).1.1.1 /\ 0 <= (out (bstep b q) j).1.1.2) ->
  (forall k n S, (forall w, REACH n S (SB C (binit k)) w -> ac w) /\
     \sum_(y <- RUN n S (SB C (binit k))) y.1.1 ^+ a.+1 / y.1.2 ^+ a <= e (bdecl k)) ->
  forall R n S, cle c0 R -> (forall w, REACH n S (FILTER R) w -> ac w) /\
     \sum_(y <- RUN n S (FILTER R)) y.1.1 ^+ a.+1 / y.1.2 ^+ a <= e R.
Proof.
move=> nn base R n S ok; split.
  move=> w; apply: (@filter_good _ _ _ _ _ _ _ _ _ _ _ _ le_add0 le_addA le_0add (fun _ => ac)) => //.
  - by move=> _ _ x y hx hy /eqP; rewrite mulf_eq0 => /orP[/eqP/hx h|/eqP/hy h]; rewrite /= h ?mul0r ?mulr0.
  - by move=> k m S' w'; apply: (base k m S').1.
apply: (filter_val rphi1 rphiM _ e0 e_gt0 eM e_mono _ n S ok).
- by move=> b q j /nn[h1 h2]; apply: divr_ge0; apply: exprn_ge0.
- by move=> k m S'; apply: (base k m S').2.
Qed.
End Two.

(* Both laws of a run sum to 1 if those of each step do (phi = one component). *)
Lemma run_total (W : comRingType) (bstep : BS -> BQ -> outs (W * BA * BS)) (phi : W -> F) :
  phi 1 = 1 -> (forall x y, phi (x * y) = phi x * phi y) ->
  (forall b q, \sum_(j <- iota 0 (card (bstep b q))) phi (out (bstep b q) j).1.1 = 1) ->
  forall n S s, \sum_(y <- run c0 cadd cle binit bdecl bstep n S s) phi y.1 = 1.
Proof.
move=> p1 pM tot n S s; rewrite -/(val c0 cadd cle binit bdecl bstep phi n S s).
have st q s' : \sum_(j <- iota 0 (card (step c0 cadd cle binit bdecl bstep q s')))
    phi (out (step c0 cadd cle binit bdecl bstep q s') j).1.1 = 1.
  elim: q s' => [q|k i|k b|i q IH] [b'|T l]; rewrite /= ?big_cons ?big_nil ?addr0 //.
  - by case: (charge_at c0 cadd cle T k (decl bdecl i)) => [T0|]; rewrite /= big_cons big_nil addr0.
  - by case: (open_acct c0 T k b) => [T0|]; rewrite /= big_cons big_nil addr0.
  - by case: (drop i l) => [|s1 l2] /=; [rewrite big_cons big_nil addr0|apply: IH].
elim: n S s => [|n IH] S s; first by rewrite val0.
rewrite (valS _ _ _ _ _ _ p1 pM); case: (S [::]) => // q; rewrite -[RHS](st q s).
by apply: eq_bigr => j _; rewrite IH mulr1.
Qed.

(* 3. mixtures: the weights are (W_b, V_b) for one data set b. *)
Section Mixture.
Variable bstep : BS -> BQ -> outs ((F * F)%type * BA * BS).
Notation RUN := (run c0 cadd cle binit bdecl bstep).
Notation REACH := (reach c0 cadd cle binit bdecl bstep).
Variable s : C -> F.   (* 1 - d of a charge *)
Hypothesis s0 : s c0 = 1.
Hypothesis s_ge0 : forall c, 0 <= s c.
Hypothesis sM : forall a b, s (cadd a b) <= s a * s b.
Hypothesis s_anti : forall a b, cle a b -> s b <= s a.
Definition under c (w : F * F) := 0 <= w.1 /\ s c * w.1 <= w.2.
Theorem mixture_filter :
  (forall k n S w, REACH n S (SB C (binit k)) w -> under (bdecl k) w) ->
  forall R n S y, cle c0 R -> List.In y (RUN n S (SF (newfilt c0 R) [::])) ->
    s R * y.1.1 <= y.1.2.
Proof.
move=> base R n S y ok hy; have h := run_reach hy.
have [] // := filter_good le_add0 le_addA le_0add (good := under) _ _ _ base ok h.
- by split; rewrite /= ?s0 ?mul1r ?ler01.
- move=> a b x z [h1 h2] [h3 h4]; split; first exact: mulr_ge0.
  apply: le_trans (_ : (s a * x.1) * (s b * z.1) <= _).
    by rewrite mulrACA; apply: ler_wpmul2r; [apply: mulr_ge0|apply: sM].
  by apply: ler_pmul => //; apply: mulr_ge0.
- move=> a b x hab [h1 h2]; have h3 := s_anti hab; split=> //; apply: le_trans h2; exact: ler_wpmul2r.
Qed.
End Mixture.
End Thms.
