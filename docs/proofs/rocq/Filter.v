(* Filter.v: filters, nested to any depth, limits, and odometers: what was charged
   bounds the behaviour.  Stated for any notion of "within a loss" that multiplies
   (good); Pure.v and the other files say which ones these are. *)
Require Import Preamble Accounting Machine Behaviour.
Local Open Scope ring_scope.

(* What the theorems need of "u, a probability for each world, is within the loss c". *)
Record good_laws (F : comRingType) (C I : Type) (c0 : C) (cadd : C -> C -> C)
    (cle : C -> C -> bool) (good : C -> (I -> F) -> Prop) : Prop := GoodLaws {
  good_ext : forall c u v, (forall i, u i = v i) -> good c u -> good c v;
  good0 : good c0 (fun _ => 0);
  good1 : good c0 (fun _ => 1);
  goodM : forall a b u v, good a u -> good b v -> good (cadd a b) (fun i => u i * v i);
  good_mono : forall a b u, cle a b -> good a u -> good b u }.

Section Filter.
Variables (F : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C).
Variables (I : Type) (BS : I -> Type) (binit : forall i, BK -> BS i).
Variable bstep : forall i, BS i -> BQ -> outs (F * BA * BS i).
Notation beh i := (beh c0 cadd cle (binit i) bdecl (@bstep i)).
Notation prodb := (prodb c0 cadd cle bdecl binit bstep).
Notation init i := (init c0 (binit i)).
Notation decl := (decl bdecl).
Notation transcript := (transcript C BK BQ BA).
Notation charge_at := (charge_at c0 cadd cle).
Notation open_acct := (open_acct c0).
Notation within := (within cle).
Notation FILTER R := (SF (newfilt c0 R) [::]).
Notation ODOMETER := (SF (newodo c0) [::]).
Variable good : C -> (I -> F) -> Prop.
Hypothesis G : good_laws c0 cadd cle good.
(* Each base mechanism is within its price, in whatever way it is queried. *)
Hypothesis base_good : forall k h, good (bdecl k) (fun i => beh i (SB C (binit i k)) h).

(* The account of the root as a meter. *)
Definition root_room (T : filt C) c := within (cadd (fspent T) c) (fbound T).
Definition root_ok (T : filt C) := within (fspent T) (fbound T).
Lemma root_room0 T : root_ok T -> root_room T c0.
Proof. by rewrite /root_ok /root_room /within; case: (fbound T) => // B; apply: (le_add0 L). Qed.
Lemma root_charge T j (k : name C BK) T' : root_ok T -> charge_at T j (decl k) = Some T' ->
  root_ok T' /\ forall c, root_room T' c -> root_room T (cadd (decl k) c).
Proof.
move=> _ E; have [e1 e2 _ e4] := charge_root E; split=> // c; rewrite /root_room /within e1 e2.
by case: (fbound T) => // B; apply: (le_addA L).
Qed.
Lemma root_open T j b T' : root_ok T -> open_acct T j b = Some T' ->
  root_ok T' /\ forall c, root_room T' c -> root_room T c.
Proof. by move=> h E; have [e1 e2] := open_root E; rewrite /root_ok /root_room e1 e2. Qed.

Lemma filter_upto n R h : (size h <= n)%N -> cle c0 R -> good R (fun i => beh i (FILTER R) h).
Proof.
elim/ltn_ind: n R h => n IH R h hn ok.
have children T j k T' g : True -> charge_at T j (decl k) = Some T' -> (size g < n)%N ->
    good (decl k) (fun i => beh i (init i k) g).
  move=> _ E hg; have [_ _ e3 _] := charge_root E; case: k {E} e3 => [k|R'] e3 /=; first exact: base_good.
  exact: IH hg _ _ (leqnn _) e3.
have dis T (h' : transcript) : disciplined c0 cadd cle bdecl (fun _ _ _ => True) T h'.
  elim: h' T => // -[[q|j k|j b|m q] r] h' IH' T //=.
    by case: (charge_at _ _ _).
  by case: (open_acct _ _ _).
have okT : root_ok (newfilt c0 R) := ok.
have [hs [u [c [_ _ hu hc e]]]] := factor (good0 G) (good1 G) (goodM G)
  root_room0 root_charge root_open children 0%N hn okT (dis _ _).
apply: (good_ext G (u := u)) => [i|]; first by rewrite (e i [::] erefl) mulr1.
by apply: (good_mono G) hu; apply: (le_0add L) hc.
Qed.

(* A filter with the bound R is within the loss R, for all transcripts.  So a filter
   may itself be launched in another filter, for R. *)
Theorem filter_good R h : cle c0 R -> good R (fun i => beh i (FILTER R) h).
Proof. exact: filter_upto (leqnn _). Qed.

(* Whatever is launched is within its price. *)
Lemma launched_good T j k T' g : charge_at T j (decl k) = Some T' ->
  good (decl k) (fun i => beh i (init i k) g).
Proof.
by move=> E; have [_ _ e3 _] := charge_root E; case: k {E} e3 => [k|R] e3 /=; [apply: base_good|apply: filter_good].
Qed.

(* --- a limit ------------------------------------------------------------------ *)
(* A launch at the account j is below the account i. *)
Definition below (T : filt C) i j := if pathof T j is Some p then i \in p else false.
(* Outside of the limit, only mechanisms are launched that are good for no loss at
   all: those whose data are the same in all worlds. *)
Definition free_outside i (T : filt C) j (k : name C BK) :=
  below T i j \/ if k is NB k then forall h, good c0 (fun w => beh w (SB C (binit w k)) h) else False.
Definition sub_cost i T j (k : name C BK) := if below T i j then decl k else c0.
Notation nth_acct T i := (nth (dacct c0) (fsubs T) i).
Definition sub_room i b (T : filt C) c := [/\ (i < size (fsubs T))%N,
  abound (nth_acct T i) = Some b & cle (cadd (aspent (nth_acct T i)) c) b].
Definition sub_ok i b (T : filt C) := [/\ (i < size (fsubs T))%N,
  abound (nth_acct T i) = Some b & cle (aspent (nth_acct T i)) b].
Lemma sub_room0 i b T : sub_ok i b T -> sub_room i b T c0.
Proof. by case=> h1 h2 h3; split=> //; apply: (le_add0 L). Qed.
Lemma sub_charge i b T j (k : name C BK) T' : sub_ok i b T -> charge_at T j (decl k) = Some T' ->
  sub_ok i b T' /\ forall c, sub_room i b T' c -> sub_room i b T (cadd (sub_cost i T j k) c).
Proof.
move=> [h1 h2 h3] E; rewrite /sub_cost /below; have [p -> [sz /allP g3 g2]] := charge_all E.
rewrite /sub_ok /sub_room sz g2 //; case: ifP => ip /=.
  have := g3 _ ip; rewrite /aok /within h2 => g4; split=> // c [_ _ g5]; split=> //.
  exact: (le_addA L).
by split=> // c [_ _ g5]; split=> //; apply: (le_add0A L).
Qed.
Lemma sub_open i b T j b' T' : sub_ok i b T -> open_acct T j b' = Some T' ->
  sub_ok i b T' /\ forall c, sub_room i b T' c -> sub_room i b T c.
Proof.
move=> [h1 h2 h3] E; have [p _ [sz _ g]] := open_all E; rewrite /sub_ok /sub_room sz g // ltnW //.
by split=> // c [].
Qed.

(* The view below a limit.  Account i of T is a limit with the bound b that nothing
   was charged to yet, and outside of it only what does not tell the worlds apart is
   launched from now on.  Then, in all worlds at once, the behaviour is a factor
   within the loss b, times the behaviours of the children that were there before. *)
Theorem limit_good i b T h N : (i < size (fsubs T))%N ->
  abound (nth_acct T i) = Some b -> aspent (nth_acct T i) = c0 -> cle c0 b ->
  disciplined c0 cadd cle bdecl (free_outside i) T h ->
  exists (hs : seq transcript) u, [/\ size hs = N, good b u &
    forall w l, size l = N -> beh w (SF T l) h = u w * prodb l hs].
Proof.
move=> h1 h2 h3 ok dis; have okT : sub_ok i b T by split; rewrite ?h3.
have children T1 j k T' g : free_outside i T1 j k -> charge_at T1 j (decl k) = Some T' ->
    (size g < (size h).+1)%N -> good (sub_cost i T1 j k) (fun w => beh w (init w k) g).
  rewrite /free_outside /sub_cost => + E _; case: (below T1 i j) => /=; first by move=> _; apply: launched_good E.
  by case=> //; case: k {E}.
have [hs [u [c [e1 _ hu [_ _ hc] e]]]] := factor (good0 G) (good1 G) (goodM G)
  (@sub_room0 i b) (@sub_charge i b) (@sub_open i b) children N (leqnSn _) okT dis.
exists hs, u; split=> //; apply: (good_mono G) hu; move: hc; rewrite h3; exact: (le_0add L).
Qed.
(* --- odometers ---------------------------------------------------------------- *)
Notation step i := (step c0 cadd cle (binit i) bdecl (@bstep i)).
(* The account after a transcript: privacy_loss reads fspent of it. *)
Fixpoint track (T : filt C) (h : transcript) : filt C :=
  if h is (q, _) :: h' then
    match q with
    | QLaunch j k => track (odflt T (charge_at T j (decl k))) h'
    | QOpen j b => track (odflt T (open_acct T j b)) h'
    | _ => track T h'
    end
  else T.
(* The loss that the odometer reads after a transcript. *)
Definition reading h := fspent (track (newodo c0) h).

(* The same account with the bound d. *)
Definition bounded d (T : filt C) := Filt (Some d) (fspent T) (fsubs T).
Lemma charge_bounded d T j c : fbound T = None -> charge_at (bounded d T) j c =
  if charge_at T j c is Some T' then if cle (fspent T') d then Some (bounded d T') else None else None.
Proof.
move=> e; rewrite /Accounting.charge_at /bounded /pathof /=.
case: (if j is Some _ then _ else _) => [p|] //; rewrite /charge e /=.
case: (cle c0 c) => //=; case: (all _ p) => //=; rewrite ?andbT ?andbF //=; by case: (cle _ _).
Qed.
Lemma open_bounded d T j b : open_acct (bounded d T) j b = omap (bounded d) (open_acct T j b).
Proof. by rewrite /Accounting.open_acct /bounded /pathof /=; case: (if j is Some _ then _ else _). Qed.

Lemma track_ge d h T : cle (fspent (track T h)) d -> cle (fspent T) d.
Proof.
elim: h T => [|[[q|j k|j b|m q] r] h IH] T //=; [exact: IH| | |exact: IH].
- case E: (charge_at _ _ _) => [T'|] /= /IH //.
  by have [_ -> h0 _] := charge_root E; apply: (le_addl L).
- by case E: (open_acct _ _ _) => [T'|] /= /IH //; have [_ ->] := open_root E.
Qed.

(* One step of an odometer, and of the filter with the bound d: the same answers, or the
   filter refuses, if the reading of the odometer is then not at most d. *)
Lemma one_step d q r T : fbound T = None -> cle (fspent T) d -> let T' := track T [:: (q, r)] in
  fbound T' = None /\ forall i (l : seq (state C (BS i))), exists N w l',
    step i q (SF T l) = Outs N (fun j => (w j, SF T' (l' j))) /\
    step i q (SF (bounded d T) l) = if cle (fspent T') d then Outs N (fun j => (w j, SF (bounded d T') (l' j)))
      else det F (RRefused BA) (SF (bounded d T) l).
Proof.
move=> eT hd; case: q => [q|j k|j b|m q] /=.
- by split=> // i l; exists 1%N, (fun _ => (1, RBad BA)), (fun _ => l); rewrite hd.
- case E: (charge_at T j (decl k)) => [T'|] /=; last first.
    split=> // i l; exists 1%N, (fun _ => (1, RRefused BA)), (fun _ => l).
    by rewrite charge_bounded // E hd.
  have [e1 _ _ _] := charge_root E; split=> [|i l]; first by rewrite e1.
  exists 1%N, (fun _ => (1, RLaunched BA)), (fun _ => rcons l (init i k)).
  by rewrite charge_bounded // E; case: (cle (fspent T') d).
- case E: (open_acct T j b) => [T'|] /=; last first.
    split=> // i l; exists 1%N, (fun _ => (1, RBad BA)), (fun _ => l).
    by rewrite open_bounded E hd.
  have [e1 e2] := open_root E; split=> [|i l]; first by rewrite e1.
  by exists 1%N, (fun _ => (1, RLaunched BA)), (fun _ => l); rewrite open_bounded E /= e2 hd.
- split=> // i l; rewrite hd; case: (drop m l) => [|s' l2].
    by exists 1%N, (fun _ => (1, RBad BA)), (fun _ => l).
  by exists (card (step i q s')), (fun j => let o := out (step i q s') j in (o.1.1, o.1.2)),
    (fun j => take m l ++ (out (step i q s') j).2 :: l2).
Qed.
Lemma track1 T q r h : track T ((q, r) :: h) = track (track T [:: (q, r)]) h. Proof. by case: q. Qed.
(* As long as its reading is at most d, an odometer behaves as the filter with the bound d. *)
Lemma odometer_is_filter d h T i (l : seq (state C (BS i))) : fbound T = None ->
  cle (fspent (track T h)) d -> beh i (SF T l) h = beh i (SF (bounded d T) l) h.
Proof.
elim: h T l => [|[q r] h IH] T l eT // hd; have hT := track_ge hd; rewrite track1 in hd.
have [eT' /(_ i l)[N [w [l' [e e']]]]] := one_step q r eT hT.
by rewrite !beh_cons e e' (track_ge hd); apply: eq_bigr => j _; rewrite /= IH.
Qed.
(* A transcript of the filter is one of the odometer without the launches that the
   bound d refuses, or it has the probability 0 in all worlds. *)
Lemma filter_is_odometer d h T : fbound T = None -> cle (fspent T) d ->
  (exists2 h', cle (fspent (track T h')) d &
     forall i (l : seq (state C (BS i))), beh i (SF (bounded d T) l) h = beh i (SF T l) h') \/
  (forall i (l : seq (state C (BS i))), beh i (SF (bounded d T) l) h = 0).
Proof.
elim: h T => [|[q r] h IH] T eT hd; first by left; exists [::].
have [eT' st] := one_step q r eT hd; case hd': (cle (fspent (track T [:: (q, r)])) d) st => st.
  case: (IH _ eT' hd') => [[h' h1 h2]|h2]; [left; exists ((q, r) :: h')|right] => [|i l|i l].
  - by rewrite track1.
  - have [N [w [l' [e e']]]] := st i l; rewrite !beh_cons e e'.
    by apply: eq_bigr => j _; rewrite /= h2.
  - by have [N [w [l' [_ e']]]] := st i l; rewrite beh_cons e' big1 // => j _; rewrite /= h2 mulr0.
have e i l : beh i (SF (bounded d T) l) ((q, r) :: h) = if RRefused BA == r then beh i (SF (bounded d T) l) h else 0.
  by have [N [w [l' [_ e']]]] := st i l; rewrite (beh_det _ _ e').
case: (RRefused BA == r) e => e; last by right.
by case: (IH T eT hd) => [[h' h1 h2]|h2]; [left; exists h'|right] => // i l; rewrite e h2.
Qed.

(* Lemma 2.19 of [HSTVVXZ23] for sums, both directions.  For each bound d: all views
   of the odometer that are truncated while its reading is at most d are within the
   loss d, if and only if all views of the filter with the bound d are. *)
Theorem lemma_2_19 d : cle c0 d ->
  (forall h, cle (reading h) d -> good d (fun i => beh i ODOMETER h)) <->
  (forall h, good d (fun i => beh i (FILTER d) h)).
Proof.
move=> ok; split=> H h.
  have [[h' h1 h2]|h2] := filter_is_odometer h (erefl : fbound (newodo c0) = None) ok.
    by apply: (good_ext G) (H h' h1) => i; rewrite -h2.
  apply: (good_mono G ok); apply: (good_ext G) (good0 G) => i.
  by rewrite -(h2 i [::]).
move=> hd; apply: (good_ext G) (H h) => i.
by rewrite (odometer_is_filter _ _ hd).
Qed.

(* The view of an odometer, truncated while its reading is at most d, for each d that
   is fixed in advance. *)
Theorem odometer_good d h : cle (reading h) d -> good d (fun i => beh i ODOMETER h).
Proof. by move=> hd; have ok := track_ge hd; apply: (lemma_2_19 ok).2 hd => g; apply: filter_good. Qed.
End Filter.

(* --- two machines --------------------------------------------------------------- *)
(* On one data set, with the same names and prices: mechanisms V, and mechanisms W that
   are compared with them.  What holds for each pair holds in filters. *)
Section Beside.
Variables (F : comRingType) (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
Hypothesis L : charge_laws c0 cadd cle.
Variables (BK BQ : Type) (BA : eqType) (bdecl : BK -> C) (BSV BSW : Type).
Variables (initV : BK -> BSV) (stepV : BSV -> BQ -> outs (F * BA * BSV)).
Variables (initW : BK -> BSW) (stepW : BSW -> BQ -> outs (F * BA * BSW)).
Notation V := (beh c0 cadd cle initV bdecl stepV).
Notation W := (beh c0 cadd cle initW bdecl stepW).
Lemma filter_beside (good : C -> (bool -> F) -> Prop) (G : good_laws c0 cadd cle good) R h :
  (forall k g, good (bdecl k) (fun w => if w then W (SB C (initW k)) g else V (SB C (initV k)) g)) ->
  cle c0 R -> good R (fun w => if w then W (SF (newfilt c0 R) [::]) h else V (SF (newfilt c0 R) [::]) h).
Proof.
move=> base ok; pose BS2 (w : bool) : Type := if w then BSW else BSV.
pose init2 w : BK -> BS2 w := if w return BK -> BS2 w then initW else initV.
pose step2 w : BS2 w -> BQ -> outs (F * BA * BS2 w) :=
  if w return BS2 w -> BQ -> outs (F * BA * BS2 w) then stepW else stepV.
have H k g : good (bdecl k) (fun w => beh c0 cadd cle (init2 w) bdecl (@step2 w) (SB C (init2 w k)) g).
  by apply: (good_ext G) (base k g) => -[].
by apply: (good_ext G) (filter_good L G H h ok) => -[].
Qed.
End Beside.
