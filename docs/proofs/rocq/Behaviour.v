(* Behaviour.v: the behaviour of a mechanism, and how that of a filter is made of
   those of its children.

   The behaviour of a mechanism gives the probability that it answers r1, r2, ...
   to the queries q1, q2, ...  It sums over the hidden states in between.  A
   deterministic analyst who sees only answers is determined by them, so that the
   behaviour at a transcript is the probability of that transcript. *)
Require Import Preamble Accounting Machine.
Local Open Scope ring_scope.

Section RespEq.
Variable BA : eqType.
Definition same (x y : resp BA) := match x, y with
  | RB a, RB b => a == b | RLaunched, RLaunched | RRefused, RRefused | RBad, RBad => true
  | _, _ => false end.
Lemma sameP x y : reflect (x = y) (same x y).
Proof.
apply: (iffP idP) => [|->]; last by case: y => //= b.
by case: x; case: y => //= a b /eqP->.
Qed.
Definition resp_eqMixin := EqMixin sameP.
Canonical resp_eqType := EqType (resp BA) resp_eqMixin.
End RespEq.

Section Behaviour.
Variables (W : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BS BQ : Type) (BA : eqType) (binit : BK -> BS) (bdecl : BK -> C).
Variable bstep : BS -> BQ -> outs (W * BA * BS).
Notation step := (step c0 cadd cle binit bdecl bstep).
(* A transcript: queries with their answers, the first one first. *)
Definition transcript := seq (query C BK BQ * resp BA).
(* The behaviour. *)
Fixpoint beh (s : state C BS) (h : transcript) : W :=
  if h is (q, r) :: h' then
    \sum_(j <- iota 0 (card (step q s)) | (out (step q s) j).1.2 == r)
      (out (step q s) j).1.1 * beh (out (step q s) j).2 h'
  else 1.
Lemma beh_cons s q r h : beh s ((q, r) :: h) =
    \sum_(j <- iota 0 (card (step q s)) | (out (step q s) j).1.2 == r)
      (out (step q s) j).1.1 * beh (out (step q s) j).2 h.
Proof. by []. Qed.
(* The same as a program: sums are not computed by Rocq, folds are. *)
Fixpoint computed (s : state C BS) (h : transcript) : W :=
  if h is (q, r) :: h' then
    foldr (fun j x => if (out (step q s) j).1.2 == r
      then (out (step q s) j).1.1 * computed (out (step q s) j).2 h' + x else x)
      0 (iota 0 (card (step q s)))
  else 1.
Lemma computedE s h : computed s h = beh s h.
Proof.
elim: h s => [|[q r] h IH] s //; rewrite beh_cons [LHS]/=.
elim: (iota _ _) => [|j js IHj]; first by rewrite big_nil.
by rewrite big_cons /= IHj IH.
Qed.
(* A step with a certain answer. *)
Lemma beh_det s q r a s' h : step q s = det W a s' ->
  beh s ((q, r) :: h) = if a == r then beh s' h else 0.
Proof. by move=> e; rewrite beh_cons e /= big_cons big_nil /= mul1r addr0. Qed.
End Behaviour.

(* Several worlds (data sets): the same names and prices, but in each world its own
   states, starts and steps.  good c u says that u, a probability for each world, is
   within the loss c. *)
Section Factor.
Variables (F : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (I : Type) (BS : I -> Type) (binit : forall i, BK -> BS i).
Variable bstep : forall i, BS i -> BQ -> outs (F * BA * BS i).
Notation beh i := (beh c0 cadd cle (binit i) bdecl (@bstep i)).
Notation step i := (step c0 cadd cle (binit i) bdecl (@bstep i)).
Notation init i := (init c0 (binit i)).
Notation decl := (decl bdecl).
Notation transcript := (transcript C BK BQ BA).
Notation charge_at := (charge_at c0 cadd cle).
Notation open_acct := (open_acct c0).

Variable good : C -> (I -> F) -> Prop.
Hypothesis good0 : good c0 (fun _ => 0).
Hypothesis good1 : good c0 (fun _ => 1).
Hypothesis goodM : forall a b u v, good a u -> good b v -> good (cadd a b) (fun i => u i * v i).

(* The product of the behaviours of the children in l, each at its own transcript. *)
Fixpoint prodb i (l : seq (state C (BS i))) (hs : seq transcript) : F :=
  match l, hs with s :: l', h :: hs' => beh i s h * prodb l' hs' | _, _ => 1 end.
Lemma prodb_cat i l1 l2 h1 h2 : size l1 = size h1 ->
  @prodb i (l1 ++ l2) (h1 ++ h2) = prodb l1 h1 * prodb l2 h2.
Proof.
elim: l1 h1 => [|s l1 IH] [|h h1] //=; first by rewrite mul1r.
by case=> /IH ->; rewrite mulrA.
Qed.
Lemma prodb_nil i l n : @prodb i l (nseq n [::]) = 1.
Proof. by elim: l n => [|s l IH] [|n] //=; rewrite IH mulr1. Qed.

(* A meter: what a launch costs it (cost), and what it says may still be spent
   (room T c: there is room for c in T).  allowed: the launches that are considered. *)
Variables (cost : filt C -> option nat -> name C BK -> C) (room : filt C -> C -> Prop).
Variables (ok : filt C -> Prop) (allowed : filt C -> option nat -> name C BK -> Prop).
Hypothesis room0 : forall T, ok T -> room T c0.
Hypothesis room_charge : forall T j k T', ok T -> charge_at T j (decl k) = Some T' ->
  ok T' /\ forall c, room T' c -> room T (cadd (cost T j k) c).
Hypothesis room_open : forall T j b T', ok T -> open_acct T j b = Some T' ->
  ok T' /\ forall c, room T' c -> room T c.

(* All launches of a transcript are allowed. *)
Fixpoint disciplined (T : filt C) (h : transcript) : Prop :=
  if h is (q, r) :: h' then
    match q with
    | QLaunch j k => if charge_at T j (decl k) is Some T'
                     then allowed T j k /\ disciplined T' h' else disciplined T h'
    | QOpen j b => if open_acct T j b is Some T' then disciplined T' h' else disciplined T h'
    | _ => disciplined T h'
    end
  else True.

(* In all worlds at once, the behaviour of the account T with N children is a factor u,
   within a loss that there is room for, times the behaviours of the children that
   are there already, each at a part of the transcript. *)
Definition factored (T : filt C) N (h : transcript) := exists hs u c,
  [/\ size hs = N, all (fun g => size g <= size h)%N hs, good c u, room T c &
    forall i l, size l = N -> beh i (SF T l) h = u i * prodb l hs].
Lemma factor n :
  (forall T j k T' g, allowed T j k -> charge_at T j (decl k) = Some T' -> (size g < n)%N ->
     good (cost T j k) (fun i => beh i (init i k) g)) ->
  forall h T N, (size h <= n)%N -> ok T -> disciplined T h -> factored T N h.
Proof.
move=> children; elim=> [|[q r] h IH] T N hn okT dis.
  exists (nseq N [::]), (fun _ => 1), c0; split; rewrite ?size_nseq ?all_nseq ?orbT //; first exact: room0.
  by move=> i l _; rewrite prodb_nil mulr1.
have hn' : (size h <= n)%N by apply: ltnW.
have zero : (forall i l, size l = N -> beh i (SF T l) ((q, r) :: h) = 0) -> factored T N ((q, r) :: h).
  move=> z; exists (nseq N [::]), (fun _ => 0), c0.
  split; rewrite ?size_nseq ?all_nseq ?orbT //; first exact: room0.
  by move=> i l e; rewrite z // mul0r.
have grow (hs : seq transcript) : all (fun g => size g <= size h)%N hs ->
    all (fun g => size g <= size ((q, r) :: h))%N hs by apply: sub_all => g; apply: leqW.
have pass a T' : ok T' -> (forall c, room T' c -> room T c) -> disciplined T' h ->
    (forall i l, size l = N -> step i q (SF T l) = det F a (SF T' l)) -> factored T N ((q, r) :: h).
  move=> okT' rm d st; case ar : (a == r); last first.
    by apply: zero => i l e; rewrite (beh_det _ _ (st i l e)) ar.
  have [hs [u [c [h1 h2 h3 h4 h5]]]] := IH T' N hn' okT' d.
  exists hs, u, c; split=> //; [exact: grow|exact: rm|].
  by move=> i l e; rewrite (beh_det _ _ (st i l e)) ar h5.
have stay a := pass a T okT (fun _ => id).
case: q dis zero stay pass grow hn => [q|j k|j b|m q] dis zero stay pass grow hn.
- exact: stay dis _.
- move: dis; rewrite [disciplined _ _]/=; case E: (charge_at T j (decl k)) => [T'|] dis; last first.
    by apply: (stay (RRefused BA) dis) => i l _ /=; rewrite E.
  case: dis => al dis; have [okT' rm] := room_charge okT E.
  have st i l : size l = N -> step i (QLaunch BQ j k) (SF T l) =
      det F (RLaunched BA) (SF T' (rcons l (init i k))) by move=> _ /=; rewrite E.
  case ar : (RLaunched BA == r); last first.
    by apply: zero => i l e; rewrite (beh_det _ _ (st i l e)) ar.
  have [hs [u [c [h1 h2 h3 h4 h5]]]] := IH T' N.+1 hn' okT' dis.
  case/lastP: hs h1 h2 h5 => [//|hs g]; rewrite size_rcons all_rcons => -[h1] /andP[hg h2] h5.
  exists hs, (fun i => beh i (init i k) g * u i), (cadd (cost T j k) c); split=> //.
  + exact: grow.
  + by apply: goodM h3; apply: children E _ => //; apply: leq_ltn_trans hg hn.
  + exact: rm.
  + move=> i l e; rewrite (beh_det _ _ (st i l e)) ar h5 ?size_rcons ?e //.
    by rewrite -!cats1 prodb_cat ?e ?h1 //= mulr1 mulrA mulrAC [u i * _]mulrC.
- move: dis; rewrite [disciplined _ _]/=; case E: (open_acct T j b) => [T'|] dis; last first.
    by apply: (stay (RBad BA) dis) => i l _ /=; rewrite E.
  have [okT' rm] := room_open okT E.
  by apply: (pass (RLaunched BA) T') => // i l _ /=; rewrite E.
- case: (ltnP m N) => hm; last first.
    by apply: (stay (RBad BA) dis) => i l e /=; rewrite drop_oversize // e.
  have [hs [u [c [h1 h2 h3 h4 h5]]]] := IH T N hn' okT dis.
  have eh : hs = take m hs ++ nth [::] hs m :: drop m.+1 hs.
    by rewrite -drop_nth ?h1 // cat_take_drop.
  set g := nth [::] hs m in eh.
  exists (take m hs ++ ((q, r) :: g) :: drop m.+1 hs), u, c; split=> //.
  + by rewrite -h1 [in RHS]eh !size_cat.
  + move: h2; rewrite [X in all _ X -> _]eh !all_cat /= => /and3P[a1 a2 a3].
    by apply/and3P; split=> //; [apply: sub_all a1 => x|apply: sub_all a3 => x]; apply: leqW.
  + move=> i l e; rewrite beh_cons /=.
    case D: (drop m l) => [|s' l2].
      by move/(congr1 size): D; rewrite size_drop e => /eqP; rewrite subn_eq0 leqNgt hm.
    have el : l = take m l ++ s' :: l2 by rewrite -D cat_take_drop.
    have sz : size (take m l) = size (take m hs) by rewrite !size_takel ?h1 ?e // ltnW.
    rewrite [in prodb l]el prodb_cat //= mulr_suml !mulr_sumr [LHS]/=.
    apply: eq_bigr => jj _ /=; rewrite h5; last first.
      by rewrite -e [in RHS]el !size_cat.
    rewrite [in prodb _ hs]eh prodb_cat //= -!mulrA [LHS]mulrCA; congr (_ * _).
    by rewrite [LHS]mulrCA.
Qed.
End Factor.
