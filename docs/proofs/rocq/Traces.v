(* Traces.v: traces of the Python account, checked by the verified one.  A loss is an
   integer number of units of 2^-100; sums are exact.  tests/proofs writes the traces. *)
Require Import Preamble Accounting Ledger Crash.
From Coq Require Import ZArith Lia.

Lemma Z_eqP : Equality.axiom Z.eqb. Proof. by move=> x y; apply: Z.eqb_spec. Qed.
Canonical Z_eqType := EqType Z (EqMixin Z_eqP).
(* Integers are charges: the theorems hold for them. *)
Lemma Z_laws : charge_laws 0%Z Z.add Z.leb.
Proof.
split=> [a d|a d|a b c d|a c d|a c d]; rewrite /is_true !Z.leb_le; lia.
Qed.

(* A reading is the least double that is at least the exact sum. *)
Definition up (z : Z) : Z :=
  let k := Z.max 0 (Z.log2 z - 52) in Z.shiftl (Z.shiftr (z + (Z.shiftl 1 k - 1)) k) k.
Lemma up_ge z : (z <= up z)%Z.
Proof.
rewrite /up; set k := Z.max _ _; have k0 : (0 <= k)%Z by rewrite /k; lia.
rewrite !Z.shiftl_mul_pow2 // Z.shiftr_div_pow2 // Z.mul_1_l.
have p : (0 < 2 ^ k)%Z by apply: Z.pow_pos_nonneg.
have := Z.mod_pos_bound (z + (2 ^ k - 1)) (2 ^ k) p.
have := Z.div_mod (z + (2 ^ k - 1)) (2 ^ k).
move: (_ / _)%Z (_ mod _)%Z => x y h1 h2; have := h1 ltac:(lia); nia.
Qed.

(* It is a double: a number with 53 bits, times a power of 2 (or 2^53 of them, the next power). *)
Definition double (w : Z) := exists m k, (0 <= m <= 2 ^ 53 /\ 0 <= k /\ w = m * 2 ^ k)%Z.
Lemma up_double z : (0 <= z)%Z -> double (up z).
Proof.
move=> z0; rewrite /up; set k := Z.max _ _; have k0 : (0 <= k)%Z by rewrite /k; lia.
rewrite !Z.shiftl_mul_pow2 // Z.shiftr_div_pow2 // Z.mul_1_l.
have p : (0 < 2 ^ k)%Z by apply: Z.pow_pos_nonneg.
exists ((z + (2 ^ k - 1)) / 2 ^ k)%Z, k; split; last by [].
split; first by apply: Z.div_pos; lia.
have zk : (z < 2 ^ (53 + k))%Z.
  case: (Z.eq_dec z 0) => [->|nz]; first by apply: Z.pow_pos_nonneg; lia.
  have [_ h] := Z.log2_spec z ltac:(lia); apply: Z.lt_le_trans h _.
  by apply: Z.pow_le_mono_r; rewrite /k; lia.
rewrite Z.pow_add_r // in zk; apply/Z.lt_succ_r; apply: Z.div_lt_upper_bound => //; nia.
Qed.
(* And no double between them: it is the least one. *)
Theorem up_least z w : (z <= w)%Z -> double w -> (up z <= w)%Z.
Proof.
move=> zw [m [j [[m0 m1] [j0 ew]]]].
case: (Z.le_gt_cases z 0) => [zneg|zpos].
  rewrite /up; have -> : Z.max 0 (Z.log2 z - 52) = 0%Z.
    by case: (Z.eq_dec z 0) => [->|nz] //; rewrite Z.log2_nonpos; lia.
  rewrite Z.shiftl_0_r Z.shiftr_0_r Z.shiftl_0_r; lia.
rewrite /up; set k := Z.max _ _; have k0 : (0 <= k)%Z by rewrite /k; lia.
rewrite !Z.shiftl_mul_pow2 // Z.shiftr_div_pow2 // Z.mul_1_l.
have p : (0 < 2 ^ k)%Z by apply: Z.pow_pos_nonneg.
have [q eq] : exists q, w = (q * 2 ^ k)%Z.
  case: (Z.le_gt_cases k j) => [kj|jk].
    by exists (m * 2 ^ (j - k))%Z; rewrite -Z.mul_assoc -Z.pow_add_r; [rewrite ew; congr (_ * 2 ^ _)%Z; lia|lia|lia].
  have [h _] := Z.log2_spec z zpos.
  have hk : (Z.log2 z = 52 + k)%Z by rewrite /k in jk *; lia.
  have e1 : (2 ^ Z.log2 z = 2 ^ 52 * 2 ^ k)%Z by rewrite hk Z.pow_add_r.
  have e2 : (2 ^ j <= 2 ^ (k - 1))%Z by apply: Z.pow_le_mono_r; lia.
  have e3 : (2 ^ k = 2 * 2 ^ (k - 1))%Z by rewrite -Z.pow_succ_r; [congr (2 ^ _)%Z; lia|lia].
  by exists (2 ^ 52)%Z; nia.
have := Z.mod_pos_bound (z + (2 ^ k - 1)) (2 ^ k) p.
have := Z.div_mod (z + (2 ^ k - 1)) (2 ^ k) ltac:(lia).
move: (_ / _)%Z (_ mod _)%Z => x y h1 h2; rewrite eq; apply: Z.mul_le_mono_nonneg_r; first lia.
apply/Z.lt_succ_r; nia.
Qed.
(* Their order has the laws that compare readings, too. *)
Lemma Z_order : order_laws 0%Z Z.add Z.leb.
Proof. by split=> [|a b c|a b c]; rewrite /is_true ?Z.leb_le; lia. Qed.

Definition is_granted v := if v is Granted then true else false.
Definition loss_at (T : filt Z) (j : option nat) : Z :=
  if j is Some i then aspent (nth (dacct 0%Z) (fsubs T) i) else fspent T.

(* --- trees of accounts in memory ---------------------------------------------- *)
(* What happened in the filter at path (in children of children ...), whether it was
   granted, and the readings afterwards of the filter's root and of the account j. *)
Inductive seen := See (path : seq nat) (ev : levent Z) (granted : bool) (root account : Z)
  | Look (path : seq nat) (j : option nat) (loss : Z).
Definition nest (path : seq nat) (ev : levent Z) := foldr (@ESub Z) ev path.
Fixpoint filter_at (L : ledger Z) (path : seq nat) : option (filt Z) :=
  match L, path with
  | LF T _, [::] => Some T
  | LF _ l, i :: path' => filter_at (nth (@LB Z) l i) path'
  | _, _ => None
  end.
Definition reads (L : ledger Z) path j (z : Z) :=
  if filter_at L path is Some T then Z.eqb (up (loss_at T j)) z else false.
Definition account_of (ev : levent Z) := match ev with
  | ELaunch j _ => j | EOpen j _ => j | ESub _ _ => None end.
(* The first event at which the two accounts differ. *)
Fixpoint differs (L : ledger Z) (os : seq seen) (n : nat) : option nat :=
  match os with
  | [::] => None
  | See path ev g r a :: os' =>
      let: (L', v) := lstep 0%Z Z.add Z.leb (nest path ev) L in
      if [&& is_granted v == g, reads L' path None r & reads L' path (account_of ev) a]
      then differs L' os' n.+1 else Some n
  | Look path j z :: os' => if reads L path j z then differs L os' n.+1 else Some n
  end.
Definition bound_of (R : option Z) := LF (Filt R 0%Z [::]) [::].

(* --- an account on disk, with crashes ------------------------------------------ *)
(* How a launch went: to its end; or a crash after it was admitted, or after its charge
   was written; whether it was admitted, whether the mechanism ran, and the readings
   afterwards.  Again: all is read from the disk again. *)
Inductive fate := Done | BeforeWrite | AfterWrite.
Inductive kept := Went (j : option nat) (c : Z) (f : fate) (admitted has_run : bool) (root account : Z)
  | Limit (j : option nat) (b : Z) | Again (losses : seq Z).
Definition went j c f : seq (action Z_eqType) := match f with
  | Done => [:: Decide j c; Write; Take; Run]
  | BeforeWrite => [:: Decide j c; Crashes]
  | AfterWrite => [:: Decide j c; Write; Crashes] end.
Notation Acts := (acts 0%Z Z.add Z.leb).
Fixpoint kept_differs (s : system Z_eqType) (os : seq kept) (n : nat) : option nat :=
  match os with
  | [::] => None
  | Went j c f g h r a :: os' =>
      let s' := Acts (went j c f) s in
      if [&& isSome (charge_at 0%Z Z.add Z.leb (stored s) j c) == g,
             (size (ran s) < size (ran s')) == h, Z.eqb (up (fspent (memory s'))) r &
             Z.eqb (up (loss_at (memory s') j)) a]
      then kept_differs s' os' n.+1 else Some n
  | Limit j b :: os' => kept_differs (Acts [:: Opens j (Some b)] s) os' n.+1
  | Again zs :: os' =>
      let s' := Acts [:: Crashes] s in
      let T := memory s' in
      if all2 Z.eqb (map up (fspent T :: map (@aspent Z) (fsubs T))) zs
      then kept_differs s' os' n.+1 else Some n
  end.
