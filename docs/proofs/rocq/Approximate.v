(* Approximate.v: zCDP, and approximate zCDP (theory: a mechanism V that is, up to a
   factor s = 1 - delta, at least a mechanism W with zCDP). *)
Require Import Preamble Accounting Machine Behaviour Filter View Pure Renyi.
Local Open Scope ring_scope.

(* What the theorem needs of the share of a charge, s(c) = 1 - delta(c). *)
Record share_laws (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C)
    (cle : C -> C -> bool) (s : C -> F) : Prop := ShareLaws {
  s0 : s c0 = 1;
  s_ge0 : forall c, 0 <= s c;
  sM : forall a b, s (cadd a b) <= s a * s b;
  s_anti : forall a b, cle a b -> s b <= s a }.

Section Approximate.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
(* The mechanisms V, and the mechanisms W below them. *)
Variables (BSV BSW : bool -> Type) (initV : forall b, BK -> BSV b) (initW : forall b, BK -> BSW b).
Variable stepV : forall b, BSV b -> BQ -> outs (F * BA * BSV b).
Variable stepW : forall b, BSW b -> BQ -> outs (F * BA * BSW b).
Notation V b := (beh c0 cadd cle (initV b) bdecl (@stepV b)).
Notation W b := (beh c0 cadd cle (initW b) bdecl (@stepW b)).
Notation transcript := (transcript C BK BQ BA).
Variables (a0 : BA) (as_ : seq BA).
Hypothesis as_uniq : uniq as_.
Hypothesis as_all : forall b s q j, (j < card (@stepW b s q))%N -> (out (stepW s q) j).1.2 \in as_.
Hypothesis total : forall b s q,
  \sum_(j <- iota 0 (card (@stepW b s q))) (out (stepW s q) j).1.1 = 1.
Hypothesis nonneg : forall b s q j, (j < card (@stepW b s q))%N -> 0 <= (out (stepW s q) j).1.1.
(* e a c = exp (a (a + 1) rho(c)), and s c = 1 - delta(c). *)
Variables (e : nat -> C -> F) (s : C -> F).
Hypothesis Xe : forall a, ratio_laws c0 cadd cle (e a).
Hypothesis Xs : share_laws c0 cadd cle s.

(* On one data set: u true is the probability of W, and u false that of V. *)
Definition below_share c (u : bool -> F) := 0 <= u true /\ s c * u true <= u false.
Lemma below_laws : good_laws c0 cadd cle below_share.
Proof.
split.
- by move=> c u v uv; rewrite /below_share !uv.
- by split; rewrite ?mulr0.
- by split; rewrite ?(s0 Xs) ?mul1r ?ler01.
- move=> a b u v [h1 h2] [k1 k2]; split; first exact: mulr_ge0.
  apply: le_trans (_ : (s a * u true) * (s b * v true) <= _).
    by rewrite mulrACA; apply: ler_wpmul2r; [exact: mulr_ge0|exact: (sM Xs)].
  by apply: ler_pmul => //; apply: mulr_ge0 => //; apply: (s_ge0 Xs).
- move=> a b u ab [h1 h2]; split=> //; apply: le_trans h2.
  by apply: ler_wpmul2r => //; apply: (s_anti Xs).
Qed.

(* zCDP at all integer orders at once. *)
Definition zcdp c (P : bool -> transcript -> F) := forall a, renyi as_ a (e a c) P.
Theorem zcdp_filter R : cle c0 R ->
  (forall k, zcdp (bdecl k) (fun b h => W b (SB C (initW b k)) h)) ->
  zcdp R (fun b h => W b (SF (newfilt c0 R) [::]) h).
Proof.
by move=> ok base a; apply: (renyi_filter L a0 as_uniq as_all total nonneg (Xe a) _ ok) => k; apply: base.
Qed.

(* Approximate zCDP: P is at least the share s(c) of a mechanism Q with zCDP, on both
   data sets and at all transcripts; Q does not depend on the analyst. *)
Definition approximate c (P Q : bool -> transcript -> F) :=
  zcdp c Q /\ forall b h, 0 <= Q b h /\ s c * Q b h <= P b h.
Theorem approx_filter R : cle c0 R ->
  (forall k, approximate (bdecl k) (fun b h => V b (SB C (initV b k)) h)
                                   (fun b h => W b (SB C (initW b k)) h)) ->
  approximate R (fun b h => V b (SF (newfilt c0 R) [::]) h)
                (fun b h => W b (SF (newfilt c0 R) [::]) h).
Proof.
move=> ok base; split; first by apply: zcdp_filter => // k; have [] := base k.
by move=> b h; apply: (filter_beside L below_laws h _ ok) => k g; have [_ /(_ b g)] := base k.
Qed.
End Approximate.
