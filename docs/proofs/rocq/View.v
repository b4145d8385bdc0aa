(* View.v: what analysts see. *)
Require Import Preamble Accounting Machine Behaviour Filter.
Local Open Scope ring_scope.

Section View.
Variables (C BK BQ : Type) (BA : eqType).
Notation query := (query C BK BQ).
Notation resp := (resp BA).
Notation transcript := (transcript C BK BQ BA).

(* A deterministic analyst: what he asks next, or that he stops, is a function of the
   answers that he has seen. *)
Definition analyst := seq resp -> option query.
Definition after (S : analyst) r : analyst := fun rs => S (r :: rs).
(* All answers, if base mechanisms answer what is in as_. *)
Definition answers (as_ : seq BA) : seq resp :=
  [:: RLaunched BA; RRefused BA; RBad BA] ++ [seq RB a | a <- as_].
(* All transcripts of an analyst who asks at most n queries. *)
Fixpoint transcripts (As : seq resp) n (S : analyst) : seq transcript :=
  if n is n'.+1 then
    if S [::] is Some q then flatten [seq [seq (q, r) :: t | t <- transcripts As n' (after S r)] | r <- As]
    else [:: [::]]
  else [:: [::]].

(* A randomised analyst tosses his coins at first: K lists how probable they are.  His
   view has them, and the transcript.  The probability that the view is in E: *)
Definition view_prob (F : ringType) (X : Type) (K : seq (F * X)) As n (S : X -> analyst)
    (P : transcript -> F) (E : X -> pred transcript) : F :=
  \sum_(x <- K) x.1 * \sum_(h <- transcripts As n (S x.2) | E x.2 h) P h.

Lemma transcriptsS As n S : transcripts As n.+1 S =
  if S [::] is Some q then flatten [seq [seq (q, r) :: t | t <- transcripts As n (after S r)] | r <- As]
  else [:: [::]].
Proof. by []. Qed.
Lemma transcripts_ext As n S S' : (forall h, S h = S' h) -> transcripts As n S = transcripts As n S'.
Proof.
elim: n S S' => [|n IH] S S' e //=; rewrite -e; case: (S [::]) => // q.
by congr flatten; apply: eq_map => r; congr map; apply: IH => h; apply: e.
Qed.

(* --- the truncated view of an odometer ---------------------------------------- *)
Variables (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool) (bdecl : BK -> C).
Notation track := (@Filter.track C c0 cadd cle BK BQ BA bdecl).
(* The transcript so far: what the analyst has asked, with the answers rs. *)
Fixpoint asked (S : analyst) (rs : seq resp) : transcript :=
  if rs is r :: rs' then if S [::] is Some q then (q, r) :: asked (after S r) rs' else [::]
  else [::].
(* The analyst S is stopped before the query after which the reading is not at most d:
   the answer to that query is not seen. *)
Definition truncated d T (S : analyst) : analyst := fun rs =>
  if S rs is Some q then
    if cle (fspent (track T (rcons (asked S rs) (q, RBad BA)))) d then Some q else None
  else None.
Lemma truncated_cons d T S q r rs : S [::] = Some q ->
  after (truncated d T S) r rs = truncated d (track T [:: (q, r)]) (after S r) rs.
Proof.
move=> e; rewrite /after /truncated /=; case: (S (r :: rs)) => // q'.
by rewrite e rcons_cons [in LHS]track1.
Qed.
Lemma all_flatten (X : Type) (P : pred X) (ss : seq (seq X)) : all P (flatten ss) = all (all P) ss.
Proof. by elim: ss => //= s ss IH; rewrite all_cat IH. Qed.
Lemma truncated_reading d As n T S : cle (fspent T) d ->
  all (fun h => cle (fspent (track T h)) d) (transcripts As n (truncated d T S)).
Proof.
elim: n T S => [|n IH] T S ok; first by rewrite /= ok.
rewrite [transcripts _ _ _]/= {1}/truncated; case e: (S [::]) => [q|]; last by rewrite /= ok.
rewrite [asked _ _]/= [rcons _ _]/=; case ok': (cle _ d); last by rewrite /= ok.
rewrite all_flatten all_map; apply/allP => r _ /=; rewrite all_map.
have ok'' : cle (fspent (track T [:: (q, r)])) d by move: ok'; case: (q).
rewrite (transcripts_ext _ _ (truncated_cons d T r ^~ e)).
by apply: sub_all (IH _ _ ok'') => h; rewrite -track1.
Qed.
End View.

(* The probabilities of all transcripts sum to 1: no other transcript is possible. *)
Section Total.
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ : Type) (BA : eqType) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Notation step := (step c0 cadd cle binit bdecl bstep).
Notation beh := (beh c0 cadd cle binit bdecl bstep).
Variable as_ : seq BA.
Hypothesis as_uniq : uniq as_.
Hypothesis as_all : forall s q j, (j < card (bstep s q))%N -> (out (bstep s q) j).1.2 \in as_.
Notation As := (answers as_).
Lemma answers_uniq : uniq As.
Proof.
have no x : x \in [seq RB a | a <- as_] -> [/\ x != RLaunched BA, x != RRefused BA & x != RBad BA].
  by case/mapP => a _ ->.
have inj : injective (@RB BA) by move=> x y [].
rewrite /answers /= !inE /= (map_inj_uniq inj) as_uniq andbT.
by apply/and3P; split; apply/negP => /no[].
Qed.
Lemma step_answers q s j : (j < card (step q s))%N -> (out (step q s) j).1.2 \in As.
Proof.
elim: q s j => [q|k i|k b|i q IH] [b'|T l] j //= hj.
- by rewrite /answers mem_cat map_f ?orbT // as_all.
- by case: (charge_at c0 cadd cle T k _).
- by case: (open_acct c0 T k b).
- by move: hj; case: (drop i l) => [|s' l2] //=; apply: IH.
Qed.
Lemma sum_one (V : zmodType) (X : eqType) (s : seq X) x (f : X -> V) : uniq s -> x \in s ->
  \sum_(r <- s | r == x) f r = f x.
Proof.
elim: s => //= y s IH /andP[ys us]; rewrite inE big_cons eq_sym => /orP[/eqP<-|xs].
  rewrite eqxx big1_seq ?addr0 // => r /andP[/eqP-> rs]; by rewrite rs in ys.
case: eqP => [yx|_]; last exact: IH.
by rewrite yx xs in ys.
Qed.
Lemma sum_index (V : zmodType) (f : nat -> V) a a0 : a \in as_ ->
  \sum_(j <- iota 0 (size as_) | RB (nth a0 as_ j) == RB a) f j = f (index a as_).
Proof.
move=> ha; have hi : (index a as_ < size as_)%N by rewrite index_mem.
rewrite big_seq_cond (eq_bigl (fun j => j == index a as_)) => [|j].
  by rewrite (sum_one _ (iota_uniq _ _)) ?mem_iota.
rewrite mem_iota add0n /=; apply/andP/eqP => [[hj /eqP[<-]]|->]; first by rewrite index_uniq.
by rewrite hi nth_index.
Qed.
Lemma sum_by_answer (V : zmodType) (f : nat -> V) q s :
  \sum_(r <- As) \sum_(j <- iota 0 (card (step q s)) | (out (step q s) j).1.2 == r) f j =
  \sum_(j <- iota 0 (card (step q s))) f j.
Proof.
rewrite (exchange_big_dep predT) //= big_seq [RHS]big_seq; apply: eq_bigr => j.
rewrite mem_iota /= add0n => hj; rewrite (eq_bigl (pred1 (out (step q s) j).1.2)) => [|r]; last first.
  by rewrite /= eq_sym.
by rewrite (sum_one (fun=> f j)) ?answers_uniq ?step_answers.
Qed.
Lemma step_total : (forall s q, \sum_(j <- iota 0 (card (bstep s q))) (out (bstep s q) j).1.1 = 1) ->
  forall q s, \sum_(j <- iota 0 (card (step q s))) (out (step q s) j).1.1 = 1.
Proof.
move=> tot; elim=> [q|k i|k b|i q IH] [b'|T l] /=; rewrite ?big_cons ?big_nil ?addr0 //.
- by case: (charge_at c0 cadd cle T k (decl bdecl i)) => [T0|]; rewrite /= big_cons big_nil addr0.
- by case: (open_acct c0 T k b) => [T0|]; rewrite /= big_cons big_nil addr0.
- by case: (drop i l) => [|s1 l2] /=; [rewrite big_cons big_nil addr0|apply: IH].
Qed.
Theorem view_total : (forall s q, \sum_(j <- iota 0 (card (bstep s q))) (out (bstep s q) j).1.1 = 1) ->
  forall n (S : analyst C BK BQ BA) s, \sum_(h <- transcripts As n S) beh s h = 1.
Proof.
move=> tot; elim=> [|n IH] S s; first by rewrite big_cons big_nil addr0.
rewrite transcriptsS; case: (S [::]) => [q|]; last by rewrite big_cons big_nil addr0.
rewrite big_flatten big_map -[RHS](step_total tot q s) -sum_by_answer; apply: eq_bigr => r _.
rewrite big_map [LHS]exchange_big; apply: eq_bigr => j _ /=.
by rewrite -mulr_sumr IH mulr1.
Qed.
End Total.
