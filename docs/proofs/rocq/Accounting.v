(* Accounting.v: the account, as a program.
   An account is a tree.  Its root is a filter (it has a bound) or an odometer
   (it has none).  Below the root there are child odometers (without a bound) and
   limits (with one); each lies below the root or below another of them. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* What the theorems need of charges.  It holds for rationals with + and <=, and
   componentwise for lists of them (curves). *)
Record charge_laws (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool) : Prop :=
  ChargeLaws {
    le_add0 : forall a d, cle a d -> cle (cadd a c0) d;
    le_0add : forall a d, cle (cadd c0 a) d -> cle a d;
    le_addA : forall a b c d, cle (cadd (cadd a b) c) d -> cle (cadd a (cadd b c)) d;
    le_add0A : forall a c d, cle (cadd a c) d -> cle (cadd a (cadd c0 c)) d;
    le_addl : forall a c d, cle c0 c -> cle (cadd a c) d -> cle a d }.

Section Acct.
(* Charges (privacy losses): C with a zero, a sum and a decidable order.  Nothing
   else is known of them in this file. *)
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).

(* A child odometer or limit: its bound, what was charged to it, and its path:
   the places of itself and of those that it lies below. *)
Record acct := Acct { abound : option C; aspent : C; apath : seq nat }.
(* The whole account: bound, what was charged, and all accounts below the root. *)
Record filt := Filt { fbound : option C; fspent : C; fsubs : seq acct }.
Definition newfilt R := Filt (Some R) c0 [::].   (* a filter with the bound R *)
Definition newodo := Filt None c0 [::].          (* an odometer *)
Definition dacct := Acct (Some c0) c0 [::].      (* never used: for places that do not exist *)

(* c is at most the bound b, if there is one. *)
Definition within c (b : option C) := if b is Some d then cle c d else true.
(* The account a admits the charge c; a after it. *)
Definition aok c a := within (cadd (aspent a) c) (abound a).
Definition aadd c a := Acct (abound a) (cadd (aspent a) c) (apath a).

(* The path of the account j; None is the root, whose path is empty. *)
Definition pathof (T : filt) (j : option nat) : option (seq nat) :=
  if j is Some i then if drop i (fsubs T) is a :: _ then Some (apath a) else None
  else Some [::].

(* Charge c to the root and to all accounts of the path p, or refuse and change
   nothing: if c is below zero, or a bound would be passed. *)
Definition charge (T : filt) (p : seq nat) (c : C) : option filt :=
  if [&& cle c0 c, within (cadd (fspent T) c) (fbound T) &
      all (fun i => aok c (nth dacct (fsubs T) i)) p]
  then Some (Filt (fbound T) (cadd (fspent T) c)
       [seq if i \in p then aadd c (nth dacct (fsubs T) i)
            else nth dacct (fsubs T) i | i <- iota 0 (size (fsubs T))])
  else None.
Definition charge_at T j c :=
  if pathof T j is Some p then charge T p c else None.

(* Open a limit (b is its bound) or a child odometer (b = None) below the account j. *)
Definition open_acct (T : filt) (j : option nat) (b : option C) : option filt :=
  if pathof T j is Some p then
    Some (Filt (fbound T) (fspent T)
           (rcons (fsubs T) (Acct b c0 (size (fsubs T) :: p))))
  else None.

(* What a charge and an opening do to the root. *)
Lemma charge_root T j c T' : charge_at T j c = Some T' ->
  [/\ fbound T' = fbound T, fspent T' = cadd (fspent T) c, cle c0 c &
      within (fspent T') (fbound T')].
Proof.
rewrite /charge_at; case: (pathof T j) => // p; rewrite /charge.
by case: ifP => // /and3P[h1 h2 _] [<-] /=.
Qed.
Lemma open_root T j b T' : open_acct T j b = Some T' ->
  fbound T' = fbound T /\ fspent T' = fspent T.
Proof. by rewrite /open_acct; case: (pathof T j) => // p [<-]. Qed.

(* What they do to an account i that is there. *)
Lemma charge_sub T j c T' p i : charge_at T j c = Some T' -> pathof T j = Some p ->
  i < size (fsubs T) ->
  i < size (fsubs T') /\
  nth dacct (fsubs T') i =
    (if i \in p then aadd c (nth dacct (fsubs T) i) else nth dacct (fsubs T) i) /\
  (i \in p -> aok c (nth dacct (fsubs T) i)).
Proof.
rewrite /charge_at => ch pj hi; move: ch; rewrite pj /charge.
case: ifP => // /and3P[_ _ /allP h] [<-] /=; rewrite size_map size_iota; split=> //; split.
  by rewrite (nth_map 0) ?size_iota // nth_iota // add0n.
exact: h.
Qed.
Lemma open_sub T j b T' i : open_acct T j b = Some T' -> i < size (fsubs T) ->
  i < size (fsubs T') /\ nth dacct (fsubs T') i = nth dacct (fsubs T) i.
Proof.
rewrite /open_acct; case: (pathof T j) => // p [<-] /= hi.
by rewrite size_rcons ltnW // nth_rcons hi.
Qed.

(* Events of another implementation, replayed one after the other. *)
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

(* The root and all accounts below it are within their bounds. *)
Definition acct_ok a := within (aspent a) (abound a).
Definition filt_ok T := within (fspent T) (fbound T) && all acct_ok (fsubs T).
(* A limit is opened with a bound of at least zero. *)
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
(* After any events, no account has passed its bound. *)
Theorem replay_ok es T : filt_ok T -> all caps_ok es -> filt_ok (replay T es).1.
Proof.
elim: es T => [|e es IH] T //= ok /andP[h1 h2].
have := replay1_ok ok h1; case: (replay1 T e) => T1 v /= ok1.
by have := IH T1 ok1 h2; case: (replay T1 es) => T2 vs.
Qed.
End Acct.
