(* Streams.v: mechanisms whose data arrive while they are queried.  The identifier of
   [HSV25] turns a mechanism on one stream into a machine on two streams: the analyst
   sends pairs of updates, and in the world b the mechanism gets the one of b.  So updates
   are queries, and an analyst who chooses them by earlier answers is one of View.v. *)
Require Import Preamble Accounting Machine Behaviour Filter View Pure Hidden RandomizedResponse.
Local Open Scope ring_scope.

Section Identifier.
Variables (F : realFieldType) (Q U CS : Type) (BA : eqType).
(* The mechanism: it is asked questions (inl) and gets updates (inr). *)
Variable mstep : CS -> Q + U -> outs (F * BA * CS).
(* Which streams are neighbours, and what is answered when they are not any longer. *)
Variables (near : seq U -> seq U -> bool) (halt : BA).
(* The state: both streams so far, or none once they were not neighbours, and the state of
   the mechanism. *)
Definition pair_state := (option (seq U * seq U) * CS)%type.
(* The outcomes o of the mechanism, with the streams ss kept beside its state. *)
Definition with_streams (ss : option (seq U * seq U)) (o : outs (F * BA * CS)) : outs (F * BA * pair_state) :=
  Outs (card o) (fun j => ((out o j).1.1, (out o j).1.2, (ss, (out o j).2))).
(* A question is passed on.  Of a pair of updates, the one of the world b is passed on if
   the two streams are still neighbours; otherwise the mechanism does not run, and the
   answer to this pair and to each later one is halt, in both worlds. *)
Definition identifier (b : bool) (s : pair_state) (q : Q + U * U) : outs (F * BA * pair_state) :=
  match q with
  | inl q => with_streams s.1 (mstep s.2 (inl q))
  | inr (x0, x1) =>
      if s.1 is Some (t0, t1) then
        let ss := (rcons t0 x0, rcons t1 x1) in
        if near ss.1 ss.2 then with_streams (Some ss) (mstep s.2 (inr (if b then x1 else x0)))
        else Outs 1 (fun _ => (1, halt, (None, s.2)))
      else Outs 1 (fun _ => (1, halt, s))
  end.
(* So every theorem holds for them.  For example: continual mechanisms, each within its
   price on streams that are neighbours, in filters, against analysts who choose each
   pair of updates by the answers so far. *)
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variable e : C -> F.
Hypothesis X : ratio_laws c0 cadd cle e.
Variables (BK : Type) (bdecl : BK -> C) (minit : BK -> CS).
(* Both streams are empty at first. *)
Definition pair_init (b : bool) (k : BK) : pair_state := (Some ([::], [::]), minit k).
Notation beh b := (beh c0 cadd cle (pair_init b) bdecl (identifier b)).
Theorem continual_view (T : Type) (K : seq (F * T)) As n S (E : T -> pred _) R b :
  (forall k h, pure e (bdecl k) (fun b => beh b (SB C (pair_init b k)) h)) ->
  cle c0 R -> all (fun x => 0 <= x.1) K ->
  view_prob K As n S (beh b (SF (newfilt c0 R) [::])) E <=
  e R * view_prob K As n S (beh (~~ b) (SF (newfilt c0 R) [::])) E.
Proof. move=> base ok K0; exact: (pure_view L X base As n S E b ok K0). Qed.
End Identifier.

(* --- a counter, at event level -------------------------------------------------- *)
Definition cprice (k : unit) := 1%N.   (* of one counter *)
(* An update is a bit.  It is added to the count if it is true with probability 2/3, and
   if it is false with probability 1/3.  A question is answered the count so far.  Two
   streams are neighbours if they differ in at most one place. *)
Definition count_step (n : nat) (q : unit + bool) : outs (rat * nat * nat) :=
  match q with
  | inl _ => Outs 1 (fun _ => (1, n, n))
  | inr u => Outs 2 (fun j => if j is 0%N then (hi, 0%N, (n + u)%N) else (lo, 0%N, (n + ~~ u)%N))
  end.
(* In how many places two streams of the same length differ. *)
Fixpoint differ (s t : seq bool) : nat :=
  match s, t with x :: s', y :: t' => ((x != y) + differ s' t')%N | _, _ => 0%N end.
(* Event level: in at most one. *)
Definition event_level s t := (differ s t <= 1)%N.
(* One more update on each stream. *)
Lemma differ_rcons s t x y : size s = size t ->
  differ (rcons s x) (rcons t y) = (differ s t + (x != y))%N.
Proof. by elim: s t => [|a s IH] [|b t] //= => [_|[/IH->]]; rewrite ?addn0 ?add0n ?addnA. Qed.
Definition count_init (b : bool) (k : unit) : pair_state bool nat := (Some ([::], [::]), 0%N).
Notation counter b :=
  (beh 0%N addn leq (count_init b) cprice (identifier count_step event_level 9%N b)).

(* Probabilities are not negative. *)
Lemma counter_ge0 b h s : 0 <= counter b (SB nat s) h.
Proof.
apply: beh_ge0 => {}b {}s [q|[x0 x1]] j; first by rewrite /= ler01.
case: s => -[[t0 t1]|] n /=; last by rewrite ler01.
by case: ifP => _ /=; [case: j|rewrite ler01].
Qed.
(* Once the streams differ, or were not neighbours, everything is the same on both. *)
Lemma counter_halted h n : counter false (SB nat (None, n)) h = counter true (SB nat (None, n)) h.
Proof. by elim: h => [|[[[[]|[x0 x1]]|j k|j b|m q] r] h IH] //=; rewrite !big_cons !big_nil /= IH. Qed.
Lemma counter_same h (s t : seq bool) n : size s = size t -> (0 < differ s t)%N ->
  counter false (SB nat (Some (s, t), n)) h = counter true (SB nat (Some (s, t), n)) h.
Proof.
elim: h s t n => [|[q r] h IH] s t n e d //.
case: q => [[[]|[x0 x1]]|j k|j b|m q]; rewrite /= ; try by rewrite !big_cons !big_nil /= IH.
have e' : size (rcons s x0) = size (rcons t x1) by rewrite !size_rcons e.
have d' : (0 < differ (rcons s x0) (rcons t x1))%N by rewrite differ_rcons // addn_gt0 d.
case: ifP => [near|_] /=; last by rewrite !big_cons !big_nil /= counter_halted.
have xx : x0 = x1.
  apply/eqP; apply: contraTT near => ne; rewrite /event_level differ_rcons // ne addn1.
  by rewrite ltnS leqNgt d.
by rewrite -{}xx in e' d' *; rewrite !big_cons !big_nil /= !IH.
Qed.
(* The counter alone is within e(1) = 2 on neighbours, however it is asked and updated. *)
Lemma counter_pure k h : pure e2 1%N (fun b => counter b (SB nat (count_init b k)) h).
Proof.
suff H s t n : size s = size t -> differ s t = 0%N ->
    pure e2 1%N (fun b => counter b (SB nat (Some (s, t), n)) h) by apply: H.
elim: h s t n => [|[q r] h IH] s t n e d; first by split.
have one s' t' n' (P : bool) : size s' = size t' -> differ s' t' = 0%N ->
    pure e2 1%N (fun b => if P then 1 * counter b (SB nat (Some (s', t'), n')) h + 0 else 0).
  move=> e' d'; case: P; last by split; rewrite ?mulr0.
  by apply: (good_ext (pure_laws e2_laws)) (IH s' t' n' e' d') => b; rewrite mul1r addr0.
case: q => [[[]|[x0 x1]]|j i|j c|m q];
  try by apply: (good_ext (pure_laws e2_laws)) (one s t n _ e d) => b; rewrite /= big_cons big_nil.
have e' : size (rcons s x0) = size (rcons t x1) by rewrite !size_rcons e.
have near : event_level (rcons s x0) (rcons t x1) by rewrite /event_level differ_rcons // d leq_b1.
pose A b (u : bool) := counter b (SB nat (Some (rcons s x0, rcons t x1), (n + u)%N)) h.
have E b : counter b (SB nat (Some (s, t), n)) ((QB nat unit (inr (x0, x1)), r) :: h) =
    if RB 0%N == r then let x := if b then x1 else x0 in hi * A b x + lo * A b (~~ x) else 0.
  by rewrite /= near /= !big_cons big_nil; case: (RB 0%N == r); rewrite ?addr0.
apply: (good_ext (pure_laws e2_laws) (u := fun b => if RB 0%N == r then
    let x := if b then x1 else x0 in hi * A b x + lo * A b (~~ x) else 0)) => [b|]; first by rewrite E.
case: (RB 0%N == r); last by split; rewrite ?mulr0.
have A0 b u : 0 <= A b u by apply: counter_ge0.
rewrite /pure /=; case: (eqVneq x0 x1) => [xx|ne].
  have p u : pure e2 1%N (fun b => A b u).
    by apply: IH => //; rewrite (differ_rcons _ _ e) d xx eqxx.
  rewrite -xx; have [_ _ p1 p2] := p x0; have [_ _ p3 p4] := p (~~ x0).
  split; rewrite ?addr_ge0 ?mulr_ge0 // mulrDr ler_add // mulrCA; exact: ler_wpmul2l.
have same u : A false u = A true u by apply: counter_same => //; rewrite differ_rcons // d ne.
have -> : x1 = ~~ x0 by move: ne; case: x0 {A A0 same E near e'}; case: x1.
rewrite !same negbK.
by split; rewrite ?addr_ge0 ?mulr_ge0 //; apply: two.
Qed.
(* Any number of such counters, interleaved, on streams that the analyst chooses. *)
Theorem counter_view (T : Type) (K : seq (rat * T)) As n S (E : T -> pred _) R b :
  all (fun x => 0 <= x.1) K ->
  view_prob K As n S (counter b (SF (newfilt 0%N R) [::])) E <=
  2%:R ^+ R * view_prob K As n S (counter (~~ b) (SF (newfilt 0%N R) [::])) E.
Proof. by move=> K0; apply: (pure_view nat_laws e2_laws counter_pure _ _ _ _ _ (leq0n R) K0). Qed.

(* --- computed ----------------------------------------------------------------- *)
(* Under the bound 1 one counter is launched, a second one is refused.  The streams
   differ at the first update, which is told apart with the ratio 2; the second pair of
   updates is the same; the third pair would make the streams differ in two places and
   is answered halt (9) in both worlds; so is the fourth one, though its updates are the
   same; the count is x. *)
Notation LAUNCH := (QLaunch (unit + bool * bool) None (NB nat tt)).
Notation UPDATE u v := (QSub 0%N (QB nat unit (inr (u, v)))).
Notation COUNT := (QSub 0%N (QB nat unit (inl tt))).
Definition updates x : seq (query nat unit (unit + bool * bool) * resp nat) :=
  [:: (LAUNCH, RLaunched nat); (LAUNCH, RRefused nat); (UPDATE true false, RB 0%N);
      (COUNT, RB x); (UPDATE true true, RB 0%N); (UPDATE true false, RB 9%N);
      (UPDATE true true, RB 9%N); (COUNT, RB x.+1)].
Definition counted x : rat * rat := (counter false (SF (newfilt 0%N 1%N) [::]) (updates x),
  counter true (SF (newfilt 0%N 1%N) [::]) (updates x)).
Goal [:: counted 0; counted 1; counted 2] =
  [:: (lo * hi, hi * hi); (hi * hi, lo * hi); (0, 0)].
Proof. by rewrite /counted -!computedE; apply/eqP; vm_compute. Qed.
