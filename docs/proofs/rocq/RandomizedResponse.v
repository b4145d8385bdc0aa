(* RandomizedResponse.v: a concrete mechanism with a hidden state, for which all
   hypotheses of the theorems hold, and transcripts that are computed.

   The mechanism tosses a coin at its first query and keeps it: the state knows the
   noisy bit, the answer (true) does not tell it.  At the second query it answers the
   noisy bit.  The bit is right with probability 2/3.  The mechanism "leaky" instead
   keeps the true bit with probability 1/10.  There is a second mechanism, "public", that
   has nothing to do with the data: it always answers true. *)
Require Import Preamble Accounting Machine Behaviour Filter View Pure Renyi Approximate.
Local Open Scope ring_scope.

Definition hi : rat := 2%:R / 3%:R.
Definition lo : rat := 1 / 3%:R.
(* None: nothing was asked.  Some x: x is what the next query is answered. *)
Definition rr_step (b : bool) (s : option bool) (q : unit) : outs (rat * bool * option bool) :=
  if s is Some x then Outs 1 (fun _ => (1, x, Some x))
  else Outs 2 (fun j => if j is 0%N then (hi, true, Some b) else (lo, true, Some (~~ b))).
Definition leaky_step (b : bool) (s : option bool) (q : unit) : outs (rat * bool * option bool) :=
  if s is Some x then Outs 1 (fun _ => (1, x, Some x))
  else Outs 3 (fun j => match j with
    | 0 => (9%:R / 10%:R * hi, true, Some b)
    | 1 => (9%:R / 10%:R * lo, true, Some (~~ b))
    | _ => (1 / 10%:R, true, Some b) end).
(* The names: true for the noisy bit, false for the public mechanism, which is priced far
   too high. *)
Definition rr_init (b k : bool) : option bool := if k then None else Some true.
(* Prices are counts: e(c) = 2^c, of order a + 1: 2^(a (a + 1) c), and s(c) = (9/10)^c. *)
Definition price (k : bool) : nat := (if k then 1 else 5)%N.
Definition e2 (c : nat) : rat := 2%:R ^+ c.
Definition ez (a c : nat) : rat := 2%:R ^+ (a * a.+1 * c).
Definition s9 (c : nat) : rat := (9%:R / 10%:R) ^+ c.

Lemma nat_laws : charge_laws 0%N addn leq.
Proof.
split=> [a d|a d|a b c d|a c d|a c d]; rewrite ?addn0 ?add0n ?addnA //.
by move=> _; apply: leq_trans; apply: leq_addr.
Qed.
Lemma e2_laws : ratio_laws 0%N addn leq e2.
Proof.
split=> // [c|a b|a b h]; first by rewrite exprn_gt0.
- by rewrite /e2 exprD.
- exact: ler_weexpn2l.
Qed.
Lemma ez_laws a : ratio_laws 0%N addn leq (ez a).
Proof.
split=> [|c|b c|b c h]; first by rewrite /ez muln0.
- by rewrite exprn_gt0.
- by rewrite /ez mulnDr exprD.
- by apply: ler_weexpn2l => //; rewrite leq_mul2l h orbT.
Qed.
Lemma s9_laws : share_laws 0%N addn leq s9.
Proof.
split=> // [c|a b|a b h]; first by apply: exprn_ge0.
- by rewrite /s9 exprD.
- exact: ler_wiexpn2l.
Qed.

Notation rr b := (beh 0%N addn leq (rr_init b) price (rr_step b)).
Notation leaky b := (beh 0%N addn leq (rr_init b) price (leaky_step b)).
Notation FILTER R := (SF (newfilt 0%N R) [::]).
Definition bools := [:: true; false].
Lemma bools_uniq : uniq bools. Proof. by []. Qed.
Lemma bools_all b s q j : (j < card (rr_step b s q))%N -> (out (rr_step b s q) j).1.2 \in bools.
Proof. by move=> _; case: s => [[|]|] //=; case: j. Qed.
Lemma rr_total b s q : \sum_(j <- iota 0 (card (rr_step b s q))) (out (rr_step b s q) j).1.1 = 1.
Proof. by case: s => [x|]; rewrite /= !big_cons big_nil. Qed.
Lemma rr_nonneg b s q j : (j < card (rr_step b s q))%N -> 0 <= (out (rr_step b s q) j).1.1.
Proof. by case: s => //; case: j. Qed.

(* Once the coin is tossed, everything is the same on both data sets. *)
Lemma kept (step1 step2 : option bool -> unit -> outs (rat * bool * option bool)) (x : bool) h :
  (forall x q, step1 (Some x) q = Outs 1 (fun _ => (1 : rat, x, Some x))) ->
  (forall x q, step2 (Some x) q = Outs 1 (fun _ => (1 : rat, x, Some x))) ->
  beh 0%N addn leq (rr_init true) price step1 (SB nat (Some x)) h =
  beh 0%N addn leq (rr_init true) price step2 (SB nat (Some x)) h.
Proof.
move=> e1 e2; elim: h => [|[q r] h IH] //; case: q => [q|j k|j b|m q] /=;
  by rewrite ?e1 ?e2 /= !big_cons !big_nil IH.
Qed.
Definition A (x : bool) h : rat := rr false (SB nat (Some x)) h.
Lemma kept_rr b x h : rr b (SB nat (Some x)) h = A x h. Proof. exact: kept. Qed.
Lemma kept_leaky b x h : leaky b (SB nat (Some x)) h = A x h. Proof. exact: kept. Qed.
Lemma A_ge0 x h : 0 <= A x h.
Proof.
rewrite /A; elim: h => [|[q r] h IH] //; case: q => [q|j k|j b|m q] /=;
  by rewrite big_cons big_nil; case: ifP => _; rewrite ?mul1r ?addr0.
Qed.
Lemma two (u v : rat) : 0 <= u -> 0 <= v -> hi * u + lo * v <= e2 1 * (hi * v + lo * u).
Proof. by move=> u0 v0; rewrite mulrDr addrC; apply: ler_add; rewrite mulrA; apply: ler_wpmul2r. Qed.

(* The public mechanism has no loss. *)
Lemma public_pure h : pure e2 0%N (fun b => rr b (SB nat (rr_init b false)) h).
Proof. by rewrite /pure /= !kept_rr /e2 expr0 mul1r A_ge0. Qed.
(* The noisy bit alone is within e(1) = 2, and both are within their prices. *)
Lemma rr_pure k h : pure e2 (price k) (fun b => rr b (SB nat (rr_init b k)) h).
Proof.
case: k; last exact: (good_mono (pure_laws e2_laws) (leq0n 5)) (public_pure h).
elim: h => [|[q r] h IH]; first by split.
case: q => [q|j i|j c|m q]; try by rewrite /pure /= !big_cons !big_nil; case: ifP => _; rewrite ?mul1r ?addr0.
have E b : rr b (SB nat (rr_init b true)) ((QB nat bool q, r) :: h) =
    if RB true == r then hi * A b h + lo * A (~~ b) h else 0.
  by rewrite beh_cons /= !big_cons big_nil; case: (RB true == r); rewrite ?addr0 //= !kept_rr.
rewrite /pure !E; case: ifP => _ //=.
have := A_ge0 true h; have := A_ge0 false h; move: (A _ _) (A _ _) => x y x0 y0.
by split; rewrite ?addr_ge0 ?mulr_ge0 //; apply: two.
Qed.
(* leaky is at least 9/10 of it. *)
Lemma leaky_below b k h : below_share s9 (price k)
  (fun w => if w then rr b (SB nat (rr_init b k)) h else leaky b (SB nat (rr_init b k)) h).
Proof.
case: k; last first.
  apply: (good_mono (below_laws s9_laws) (leq0n 5)).
  by rewrite /below_share /= kept_rr kept_leaky /s9 expr0 mul1r A_ge0.
elim: h => [|[q r] h IH]; first by split.
case: q => [q|j i|j c|m q];
  try by rewrite /below_share /= !big_cons !big_nil; case: ifP => _; rewrite ?mul1r ?addr0 ?mulr0.
rewrite /below_share !beh_cons /= !big_cons !big_nil; case: (RB true == r) => //=.
rewrite /= !kept_rr !kept_leaky ?addr0.
have := A_ge0 b h; have := A_ge0 (~~ b) h; move: (A _ _) (A _ _) => x y x0 y0.
split; first by rewrite addr_ge0 ?mulr_ge0.
rewrite mulrDr !mulrA addrA ler_addl; apply: mulr_ge0 => //.
Qed.

(* Any number of copies, interleaved, in filters nested to any depth, against any
   randomised analyst: the ratio of each event is at most 2^R. *)
Theorem rr_view (T : Type) (K : seq (rat * T)) n S (E : T -> pred _) R b :
  all (fun x => 0 <= x.1) K ->
  view_prob K (answers bools) n S (rr b (FILTER R)) E <=
  2%:R ^+ R * view_prob K (answers bools) n S (rr (~~ b) (FILTER R)) E.
Proof. by move=> K0; apply: (pure_view nat_laws e2_laws rr_pure _ _ _ _ _ (leq0n R) K0). Qed.

Lemma rr_zcdp k : zcdp bools ez (price k) (fun b h => rr b (SB nat (rr_init b k)) h).
Proof.
move=> a; have [h1 h2] := pure_renyi bools_uniq bools_all rr_total a (rr_pure k).
split=> // b n S; apply: le_trans (h2 b n S) _.
rewrite /e2 /ez -exprM; apply: ler_weexpn2l => //; rewrite mulnC -mulnA leq_mul2l mulSn leq_addr orbT //.
Qed.
(* leaky is approximately zCDP in any such interaction: up to (9/10)^R it is at least
   what the filter makes of rr, whose Renyi moments of all integer orders are bounded. *)
Theorem leaky_filter R : approximate bools ez s9 R
  (fun b h => leaky b (FILTER R) h) (fun b h => rr b (FILTER R) h).
Proof.
apply: (approx_filter nat_laws true bools_uniq bools_all rr_total rr_nonneg ez_laws s9_laws (leq0n R)) => k.
by split=> [|b h]; [apply: rr_zcdp|apply: (leaky_below b k h)].
Qed.

(* --- computed ----------------------------------------------------------------- *)
(* Under the bound 2, two copies are launched and a third one is refused.  Then the
   coin of copy 1, the coin of copy 0, the bit of copy 0, the bit of copy 1. *)
Notation LAUNCH := (QLaunch unit None (NB nat true)).
Notation ASK i := (QSub i (QB nat bool tt)).
Definition chat x y : seq (query nat bool unit * resp bool) :=
  [:: (LAUNCH, RLaunched bool); (LAUNCH, RLaunched bool); (LAUNCH, RRefused bool);
      (ASK 1%N, RB true); (ASK 0%N, RB true); (ASK 0%N, RB x); (ASK 1%N, RB y)].
Definition both x y : rat * rat :=
  (rr false (FILTER 2%N) (chat x y), rr true (FILTER 2%N) (chat x y)).
Goal [:: both true true; both true false; both false true; both false false] =
  [:: (lo * lo, hi * hi); (lo * hi, hi * lo); (hi * lo, lo * hi); (hi * hi, lo * lo)].
Proof. by rewrite /both -!computedE; apply/eqP; vm_compute. Qed.
(* The bound is attained: e(2) = 4. *)
Goal rr true (FILTER 2%N) (chat true true) = e2 2%N * rr false (FILTER 2%N) (chat true true).
Proof. by rewrite -!computedE; apply/eqP; vm_compute. Qed.
(* A randomised analyst who chooses queries by answers: with probability 1/3 he asks the
   second copy if the bit of the first one is true, and with 2/3 if it is false; otherwise he
   stops.  E: he saw the second bit, and it was true. *)
Definition adaptive (c : bool) : analyst nat bool unit bool_eqType := fun rs =>
  match rs with
  | [::] | [:: _] => Some LAUNCH
  | [:: _; _] | [:: _; _; _] => Some (ASK 0%N)
  | [:: _; _; _; x] => if x == RB c then Some (ASK 1%N) else None
  | [:: _; _; _; _; _] => Some (ASK 1%N)
  | _ => None end.
(* All that he can see has probabilities of sum 1, on both data sets. *)
Goal forall b c, \sum_(h <- transcripts (answers bools) 6 (adaptive c)) rr b (FILTER 2%N) h = 1.
Proof. by move=> b c; apply: (view_total _ _ _ _ _ bools_uniq (@bools_all b) (@rr_total b)). Qed.
Definition coins : seq (rat * bool) := [:: (1 / 3%:R, true); (2%:R / 3%:R, false)].
Definition saw (c : bool) (h : Behaviour.transcript nat bool unit bool_eqType) : bool :=
  (size h == 6%N) && (last (RBad bool_eqType) [seq x.2 | x <- h] == RB true).
Definition seen_by (P : _ -> rat) : rat := view_prob coins (answers bools) 6 adaptive P saw.
Lemma seen_computed b : seen_by (rr b (FILTER 2%N)) =
  seen_by (computed 0%N addn leq (rr_init b) price (rr_step b) (FILTER 2%N)).
Proof.
by rewrite /seen_by /view_prob; apply: eq_bigr => x _; congr (_ * _); apply: eq_bigr => h _; rewrite computedE.
Qed.
Goal (seen_by (rr false (FILTER 2%N)), seen_by (rr true (FILTER 2%N))) =
  (5%:R / 27%:R, 8%:R / 27%:R).
Proof. by rewrite !seen_computed /seen_by /view_prob !unlock; apply/eqP; vm_compute. Qed.

Notation BELOW i := (QLaunch unit (Some i) (NB nat true)).
(* A limit of 1 below an odometer, with something beside it.  Copies of the noisy bit are
   launched at the limit, of which the second one is refused, and the public mechanism is
   launched at the root: the reading is 6, but the loss is at most e(1) = 2, by the theorem
   about limits, and it is attained. *)
Definition one_limit := Filt None 0%N [:: Acct (Some 1%N) 0%N [:: 0%N]].
Definition beside : seq (query nat bool unit * resp bool) :=
  [:: (BELOW 0%N, RLaunched bool); (QLaunch unit None (NB nat false), RLaunched bool);
      (BELOW 0%N, RRefused bool); (ASK 1%N, RB true); (ASK 0%N, RB true); (ASK 0%N, RB true)].
Lemma beside_limit : pure e2 1%N (fun b => rr b (SF one_limit [::]) beside).
Proof.
have := @pure_limit _ nat 0%N addn leq nat_laws e2 e2_laws bool unit bool_eqType price
  (fun _ => option bool) rr_init rr_step rr_pure 0%N 1%N one_limit beside.
by apply=> //; split; [left|split=> //; right=> h; apply: public_pure].
Qed.
Goal (rr false (SF one_limit [::]) beside, rr true (SF one_limit [::]) beside,
      fspent (track 0%N addn leq price one_limit beside)) = (lo, hi, 6%N).
Proof. by rewrite -!computedE; apply/eqP; vm_compute. Qed.

(* Both sides of lemma_2_19 can be false: if the noisy bit had the price 0, the filter with
   the bound 0 would not be within e(0) = 1, and its odometer would not be, either. *)
Definition asked_bit : seq (query nat bool unit * resp bool) :=
  [:: (LAUNCH, RLaunched bool); (ASK 0%N, RB true); (ASK 0%N, RB true)].
Notation unpriced b := (beh 0%N addn leq (rr_init b) (fun _ => 0%N) (rr_step b)).
Goal (unpriced false (FILTER 0%N) asked_bit, unpriced true (FILTER 0%N) asked_bit,
      unpriced true (SF (newodo 0%N) [::]) asked_bit, e2 0%N) = (lo, hi, hi, 1).
Proof. by rewrite -!computedE; apply/eqP; vm_compute. Qed.
