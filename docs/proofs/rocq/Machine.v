(* Machine.v: interactive mechanisms, and filters, which are mechanisms, too. *)
Require Import Preamble Accounting.
Local Open Scope ring_scope.

(* A finite list of outcomes, as a length and a function of the position. *)
Record outs (X : Type) := Outs { card : nat; out : nat -> X }.

Section Machine.
(* W: the weights (a pair or tuple of probabilities, one a data set; product
   componentwise).  C: charges. *)
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
(* Base mechanisms: names, states, queries, answers. *)
Variables (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable (bstep : BS -> BQ -> outs (W * BA * BS)).

Inductive name := NB (k : BK) | NF (R : C).
Inductive query :=
  | QB (q : BQ)                                   (* to a base mechanism *)
  | QLaunch (j : option nat) (k : name)           (* to a filter: launch k, charged at account j *)
  | QOpen (j : option nat) (b : option C)         (* open an odometer or cap under j *)
  | QSub (i : nat) (q : query).                   (* ask child i *)
Inductive resp := RB (a : BA) | RLaunched | RRefused | RBad.
Inductive state := SB (s : BS) | SF (T : filt C) (l : seq state).

Definition decl k := match k with NB k => bdecl k | NF R => R end.
Definition init k := match k with NB k => SB (binit k) | NF R => SF (newfilt c0 R) [::] end.

Definition det (a : resp) (s : state) : outs (W * resp * state) :=
  Outs 1 (fun _ => (1, a, s)).

Fixpoint step (q : query) (s : state) : outs (W * resp * state) :=
  match q, s with
  | QB q, SB b => Outs (card (bstep b q)) (fun j =>
      let o := out (bstep b q) j in (o.1.1, RB o.1.2, SB o.2))
  | QLaunch j k, SF T l =>
      if charge_at c0 cadd cle T j (decl k) is Some T'
      then det RLaunched (SF T' (rcons l (init k))) else det RRefused s
  | QOpen j b, SF T l =>
      if open_acct c0 T j b is Some T' then det RLaunched (SF T' l) else det RBad s
  | QSub i q, SF T l =>
      if drop i l is s' :: l2 then
        Outs (card (step q s')) (fun j => let o := out (step q s') j in
          (o.1.1, o.1.2, SF T (take i l ++ o.2 :: l2)))
      else det RBad s
  | _, _ => det RBad s
  end.
End Machine.
