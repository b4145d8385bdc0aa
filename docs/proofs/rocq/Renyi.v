(* Renyi.v: Renyi differential privacy of integer orders, and zCDP at all of them. *)
Require Import Preamble Accounting Machine Behaviour Filter View Summed Hidden Pure.
Local Open Scope ring_scope.

Section Renyi.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (BS : bool -> Type) (binit : forall b, BK -> BS b).
Variable bstep : forall b, BS b -> BQ -> outs (F * BA * BS b).
Notation beh b := (beh c0 cadd cle (binit b) bdecl (@bstep b)).
Notation FILTER R := (SF (newfilt c0 R) [::]).
Notation analyst := (analyst C BK BQ BA).
(* All answers of base mechanisms are in the list as_; on both data sets and in each
   state, what a mechanism does next has probabilities of sum 1. *)
Variables (a0 : BA) (as_ : seq BA).
Hypothesis as_uniq : uniq as_.
Hypothesis as_all : forall b s q j, (j < card (@bstep b s q))%N -> (out (bstep s q) j).1.2 \in as_.
Hypothesis total : forall b s q,
  \sum_(j <- iota 0 (card (@bstep b s q))) (out (bstep s q) j).1.1 = 1.
Hypothesis nonneg : forall b s q j, (j < card (@bstep b s q))%N -> 0 <= (out (bstep s q) j).1.1.
Notation As := (answers as_).

(* The moment of order a + 1 of the view of the analyst S: the sum of P^(a+1) / Q^a over
   all transcripts, where P has the probabilities on the data set b, and Q those on the
   other one.  Its logarithm divided by a is the Renyi divergence.  (x / 0 is 0 here: so
   absolute continuity is asked for apart.) *)
Definition moment (b : bool) a n (S : analyst) (P : bool -> transcript C BK BQ BA -> F) : F :=
  \sum_(h <- transcripts As n S) P b h ^+ a.+1 / P (~~ b) h ^+ a.
(* What is impossible on one data set is impossible on the other one. *)
Definition ac (u : bool -> F) := u true = 0 <-> u false = 0.
(* A mechanism with the probabilities P has Renyi moments of at most c. *)
Definition renyi a (c : F) (P : bool -> transcript C BK BQ BA -> F) :=
  (forall h, ac (P^~ h)) /\ forall b n S, moment b a n S P <= c.

Lemma ac_laws : good_laws c0 cadd cle (fun _ => ac).
Proof.
split=> //.
- by move=> _ u v uv; rewrite /ac !uv.
- by move=> a b u v [h1 h2] [k1 k2]; split=> /eqP; rewrite mulf_eq0 => /orP[/eqP h|/eqP h];
    rewrite ?(h1 h) ?(h2 h) ?(k1 h) ?(k2 h) ?mul0r ?mulr0.
Qed.

Notation tinit := (@tinit C BK BQ BA).
Notation tstep := (tstep c0 cadd cle bdecl binit bstep a0 as_).
Definition rphi b a (w : (F * F)%type) : F := sel F b w ^+ a.+1 / sel F (~~ b) w ^+ a.
Lemma rphi1 b a : rphi b a 1 = 1.
Proof. by rewrite /rphi !rmorph1 !expr1n divr1. Qed.
Lemma rphiM b a x y : rphi b a (x * y) = rphi b a x * rphi b a y.
Proof. by rewrite /rphi !rmorphM !exprMn invfM mulrACA. Qed.
Lemma rphi0 b a : rphi b a 0 = 0.
Proof. by rewrite /rphi rmorph0 expr0n mul0r. Qed.
Variables (a : nat) (e : C -> F).
Hypothesis X : ratio_laws c0 cadd cle e.
(* Each base mechanism alone is within its price, for every analyst. *)
Hypothesis base : forall k, renyi a (e (bdecl k)) (fun b h => beh b (SB C (binit b k)) h).

(* The filter with the bound R has Renyi moments of at most e(R), for every analyst. *)
Theorem renyi_filter R : cle c0 R -> renyi a (e R) (fun b h => beh b (FILTER R) h).
Proof.
move=> ok; split=> [h|b n S].
  by apply: (filter_good L ac_laws _ h ok) => k g; have [] := base k.
have moments m S' P s :
    (forall g, Behaviour.beh c0 cadd cle tinit bdecl tstep s g = (P false g, P true g)) ->
    moment b a m S' P = val c0 cadd cle tinit bdecl tstep as_ (rphi b a) m S' s.
  by move=> E; apply: eq_bigr => g _; rewrite E; case: (b).
rewrite (moments _ _ _ (FILTER R)) => [|g]; last by rewrite (hidden_pair L).
have tall := @tstep_all _ C c0 cadd cle BK BQ BA bdecl BS binit bstep a0 as_.
have tdis := @tstep_distinct _ C c0 cadd cle BK BQ BA bdecl BS binit bstep a0 as_ as_uniq.
apply: (filter_val as_uniq tall tdis (rphi0 b a) (rphi1 b a) (@rphiM b a) _ X _ n S ok) => [[k g] q j hj|k m S'].
  by apply: divr_ge0; apply: exprn_ge0; case: (b); apply: cond_ge0;
    apply: (beh_law _ _ _ _ _ as_uniq as_all total nonneg).
rewrite -(moments m S' (fun b h => beh b (SB C (binit b k)) h)) => [|g]; last exact: leaf_pair.
by have [_ ->] := base k.
Qed.

(* Of randomised analysts, whose coins K have probabilities of sum 1, and whose views
   have the coins. *)
Theorem renyi_view (T : Type) (K : seq (F * T)) R b n (S : T -> analyst) :
  cle c0 R -> all (fun x => 0 <= x.1) K -> \sum_(x <- K) x.1 = 1 ->
  \sum_(x <- K) \sum_(h <- transcripts As n (S x.2))
     (x.1 * beh b (FILTER R) h) ^+ a.+1 / (x.1 * beh (~~ b) (FILTER R) h) ^+ a <= e R.
Proof.
move=> ok K0 K1; rewrite -[e R]mul1r -K1 mulr_suml.
elim: K K0 {K1} => [|x K IH] /=; first by rewrite !big_nil.
case/andP=> x0 /IH IH'; rewrite !big_cons; apply: ler_add => //.
have [_ /(_ b n (S x.2)) h] := renyi_filter ok.
apply: le_trans (ler_wpmul2l x0 h); rewrite /moment mulr_sumr le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_bigr => t _; rewrite !exprMn invfM mulrACA; congr (_ * _).
case: (eqVneq x.1 0) => [->|nz]; first by rewrite expr0n mul0r.
by rewrite exprS -mulrA divff ?mulr1 // expf_neq0.
Qed.

(* A pure mechanism of loss c has Renyi moments of at most e(c)^a. *)
Lemma pure_renyi c (s : forall b, state C (BS b)) : (forall h, pure e c (fun b => beh b (s b) h)) ->
  renyi a (e c ^+ a) (fun b h => beh b (s b) h).
Proof.
move=> p; split=> [h|b n S].
  have [h1 h2 h3 h4] := p h; split=> z.
    by apply/le_anti; rewrite h1 andbT; move: h3; rewrite z mulr0.
  by apply/le_anti; rewrite h2 andbT; move: h4; rewrite z mulr0.
have one := view_total c0 cadd cle (binit b) bdecl as_uniq (@as_all b) (@total b) n S (s b).
rewrite -[X in _ <= X]mulr1 -[X in _ * X]one mulr_sumr; apply: ler_sum => h _.
have : [/\ 0 <= beh b (s b) h, 0 <= beh (~~ b) (s (~~ b)) h &
    beh b (s b) h <= e c * beh (~~ b) (s (~~ b)) h] by have [] := p h; case: (b).
case=> h1 h2 h3; case: (eqVneq (beh (~~ b) (s (~~ b)) h) 0) => [z|nz].
  have -> : beh b (s b) h = 0 by apply/le_anti; rewrite h1 andbT; move: h3; rewrite z mulr0.
  by rewrite expr0n mul0r mulr0.
have q0 : 0 < beh (~~ b) (s (~~ b)) h by rewrite lt_neqAle eq_sym nz h2.
rewrite ler_pdivr_mulr ?exprn_gt0 // -mulrA [_ * _ ^+ a]mulrC mulrA -exprMn exprSr.
by apply: ler_wpmul2r => //; apply: ler_expn2r; rewrite ?nnegrE // (le_trans h1).
Qed.
End Renyi.
