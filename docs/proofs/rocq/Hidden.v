(* Hidden.v: from machines with hidden states to machines whose state is what was
   asked and answered.  The step that a paper makes in one sentence: "let P(h) be the
   probability of the answers in h". *)
Require Import Preamble Accounting Machine Behaviour Filter View.
Local Open Scope ring_scope.

(* 1. One weight of several. *)
Section Project.
Variables (W F : comRingType) (pi : {rmorphism W -> F}).
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ : Type) (BA : eqType) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Definition project s q : outs (F * BA * BS) := Outs (card (bstep s q)) (fun j =>
  let o := out (bstep s q) j in (pi o.1.1, o.1.2, o.2)).
Lemma step_project q s : card (step c0 cadd cle binit bdecl project q s) =
    card (step c0 cadd cle binit bdecl bstep q s) /\
  forall j, out (step c0 cadd cle binit bdecl project q s) j =
    let o := out (step c0 cadd cle binit bdecl bstep q s) j in (pi o.1.1, o.1.2, o.2).
Proof.
elim: q s => [q|k x|k b|m q IH] [b'|T l] /=; try by split=> // j /=; rewrite rmorph1.
- by case: (charge_at c0 cadd cle T k _) => [T'|] /=; split=> // j /=; rewrite rmorph1.
- by case: (open_acct c0 T k b) => [T'|] /=; split=> // j /=; rewrite rmorph1.
- case: (drop m l) => [|s' l2] /=; first by split=> // j /=; rewrite rmorph1.
  by have [-> h] := IH s'; split=> // j; rewrite h.
Qed.
Lemma beh_project h s : beh c0 cadd cle binit bdecl project s h =
  pi (beh c0 cadd cle binit bdecl bstep s h).
Proof.
elim: h s => [|[q r] h IH] s; first by rewrite /= rmorph1.
have [e1 e2] := step_project q s; rewrite !beh_cons e1 rmorph_sum.
rewrite (eq_bigl (fun j => (out (step c0 cadd cle binit bdecl bstep q s) j).1.2 == r)) => [|j]; last by rewrite e2.
by apply: eq_bigr => j _; rewrite e2 IH rmorphM.
Qed.
End Project.

(* 2. The machine of a behaviour.  Its state is the transcript so far. *)
Section Transcript.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (BS : bool -> Type) (binit : forall b, BK -> BS b).
Variable bstep : forall b, BS b -> BQ -> outs (F * BA * BS b).
Notation beh b := (beh c0 cadd cle (binit b) bdecl (@bstep b)).
Notation step b := (step c0 cadd cle (binit b) bdecl (@bstep b)).
Notation transcript := (transcript C BK BQ BA).
Variables (a0 : BA) (as_ : seq BA).
Hypothesis as_uniq : uniq as_.
Hypothesis as_all : forall b s q j, (j < card (@bstep b s q))%N -> (out (bstep s q) j).1.2 \in as_.
Hypothesis total : forall b s q,
  \sum_(j <- iota 0 (card (@bstep b s q))) (out (bstep s q) j).1.1 = 1.
Hypothesis nonneg : forall b s q j, (j < card (@bstep b s q))%N -> 0 <= (out (bstep s q) j).1.1.
Notation As := (answers as_).

Lemma step_ge0 b q s j : (j < card (step b q s))%N -> 0 <= (out (step b q s) j).1.1.
Proof.
elim: q s j => [q|i k|k b'|i q IH] [s|T l] j; rewrite /= ?ler01 //.
- exact: nonneg.
- by case: (charge_at c0 cadd cle T i _) => [T0|]; rewrite /= ler01.
- by case: (open_acct c0 T k b') => [T0|]; rewrite /= ler01.
- by case: (drop i l) => [|s' l2] /=; [rewrite ler01|apply: IH].
Qed.
Lemma beh_ge0 b h s : 0 <= beh b s h.
Proof.
elim: h s => [|[q r] h IH] s; first exact: ler01.
rewrite beh_cons big_seq_cond; apply: sumr_ge0 => j; rewrite mem_iota add0n => /andP[hj _].
by apply: mulr_ge0 => //; apply: step_ge0.
Qed.
Lemma beh_next b q g s : \sum_(r <- As) beh b s (rcons g (q, r)) = beh b s g.
Proof.
elim: g s => [|[q' r'] g IH] s.
  transitivity (\sum_(r <- As) \sum_(j <- iota 0 (card (step b q s)) | (out (step b q s) j).1.2 == r)
      (out (step b q s) j).1.1).
    by apply: eq_bigr => r _; rewrite /= ; apply: eq_bigr => j _; rewrite mulr1.
  by rewrite (sum_by_answer _ _ _ _ _ as_uniq (@as_all b)) (step_total _ _ _ _ _ (@total b)).
under eq_bigr do rewrite rcons_cons beh_cons.
rewrite [RHS]beh_cons exchange_big; apply: eq_bigr => j _ /=.
by rewrite -mulr_sumr IH.
Qed.

Definition to_base (q : query C BK BQ) := if q is QB _ then true else false.
Lemma beh_bad b (s : BS b) g q h : ~~ to_base q ->
  beh b (SB C s) (g ++ (q, RBad BA) :: h) = beh b (SB C s) (g ++ h).
Proof.
move=> nq; elim: g s => [|[q' r'] g IH] s /=.
  by case: q nq => //= *; rewrite big_cons big_nil /= mul1r addr0.
case: q' => [q'|j k|j b'|m q'] /=; try by rewrite !big_cons !big_nil /= IH.
by apply: eq_bigr => j _; rewrite IH.
Qed.
(* An answer that no base mechanism gives to q. *)
Definition dead (q : query C BK BQ) r :=
  if to_base q then r \notin [seq RB a | a <- as_] else r != RBad BA.
Lemma beh_dead b (s : BS b) g q r h : dead q r -> beh b (SB C s) (g ++ (q, r) :: h) = 0.
Proof.
move=> d; elim: g s => [|[q' r'] g IH] s.
  rewrite /= big_seq_cond big1 // => j; rewrite mem_iota add0n => /andP[/= hj /eqP er].
  case: q d hj er => [q|j' k|j' b'|m q]; rewrite /dead /= => d hj er; try by rewrite -er eqxx in d.
  by move: d; rewrite -er map_f // as_all.
by case: q' => [q'|j k|j b'|m q'] /=; rewrite big1 // => j' _; rewrite IH mulr0.
Qed.
(* What the probabilities of transcripts have in common, whatever the mechanism is. *)
Record law (P : transcript -> F) : Prop := Law {
  law0 : P [::] = 1;
  law_ge0 : forall h, 0 <= P h;
  law_next : forall g q, \sum_(r <- As) P (rcons g (q, r)) = P g;
  law_bad : forall g q h, ~~ to_base q -> P (g ++ (q, RBad BA) :: h) = P (g ++ h);
  law_dead : forall g q r h, dead q r -> P (g ++ (q, r) :: h) = 0 }.
Lemma beh_law b s : law (beh b (SB C s)).
Proof.
by split=> *; [|apply: beh_ge0|apply: beh_next|apply: beh_bad|apply: beh_dead].
Qed.
Lemma law_zero P g h : law P -> P g = 0 -> P (g ++ h) = 0.
Proof.
move=> l z; elim/last_ind: h => [|h [q r] IH]; first by rewrite cats0.
rewrite -rcons_cat; case d: (dead q r); first by rewrite -cats1 (law_dead l).
have rA : r \in As.
  by move: d; rewrite /dead /answers mem_cat !inE; case: ifP => _ /negbFE -> //; rewrite !orbT.
have := law_next l (g ++ h) q; rewrite IH (big_rem r rA) /= => e; apply/le_anti.
by rewrite (law_ge0 l) andbT -e ler_addl sumr_ge0 // => x _; apply: (law_ge0 l).
Qed.
(* The machine whose behaviours are P k: it answers with the conditional probabilities,
   and with a0 where the transcript so far is impossible. *)
Definition cond (P : transcript -> F) g q a : F :=
  if P g == 0 then (a == a0)%:R else P (rcons g (QB C BK q, RB a)) / P g.
Lemma cond_ge0 P g q a : law P -> 0 <= cond P g q a.
Proof. by move=> l; rewrite /cond; case: ifP => _; [rewrite ler0n|apply: divr_ge0; apply: (law_ge0 l)]. Qed.
Lemma cond_total P g q : law P -> a0 \in as_ -> \sum_(j <- iota 0 (size as_)) cond P g q (nth a0 as_ j) = 1.
Proof.
move=> l ha; have -> : iota 0 (size as_) = index_iota 0 (size as_) by rewrite /index_iota subn0.
rewrite -(big_nth a0 predT) /cond; case: eqP => [_|/eqP nz].
  by rewrite (bigD1_seq a0) //= eqxx big1 ?addr0 // => a /negbTE->.
have dead0 r : r \notin [seq RB a | a <- as_] -> P (rcons g (QB C BK q, r)) = 0.
  by move=> d; rewrite -cats1 (law_dead l).
have no : (RLaunched BA \notin [seq RB a | a <- as_]) && (RRefused BA \notin [seq RB a | a <- as_]) &&
    (RBad BA \notin [seq RB a | a <- as_]) by rewrite -!andbA; apply/and3P; split; apply/negP => /mapP[].
case/andP: no => /andP[n1 n2] n3; rewrite -mulr_suml; apply: (mulIf nz); rewrite mul1r divfK //.
by rewrite -[RHS](law_next l g (QB C BK q)) /answers !big_cons !dead0 // !add0r big_map.
Qed.
Section Leaf.
Variables (K : Type) (P : K -> transcript -> F) (linit : BK -> K * transcript).
Hypothesis PL : forall k, law (P k).
Definition lstep (s : K * transcript) (q : BQ) : outs (F * BA * (K * transcript)) :=
  Outs (size as_) (fun j => let a := nth a0 as_ j in
    (cond (P s.1) s.2 q a, a, (s.1, rcons s.2 (QB C BK q, RB a)))).
Notation behL := (Behaviour.beh c0 cadd cle linit bdecl lstep).
Lemma leaf k g h : behL (SB C (k, g)) h * P k g = P k (g ++ h).
Proof.
elim: h g => [|[q r] h IH] g; first by rewrite /= mul1r cats0.
case d: (dead q r).
  rewrite (law_dead (PL k)) // beh_cons big_seq_cond big1 ?mul0r // => j; rewrite mem_iota add0n => /andP[hj /eqP er].
  case: q d hj er => [q|j' k'|j' b'|m q]; rewrite /dead /= => d hj er; try by rewrite -er eqxx in d.
  by move: d; rewrite -er map_f // mem_nth.
case: q d => [q|j' k'|j' b'|m q]; rewrite /dead /= => /negbFE d;
  try by move/eqP: d => ->; rewrite big_cons big_nil /= mul1r addr0 IH (law_bad (PL k)).
case/mapP: d => a ha ->; rewrite sum_index //= nth_index //.
rewrite /cond; case: eqP => [z|/eqP nz]; first by rewrite z mulr0 (law_zero _ (PL k)).
by rewrite mulrAC divfK // mulrC IH cat_rcons.
Qed.
Lemma leafE k h : behL (SB C (k, [::])) h = P k h.
Proof. by rewrite -[RHS]/(P k ([::] ++ h)) -leaf (law0 (PL k)) mulr1. Qed.
End Leaf.

(* The machine with pairs of weights (those on false and on true), of mechanisms with hidden
   states. *)
Notation P b k := (fun h => beh b (SB C (binit b k)) h).
Definition tinit (k : BK) : BK * transcript := (k, [::]).
Definition tstep (s : BK * transcript) (q : BQ) : outs ((F * F)%type * BA * (BK * transcript)) :=
  Outs (size as_) (fun j => let a := nth a0 as_ j in
    ((cond (P false s.1) s.2 q a, cond (P true s.1) s.2 q a), a, (s.1, rcons s.2 (QB C BK q, RB a)))).
Definition sel (b : bool) : {rmorphism (F * F)%type -> F} :=
  if b then snd_rmorphism F F else fst_rmorphism F F.
Notation behT b := (Behaviour.beh c0 cadd cle tinit bdecl (project (sel b) tstep)).
Notation behTT := (Behaviour.beh c0 cadd cle tinit bdecl tstep).
(* Alone, the machine of a behaviour has that behaviour. *)
Lemma leaf_beh b k h : behT b (SB C (tinit k)) h = beh b (SB C (binit b k)) h.
Proof. by case: b; apply: (leafE (P := fun k => P _ k)) => x; apply: beh_law. Qed.

(* And so it has in a filter. *)
Theorem hidden_filter b R h : cle c0 R ->
  beh b (SF (newfilt c0 R) [::]) h = behT b (SF (newfilt c0 R) [::]) h.
Proof.
pose good (c : C) (u : bool -> F) := u true = u false; have G : good_laws c0 cadd cle good.
  by split=> //; rewrite /good; [move=> c u v uv; rewrite !uv|move=> a a' u v -> ->].
by move=> ok; apply: (filter_beside L G h _ ok) => k g; rewrite /good leaf_beh.
Qed.
Corollary hidden_pair R h : cle c0 R -> behTT (SF (newfilt c0 R) [::]) h =
  (beh false (SF (newfilt c0 R) [::]) h, beh true (SF (newfilt c0 R) [::]) h).
Proof.
by move=> ok; rewrite !hidden_filter // !beh_project /=; case: (behTT _ _).
Qed.
Corollary leaf_pair k h : behTT (SB C (tinit k)) h =
  (beh false (SB C (binit false k)) h, beh true (SB C (binit true k)) h).
Proof. by rewrite -!leaf_beh !beh_project /=; case: (behTT _ _). Qed.

Lemma tstep_all s q j : (j < card (tstep s q))%N -> (out (tstep s q) j).1.2 \in as_.
Proof. exact: mem_nth. Qed.
Lemma tstep_distinct s q : uniq [seq (out (tstep s q) j).1.2 | j <- iota 0 (card (tstep s q))].
Proof. by rewrite -[map _ _]/(mkseq (nth a0 as_) (size as_)) mkseq_nth. Qed.
End Transcript.
