"""Limits against every analyst: never above the cap, and the limit's own view within the limit."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import BudgetExceededError

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
EPSILON = math.nextafter(math.log(2), math.inf)  # of an answer that is true in 2 of 3 cases


def launches(count):
    """A bound that admits this many answers, and no more."""
    return math.nextafter(count * EPSILON, math.inf)


def telling(tape):
    """A measurement that tells whether there is a row, in 2 of 3 cases."""

    def function(rows):
        true = Fraction(2, 3) if rows else Fraction(1, 3)
        return tape.draw((true, 1 - true))

    return measuring(function)


def silent(tape):
    """A measurement of the same price that tells nothing."""
    return measuring(lambda _: tape.draw((Fraction(2, 3), Fraction(1, 3))))


def measuring(function):
    return dp.m.make_user_measurement(
        *SPACE, PURE, function, lambda d_in: EPSILON * d_in, TO="ExtrinsicObject"
    )


def odometer():
    return oc.make_concurrent_odometer(*SPACE, PURE)


def limited(side, cap, bounds, nested=False):
    """The handles of Alice and of Bob; his limit is below hers if they are nested."""
    root = oc.make_concurrent_filter(odometer(), 1, launches(cap))([7] * side)
    handles = {}
    for name, bound in bounds.items():
        made = oc.c.make_limited(odometer(), 1, launches(bound), label=name)
        handles[name] = (handles["alice"] if nested and handles else root)(made)
    return handles


def apart(side, cap, bounds):
    """The wrong rule: limits that do not charge the cap."""
    made = {
        name: oc.make_concurrent_filter(odometer(), 1, launches(bound))
        for name, bound in bounds.items()
    }
    return {name: one([7] * side) for name, one in made.items()}


def worst(begin, tape, moves, rounds):
    played = verify.Played(
        tape,
        begin,
        [
            verify.Move(name, lambda session, name=name, query=query: session[name](query))
            for name, query in moves.items()
        ],
        refusals=(BudgetExceededError,),
    )
    return played.worst_loss(rounds).loss


BOUNDS = {"alice": 1, "bob": 2}


def test_no_analysts_learn_more_than_the_cap_together():
    tape = verify.Tape()
    moves = dict.fromkeys(BOUNDS, telling(tape))
    loss = worst(lambda side: limited(side, 2, BOUNDS), tape, moves, 3)
    assert launches(2) - 1e-9 <= loss <= launches(2)


def test_limits_that_do_not_charge_the_cap_are_caught():
    tape = verify.Tape()
    moves = dict.fromkeys(BOUNDS, telling(tape))
    assert worst(lambda side: apart(side, 2, BOUNDS), tape, moves, 3) > launches(2)


@pytest.mark.parametrize("cap", [2, 3])
def test_an_analyst_alone_learns_at_most_the_limit(cap):
    """Bob's launches are charged to the cap, so he can starve Alice, but tell her nothing."""
    tape = verify.Tape()
    moves = {"alice": telling(tape), "bob": silent(tape)}
    loss = worst(lambda side: limited(side, cap, BOUNDS), tape, moves, 3)
    assert launches(1) - 1e-9 <= loss <= launches(1)


def test_a_limit_is_no_bound_on_a_coalition():
    tape = verify.Tape()
    moves = dict.fromkeys(BOUNDS, telling(tape))
    loss = worst(lambda side: limited(side, 3, BOUNDS), tape, moves, 3)
    assert launches(3) - 1e-9 <= loss <= launches(3)


def test_the_outer_limit_bounds_what_is_nested():
    tape = verify.Tape()
    moves = dict.fromkeys(BOUNDS, telling(tape))
    loss = worst(lambda side: limited(side, 3, BOUNDS, nested=True), tape, moves, 3)
    assert launches(1) - 1e-9 <= loss <= launches(1)


# --- on two blocks, of which the first has a row or not ------------------------------------------


def on_blocks(side, cap, alice):
    """The handles of Alice and of Bob on a block filter; she has a limit, he has none."""
    made = oc.c.make_block_filter(
        odometer(), 1, launches(cap), blocks=oc.c.by_key(lambda row: 0), keys=[0, 1]
    )
    root = made([7] * side)
    limit = oc.c.make_limited(odometer(), 1, launches(alice), label="alice")
    return {"alice": root(limit), "bob": root}


def blocks_apart(side, cap, alice):
    """The wrong rule: a limit that does not charge the block filter."""
    return {"alice": on_blocks(side, alice, alice)["bob"], "bob": on_blocks(side, cap, cap)["bob"]}


def worst_on_blocks(cap, alice, bob, begin=on_blocks, rounds=2):
    tape = verify.Tape()
    measurements = {"alice": telling(tape), "bob": telling(tape) if bob else silent(tape)}
    moves = {"alice": ([0], [0, 1]), "bob": ([0],)}
    played = verify.Played(
        tape,
        lambda side: begin(side, cap, alice),
        [
            verify.Move(
                f"{name} {blocks}",
                lambda session, name=name, blocks=blocks: session[name](blocks, measurements[name]),
            )
            for name, chosen in moves.items()
            for blocks in chosen
        ],
        refusals=(BudgetExceededError,),
    )
    return played.worst_loss(rounds).loss


@pytest.mark.parametrize(("cap", "alice", "bob", "most"), [(2, 1, False, 1), (2, 1, True, 2)])
def test_a_limit_on_blocks_bounds_its_view_and_the_block_filter_all(cap, alice, bob, most):
    loss = worst_on_blocks(cap, alice, bob, rounds=most + 1)
    assert launches(most) - 1e-9 <= loss <= launches(most)


def test_limits_on_blocks_that_do_not_charge_the_block_filter_are_caught():
    assert worst_on_blocks(1, 1, True, begin=blocks_apart) > launches(1)
