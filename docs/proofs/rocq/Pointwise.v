(* Pointwise.v *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From Coq Require List.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import Accounting Machine.
Import Order.TTheory GRing.Theory Num.Theory.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Pointwise.
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Notation SF := (SF (C := C) (BS := BS)).
Notation SB := (@SB C BS).
Notation query := (query C BK BQ).
Notation resp := (resp BA).
Notation state := (state C BS).
Notation strat := (strat C BK BQ BA).
Notation stop := (@stop C BK BQ BA).
Notation decl := (decl bdecl).
Notation init := (init c0 binit).
Notation step := (step c0 cadd cle binit bdecl bstep).
Notation run := (run c0 cadd cle binit bdecl bstep).
Notation reach := (reach c0 cadd cle binit bdecl bstep).
Hypothesis le_add0 : forall a d, cle a d -> cle (cadd a c0) d.
Hypothesis le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d.
Hypothesis le_0add : forall a d, cle (cadd c0 a) d -> cle a d.


Variable good : C -> W -> Prop.
Hypothesis good1 : good c0 1.
Hypothesis goodM : forall a b x y, good a x -> good b y -> good (cadd a b) (x * y).
Hypothesis good_mono : forall a b x, cle a b -> good a x -> good b x.
Hypothesis base_good : forall k n S w, reach n S (SB (binit k)) w -> good (bdecl k) w.

(* x is a product of weights that the children in l reach. *)
Fixpoint reached n (l : seq state) (x : W) : Prop :=
  if l is s :: l' then exists S y x', [/\ reach n S s y, reached n l' x' & x = y * x']
  else x = 1.

Lemma reached_cat n l1 l2 x : reached n (l1 ++ l2) x <->
  exists x1 x2, [/\ reached n l1 x1, reached n l2 x2 & x = x1 * x2].
Proof.
elim: l1 x => [|s l1 IH] x /=; split.
- by move=> h; exists 1, x; rewrite mul1r.
- by case=> x1 [x2 [-> h ->]]; rewrite mul1r.
- case=> S [y [x' [h1 /IH[x1 [x2 [h2 h3 ->]]] ->]]].
  by exists (y * x1), x2; split=> //; [exists S, y, x1 | rewrite mulrA].
- case=> x1 [x2 [[S [y [x' [h1 h2 ->]]]] h3 ->]].
  by exists S, y, (x' * x2); split=> //; [apply/IH; exists x', x2 | rewrite mulrA].
Qed.
Lemma reached_pad n l x : reached n l x -> reached n.+1 l x.
Proof.
elim: l x => //= s l IH x [S [y [x' [h1 h2 ->]]]].
by exists (trunc n S), y, x'; split=> //; [apply: reach_pad|apply: IH].
Qed.
Lemma reached_stop n l : reached n l 1.
Proof.
by elim: l => //= s l IH; exists stop, 1, 1; split=> //; [case: n {IH}|rewrite mulr1].
Qed.

Lemma pointwise n S T l w : cle (fspent T) (fbound T) -> reach n S (SF T l) w ->
  exists x u c, [/\ reached n l x, w = u * x, good c u & cle (cadd (fspent T) c) (fbound T)].
Proof.
elim/ltn_ind: n S T l w => -[|n] IH S T l w ok.
  by move=> /= ->; exists 1, 1, c0; split; rewrite ?mulr1 //; [apply: reached_stop|apply: le_add0].
have here x : x = 1 :> W -> exists x' u c, [/\ reached n.+1 l x', x = u * x', good c u & cle (cadd (fspent T) c) (fbound T)].
  by move=> ->; exists 1, 1, c0; split; rewrite ?mulr1 //; [apply: reached_stop|apply: le_add0].
have stay S' l' x : (forall y, reached n l' y -> reached n.+1 l y) -> reach n S' (SF T l') x ->
    exists x' u c, [/\ reached n.+1 l x', x = u * x', good c u & cle (cadd (fspent T) c) (fbound T)].
  by move=> hl /(IH n (ltnSn n) _ _ _ _ ok)[x' [u [c [h1 h2 h3 h4]]]]; exists x', u, c; split=> //; apply: hl.
rewrite /=; case: (S [::]) => [q|]; last exact: here.
case: q => [q|j k|j b|i q] /=.
- by case=> j [w' [_ -> h]]; rewrite mul1r; apply: stay h => y; apply: reached_pad.
- case E: (charge_at _ _ _ _ _ _) => [T'|] /= [i [w' [_ -> h]]]; rewrite mul1r; last first.
    by apply: stay h => y; apply: reached_pad.
  have [e1 e2 e3 e4] := charge_root E.
  have [x [u [c [hx hw hu hc]]]] := IH n (ltnSn n) _ _ _ _ e4 h.
  move: hx; rewrite -cats1 reached_cat => -[x1 [x2 [hx1 [S2 [y [x3 [hy hx3 hx2]]]] hx]]].
  rewrite /= in hx3; subst x3 x2; rewrite mulr1 in hx; subst x w'.
  have gy : good (decl k) y.
    case: k E e2 h e3 hy => [k|R] E e2 h e3 hy /=; first exact: base_good hy.
    have [x [u' [c' [/= -> -> hu' hc']]]] := IH n (ltnSn n) _ _ _ _ (e3 : cle (fspent (newfilt c0 R)) (fbound (newfilt c0 R))) hy.
    by rewrite mulr1; apply: good_mono hu'; apply: le_0add.
  exists x1, (y * u), (cadd (decl k) c); split.
  + exact: reached_pad.
  + by rewrite [y * u]mulrC -mulrA [y * x1]mulrC.
  + exact: goodM.
  + by apply: le_addA; rewrite -e2 -e1.
- case E: (open_acct _ _ _ _) => [T'|] /= [i [w' [_ -> h]]]; rewrite mul1r; last first.
    by apply: stay h => y; apply: reached_pad.
  have [e1 e2] := open_root E.
  have ok' : cle (fspent T') (fbound T') by rewrite e1 e2.
  have [x [u [c [hx hw hu hc]]]] := IH n (ltnSn n) _ _ _ _ ok' h.
  by exists x, u, c; split=> //; [apply: reached_pad|rewrite -e1 -e2].
- case E: (drop i l) => [|s' l2] /=.
    by case=> j [w' [_ -> h]]; rewrite mul1r; apply: stay h => y; apply: reached_pad.
  case=> j [w' [hj -> h]].
  have [x [u [c [hx hw hu hc]]]] := IH n (ltnSn n) _ _ _ _ ok h.
  move: hx => /reached_cat[x1 [x2 [hx1 [S2 [y [x3 [hy hx3 e2]]]] e1]]].
  set o := out (step q s') j in h hy *.
  exists (x1 * ((o.1.1 * y) * x3)), u, c; split=> //.
  + rewrite -(cat_take_drop i l) E; apply/reached_cat; exists x1, (o.1.1 * y * x3); split=> //.
      exact: reached_pad.
    exists (ask q (fun _ => S2)), (o.1.1 * y), x3; split=> //; last exact: reached_pad.
    by exists j, y; split.
  + by rewrite hw e1 e2 -!mulrA mulrCA [X in u * X]mulrCA.
Qed.

(* The filter is itself a mechanism of loss R. *)
Theorem filter_good R n S w : cle c0 R -> reach n S (SF (newfilt c0 R) [::]) w -> good R w.
Proof.
move=> ok /(pointwise (ok : cle (fspent (newfilt c0 R)) (fbound (newfilt c0 R))))[x [u [c [/= -> -> hu hc]]]].
by rewrite mulr1; apply: good_mono hu; apply: le_0add.
Qed.
End Pointwise.

