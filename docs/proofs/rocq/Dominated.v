(* Dominated.v: randomised response dominates a pure interactive mechanism (Theorem 1.5 of
   [VW21]); so (epsilon, delta) for the concurrent composition of such mechanisms is that of
   randomised response (Theorem 1.3). *)
Require Import Preamble Accounting Machine Behaviour Filter View Hidden Pure RandomizedResponse.
Local Open Scope ring_scope.

Section Dominated.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C).
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (BS : bool -> Type) (binit : forall b, BK -> BS b).
Variable bstep : forall b, BS b -> BQ -> outs (F * BA * BS b).
Notation transcript := (transcript C BK BQ BA).
Variables (a0 : BA) (as_ : seq BA).
Hypothesis as_uniq : uniq as_.
Hypothesis a0_in : a0 \in as_.
Hypothesis as_all : forall b s q j, (j < card (@bstep b s q))%N -> (out (bstep s q) j).1.2 \in as_.
Hypothesis total : forall b s q,
  \sum_(j <- iota 0 (card (@bstep b s q))) (out (bstep s q) j).1.1 = 1.
Hypothesis nonneg : forall b s q j, (j < card (@bstep b s q))%N -> 0 <= (out (bstep s q) j).1.1.
Notation As := (answers as_).
(* The mechanisms are there from the beginning: no charge is admitted. *)
Notation never := (fun _ _ : C => false).
Notation beh b := (beh c0 cadd never (binit b) bdecl (@bstep b)).
Notation P b k := (fun h => beh b (SB C (binit b k)) h).
(* The mechanism k is pure with the ratio e^epsilon = ratio k. *)
Variable ratio : BK -> F.
Hypothesis ratio1 : forall k, 1 <= ratio k.
Hypothesis is_pure : forall b k h, P b k h <= ratio k * P (~~ b) k h.

(* Randomised response on the data set b answers x with the probability: *)
Definition wt k (b x : bool) : F := (if b == x then ratio k else 1) / (1 + ratio k).
(* What is made of its answer x: probabilities of transcripts that do not depend on b. *)
Definition post (y : BK * bool) (h : transcript) : F :=
  if ratio y.1 == 1 then P y.2 y.1 h
  else (ratio y.1 * P y.2 y.1 h - P (~~ y.2) y.1 h) / (ratio y.1 - 1).
Lemma post_law y : law as_ (post y).
Proof.
have l b : law as_ (P b y.1) := beh_law c0 cadd never bdecl binit as_uniq as_all total nonneg (binit b y.1).
rewrite /post; case: eqP => [_|/eqP ne]; first exact: l.
have d0 : 0 <= ratio y.1 - 1 by rewrite subr_ge0.
split=> [|h|g q|g q h nq|g q r h d].
- by rewrite !(law0 (l _)) mulr1 divff // subr_eq0.
- by apply: divr_ge0 => //; rewrite subr_ge0; have := is_pure (~~ y.2) y.1 h; rewrite negbK.
- by rewrite -mulr_suml sumrB -mulr_sumr !(law_next (l _)).
- by rewrite !(law_bad (l _)).
- by rewrite !(law_dead (l _)) // mulr0 subrr mul0r.
Qed.
Lemma mix (r p q : F) : r != 1 -> 0 < 1 + r ->
  r / (1 + r) * ((r * p - q) / (r - 1)) + 1 / (1 + r) * ((r * q - p) / (r - 1)) = p.
Proof.
move=> r1 s0; have nz : (1 + r) * (r - 1) != 0 by rewrite mulf_neq0 ?subr_eq0 // gt_eqF.
have e x y : x / (1 + r) * (y / (r - 1)) * ((1 + r) * (r - 1)) = x * y by rewrite [X in X * _]mulrACA -invfM divfK.
apply: (mulIf nz); rewrite [LHS]mulrDl !e mul1r.
rewrite mulrBr addrA subrK mulrDl mul1r mulrBr mulr1 [X in p * X]addrC addrA subrK.
by rewrite [RHS]mulrBr mulr1 [p * _]mulrC mulrA.
Qed.
Lemma dominated b k h : P b k h = wt k b true * post (k, true) h + wt k b false * post (k, false) h.
Proof.
have s0 : 0 < 1 + ratio k by rewrite addr_gt0 ?ltr01 // (lt_le_trans ltr01).
rewrite /post /wt /=; case: (eqVneq (ratio k) 1) => [e|ne]; last first.
  by case: b => /=; [rewrite mix|rewrite [RHS]addrC mix].
have same : P true k h = P false k h.
  by apply/le_anti; have := is_pure true k h; have := is_pure false k h; rewrite e !mul1r /= => -> ->.
rewrite same -mulrDl -mulrDl; have -> : P b k h = P false k h by case: (b).
by rewrite e in s0 *; rewrite !if_same divff ?mul1r // gt_eqF.
Qed.
(* It is made by a machine, the same one on both data sets, whose steps have probabilities. *)
Definition from_bit (k : BK) : BK * bool * transcript := (k, true, [::]).
Notation behN := (Behaviour.beh c0 cadd never from_bit bdecl (lstep a0 as_ post)).
Notation weight_of s q j := (out (lstep a0 as_ post s q) j).1.1.
Theorem randomized_response_dominates :
  [/\ forall s q j, 0 <= weight_of s q j,
      forall s q, \sum_(j <- iota 0 (card (lstep a0 as_ post s q))) weight_of s q j = 1 &
      forall b k h, beh b (SB C (binit b k)) h =
        wt k b true * behN (SB C (k, true, [::])) h + wt k b false * behN (SB C (k, false, [::])) h].
Proof.
split=> [s q j|s q|b k h]; [exact: cond_ge0 (post_law _)|exact: cond_total (post_law _) a0_in|].
by rewrite !(leafE c0 cadd never bdecl a0 as_uniq from_bit post_law) -dominated.
Qed.

(* The compositor of mechanisms ks, and of what is made of the answers s. *)
Definition comp b (ks : seq BK) : state C (BS b) := SF (newfilt c0 c0) [seq SB C (binit b k) | k <- ks].
Definition comp_post (ks : seq BK) (s : seq bool) := SF (newfilt c0 c0) [seq SB C (y, [::] : transcript) | y <- zip ks s].
(* All answers of n copies of randomised response, and their probability. *)
Fixpoint tapes n : seq (seq bool) :=
  if n is n'.+1 then [seq true :: s | s <- tapes n'] ++ [seq false :: s | s <- tapes n'] else [:: [::]].
Fixpoint weight b (ks : seq BK) (s : seq bool) : F :=
  match ks, s with k :: ks', x :: s' => wt k b x * weight b ks' s' | _, _ => 1 end.
(* The worlds: both data sets, and what is made of answers. *)
Definition BSw w : Type := if w is Some b then BS b else (BK * bool * transcript)%type.
Definition initw w : BK -> BSw w := match w with Some b => binit b | None => from_bit end.
Definition stepw w : BSw w -> BQ -> outs (F * BA * BSw w) :=
  match w with Some b => @bstep b | None => lstep a0 as_ post end.
Notation behw w := (Behaviour.beh c0 cadd never (initw w) bdecl (@stepw w)).
Lemma children T h n : exists hs u, size hs = n /\ forall w (l : seq (state C (BSw w))), size l = n ->
  behw w (SF T l) h = u * prodb c0 cadd never bdecl initw stepw l hs.
Proof.
have closed T' j c : charge_at c0 cadd never T' j c = None.
  by rewrite /charge_at; case: (pathof _ _).
pose good (c : C) (u : option bool -> F) := exists v, forall w, u w = v.
pose ok (T' : filt C) := True; pose room (T' : filt C) (c : C) := True.
pose allowed (T' : filt C) (j : option nat) (k : name C BK) := False.
pose cost (T' : filt C) (j : option nat) (k : name C BK) := c0.
have dis T' (h' : transcript) : disciplined c0 cadd never bdecl allowed T' h'.
  by elim: h' T' => // -[[q|j k|j b|m q] r] h' IH T' //=; [rewrite closed|case: (open_acct _ _ _ _)].
have g0 : good c0 (fun _ => 0) by exists 0.
have g1 : good c0 (fun _ => 1) by exists 1.
have gM a b u v : good a u -> good b v -> good (cadd a b) (fun w => u w * v w).
  by case=> x ex [y ey]; exists (x * y) => w; rewrite ex ey.
have h0 T' : ok T' -> room T' c0 by [].
have h1 T' j k T2 : ok T' -> charge_at c0 cadd never T' j (decl bdecl k) = Some T2 ->
  ok T2 /\ forall c, room T2 c -> room T' (cadd (cost T' j k) c) by [].
have h2 T' j b T2 : ok T' -> open_acct c0 T' j b = Some T2 ->
  ok T2 /\ forall c, room T2 c -> room T' c by [].
have ch T' j k T2 (g : transcript) : allowed T' j k -> charge_at c0 cadd never T' j (decl bdecl k) = Some T2 ->
  (size g < size h)%N -> good (cost T' j k) (fun w => behw w (init c0 (initw w) k) g) by [].
have [hs [u [c [sz _ [v ev] _ e]]]] := factor g0 g1 gM h0 h1 h2 ch n (leqnn _) I (dis T h).
by exists hs, v; split=> // w l el; rewrite e // ev.
Qed.
(* On each data set, the compositor is a mixture, by the answers of randomised response. *)
Theorem mixture b ks h : beh b (comp b ks) h =
  \sum_(s <- tapes (size ks)) weight b ks s * behN (comp_post ks s) h.
Proof.
have [hs [u [sz e]]] := children (newfilt c0 c0) h (size ks).
have -> : beh b (comp b ks) h = u * prodb c0 cadd never bdecl initw stepw (i := Some b) [seq SB C (binit b k) | k <- ks] hs.
  by rewrite -(e (Some b)) ?size_map.
have tape_size n s : s \in tapes n -> size s = n.
  by elim: n s => [|n IH] s /=; [rewrite inE => /eqP->|rewrite mem_cat => /orP[]/mapP[s' /IH<- ->]].
transitivity (\sum_(s <- tapes (size ks)) weight b ks s * (u * prodb c0 cadd never bdecl initw stepw (i := None)
    [seq SB C (y, [::] : transcript) | y <- zip ks s] hs)); last first.
  rewrite big_seq [RHS]big_seq; apply: eq_bigr => s /tape_size ss.
  by rewrite -(e None) // size_map size1_zip ?ss.
under eq_bigr do rewrite mulrCA; rewrite -mulr_sumr; congr (_ * _).
elim: ks hs sz {e} => [|k ks IH] [|g hs] //=; first by rewrite big_cons big_nil mulr1 addr0.
case=> /IH e; rewrite big_cat !big_map /= e.
have [_ _ ->] := randomized_response_dominates; rewrite mulrDl !mulr_sumr; congr (_ + _);
  by apply: eq_bigr => s _; rewrite mulrACA.
Qed.
(* (epsilon, delta), where e^epsilon is t, for each t at once: delta is that of randomised
   response.  For every randomised analyst and every event: *)
Theorem epsilon_delta (T : Type) (K : seq (F * T)) n S (E : T -> pred transcript) t b ks :
  all (fun x => 0 <= x.1) K -> \sum_(x <- K) x.1 = 1 ->
  view_prob K As n S (beh b (comp b ks)) E <=
  t * view_prob K As n S (beh (~~ b) (comp (~~ b) ks)) E +
  \sum_(s <- tapes (size ks)) Num.max 0 (weight b ks s - t * weight (~~ b) ks s).
Proof.
move=> K0 K1; apply: view_det K0 K1 _ => {T K} {}n {}S {}E.
pose A s := \sum_(h <- transcripts As n S | E h) behN (comp_post ks s) h.
have mixed b' : \sum_(h <- transcripts As n S | E h) beh b' (comp b' ks) h =
    \sum_(s <- tapes (size ks)) weight b' ks s * A s.
  rewrite (eq_bigr _ (fun h _ => mixture b' ks h)) exchange_big.
  by apply: eq_bigr => s _; rewrite -mulr_sumr.
have [step0 step_total mixes] := randomized_response_dominates.
have step_all (s : BK * bool * transcript) (q : BQ) j : (j < card (lstep a0 as_ post s q))%N ->
    (out (lstep a0 as_ post s q) j).1.2 \in as_ by apply: mem_nth.
have N0 s h : 0 <= behN s h.
  apply: (@beh_ge0 _ _ c0 cadd never _ _ _ bdecl (fun=> _) (fun=> from_bit) (fun=> lstep a0 as_ post) _ true) => *.
  exact: step0.
have A0 s : 0 <= A s by apply: sumr_ge0.
have A1 s : A s <= 1.
  rewrite -(view_total c0 cadd never from_bit bdecl as_uniq step_all step_total n S (comp_post ks s)).
  by rewrite [X in _ <= X](bigID E) /= ler_addl sumr_ge0.
rewrite !mixed mulr_sumr -big_split; apply: ler_sum => s _ /=.
rewrite addrC -ler_subl_addr mulrA -mulrBl.
apply: le_trans (_ : Num.max 0 (weight b ks s - t * weight (~~ b) ks s) * A s <= _).
  by apply: ler_wpmul2r => //; rewrite le_maxr lexx orbT.
by apply: ler_pimulr => //; rewrite le_maxr lexx.
Qed.
End Dominated.

(* --- computed ----------------------------------------------------------------- *)
(* The noisy bit has the ratio 2, the public mechanism the ratio 1. *)
Definition rratio (k : bool) : rat := if k then 2%:R else 1.
Notation never := (fun _ _ : nat => false).
Notation alone cle b := (beh 0%N addn cle (rr_init b) price (rr_step b)).
Lemma alone_never b s h : alone never b (SB nat s) h = alone leq b (SB nat s) h.
Proof.
elim: h s => [|[q r] h IH] s //; case: q => [q|j k|j c|m q]; rewrite /= ?big_cons ?big_nil ?IH //.
by apply: eq_bigr => j _; rewrite IH.
Qed.
Lemma rr_ratio b k h : alone never b (SB nat (rr_init b k)) h <=
  rratio k * alone never (~~ b) (SB nat (rr_init (~~ b) k)) h.
Proof.
rewrite !alone_never; case: k => /=; first by have := rr_pure true h; rewrite /pure /e2 expr1; case: b => -[].
by have := public_pure h; rewrite /pure /e2 expr0; case: b => -[].
Qed.
Definition delta (t : rat) b ks :=
  \sum_(s <- tapes (size ks)) Num.max 0 (weight rratio b ks s - t * weight rratio (~~ b) ks s).
Notation copies b ks := (comp 0%N rr_init b ks).
Theorem rr_epsilon_delta (T : Type) (K : seq (rat * T)) n S (E : T -> pred _) t b ks :
  all (fun x => 0 <= x.1) K -> \sum_(x <- K) x.1 = 1 ->
  view_prob K (answers bools) n S (alone never b (copies b ks)) E <=
  t * view_prob K (answers bools) n S (alone never (~~ b) (copies (~~ b) ks)) E + delta t b ks.
Proof.
by apply: (epsilon_delta bools_uniq (isT : true \in bools) bools_all rr_total rr_nonneg _ rr_ratio); case.
Qed.
(* Two noisy bits and the public mechanism, interleaved.  Both bits are heard right with the
   probability 4/9, wrong with 1/9; delta is 2/9 at t = 2.  So the bound is attained: it is
   4/9 = 2 * 1/9 + 2/9. *)
Definition three := [:: true; false; true].
Notation ASK i := (QSub i (QB nat bool tt)).
Definition interleaved x : seq (query nat bool unit * resp bool) :=
  [:: (ASK 0%N, RB true); (ASK 2%N, RB true); (ASK 1%N, RB true); (ASK 2%N, RB x); (ASK 0%N, RB x)].
Goal (alone never true (copies true three) (interleaved true), alone never false (copies false three) (interleaved true)) =
  (4%:R / 9%:R, 1 / 9%:R).
Proof. by rewrite -!computedE; apply/eqP; vm_compute. Qed.
Goal [:: delta 1 true three; delta 2%:R true three; delta 4%:R true three] = [:: 1 / 3%:R; 2%:R / 9%:R; 0].
Proof. by rewrite /delta !unlock; apply/eqP; vm_compute. Qed.
