(* Gates.v: refusals.  A gate looks at what was asked and answered so far, and lets the
   next query pass or refuses it.  Children that close, sequential composition, and
   halting are gates.  What a gated machine answers is what the machine answers to the
   queries that pass, so a gate costs nothing, for all notions of loss of Filter.v. *)
Require Import Preamble Accounting Machine Behaviour Filter View Pure RandomizedResponse.
Local Open Scope ring_scope.

Section Gates.
Variables (F : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (I : Type) (BS : I -> Type) (binit : forall i, BK -> BS i).
Variable bstep : forall i, BS i -> BQ -> outs (F * BA * BS i).
Notation beh i := (beh c0 cadd cle (binit i) bdecl (@bstep i)).
Notation step i := (step c0 cadd cle (binit i) bdecl (@bstep i)).
Notation query := (query C BK BQ).
Notation transcript := (transcript C BK BQ BA).
(* Whether a query passes, by what was asked and answered before, refusals included. *)
Variable gate : transcript -> query -> bool.
(* The gated machine: its state is that of the machine, and the transcript so far. *)
Definition gstep i (x : state C (BS i) * transcript) (q : query) :
    outs (F * resp BA * (state C (BS i) * transcript)) :=
  if gate x.2 q then Outs (card (step i q x.1)) (fun j => let o := out (step i q x.1) j in
    (o.1.1, o.1.2, (o.2, rcons x.2 (q, o.1.2))))
  else Outs 1 (fun _ => (1, RBad BA, (x.1, rcons x.2 (q, RBad BA)))).
(* It is a mechanism of the model: its queries are those of the machine.  K is the set of
   names of such mechanisms: each starts as some state. *)
Variables (K : Type) (start : forall i, K -> state C (BS i)) (kdecl : K -> C).
Definition ginit i (k : K) : state C (BS i) * transcript := (start i k, [::]).
Notation gbeh i := (Behaviour.beh c0 cadd cle (ginit i) kdecl (@gstep i)).

(* A transcript of the gated machine is one of the machine, the same in all worlds, or has
   the probability 0 in all worlds. *)
Lemma gated h g : (exists h', forall i s, gbeh i (SB C (s, g)) h = beh i s h') \/
  (forall i s, gbeh i (SB C (s, g)) h = 0).
Proof.
elim: h g => [|[q r] h IH] g; first by left; exists [::].
have bad q' g' a : (forall i s, Machine.step c0 cadd cle (ginit i) kdecl (@gstep i) q' (SB C (s, g)) =
      det F a (SB C (s, g'))) ->
    (exists h', forall i s, gbeh i (SB C (s, g)) ((q', r) :: h) = beh i s h') \/
    (forall i s, gbeh i (SB C (s, g)) ((q', r) :: h) = 0).
  move=> st; case ar : (a == r); last by right=> i s; rewrite (beh_det _ _ (st i s)) ar.
  by case: (IH g') => [[h' e]|e]; [left; exists h' => i s|right=> i s]; rewrite (beh_det _ _ (st i s)) ar e.
case: q => [q|j k|j b|m q]; try by apply: (bad _ g (RBad (resp_eqType BA))).
case pass : (gate g q); last first.
  by apply: (bad _ (rcons g (q, RBad BA)) (RB (RBad BA))) => i s; rewrite /= /gstep pass.
case: r {bad} => [r|||]; try by right=> i s; rewrite beh_cons /= /gstep pass /= big1.
have e i s : gbeh i (SB C (s, g)) ((QB C K q, RB r) :: h) =
    \sum_(j <- iota 0 (card (step i q s)) | (out (step i q s) j).1.2 == r)
      (out (step i q s) j).1.1 * gbeh i (SB C ((out (step i q s) j).2, rcons g (q, r))) h.
  by rewrite beh_cons /= /gstep pass /=; apply: eq_bigr => j /eqP[->].
case: (IH (rcons g (q, r))) => [[h' e']|e'].
  by left; exists ((q, r) :: h') => i s; rewrite e; apply: eq_bigr => j _; rewrite e'.
by right=> i s; rewrite e big1 // => j _; rewrite e' mulr0.
Qed.
(* So whatever is within a loss stays so behind any gate. *)
Theorem gated_good (good : C -> (I -> F) -> Prop) (G : good_laws c0 cadd cle good) c k :
  cle c0 c -> (forall h, good c (fun i => beh i (start i k) h)) ->
  forall h, good c (fun i => gbeh i (SB C (ginit i k)) h).
Proof.
move=> ok base h; have [[h' e]|e] := gated h [::].
  by apply: (good_ext G) (base h') => i; rewrite e.
by apply: (good_mono G ok); apply: (good_ext G) (good0 G) => i; rewrite e.
Qed.

(* --- gates ---------------------------------------------------------------------- *)
(* How many children were launched. *)
Definition launched (g : transcript) : nat :=
  count (fun x => if x.1 is QLaunch _ _ then x.2 == RLaunched BA else false) g.
(* Sequential: a launch closes all children before; only the last one may be asked. *)
Definition sequential (g : transcript) (q : query) :=
  if q is QSub m _ then m.+1 == launched g else true.
(* Halting: after n queries nothing passes any longer. *)
Definition halting n (g : transcript) (q : query) := (size g < n)%N.
End Gates.

(* --- computed ----------------------------------------------------------------- *)
(* Copies of randomised response under a filter, one after the other: within the bound. *)
Notation gated_rr gate b := (beh 0%N addn leq (fun R => (SF (newfilt 0%N R) [::], [::])) id
  (@gstep _ _ 0%N addn leq bool unit bool_eqType price bool (fun _ => option bool) rr_init rr_step gate b)).
Theorem rr_gated gate R h : pure e2 R (fun b => gated_rr gate b (SB nat (SF (newfilt 0%N R) [::], [::])) h).
Proof.
apply: (@gated_good _ _ _ _ _ _ _ _ _ bool (fun _ => option bool) rr_init rr_step gate nat
  (fun _ R => SF (newfilt 0%N R) [::]) id _ (pure_laws e2_laws) R R (leq0n R)) => h'.
exact: (pure_filter nat_laws e2_laws rr_pure h' (leq0n R)).
Qed.
(* The first child is asked, a second one is launched and asked; the first one is closed now
   (RBad).  Behind halting 3, the fourth query is refused, too. *)
Notation LAUNCH := (QLaunch unit None (NB nat true)).
Notation ASK i := (QSub i (QB nat bool tt)).
Definition say (q : query nat bool unit) (r : resp bool) : query nat nat (query nat bool unit) * resp (resp_eqType bool_eqType) :=
  (QB nat nat q, RB r).
Definition in_turn last := [:: say LAUNCH (RLaunched bool); say (ASK 0%N) (RB true);
  say LAUNCH (RLaunched bool); say (ASK 1%N) last; say (ASK 0%N) (RBad bool)].
Definition probability gate last := gated_rr gate true (SB nat (SF (newfilt 0%N 2%N) [::], [::])) (in_turn last).
Goal [:: probability (@sequential _ _ _ _) (RB true); probability (@halting _ _ _ _ 3) (RBad bool);
         probability (fun _ _ => true) (RB true)] = [:: 1; 1; 0].
Proof. by rewrite /probability -!computedE; apply/eqP; vm_compute. Qed.
