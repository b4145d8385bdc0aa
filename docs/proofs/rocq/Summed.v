(* Summed.v: composition of sums over all transcripts, for mechanisms whose answers differ in
   each step, so that an analyst who sees the answers sees all. *)
Require Import Preamble Accounting Machine Behaviour Filter View Pure.
Local Open Scope ring_scope.

Section Summed.
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ : Type) (BA : eqType) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Notation state := (state C BS).
Notation analyst := (analyst C BK BQ BA).
Notation decl := (decl bdecl).
Notation init := (init c0 binit).
Notation step := (step c0 cadd cle binit bdecl bstep).
Notation beh := (beh c0 cadd cle binit bdecl bstep).
Variable as_ : seq BA.
Hypothesis as_uniq : uniq as_.
Hypothesis as_all : forall s q j, (j < card (bstep s q))%N -> (out (bstep s q) j).1.2 \in as_.
(* The answers of a step, one for each outcome. *)
Definition replies (X S : Type) (o : outs (W * X * S)) := [seq (out o j).1.2 | j <- iota 0 (card o)].
Hypothesis distinct : forall s q, uniq (replies (bstep s q)).
Lemma step_distinct q s : uniq (replies (step q s)).
Proof.
elim: q s => [q|k x|k b|m q IH] [b'|T l] //; rewrite /replies /=.
- by rewrite (map_comp (@RB BA)) map_inj_uniq; [apply: distinct|move=> x y []].
- by case: (charge_at c0 cadd cle T k _).
- by case: (open_acct c0 T k b).
- by case: (drop m l) => [|s' l2] //; apply: IH.
Qed.
Variables (F : realFieldType) (phi : W -> F) (e : C -> F).
Hypothesis phi0 : phi 0 = 0.
Hypothesis phi1 : phi 1 = 1.
Hypothesis phiM : forall x y, phi (x * y) = phi x * phi y.
Hypothesis bphi0 : forall b q j, (j < card (bstep b q))%N -> 0 <= phi (out (bstep b q) j).1.1.
Hypothesis X : ratio_laws c0 cadd cle e.
Let e_gt0 := e_gt0 X.

(* The sum over all transcripts of the analyst S, who asks at most n queries. *)
Definition val n (S : analyst) s : F := \sum_(h <- transcripts (answers as_) n S) phi (beh s h).
Hypothesis base_val : forall k n S, val n S (SB C (binit k)) <= e (bdecl k).

Lemma step_phi0 q s j : (j < card (step q s))%N -> 0 <= phi (out (step q s) j).1.1.
Proof.
elim: q s j => [q|k i|k b|i q IH] [s|T l] j; rewrite /= ?phi1 ?ler01 //.
- exact: bphi0.
- by case: (charge_at c0 cadd cle T k (decl i)) => [T0|]; rewrite /= phi1 ler01.
- by case: (open_acct c0 T k b) => [T0|]; rewrite /= phi1 ler01.
- by case: (drop i l) => [|s' l2] /=; [rewrite phi1 ler01|apply: IH].
Qed.

(* At most one outcome has the answer r. *)
Lemma phi_one (g : nat -> resp BA) r (f : nat -> W) (s : seq nat) : uniq (map g s) ->
  phi (\sum_(j <- s | g j == r) f j) = \sum_(j <- s | g j == r) phi (f j).
Proof.
elim: s => [|i s IH] /=; first by rewrite !big_nil.
case/andP=> new us; rewrite !big_cons; case: eqP => [gi|_]; last exact: IH.
rewrite ![\sum_(j <- s | _) _]big1_seq ?addr0 // => j /andP[/eqP gj js];
  by move: new; rewrite gi -gj map_f.
Qed.
Lemma valS n S s : val n.+1 S s =
  if S [::] is Some q then
    \sum_(j <- iota 0 (card (step q s))) phi (out (step q s) j).1.1 *
       val n (after S (out (step q s) j).1.2) (out (step q s) j).2
  else 1.
Proof.
rewrite /val transcriptsS; case: (S [::]) => [q|]; last by rewrite big_cons big_nil addr0.
rewrite big_flatten big_map -(sum_by_answer c0 cadd cle binit bdecl as_uniq as_all).
apply: eq_bigr => r _; rewrite big_map; under eq_bigr do rewrite beh_cons phi_one ?step_distinct //.
rewrite exchange_big; apply: eq_bigr => j /eqP -> /=.
by rewrite mulr_sumr; apply: eq_bigr => h _; rewrite phiM.
Qed.
Lemma val0 S s : val 0 S s = 1.
Proof. by rewrite /val big_cons big_nil addr0. Qed.
(* Analysts who ask nothing; who stop after m queries; who ask q first. *)
Definition stop : analyst := fun _ => None.
Definition trunc m (S : analyst) : analyst := fun rs => if (size rs < m)%N then S rs else None.
Definition ask q (f : resp BA -> analyst) : analyst :=
  fun rs => if rs is r :: rs' then f r rs' else Some q.
Lemma val_stop n s : val n stop s = 1.
Proof. by case: n => [|n]; rewrite ?val0 ?valS. Qed.
Lemma val_trunc n S s : val n.+1 (trunc n S) s = val n S s.
Proof.
elim: n S s => [|n IH] S s; first by rewrite valS val0.
rewrite valS [RHS]valS {1}/trunc [(_ < _)%N]/=; case: (S [::]) => // q.
by apply: eq_bigr => j _; rewrite -IH.
Qed.
Lemma iota_sum_le N (f g : nat -> F) : (forall j, (j < N)%N -> f j <= g j) ->
  \sum_(j <- iota 0 N) f j <= \sum_(j <- iota 0 N) g j.
Proof. by move=> h; rewrite big_seq [X in _ <= X]big_seq; apply: ler_sum => j; rewrite mem_iota => /h. Qed.
Lemma val_ge0 n S s : 0 <= val n S s.
Proof.
elim: n S s => [|n IH] S s; first by rewrite val0 ler01.
rewrite valS; case: (S [::]) => [q|]; last exact: ler01.
rewrite big_seq; apply: sumr_ge0 => j; rewrite mem_iota => /= hj.
by apply: mulr_ge0; [apply: step_phi0|apply: IH].
Qed.

(* v is a product of values that analysts of the single children attain: this
   stands in for the product of suprema, so no supremum has to exist. *)
Fixpoint attained n (l : seq state) (v : F) : Prop :=
  if l is s :: l' then exists S v', attained n l' v' /\ v = val n S s * v' else v = 1.

Lemma attained_cat n l1 l2 x : attained n (l1 ++ l2) x <->
  exists x1 x2, [/\ attained n l1 x1, attained n l2 x2 & x = x1 * x2].
Proof.
elim: l1 x => [|s l1 IH] x /=; split.
- by move=> h; exists 1, x; rewrite mul1r.
- by case=> x1 [x2 [-> h ->]]; rewrite mul1r.
- case=> S [x' [/IH[x1 [x2 [h2 h3 ->]]] ->]].
  by exists (val n S s * x1), x2; split=> //; [exists S, x1 | rewrite mulrA].
- case=> x1 [x2 [[S [x' [h2 ->]]] h3 ->]].
  by exists S, (x' * x2); split=> //; [apply/IH; exists x', x2 | rewrite mulrA].
Qed.
Lemma attained_pad n l x : attained n l x -> attained n.+1 l x.
Proof.
elim: l x => //= s l IH x [S [x' [h ->]]]; exists (trunc n S), x'.
by rewrite val_trunc; split=> //; apply: IH.
Qed.
Lemma attained_stop n l : attained n l 1.
Proof. by elim: l => //= s l IH; exists stop, 1; rewrite val_stop mulr1. Qed.
Lemma attained_ge0 n l v : attained n l v -> 0 <= v.
Proof.
elim: l v => /= [v ->|s l IH v [S [v' [h ->]]]]; first exact: ler01.
by apply: mulr_ge0; [apply: val_ge0|apply: IH].
Qed.

Lemma choose N A (x0 : A) (P : nat -> A -> Prop) :
  (forall j, (j < N)%N -> exists x, P j x) -> exists f, forall j, (j < N)%N -> P j (f j).
Proof.
elim: N => [|N IH] h; first by exists (fun _ => x0).
have [|f hf] := IH; first by move=> j hj; apply: h; apply: ltnW.
have [x hx] := h N (ltnSn N).
exists (fun j => if j == N then x else f j) => j; rewrite ltnS leq_eqVlt.
by case: eqP => [->|_] //=; apply: hf.
Qed.
Lemma pickmax N n l (f : nat -> F) : (forall j, (j < N)%N -> attained n l (f j)) ->
  exists2 u, attained n l u & forall j, (j < N)%N -> f j <= u.
Proof.
elim: N => [|N IH] h; first by exists 1 => //; apply: attained_stop.
have [|u hu hm] := IH; first by move=> j hj; apply: h; apply: ltnW.
case: (lerP (f N) u) => c.
  by exists u => // j; rewrite ltnS leq_eqVlt => /orP[/eqP->|/hm].
exists (f N); first exact: h.
move=> j; rewrite ltnS leq_eqVlt => /orP[/eqP->//|/hm h']; exact: le_trans h' (ltW c).
Qed.

Theorem summed n S T l B : fbound T = Some B -> cle (fspent T) B ->
  exists2 v, attained n l v & e (fspent T) * val n S (SF T l) <= e B * v.
Proof.
elim/ltn_ind: n S T l B => -[|n] IH S T l B eB ok.
  by exists 1; [apply: attained_stop|rewrite val0 !mulr1 (e_mono X)].
have stay S' : exists2 v, attained n.+1 l v & e (fspent T) * val n S' (SF T l) <= e B * v.
  by have [v h1 h2] := IH n (ltnSn n) S' T l B eB ok; exists v => //; apply: attained_pad.
rewrite valS; case: (S [::]) => [q|]; last first.
  by exists 1; [apply: attained_stop|rewrite !mulr1 (e_mono X)].
case: q => [q|j k|j b|i q] /=.
- by rewrite big_cons big_nil addr0 phi1 mul1r; apply: stay.
- case E: (charge_at _ _ _ _ _ _) => [T'|] /=; rewrite big_cons big_nil addr0 phi1 mul1r; last exact: stay.
  have [e1 e2 e3 e4] := charge_root E; rewrite e1 eB /within in e4; rewrite eB in e1.
  rewrite -cats1.
  have [v hv hle] := IH n (ltnSn n) (after S (RLaunched BA)) _ (l ++ [:: init k]) B e1 e4.
  move: hv; rewrite attained_cat => -[v1 [v2 [hv1 /= [S2 [v3 [hv3 hv2]]] hv]]].
  subst v3; rewrite mulr1 in hv2; subst v2 v.
  have gk : val n S2 (init k) <= e (decl k).
    case: k E e2 e3 e4 {hle} => [k|R] E e2 e3 e4 /=; first exact: base_val.
    have [v /= -> ] := IH n (ltnSn n) S2 (newfilt c0 R) [::] R erefl e3.
    by rewrite (e0 X) mul1r mulr1.
  exists v1; first exact: attained_pad.
  set V := val n _ _ in hle *; have V0 : 0 <= V by apply: val_ge0.
  rewrite -(ler_pmul2r (e_gt0 (decl k))) mulrAC.
  have h1 : e (fspent T) * e (decl k) * V <= e (fspent T') * V.
    by apply: ler_wpmul2r => //; rewrite e2; apply: (eM X).
  apply: le_trans h1 _.
  apply: le_trans hle _; rewrite -mulrA; apply: ler_wpmul2l; first exact: ltW.
  by apply: ler_wpmul2l => //; apply: attained_ge0 hv1.
- case E: (open_acct _ _ _ _) => [T'|] /=; rewrite big_cons big_nil addr0 phi1 mul1r; last exact: stay.
  have [e1 e2] := open_root E; rewrite eB in e1; have ok' : cle (fspent T') B by rewrite e2.
  have [v hv hle] := IH n (ltnSn n) (after S (RLaunched BA)) _ l B e1 ok'.
  by exists v; [apply: attained_pad|rewrite -e2].
- case E: (drop i l) => [|s' l2] /=.
    by rewrite big_cons big_nil addr0 phi1 mul1r; apply: stay.
  set o := out (step q s'); set N := card (step q s').
  pose st j := SF T (take i l ++ (o j).2 :: l2).
  have H j : (j < N)%N -> exists x : analyst * F,
      attained n (take i l ++ l2) x.2 /\
      e (fspent T) * val n (after S (o j).1.2) (st j) <= e B * (val n x.1 (o j).2 * x.2).
    move=> hj; have [v hv hle] := IH n (ltnSn n) (after S (o j).1.2) T (take i l ++ (o j).2 :: l2) B eB ok.
    move: hv => /attained_cat[v1 [v2 [hv1 /= [S2 [v3 [hv3 hv2]]] hv]]].
    exists (S2, v1 * v3); split; first by apply/attained_cat; exists v1, v3.
    by rewrite /=; move: hle; rewrite hv hv2 [v1 * _]mulrCA.
  have [f hf] := choose (stop, 0) H.
  have [u hu hmax] := @pickmax N n _ (fun j => (f j).2) (fun j hj => (hf j hj).1).
  pose A := ask q (fun r => (f (index r (replies (step q s')))).1).
  have pick j : (j < N)%N -> index (o j).1.2 (replies (step q s')) = j.
    move=> hj; have sz : (j < size (replies (step q s')))%N by rewrite size_map size_iota.
    by rewrite -{2}(index_uniq (RBad BA) sz (step_distinct _ _)) (nth_map 0%N) ?size_iota // nth_iota.
  exists (val n.+1 A s' * u).
    have /attained_cat[u1 [u2 [hu1 hu2 eu]]] := attained_pad hu.
    rewrite -(cat_take_drop i l) E; apply/attained_cat; exists u1, (val n.+1 A s' * u2).
    by split=> //; [exists A, u2|rewrite eu mulrCA].
  rewrite valS /= -/N mulr_sumr mulr_suml mulr_sumr; apply: iota_sum_le => j hj.
  have [_ h2] := hf j hj; rewrite -/(o j) /after /A /= pick // -/(st j) [X in X <= _]mulrCA -(mulrA (phi _)) [X in _ <= X]mulrCA.
  apply: ler_wpmul2l; first exact: step_phi0.
  apply: le_trans h2 _; apply: ler_wpmul2l; first exact: ltW.
  by apply: ler_wpmul2l; [apply: val_ge0|apply: hmax].
Qed.

Theorem filter_val n S R : cle c0 R -> val n S (SF (newfilt c0 R) [::]) <= e R.
Proof.
move=> ok; have [v /= -> ] := @summed n S (newfilt c0 R) [::] R erefl ok.
by rewrite (e0 X) mul1r mulr1.
Qed.
End Summed.
