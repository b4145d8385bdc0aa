(* ModelLedger.v: the accounts of the probabilistic model are those of the program in
   Ledger.v, whatever is answered. *)
Require Import Preamble Accounting Machine Ledger.

Section ModelLedger.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Notation linit := (linit c0).
Notation lstep := (lstep c0 cadd cle).
Notation ledger := (ledger C).
Notation levent := (levent C).
Variables (W : comRingType) (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
(* The accounts of a state. *)
Fixpoint erase (s : state C BS) : ledger :=
  match s with SB _ => LB C | SF T l => LF T (map erase l) end.
(* The event that a query is for the accounts; a query to a mechanism is none. *)
Definition ename (k : name C BK) := match k with NB k => KB (bdecl k) | NF R => KF R end.
Fixpoint equery (q : query C BK BQ) : option levent :=
  match q with
  | QB _ => None
  | QLaunch j k => Some (ELaunch j (ename k))
  | QOpen j b => Some (EOpen j b)
  | QSub i q => omap (ESub i) (equery q)
  end.
(* After each step and for each outcome: the accounts of the model are those of the program,
   and it answers that something was launched or opened if and only if the program grants it. *)
Definition granted (r : resp BA) (v : verdict) := match r, v with
  | RLaunched, Granted | RRefused, Refused | RRefused, NoAccount | RBad, NoAccount => true
  | _, _ => false end.
Theorem model_ledger q s j : j < card (step c0 cadd cle binit bdecl bstep q s) ->
  let o := out (step c0 cadd cle binit bdecl bstep q s) j in
  if equery q is Some ev then erase o.2 = (lstep ev (erase s)).1 /\ granted o.1.2 (lstep ev (erase s)).2
  else erase o.2 = erase s.
Proof.
elim: q s j => [q|k i|k b|i q IH] [b'|T l] j //=.
- have -> : decl bdecl i = lcharge (ename i) by case: i.
  have ei : erase (init c0 binit i) = linit (ename i) by case: i.
  rewrite /charge_at; case: (pathof T k) => [p|] //=.
  by case: (charge c0 cadd cle T p (lcharge (ename i))) => [T'|] //= _; rewrite map_rcons ei.
- by case: (open_acct c0 T k b).
- by case: (equery q).
- case E: (drop i l) => [|s' l2] /= hj.
    by case: (equery q) => //= ev; rewrite -map_drop E.
  have := IH _ _ hj; case: (equery q) => [ev|] /=; rewrite map_cat /=.
    by rewrite -map_drop E /= map_take => -[-> ->].
  by move=> ->; congr LF; rewrite -[in RHS](cat_take_drop i l) map_cat E.
Qed.
End ModelLedger.
