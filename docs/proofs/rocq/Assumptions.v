(* Assumptions.v: prints, for each theorem of the page, the axioms that its proof uses. *)
From mathcomp Require Import ssreflect.
Require Import Accounting Filter View Pure Hidden Renyi Approximate RandomizedResponse Streams Gates Ledger ModelLedger Crash Traces.
Goal True. idtac "Accounting.replay_ok". Abort. Print Assumptions replay_ok.
Goal True. idtac "Accounting.parent_child". Abort. Print Assumptions parent_child.
Goal True. idtac "Filter.filter_good". Abort. Print Assumptions filter_good.
Goal True. idtac "Filter.limit_good". Abort. Print Assumptions limit_good.
Goal True. idtac "Filter.lemma_2_19". Abort. Print Assumptions lemma_2_19.
Goal True. idtac "Filter.odometer_good". Abort. Print Assumptions odometer_good.
Goal True. idtac "View.view_total". Abort. Print Assumptions view_total.
Goal True. idtac "Pure.pure_filter". Abort. Print Assumptions pure_filter.
Goal True. idtac "Pure.pure_view". Abort. Print Assumptions pure_view.
Goal True. idtac "Pure.pure_odometer_view". Abort. Print Assumptions pure_odometer_view.
Goal True. idtac "Pure.pure_limit". Abort. Print Assumptions pure_limit.
Goal True. idtac "Hidden.hidden_filter". Abort. Print Assumptions hidden_filter.
Goal True. idtac "Renyi.renyi_filter". Abort. Print Assumptions renyi_filter.
Goal True. idtac "Renyi.renyi_view". Abort. Print Assumptions renyi_view.
Goal True. idtac "Renyi.pure_renyi". Abort. Print Assumptions pure_renyi.
Goal True. idtac "Approximate.zcdp_filter". Abort. Print Assumptions zcdp_filter.
Goal True. idtac "Approximate.mixture_filter". Abort. Print Assumptions mixture_filter.
Goal True. idtac "Approximate.approx_filter". Abort. Print Assumptions approx_filter.
Goal True. idtac "RandomizedResponse.rr_view". Abort. Print Assumptions rr_view.
Goal True. idtac "RandomizedResponse.leaky_filter". Abort. Print Assumptions leaky_filter.
Goal True. idtac "Streams.continual_view". Abort. Print Assumptions continual_view.
Goal True. idtac "Streams.counter_view". Abort. Print Assumptions counter_view.
Goal True. idtac "Gates.gated_good". Abort. Print Assumptions gated_good.
Goal True. idtac "Gates.rr_gated". Abort. Print Assumptions rr_gated.
Goal True. idtac "ModelLedger.model_ledger". Abort. Print Assumptions model_ledger.
Goal True. idtac "Ledger.ledger_replay_ok". Abort. Print Assumptions ledger_replay_ok.
Goal True. idtac "Crash.charge_before_run". Abort. Print Assumptions charge_before_run.
Goal True. idtac "Crash.never_refund". Abort. Print Assumptions never_refund.
Goal True. idtac "Traces.Z_laws". Abort. Print Assumptions Z_laws.
Goal True. idtac "Crash.disk_memory_run". Abort. Print Assumptions disk_memory_run.
Goal True. idtac "Traces.Z_order". Abort. Print Assumptions Z_order.
Goal True. idtac "Traces.up_ge". Abort. Print Assumptions up_ge.
Goal True. idtac "Traces.up_double". Abort. Print Assumptions up_double.
Goal True. idtac "Traces.up_least". Abort. Print Assumptions up_least.
