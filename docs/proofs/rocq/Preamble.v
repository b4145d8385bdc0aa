(* Preamble.v: the libraries that the other files use, and the usual settings of mathcomp. *)
From mathcomp Require Export all_ssreflect all_algebra.
Export Order.TTheory GRing.Theory Num.Theory.
#[export] Set Implicit Arguments.
#[export] Unset Strict Implicit.
#[export] Unset Printing Implicit Defensive.
