(* Ledger.v: the accounts of filters inside of filters, as a program.  ModelLedger.v
   proves that it is what happens in the model; Traces.v runs it. *)
Require Import Preamble Accounting.

Section Ledger.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
(* A mechanism has no account (LB); a filter has one, and children (LF). *)
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

(* Every account of every filter is within its bound. *)
Fixpoint ledger_ok L := if L is LF T l then filt_ok cle T && all ledger_ok l else true.
Fixpoint caps_in ev := match ev with
  | ELaunch _ _ => true
  | EOpen _ b => if b is Some b then cle c0 b else true
  | ESub _ ev => caps_in ev end.
Lemma lstep_ok ev L : ledger_ok L -> caps_in ev -> ledger_ok (lstep ev L).1.
Proof.
elim: ev L => [j k|j b|i ev IH] [|T l] //= /andP[h1 h2].
- move=> _; case E: (pathof T j) => [p|] /=; last by rewrite h1 h2.
  have := @replay1_ok C c0 cadd cle T (Launch j (lcharge k)) h1 isT; rewrite /= /charge_at E.
  case Ec: (charge _ _ _ _ _ _) => [T'|] /= h; last by rewrite h1 h2.
  rewrite h all_rcons h2 andbT /=; case: k Ec => //= R Ec; rewrite andbT /filt_ok /= andbT.
  have at_ : charge_at c0 cadd cle T j R = Some T' by rewrite /charge_at E.
  by have [_ _ -> _] := charge_root at_.
- move=> hb; have := @replay1_ok C c0 cadd cle T (Open j b) h1 hb; rewrite /=.
  by case: (open_acct c0 T j b) => [T'|] /= h; rewrite ?h ?h1.
- move=> hb; case E: (drop i l) => [|L1 l2] /=; first by rewrite h1 h2.
  move: h2; rewrite -[in all _ l](cat_take_drop i l) E !all_cat /= => /and3P[a1 a2 a3].
  by rewrite h1 a1 a3 IH.
Qed.
(* After any events, no account has passed its bound. *)
Theorem ledger_replay_ok evs L : ledger_ok L -> all caps_in evs -> ledger_ok (lreplay L evs).1.
Proof.
elim: evs L => [|ev evs IH] L //= h /andP[h1 h2].
by apply: IH h2; apply: lstep_ok.
Qed.
End Ledger.
