(* Accounting.v: the executable accounting of a filter, over any charge type.
   A filter has a root account with a bound; inside it sub-accounts (child
   odometers, abound = None, or caps, abound = Some b) may be opened under the
   root or under another sub-account.  A launch is charged to the account it
   names, to all the ancestors of that account, and to the root; if one of them
   would pass its bound, or the charge is below zero, nothing changes. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Acct.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).

Record acct := Acct { abound : option C; aspent : C; apath : seq nat }.
Record filt := Filt { fbound : C; fspent : C; fsubs : seq acct }.

Definition aok c a := if abound a is Some b then cle (cadd (aspent a) c) b else true.
Definition aadd c a := Acct (abound a) (cadd (aspent a) c) (apath a).
Definition dacct := Acct (Some c0) c0 [::].

(* The path of an account: None is the root (empty path). *)
Definition pathof (T : filt) (j : option nat) : option (seq nat) :=
  if j is Some i then if drop i (fsubs T) is a :: _ then Some (apath a) else None
  else Some [::].

(* p is the path, c the charge. *)
Definition charge (T : filt) (p : seq nat) (c : C) : option filt :=
  if [&& cle c0 c, cle (cadd (fspent T) c) (fbound T) &
      all (fun i => aok c (nth dacct (fsubs T) i)) p]
  then Some (Filt (fbound T) (cadd (fspent T) c)
       [seq if i \in p then aadd c (nth dacct (fsubs T) i)
            else nth dacct (fsubs T) i | i <- iota 0 (size (fsubs T))])
  else None.

Definition charge_at T j c :=
  if pathof T j is Some p then charge T p c else None.

Definition open_acct (T : filt) (j : option nat) (b : option C) : option filt :=
  if pathof T j is Some p then
    Some (Filt (fbound T) (fspent T)
           (rcons (fsubs T) (Acct b c0 (size (fsubs T) :: p))))
  else None.

Definition newfilt R := Filt R c0 [::].

(* The only facts about a filter that the theorems use. *)
Lemma charge_root T j c T' : charge_at T j c = Some T' ->
  [/\ fbound T' = fbound T, fspent T' = cadd (fspent T) c, cle c0 c &
      cle (fspent T') (fbound T')].
Proof.
rewrite /charge_at; case: (pathof T j) => // p; rewrite /charge.
by case: ifP => // /and3P[h1 h2 _] [<-] /=.
Qed.

Lemma open_root T j b T' : open_acct T j b = Some T' ->
  fbound T' = fbound T /\ fspent T' = fspent T.
Proof. by rewrite /open_acct; case: (pathof T j) => // p [<-]. Qed.

(* Events of another implementation, replayed. *)
Inductive event := Launch (j : option nat) (c : C) | Open (j : option nat) (b : option C).
Inductive verdict := Granted | Refused | NoAccount.
Definition replay1 (T : filt) (e : event) : filt * verdict :=
  match e with
  | Launch j c => if pathof T j is Some p then
      (if charge T p c is Some T' then (T', Granted) else (T, Refused))
      else (T, NoAccount)
  | Open j b => if open_acct T j b is Some T' then (T', Granted) else (T, NoAccount)
  end.
Fixpoint replay (T : filt) (es : seq event) : filt * seq verdict :=
  if es is e :: es' then
    let: (T1, v) := replay1 T e in let: (T2, vs) := replay T1 es' in (T2, v :: vs)
  else (T, [::]).

(* Every account always within its bound (by induction on the trace). *)
Definition acct_ok a := if abound a is Some b then cle (aspent a) b else true.
Definition filt_ok T := cle (fspent T) (fbound T) && all acct_ok (fsubs T).
Definition caps_ok e := if e is Open _ (Some b) then cle c0 b else true.
Lemma replay1_ok T e : filt_ok T -> caps_ok e -> filt_ok (replay1 T e).1.
Proof.
case: e => [j c|j b] /=.
- case: (pathof T j) => [p|] // ok _; rewrite /charge; case: ifP => //=.
  move=> /and3P[_ h2 /allP h3]; case/andP: ok => _ ok.
  rewrite /filt_ok /= h2 /= all_map; apply/allP => i; rewrite mem_iota /= add0n => hi.
  case: ifP => ip; last by move/(all_nthP dacct): ok; apply.
  by move: (h3 _ ip); rewrite /aok /acct_ok /=.
- rewrite /open_acct; case: (pathof T j) => [p|] //= /andP[h1 h2] hb.
  by rewrite /filt_ok /= h1 all_rcons h2 /= /acct_ok /= andbT; case: b hb.
Qed.
Theorem replay_ok es T : filt_ok T -> all caps_ok es -> filt_ok (replay T es).1.
Proof.
elim: es T => [|e es IH] T //= ok /andP[h1 h2].
have := replay1_ok ok h1; case: (replay1 T e) => T1 v /= ok1.
by have := IH T1 ok1 h2; case: (replay T1 es) => T2 vs.
Qed.
End Acct.

(* Sample: exact rational additive charges (epsilon or rho). *)
From Coq Require Import QArith.
Definition qreplay R es := replay 0%Q (fun a b => Qred (a + b)) Qle_bool (newfilt 0%Q R) es.
Local Open Scope Q_scope.
Definition L j c : event Q := Launch j c.
Definition O j b : event Q := Open j b.
Compute qreplay (1#1) [:: L None (1#2); O None None; L (Some 0%nat) (1#4);
  O (Some 0%nat) (Some (1#5)); L (Some 1%nat) (1#10); L (Some 1%nat) (1#8); L (Some 0%nat) (1#10);
  L None (1#10); L None (1#20); L (Some 7%nat) (1#20); L None ((-1)#2)].
