(* Ledger.v: the whole tree of accounts (nested prepaid filters, each with its own
   odometers and caps), executable; and the proof that it is what the accounts of
   the probabilistic model do, whatever is answered. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From mathcomp Require Import all_ssreflect all_algebra.
Require Import Accounting Machine.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Ledger.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Inductive ledger := LB | LF (T : filt C) (l : seq ledger).
Inductive lname := KB (c : C) | KF (R : C).    (* mechanism of loss c; filter of bound R *)
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

(* The model projects to the ledger. *)
Variables (W : comRingType) (BK BS BQ BA : Type) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Fixpoint erase (s : state C BS) : ledger :=
  match s with SB _ => LB | SF T l => LF T (map erase l) end.
Definition ename (k : name C BK) := match k with NB k => KB (bdecl k) | NF R => KF R end.
Fixpoint equery (q : query C BK BQ) : option levent :=
  match q with
  | QB _ => None
  | QLaunch j k => Some (ELaunch j (ename k))
  | QOpen j b => Some (EOpen j b)
  | QSub i q => omap (ESub i) (equery q)
  end.
Theorem model_ledger q s j : j < card (step c0 cadd cle binit bdecl bstep q s) ->
  erase (out (step c0 cadd cle binit bdecl bstep q s) j).2 =
  if equery q is Some ev then (lstep ev (erase s)).1 else erase s.
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
  rewrite map_cat /= (IH _ _ hj); case: (equery q) => [ev|] /=.
    by rewrite -map_drop E /= map_take.
  by congr LF; rewrite -[in RHS](cat_take_drop i l) map_cat E.
Qed.
End Ledger.

From Coq Require Import QArith.
Local Open Scope Q_scope.
Definition qlreplay R evs := lreplay 0 (fun a b => Qred (a + b)) Qle_bool (LF (newfilt 0 R) [::]) evs.
(* A filter of bound 1: a mechanism 1/4 (child 0); a nested filter of bound 1/2
   (child 1); two launches inside it, the second refused by it; an odometer
   (account 0), 1/5 charged through it; one more 1/10 refused by the root. *)
Compute qlreplay 1 [:: ELaunch None (KB (1#4)); ELaunch None (KF (1#2));
  ESub 1 (ELaunch None (KB (2#5))); ESub 1 (ELaunch None (KB (1#5)));
  EOpen None None; ELaunch (Some 0%nat) (KB (1#5)); ELaunch (Some 0%nat) (KB (1#10));
  ESub 1 (EOpen None None); ESub 1 (ELaunch (Some 0%nat) (KB (1#10))); ESub 5 (EOpen None None)].
