(* Assumptions.v: prints, for each theorem of the page, the axioms that its proof uses. *)
From mathcomp Require Import ssreflect.
Require Import Accounting Theorems Instances Ledger Example.
Goal True. idtac "Accounting.replay_ok". Abort. Print Assumptions replay_ok.
Goal True. idtac "Theorems.pure_filter". Abort. Print Assumptions pure_filter.
Goal True. idtac "Theorems.pure_filter_sets". Abort. Print Assumptions pure_filter_sets.
Goal True. idtac "Theorems.renyi_filter". Abort. Print Assumptions renyi_filter.
Goal True. idtac "Theorems.mixture_filter". Abort. Print Assumptions mixture_filter.
Goal True. idtac "Instances.approx_filter". Abort. Print Assumptions approx_filter.
Goal True. idtac "Ledger.model_ledger". Abort. Print Assumptions model_ledger.
Goal True. idtac "Example.rr_filter". Abort. Print Assumptions rr_filter.
Goal True. idtac "Example.rr_renyi". Abort. Print Assumptions rr_renyi.
