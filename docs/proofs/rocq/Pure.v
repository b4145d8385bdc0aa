(* Pure.v: pure differential privacy. *)
Require Import Preamble Accounting Machine Behaviour Filter View.
Local Open Scope ring_scope.

(* What the theorems need of the ratio of a charge, e(c) = exp(c). *)
Record ratio_laws (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C)
    (cle : C -> C -> bool) (e : C -> F) : Prop := RatioLaws {
  e0 : e c0 = 1;
  e_gt0 : forall c, 0 < e c;
  eM : forall a b, e a * e b <= e (cadd a b);
  e_mono : forall a b, cle a b -> e a <= e b }.

Section Pure.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variable e : C -> F.
Hypothesis X : ratio_laws c0 cadd cle e.

(* u has the probabilities on the two data sets, false and true. *)
Definition pure (c : C) (u : bool -> F) :=
  [/\ 0 <= u false, 0 <= u true, u false <= e c * u true & u true <= e c * u false].

Lemma pure_laws : good_laws c0 cadd cle pure.
Proof.
have M a b (p q p' q' : F) : 0 <= p -> 0 <= p' -> 0 <= q -> 0 <= q' ->
    p <= e a * q -> p' <= e b * q' -> p * p' <= e (cadd a b) * (q * q').
  move=> h1 h2 h3 h4 h5 h6; apply: le_trans (ler_pmul h1 h2 h5 h6) _.
  rewrite mulrACA; apply: ler_wpmul2r; [exact: mulr_ge0|exact: (eM X)].
split.
- by move=> c u v uv; rewrite /pure !uv.
- by split; rewrite ?mulr0.
- by split; rewrite ?(e0 X) ?mul1r ?ler01.
- by move=> a b u v [h1 h2 h3 h4] [k1 k2 k3 k4]; split; [exact: mulr_ge0|exact: mulr_ge0|exact: M|exact: M].
- move=> a b u ab [h1 h2 h3 h4]; have h := e_mono X ab.
  by split=> //; [apply: le_trans h3 _|apply: le_trans h4 _]; apply: ler_wpmul2r.
Qed.

(* Base mechanisms: the same names and prices on both data sets, b = false and true,
   but for each its own hidden states, start and steps. *)
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (BS : bool -> Type) (binit : forall b, BK -> BS b).
Variable bstep : forall b, BS b -> BQ -> outs (F * BA * BS b).
Notation beh b := (beh c0 cadd cle (binit b) bdecl (@bstep b)).
Notation FILTER R := (SF (newfilt c0 R) [::]).
Notation ODOMETER := (SF (newodo c0) [::]).
(* Each base mechanism alone is within its price, however it is queried. *)
Hypothesis base : forall k h, pure (bdecl k) (fun b => beh b (SB C (binit b k)) h).

(* At each transcript. *)
Theorem pure_filter R h : cle c0 R -> pure R (fun b => beh b (FILTER R) h).
Proof. exact: (filter_good L pure_laws base). Qed.

(* For sets of views of randomised analysts. *)
Lemma view_le (T : Type) (K : seq (F * T)) As n S (P Q : _ -> F) (E : T -> pred _) (c : F)
    (D : pred (transcript C BK BQ BA)) :
  all (fun x => 0 <= x.1) K -> (forall x, all D (transcripts As n (S x))) ->
  (forall h, D h -> P h <= c * Q h) ->
  view_prob K As n S P E <= c * view_prob K As n S Q E.
Proof.
move=> K0 allD PQ; rewrite /view_prob mulr_sumr.
elim: K K0 => [|x K IH] /=; first by rewrite !big_nil.
case/andP=> x0 /IH IHK; rewrite !big_cons; apply: ler_add => //.
rewrite mulrCA; apply: ler_wpmul2l => //; rewrite mulr_sumr.
elim: (transcripts _ _ _) (allD x.2) => [|h s IHs] /=; first by rewrite !big_nil.
case/andP=> hD /IHs IH'; rewrite !big_cons; case: (E x.2 h) => //.
by apply: ler_add => //; apply: PQ.
Qed.
(* With an addend d, too: deterministic analysts suffice. *)
Lemma view_det (T : Type) (K : seq (F * T)) As n S (E : T -> pred (transcript C BK BQ BA)) t d
    (P Q : _ -> F) :
  all (fun x => 0 <= x.1) K -> \sum_(x <- K) x.1 = 1 ->
  (forall n S (E : pred _), \sum_(h <- transcripts As n S | E h) P h <=
    t * (\sum_(h <- transcripts As n S | E h) Q h) + d) ->
  view_prob K As n S P E <= t * view_prob K As n S Q E + d.
Proof.
move=> K0 K1 det; rewrite -[d]mul1r -K1 /view_prob mulr_sumr mulr_suml -big_split.
elim: K K0 {K1} => [|x K IH] /=; first by rewrite !big_nil.
case/andP=> x0 /IH IH'; rewrite !big_cons; apply: ler_add IH'.
by rewrite mulrCA -mulrDr; apply: ler_wpmul2l.
Qed.
Theorem pure_view (T : Type) (K : seq (F * T)) As n S (E : T -> pred _) R b :
  cle c0 R -> all (fun x => 0 <= x.1) K ->
  view_prob K As n S (beh b (FILTER R)) E <= e R * view_prob K As n S (beh (~~ b) (FILTER R)) E.
Proof.
move=> ok K0; apply: (@view_le _ K As n S _ _ E _ predT) => // [x|h _]; first exact: all_predT.
by have [] := pure_filter h ok; case: b.
Qed.

(* The view of an odometer, truncated while its reading is at most d. *)
Definition stopped (T : Type) d (S : T -> analyst C BK BQ BA) x :=
  truncated c0 cadd cle bdecl d (newodo c0) (S x).
Theorem pure_odometer_view (T : Type) (K : seq (F * T)) As n S (E : T -> pred _) d b :
  cle c0 d -> all (fun x => 0 <= x.1) K ->
  view_prob K As n (stopped d S) (beh b ODOMETER) E <=
  e d * view_prob K As n (stopped d S) (beh (~~ b) ODOMETER) E.
Proof.
move=> ok K0; apply: (@view_le _ K As n (stopped d S) _ _ E _
    (fun h => cle (reading c0 cadd cle bdecl h) d)) => // [x|h hd].
  exact: truncated_reading.
have [] := odometer_good L pure_laws base hd.
by case: b.
Qed.

(* Below a limit b that was just opened as account i.  Whatever is launched outside of
   it behaves the same on both data sets. *)
Theorem pure_limit i b T h : (i < size (fsubs T))%N ->
  abound (nth (dacct c0) (fsubs T) i) = Some b -> aspent (nth (dacct c0) (fsubs T) i) = c0 ->
  cle c0 b -> disciplined c0 cadd cle bdecl (free_outside c0 cadd cle bdecl binit bstep pure i) T h ->
  pure b (fun w => beh w (SF T [::]) h).
Proof.
move=> h1 h2 h3 ok dis.
have [hs [u [/size0nil-> hu hb]]] := limit_good L pure_laws base 0%N h1 h2 h3 ok dis.
by apply: (good_ext pure_laws) hu => w; rewrite (hb w [::] erefl) /= mulr1.
Qed.
End Pure.
