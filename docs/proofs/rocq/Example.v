(* Example.v: closed instance.  Randomised response (2/3, 1/3), any number of
   concurrent copies, nested filters, under a filter that counts: ratio 2^R. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From Coq Require List.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import Accounting Machine Pointwise Summed Theorems Instances.
Import Order.TTheory GRing.Theory Num.Theory.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Definition hi : rat := 2%:R / 3%:R.
Definition lo : rat := 1 / 3%:R.
Definition rr_step (s : bool) (q : unit) : outs ((rat * rat)%type * bool * bool) :=
  if s then Outs 2 (fun j => if j is 0%N then ((hi, lo), true, false) else ((lo, hi), false, false))
  else Outs 1 (fun _ => (1, false, false)).
Definition e2 (n : nat) : rat := 2%:R ^+ n.
Notation RRUN := (run 0%N addn leq (fun _ : unit => true) (fun _ => 1%N) rr_step).
Notation RREACH := (reach 0%N addn leq (fun _ : unit => true) (fun _ => 1%N) rr_step).

Lemma l1 (a d : nat) : (a <= d -> a + 0 <= d)%N. Proof. by rewrite addn0. Qed.
Lemma l2 (a b c d : nat) : (a + b + c <= d -> a + (b + c) <= d)%N. Proof. by rewrite addnA. Qed.
Lemma l3 (a d : nat) : (0 + a <= d -> a <= d)%N. Proof. by []. Qed.
Lemma x0 : e2 0 = 1. Proof. by []. Qed.
Lemma xpos c : 0 < e2 c. Proof. by rewrite exprn_gt0. Qed.
Lemma xM a b : e2 a * e2 b <= e2 (a + b). Proof. by rewrite /e2 exprD. Qed.
Lemma xmono a b : (a <= b)%N -> e2 a <= e2 b. Proof. by move=> h; apply: ler_weexpn2l. Qed.

Lemma rr_pure k n S w : RREACH n S (SB _ ((fun _ : unit => true) k)) w -> pure e2 1%N w.
Proof.
pose G (s : bool) (w : rat * rat) := if s then pure e2 1%N w else w = 1.
move=> h; apply: (cert (G := G)) h => [[|] //|[|] q j w' hj]; rewrite /G /=.
- by case: j hj => [|j] _ ->; rewrite mulr1.
- by move=> ->; rewrite mulr1.
Qed.
Theorem rr_filter R n S y : List.In y (RRUN n S (SF (newfilt 0%N R) [::])) ->
  y.1.1 <= 2%:R ^+ R * y.1.2 /\ y.1.2 <= 2%:R ^+ R * y.1.1.
Proof.
by apply: (pure_filter l1 l2 l3 x0 xM xmono _ (leq0n R)) => k m S' w; apply: rr_pure k m S' w.
Qed.
(* order 2: 4/3 + 1/6 = 3/2 <= 2. *)
Theorem rr_renyi R n S :
  \sum_(y <- RRUN n S (SF (newfilt 0%N R) [::])) y.1.1 ^+ 2 / y.1.2 ^+ 1 <= 2%:R ^+ R.
Proof.
have nn b q j : (j < card (rr_step b q))%N ->
    0 <= (out (rr_step b q) j).1.1.1 /\ 0 <= (out (rr_step b q) j).1.1.2.
  by case: b => //; case: j => [|j] _.
apply: (@renyi_filter _ _ _ _ _ l1 l2 l3 _ _ _ _ _ _ rr_step e2 x0 xpos xM xmono 1 nn _ R n S (leq0n R)).2.
move=> k m S'; split.
- move=> w h; pose G (s : bool) (w : rat * rat) := w.2 != 0.
  have : w.2 != 0; last by move=> nz z; rewrite z eqxx in nz.
  apply: (cert (G := G)) h => [s|[|] q j w' hj]; rewrite /G //= => h; rewrite mulf_neq0 //.
  by case: j hj.
- apply: (cert_val _ _ _ _ _ (V := fun s : bool => if s then e2 1 else 1)
    (rphi1 _ 1) (@rphiM _ 1)).
  + by move=> b q j /nn[h1 h2]; apply: divr_ge0; apply: exprn_ge0.
  + by case.
  + by case=> q; rewrite /= !big_cons big_nil.
Qed.

(* Sanity: two copies are launched, a third refused (R = 2), and the two are asked
   in turn, the second question only if the first answer was true. *)
Definition script : strat nat unit unit bool := fun h =>
  match h with
  | [::] | [:: _] | [:: _; _] => Some (QLaunch unit None (NB nat tt))
  | [:: _; _; _] => Some (QSub 1 (QB nat unit tt))
  | [:: _; _; _; (_, RB true)] => Some (QSub 0 (QB nat unit tt))
  | _ => None
  end.
Eval lazy in [seq [seq x.2 | x <- y.2] | y <- RRUN 9 script (SF (newfilt 0%N 2%N) [::])].
Goal [seq y.1 | y <- RRUN 9 script (SF (newfilt 0%N 2%N) [::])] =
  [:: (4%:R / 9%:R, 1 / 9%:R); (2%:R / 9%:R, 2%:R / 9%:R); (lo, hi)].
Proof. by apply/eqP; vm_compute. Qed.
