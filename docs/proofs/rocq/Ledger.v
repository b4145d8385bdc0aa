(* Ledger.v: the accounts of filters inside of filters, as a program.  ModelLedger.v
   proves that it is what happens in the model; Traces.v runs it. *)
Require Import Preamble Accounting.

Section Ledger.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
(* A mechanism has no account (LB); a filter has one, and children (LF). *)
Inductive ledger := LB | LF (T : filt C) (l : seq ledger).
Inductive lname := KB (c : C) | KF (R : C).    (* mechanism of loss c; filter of bound R *)
Inductive verdict := Granted | Refused | NoAccount.
Inductive levent :=
  | ELaunch (j : option nat) (k : lname)
  | EOpen (j : option nat) (b : option C)
  | ESub (i : nat) (ev : levent).              (* inside child i *)
Definition lcharge k := match k with KB c => c | KF R => R end.
Definition linit k := match k with KB _ => LB | KF R => LF (newfilt c0 R) [::] end.
Fixpoint lstep (ev : levent) (L : ledger) : ledger * verdict :=
  match ev, L with
  | ELaunch j k, LF T l =>
      if pathof T j is None then (L, NoAccount) else
      if charge_at c0 cadd cle T j (lcharge k) is Some T'
      then (LF T' (rcons l (linit k)), Granted) else (L, Refused)
  | EOpen j b, LF T l =>
      if open_acct c0 T j b is Some T' then (LF T' l, Granted) else (L, NoAccount)
  | ESub i ev, LF T l =>
      if drop i l is L1 :: l2 then
        let r := lstep ev L1 in (LF T (take i l ++ r.1 :: l2), r.2)
      else (L, NoAccount)
  | _, _ => (L, NoAccount)
  end.
Fixpoint lreplay L evs : ledger * seq verdict :=
  if evs is ev :: evs' then
    let r := lstep ev L in let r' := lreplay r.1 evs' in (r'.1, r.2 :: r'.2)
  else (L, [::]).

(* P holds for the account of every filter. *)
Fixpoint each (P : filt C -> Prop) L : Prop :=
  if L is LF T l then P T /\ foldr and True (map (each P) l) else True.
(* All bounds of limits that are opened are such as ok says. *)
Fixpoint caps_in (ok : option C -> bool) ev := match ev with
  | ELaunch _ _ => true
  | EOpen _ b => ok b
  | ESub _ ev => caps_in ok ev end.
Lemma each_cat (Ps Qs : seq Prop) : foldr and True (Ps ++ Qs) <-> foldr and True Ps /\ foldr and True Qs.
Proof. by elim: Ps => [|P Ps IH] /=; [split=> // -[]|rewrite IH and_assoc]. Qed.
(* What new filters have, and what charges and openings keep, holds for ever. *)
Lemma each_replay (P : filt C -> Prop) (ok : option C -> bool) :
  (forall R, cle c0 R -> P (newfilt c0 R)) ->
  (forall T j c T', charge_at c0 cadd cle T j c = Some T' -> P T -> P T') ->
  (forall T j b T', ok b -> open_acct c0 T j b = Some T' -> P T -> P T') ->
  forall evs L, each P L -> all (caps_in ok) evs -> each P (lreplay L evs).1.
Proof.
move=> P0 Pc Po; have one ev L : each P L -> caps_in ok ev -> each P (lstep ev L).1.
  elim: ev L => [j k|j b|i ev IH] [|T l] //= [h1 h2].
  - move=> _; case: (pathof T j) => [p|] //; case E: (charge_at _ _ _ _ _ _) => [T'|] //=.
    split; first exact: Pc E h1.
    rewrite map_rcons -cats1; apply/each_cat; split=> //; split=> //.
    by case: k E => //= R E; split=> //; apply: P0; have [] := charge_root E.
  - by move=> hb; case E: (open_acct c0 T j b) => [T'|] //=; split=> //; apply: Po E h1.
  - move=> hb; case E: (drop i l) => [|L1 l2] //=; split=> //.
    move: h2; rewrite -[in map _ l](cat_take_drop i l) E !map_cat => /each_cat[a1 [a2 a3]].
    by apply/each_cat; split=> //; split=> //; apply: IH.
by elim=> [|ev evs IH] L //= h /andP[h1 h2]; apply: IH h2; apply: one.
Qed.
(* After any events, from any ledger that is within its bounds: no account has passed its bound. *)
Theorem ledger_replay_ok evs L : each (filt_ok cle) L -> all (caps_in (cap_ok c0 cle)) evs ->
  each (filt_ok cle) (lreplay L evs).1.
Proof.
apply: each_replay => [R hR|T j c T'|T j b T']; [by rewrite /filt_ok /= hR|exact: charge_ok|exact: open_ok].
Qed.
(* Parent >= child.  After any events, from a filter or an odometer, in filters nested to any
   depth: the reading of each account is at most that of each account above it, and at most
   that of the root of its filter. *)
Theorem parent_child (O : order_laws c0 cadd cle) evs b :
  each (fun T => tree_ok c0 T /\ parents_ok c0 cle T) (lreplay (LF (Filt b c0 [::]) [::]) evs).1.
Proof.
have new B : tree_ok c0 (Filt B c0 [::]) /\ parents_ok c0 cle (Filt B c0 [::]).
  by split=> //; split=> //; apply: (le_00 O).
apply: (@each_replay _ xpredT) => [R _|T j c T' E [t p]|T j b' T' _ E [t p]| |].
- exact: new.
- by split; [apply: charge_tree E t|apply: (charge_parents O E t p)].
- by split; [apply: open_tree E t|apply: (open_parents O E t p)].
- by split=> //; apply: new.
- by elim: evs => //= ev evs ->; rewrite andbT; elim: ev.
Qed.
End Ledger.

(* --- computed ----------------------------------------------------------------- *)
(* A limit of 3 below an odometer, a child odometer below the limit.  A launch at the child
   odometer, one at the limit, one that the limit refuses, a filter at the root, and a launch
   in the filter. *)
Definition events := [:: EOpen None (Some 3); EOpen (Some 0) None; ELaunch (Some 1) (KB 1);
  ELaunch (Some 0) (KB 2); ELaunch (Some 1) (KB 1); ELaunch None (KF 4); ESub 2 (ELaunch None (KB 3))].
Definition replayed := lreplay 0 addn leq (LF (newodo 0) [::]) events.
Goal replayed = (LF (Filt None 7 [:: Acct (Some 3) 3 [:: 0]; Acct None 1 [:: 1; 0]])
    [:: LB nat; LB nat; LF (Filt (Some 4) 3 [::]) [:: LB nat]],
  [:: Granted; Granted; Granted; Granted; Refused; Granted; Granted]).
Proof. by vm_compute. Qed.
Goal each (fun T => tree_ok 0 T /\ parents_ok 0 leq T) replayed.1.
Proof. exact: (parent_child nat_order events None). Qed.
