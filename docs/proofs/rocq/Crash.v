(* Crash.v: an account whose charges are kept on disk, as a transition system.  A
   launch takes four steps; between any two of them the process may crash, and what is
   in memory is then read from the disk again. *)
Set Warnings "-notation-overridden,-ambiguous-paths".
From mathcomp Require Import ssreflect ssrfun ssrbool eqtype ssrnat seq.
Require Import Accounting.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Crash.
Variables (C : Type) (c0 : C) (cadd : C -> C -> C) (cle : C -> C -> bool).
(* Where a launch of loss c is: not begun, admitted, its charge is on disk, its charge is
   also in memory. *)
Inductive phase := Idle | Decided (T : filt C) (c : C) | Durable (c : C) | Charged (c : C).
(* The account on disk and in memory, the launch that is under way, and the losses of the
   mechanisms that have run.  charges is a record for the theorems: all charges that were
   ever written, and how many of them are in memory. *)
Record system := System { stored : filt C; memory : filt C; under_way : phase; ran : seq C;
                          charges : seq C; known : nat }.
Inductive action := Decide (j : option nat) (c : C) | Write | Take | Run | Crashes
  | Opens (j : option nat) (b : option C).
Definition reread s := System (stored s) (stored s) Idle (ran s) (charges s) (size (charges s)).
Definition act (a : action) (s : system) : system :=
  match a, under_way s with
  | Decide j c, Idle =>
      if charge_at c0 cadd cle (stored s) j c is Some T
      then System (stored s) (memory s) (Decided T c) (ran s) (charges s) (known s)
      else reread s
  | Write, Decided T c =>
      System T (memory s) (Durable c) (ran s) (rcons (charges s) c) (known s)
  | Take, Durable c =>
      System (stored s) (stored s) (Charged c) (ran s) (charges s) (size (charges s))
  | Run, Charged c =>
      System (stored s) (memory s) Idle (rcons (ran s) c) (charges s) (known s)
  | Crashes, _ => reread s
  | Opens j b, Idle =>
      if open_acct c0 (stored s) j b is Some T
      then System T T Idle (ran s) (charges s) (size (charges s)) else s
  | _, _ => s
  end.
Definition start R := System (newfilt c0 R) (newfilt c0 R) Idle [::] [::] 0.
Definition total (cs : seq C) := foldl cadd c0 cs.

(* rs are some of cs, in their order. *)
Definition among (rs cs : seq C) := exists2 m : bitseq, size m = size cs & rs = mask m cs.
Lemma total_rcons cs c : total (rcons cs c) = cadd (total cs) c.
Proof. by rewrite /total -cats1 foldl_cat. Qed.
Lemma among_cat rs cs ds : among rs cs -> among rs (cs ++ ds).
Proof.
case=> m sm ->; exists (m ++ nseq (size ds) false); first by rewrite !size_cat sm size_nseq.
by rewrite mask_cat // mask_false cats0.
Qed.
Lemma among_take rs cs k : among rs (take k cs) -> among rs cs.
Proof. by move=> h; rewrite -(cat_take_drop k cs); apply: among_cat. Qed.
Lemma among_rcons rs cs c : among rs cs -> among (rcons rs c) (rcons cs c).
Proof.
case=> m sm ->; exists (rcons m true); first by rewrite !size_rcons sm.
by rewrite mask_rcons //= cats1.
Qed.

(* The mechanisms that have run are among the charges in memory; these are the first
   ones of the charges on disk; the losses are the sums of the charges, and within the
   bound.  While a launch is under way, its charge is the last one. *)
Definition sound (s : system) : Prop :=
  [/\ (known s <= size (charges s))%N /\ fspent (stored s) = total (charges s),
      fspent (memory s) = total (take (known s) (charges s)),
      within cle (fspent (stored s)) (fbound (stored s)) &
      match under_way s with
      | Idle => among (ran s) (take (known s) (charges s))
      | Decided T c => [/\ fspent T = cadd (fspent (stored s)) c,
          within cle (fspent T) (fbound T) & among (ran s) (take (known s) (charges s))]
      | Durable c => exists2 cs, charges s = rcons cs c & among (ran s) cs
      | Charged c => exists2 cs, take (known s) (charges s) = rcons cs c & among (ran s) cs
      end].
Lemma sound_ran s : sound s -> among (ran s) (charges s).
Proof.
case=> _ _ _; case: (under_way s) => [/among_take //|T c [_ _ /among_take] //|c [cs ->]|c [cs e]] h.
  by rewrite -cats1; apply: among_cat.
by apply: (@among_take _ _ (known s)); rewrite e -cats1; apply: among_cat.
Qed.
Lemma reread_sound s : sound s -> sound (reread s).
Proof.
move=> h; have := sound_ran h; case: h => [[h0 h1] h2 h3 _] h4.
by rewrite /sound /reread /= take_size.
Qed.
Lemma act_sound a s : sound s -> sound (act a s).
Proof.
move=> h; have h' := reread_sound h; have hr := sound_ran h.
have [[h0 h1] h2 h3 h4] := h.
rewrite /act; case: a => [j c|||||j b] //.
- case E: (under_way s) h4 => [||c'|c'] // h4; case A: (charge_at _ _ _ _ _ _) => [T|] //.
  by have [e1 e2 e3 e4] := charge_root A; split.
- case E: (under_way s) h4 => [|T c||] // [e1 e2 e3]; split=> //=.
  + by rewrite size_rcons leqW // e1 h1 total_rcons.
  + by rewrite h2 -cats1 takel_cat.
  + by exists (charges s).
- case E: (under_way s) h4 => [||c|] // [cs e1 e2].
  by split=> //=; rewrite ?take_size //; exists cs.
- case E: (under_way s) h4 => [|||c] // [cs e1 e2].
  by split=> //=; rewrite e1; apply: among_rcons.
- case E: (under_way s) h4 => [|||] // h4; case A: (open_acct _ _ _ _) => [T|] //.
  by have [e1 e2] := open_root A; split=> //=; rewrite ?take_size ?e1 ?e2.
Qed.
Lemma start_sound R : cle c0 R -> sound (start R).
Proof. by move=> ok; split=> //; exists [::]. Qed.
Fixpoint acts (es : seq action) s := if es is e :: es' then acts es' (act e s) else s.
Lemma acts_sound es s : sound s -> sound (acts es s).
Proof. by elim: es s => //= e es IH s /(act_sound e)/IH. Qed.

(* Charge before run: whatever happens, in whichever order, and wherever it crashes,
   each mechanism that has run has a charge of its own on disk, and the sum of all
   charges is within the bound. *)
Theorem charge_before_run R es : cle c0 R -> let s := acts es (start R) in
  [/\ among (ran s) (charges s), fspent (stored s) = total (charges s) &
      within cle (fspent (stored s)) (fbound (stored s))].
Proof.
move=> ok s; have h : sound s by apply/acts_sound/start_sound.
by have [[_ h1] _ h3 _] := h; split=> //; apply: sound_ran.
Qed.
(* Never refund: charges on disk are never removed, by anything. *)
Theorem never_refund es s : exists more, charges (acts es s) = charges s ++ more.
Proof.
elim: es s => [|e es IH] s /=; first by exists [::]; rewrite cats0.
have [more ->] := IH (act e s).
have [one ->] : exists one, charges (act e s) = charges s ++ one.
  rewrite /act; case: e => [j c|||||j b]; case: (under_way s) => [|T c'|c'|c'] /=;
    try by exists [::]; rewrite cats0.
  - by case: (charge_at _ _ _ _ _ _) => [T|]; exists [::]; rewrite cats0.
  - by exists [:: c']; rewrite cats1.
  - by case: (open_acct _ _ _ _) => [T|]; exists [::]; rewrite cats0.
by exists (one ++ more); rewrite catA.
Qed.
End Crash.
