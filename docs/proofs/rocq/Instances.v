(* Instances.v: certificates for base mechanisms, the behavioural form, the
   one-shot mixture child, approximate zCDP (both data sets, all integer orders),
   rational charges, and a small closed example (hypotheses are satisfiable). *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From Coq Require List QArith.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import Accounting Machine Pointwise Summed Theorems.
Import Order.TTheory GRing.Theory Num.Theory.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

(* A certificate G on the states of a base mechanism covers all its runs. *)
Section Cert.
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Notation REACH := (reach c0 cadd cle binit bdecl bstep).
Lemma refused_same q s j :
  (out (step c0 cadd cle binit bdecl bstep q s) j).1.2 = RRefused _ ->
  if q is QLaunch _ _ then (out (step c0 cadd cle binit bdecl bstep q s) j).2 = s else True.
Proof.
case: q => //= k i; case: s => //= T l.
by case: (charge_at c0 cadd cle T k (decl bdecl i)).
Qed.
Lemma cert (G : BS -> W -> Prop) :
  (forall s, G s 1) ->
  (forall s q j w, (j < card (bstep s q))%N -> G (out (bstep s q) j).2 w ->
      G s ((out (bstep s q) j).1.1 * w)) ->
  forall n S s w, REACH n S (SB C s) w -> G s w.
Proof.
move=> G1 GS; elim=> [|n IH] S s w; first by move=> /= ->.
rewrite reachS; case: (S [::]) => [q|]; last by move=> ->.
case: q => [q|k i|k b|i q] [j [w' [hj -> h]]]; move: hj h => /= hj h.
- exact: GS hj (IH _ _ _ h).
- by rewrite mul1r; apply: IH h.
- by rewrite mul1r; apply: IH h.
- by rewrite mul1r; apply: IH h.
Qed.
Lemma cert_val (F : realFieldType) (phi : W -> F) (V : BS -> F) :
  phi 1 = 1 -> (forall x y, phi (x * y) = phi x * phi y) ->
  (forall b q j, (j < card (bstep b q))%N -> 0 <= phi (out (bstep b q) j).1.1) ->
  (forall s, 1 <= V s) ->
  (forall s q, \sum_(j <- iota 0 (card (bstep s q)))
      phi (out (bstep s q) j).1.1 * V (out (bstep s q) j).2 <= V s) ->
  forall n S s, val c0 cadd cle binit bdecl bstep phi n S (SB C s) <= V s.
Proof.
move=> p1 pM p0 V1 VS; elim=> [|n IH] S s; first by rewrite val0.
rewrite (valS _ _ _ _ _ _ p1 pM); case: (S [::]) => [q|] //.
case: q => [q|k i|k b|i q] /=; try by rewrite big_cons big_nil addr0 p1 mul1r; apply: IH.
apply: le_trans (VS s q); apply: iota_sum_le => j hj.
by apply: ler_wpmul2l; [apply: p0|apply: IH].
Qed.
End Cert.

(* Behavioural form: P k b h is the probability, on data set b, of the answers in
   h given the queries in h (answers are numbers below m k h q).  Any machine with
   hidden random state has one. *)
Section Behaviour.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BQ : Type) (bdecl : BK -> C).
Definition hist := seq (BQ * nat).
Variables (m : BK -> hist -> BQ -> nat) (P : BK -> bool -> hist -> F).
Hypothesis P1 : forall k b, P k b [::] = 1.
Hypothesis P_ge0 : forall k b h, 0 <= P k b h.
Hypothesis P_sum : forall k b h q,
  \sum_(j <- iota 0 (m k h q)) P k b (rcons h (q, j)) = P k b h.
Definition bh_init (k : BK) : BK * hist := (k, [::]).
Definition bh_step (s : BK * hist) (q : BQ) : outs ((F * F)%type * nat * (BK * hist)) :=
  Outs (m s.1 s.2 q) (fun j => let h' := rcons s.2 (q, j) in
    ((P s.1 false h' / P s.1 false s.2, P s.1 true h' / P s.1 true s.2), j, (s.1, h'))).
Lemma P_zero k b h q j : (j < m k h q)%N -> P k b h = 0 -> P k b (rcons h (q, j)) = 0.
Proof.
move=> hj h0; have := P_sum k b h q; rewrite h0 => /eqP.
rewrite psumr_eq0 // => /allP /(_ j); rewrite mem_iota add0n => /(_ hj) /= /eqP -> //.
Qed.
Lemma behaviour n S k w :
  reach c0 cadd cle bh_init bdecl bh_step n S (SB C (bh_init k)) w ->
  exists h, w = (P k false h, P k true h).
Proof.
pose G (s : BK * hist) (w : F * F) := exists h,
  P s.1 false s.2 * w.1 = P s.1 false h /\ P s.1 true s.2 * w.2 = P s.1 true h.
move=> h; have : G (bh_init k) w.
  apply: cert h => [s|s q j w' hj [h' [e1 e2]]]; first by exists s.2; rewrite !mulr1.
  have E b x : P s.1 b (rcons s.2 (q, j)) * x = P s.1 b h' ->
      P s.1 b s.2 * (P s.1 b (rcons s.2 (q, j)) / P s.1 b s.2 * x) = P s.1 b h'.
    case: (eqVneq (P s.1 b s.2) 0) => [z <-|nz <-]; first by rewrite z (P_zero hj z) !mul0r.
    by rewrite mulrA mulrCA divff // mulr1.
  by exists h'; split; apply: E.
by case=> h' [/=]; rewrite !P1 !mul1r => e1 e2; exists h'; rewrite -e1 -e2; case: (w).
Qed.
End Behaviour.

(* Pure, with children in behavioural form: the statement of the brief. *)
Section PureBehaviour.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis le_add0 : forall a d, cle a d -> cle (cadd a c0) d.
Hypothesis le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d.
Hypothesis le_0add : forall a d, cle (cadd c0 a) d -> cle a d.
Variable e : C -> F.
Hypothesis e0 : e c0 = 1.
Hypothesis e_gt0 : forall c, 0 < e c.
Hypothesis eM : forall a b, e a * e b <= e (cadd a b).
Hypothesis e_mono : forall a b, cle a b -> e a <= e b.
Theorem pure_behaviour (BK BQ : Type) (bdecl : BK -> C)
    (m : BK -> hist BQ -> BQ -> nat) (P : BK -> bool -> hist BQ -> F) :
  (forall k b, P k b [::] = 1) -> (forall k b h, 0 <= P k b h) ->
  (forall k b h q, \sum_(j <- iota 0 (m k h q)) P k b (rcons h (q, j)) = P k b h) ->
  (forall k h, P k false h <= e (bdecl k) * P k true h /\
               P k true h <= e (bdecl k) * P k false h) ->
  forall R n S y, cle c0 R ->
    List.In y (run c0 cadd cle (@bh_init BK BQ) bdecl (bh_step m P) n S (SF (newfilt c0 R) [::])) ->
    y.1.1 <= e R * y.1.2 /\ y.1.2 <= e R * y.1.1.
Proof.
move=> h1 h2 h3 h4 R n S y ok hy.
apply: (pure_filter le_add0 le_addA le_0add e0 eM e_mono _ ok hy) => k n' S' w hr.
by have [h ->] := behaviour h1 h2 h3 hr; case: (h4 k h) => h5 h6; split=> /=.
Qed.
End PureBehaviour.

(* A one-shot child with law (1-d) A + d B, and after its answer nothing. *)
Section OneShot.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BQ BK : Type) (bdecl : BK -> C) (N : BK -> BQ -> nat).
Variables (d : BK -> F) (A B : BK -> BQ -> nat -> F) (s : C -> F).
Definition os_init (k : BK) : option BK := Some k.
Definition os_step (st : option BK) (q : BQ) : outs ((F * F)%type * nat * option BK) :=
  if st is Some k then Outs (N k q) (fun j => ((A k q j, (1 - d k) * A k q j + d k * B k q j), j, None))
  else Outs 1 (fun _ => (1, 0%N, None)).
Lemma oneshot_under :
  (forall k, [/\ 0 <= d k, d k <= 1 & s (bdecl k) = 1 - d k]) ->
  (forall k q j, 0 <= A k q j /\ 0 <= B k q j) ->
  forall k n S w, reach c0 cadd cle os_init bdecl os_step n S (SB C (os_init k)) w ->
    under s (bdecl k) w.
Proof.
move=> hd hAB k n S w h.
pose G (st : option BK) (w : F * F) := if st is Some k then under s (bdecl k) w else w = 1.
apply: (cert (G := G)) h => [[k'|] //|[k'|] q j w' /= hj]; last by rewrite /G => ->; rewrite mulr1.
- case: (hd k') => h1 h2 h3; split; rewrite /= ?ler01 // h3 mulr1.
  by rewrite ler_subl_addr ler_addl.
- rewrite /G => ->; rewrite mulr1; case: (hd k') => h1 h2 h3; case: (hAB k' q j) => h4 h5.
  by split=> //=; rewrite h3 ler_addl; apply: mulr_ge0.
Qed.
End OneShot.

(* Approximate zCDP: weights ((W0, V0), (W1, V1)); every integer order a+1. *)
Section Approx.
Variables (F : realFieldType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis le_add0 : forall a d, cle a d -> cle (cadd a c0) d.
Hypothesis le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d.
Hypothesis le_0add : forall a d, cle (cadd c0 a) d -> cle a d.
Variables (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (((F * F) * (F * F))%type * BA * BS).
Notation RUN := (run c0 cadd cle binit bdecl bstep).
Notation REACH := (reach c0 cadd cle binit bdecl bstep).
Variables (e : nat -> C -> F) (s : C -> F).
Hypothesis e0 : forall a, e a c0 = 1.
Hypothesis e_gt0 : forall a c, 0 < e a c.
Hypothesis eM : forall a b c, e a b * e a c <= e a (cadd b c).
Hypothesis e_mono : forall a b c, cle b c -> e a b <= e a c.
Hypothesis s0 : s c0 = 1.
Hypothesis s_ge0 : forall c, 0 <= s c.
Hypothesis sM : forall a b, s (cadd a b) <= s a * s b.
Hypothesis s_anti : forall a b, cle a b -> s b <= s a.
Hypothesis nn : forall b q j, (j < card (bstep b q))%N ->
  0 <= (out (bstep b q) j).1.1.1.1 /\ 0 <= (out (bstep b q) j).1.1.2.1.

Definition ptw c (w : (F * F) * (F * F)) :=
  [/\ 0 <= w.1.1, 0 <= w.2.1, s c * w.1.1 <= w.1.2, s c * w.2.1 <= w.2.2 &
      (w.1.1 = 0 <-> w.2.1 = 0)].
Definition azcdp c n S st :=
  (forall w, REACH n S st w -> ptw c w) /\
  forall a, \sum_(y <- RUN n S st) y.1.1.1 ^+ a.+1 / y.1.2.1 ^+ a <= e a c /\
            \sum_(y <- RUN n S st) y.1.2.1 ^+ a.+1 / y.1.1.1 ^+ a <= e a c.

Theorem approx_filter : (forall k n S, azcdp (bdecl k) n S (SB C (binit k))) ->
  forall R n S, cle c0 R -> azcdp R n S (SF (newfilt c0 R) [::]).
Proof.
move=> base R n S ok; split.
  move=> w; apply: (@filter_good _ _ _ _ _ _ _ _ _ _ _ _ le_add0 le_addA le_0add ptw) => //.
  - by split; rewrite /= ?s0 ?mul1r ?ler01.
  - move=> a b x z [h1 h2 h3 h4 [h5 h5']] [k1 k2 k3 k4 [k5 k5']].
    have M p q p' q' : 0 <= p -> 0 <= q -> s a * p <= p' -> s b * q <= q' ->
        s (cadd a b) * (p * q) <= p' * q'.
      move=> g1 g2 g3 g4; apply: le_trans (_ : (s a * p) * (s b * q) <= _).
        by rewrite mulrACA; apply: ler_wpmul2r; [apply: mulr_ge0|apply: sM].
      by apply: ler_pmul => //; apply: mulr_ge0.
    split; rewrite /=; [exact: mulr_ge0|exact: mulr_ge0|exact: M|exact: M|].
    by split=> /eqP; rewrite mulf_eq0 => /orP[/eqP h|/eqP h]; rewrite ?(h5 h) ?(h5' h) ?(k5 h) ?(k5' h) ?mul0r ?mulr0.
  - move=> a b x hab [h1 h2 h3 h4 h5]; have h := s_anti hab.
    by split=> //; [apply: le_trans h3|apply: le_trans h4]; apply: ler_wpmul2r.
  - by move=> k m S' w'; apply: (base k m S').1.
move=> a; pose f (w : (F * F) * (F * F)) := w.1.1 ^+ a.+1 / w.2.1 ^+ a.
pose g (w : (F * F) * (F * F)) := w.2.1 ^+ a.+1 / w.1.1 ^+ a.
split.
- apply: (@filter_val _ _ c0 cadd cle _ _ _ _ binit bdecl bstep F f (e a) _ _ _ (e0 a) (e_gt0 a) (@eM a) (@e_mono a) _ n S R ok).
  + by rewrite /f /= !expr1n divr1.
  + by move=> x y; rewrite /f /= !exprMn invfM mulrACA.
  + by move=> b q j /nn[h1 h2]; apply: divr_ge0; apply: exprn_ge0.
  + by move=> k m S'; apply: ((base k m S').2 a).1.
- apply: (@filter_val _ _ c0 cadd cle _ _ _ _ binit bdecl bstep F g (e a) _ _ _ (e0 a) (e_gt0 a) (@eM a) (@e_mono a) _ n S R ok).
  + by rewrite /g /= !expr1n divr1.
  + by move=> x y; rewrite /g /= !exprMn invfM mulrACA.
  + by move=> b q j /nn[h1 h2]; apply: divr_ge0; apply: exprn_ge0.
  + by move=> k m S'; apply: ((base k m S').2 a).2.
Qed.
End Approx.

(* Rational charges satisfy the laws of a charge. *)
Section QCharge.
Import QArith.
Definition qadd a b := Qred (Qplus a b).
Lemma q_add0 a d : Qle_bool a d -> Qle_bool (qadd a (0#1)) d.
Proof. by rewrite /is_true !Qle_bool_iff /qadd Qred_correct Qplus_0_r. Qed.
Lemma q_addA a b c d : Qle_bool (qadd (qadd a b) c) d -> Qle_bool (qadd a (qadd b c)) d.
Proof. by rewrite /is_true !Qle_bool_iff /qadd !Qred_correct Qplus_assoc. Qed.
Lemma q_0add a d : Qle_bool (qadd (0#1) a) d -> Qle_bool a d.
Proof. by rewrite /is_true !Qle_bool_iff /qadd Qred_correct Qplus_0_l. Qed.
End QCharge.
