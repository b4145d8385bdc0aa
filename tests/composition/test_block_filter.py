"""The constructor of block filters: guarantee, group privacy, refusals, and exact adversaries."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.composition import block_filter as launches
from opendp_concurrent.composition.block_filter import make_block_filter
from opendp_concurrent.composition.block_records import BlockSteps
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures import composition_measure

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, SPACE, ZCDP, costing

ORDERS = (2.0, 4.0)
LOSSES = {
    "pure": (PURE, 0.25, 1.0),
    "zCDP": (ZCDP, 0.25, 1.0),
    "(ε, δ)": (APPROXIMATE, (0.25, 0.0), (1.0, 1e-6)),
    "approximate zCDP": (APPROXIMATE_ZCDP, (0.25, 1e-8), (1.0, 1e-6)),
    "Gaussian": (oc.gaussian_tradeoff(), 0.5, 1.0),
    "f-DP": (
        oc.tradeoff(),
        oc.TradeoffFunction.gaussian(0.5),
        oc.TradeoffFunction.gaussian(1.0),
    ),
    "one order": (oc.fixed_renyi_divergence(4.0), 0.25, 1.0),
    "tCDP": (
        oc.truncated_concentrated_divergence(8.0),
        oc.TruncatedConcentrated(0.25, 8.0),
        oc.TruncatedConcentrated(1.0, 8.0),
    ),
    "curve": (dp.renyi_divergence(), lambda alpha: 0.25 * alpha, lambda alpha: alpha),
}


def odometer_for(measure):
    accumulator = None
    if measure == oc.tradeoff():
        accumulator = oc.accumulators.residue(1.0)
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


def weeks():
    return oc.c.by_key(lambda record: record // 10)


@pytest.mark.parametrize("name", LOSSES)
def test_every_measure_admits_as_many_launches_on_each_block_as_its_filter(name):
    measure, loss, d_out = LOSSES[name]
    orders = {"orders": ORDERS} if name == "curve" else {}
    odometer = odometer_for(measure)
    blocks = make_block_filter(odometer, 1, d_out, blocks=weeks(), keys=range(3), **orders)
    whole = oc.make_concurrent_filter(odometer, 1, d_out, **orders)
    if name != "curve":
        assert blocks.map(1) == whole.map(1) == d_out
    root, one, launch = blocks([1]), whole([1]), costing(lambda d_in: loss, measure=measure)
    for _ in range(4):
        one(launch)
        root([0, 2], launch)
    for ask in (lambda: one(launch), lambda: root([2, 1], launch)):
        with pytest.raises(BudgetExceededError):
            ask()
    root([1], launch)
    if name != "curve":
        assert root.privacy_loss(0) == one.privacy_loss()
        assert repr(root.remaining(2)) == repr(one.remaining())


@pytest.mark.parametrize(
    ("measure", "d_out", "share"),
    [
        (PURE, 1.0, 0.25),
        (ZCDP, 1.0, 0.0625),
        (oc.gaussian_tradeoff(), 1.0, 0.25),
        (oc.tradeoff(), oc.TradeoffFunction.gaussian(1.0), oc.TradeoffFunction.gaussian(0.25)),
        (APPROXIMATE, (1.0, 0.0), (0.25, 0.0)),
        (
            APPROXIMATE,
            (1.0, 1e-6),
            (0.25, 1e-6 / sum(math.exp(step / 4) for step in range(4))),
        ),
    ],
    ids=str,
)
def test_neighbours_several_records_apart_are_the_ends_of_a_path(measure, d_out, share):
    odometer = odometer_for(measure)
    made = make_block_filter(odometer, 4, d_out, blocks=weeks(), keys=[0])
    found = made([]).remaining(0)
    if isinstance(share, oc.TradeoffFunction):
        assert found == share
    else:
        assert found == pytest.approx(share)
    known = composition_measure(measure)
    assert made.map(4) == d_out
    assert made.map(0) == known.zero
    assert made.map(1) == found
    assert known.at_most(made.map(2), made.map(3))
    assert known.at_most(known.group_loss(found, 4), d_out)
    if measure != oc.tradeoff():  # where 4 steps are the most
        assert not known.at_most(made.map(5), d_out)


@pytest.mark.parametrize(
    ("metric", "factor"),
    [
        (dp.symmetric_distance(), 1),
        (dp.insert_delete_distance(), 1),
        (dp.change_one_distance(), 2),
        (dp.hamming_distance(), 2),
    ],
    ids=str,
)
def test_a_changed_record_is_two_steps(metric, factor):
    domain = SPACE[0] if factor == 1 else dp.vector_domain(dp.atom_domain(T=int), size=3)
    odometer = oc.make_concurrent_odometer(domain, metric, PURE)
    made = make_block_filter(odometer, 1, 1.0, blocks=weeks(), keys=[0])
    assert made([1, 2, 3]).remaining(0) == 1.0 / factor
    assert (made.map(1), made.map(2)) == (1.0, 2.0)


@pytest.mark.parametrize("name", ["one order", "curve", "tCDP", "approximate zCDP"])
def test_without_group_privacy_a_larger_distance_is_refused_with_the_reason(name):
    measure, _, d_out = LOSSES[name]
    orders = {"orders": ORDERS} if name == "curve" else {}
    odometer = oc.make_concurrent_odometer(*SPACE, measure)
    with pytest.raises(UnsupportedMeasureError, match="2 steps apart.*at one distance"):
        make_block_filter(odometer, 2, d_out, blocks=weeks(), keys=[0], **orders)
    made = make_block_filter(odometer, 1, d_out, blocks=weeks(), keys=[0], **orders)
    with pytest.raises(UnsupportedMeasureError):
        made.map(2)


def test_an_odometer_with_a_transformation_is_refused():
    clamp = SPACE >> dp.t.then_clamp((0, 10))
    odometer = clamp >> oc.then_concurrent_odometer(PURE)
    with pytest.raises(InvalidTypeError, match="no transformation"):
        make_block_filter(odometer, 1, 1.0, blocks=weeks(), keys=[0])


@pytest.mark.parametrize(
    ("measure", "factor", "units", "d_in", "share"),
    [
        (PURE, 1, False, 1, 1.0),
        (PURE, 2, False, 1, 0.5),
        (PURE, 4, True, 1, 0.25),
        (PURE, 2, True, 2, 0.25),
        (ZCDP, 2, False, 1, 0.25),  # one path of two steps
        (ZCDP, 2, True, 1, 0.5),  # two filters
        (ZCDP, 2, True, 2, 0.125),
        (oc.gaussian_tradeoff(), 2, False, 2, 0.25),
        (oc.gaussian_tradeoff(), 4, True, 1, 0.5),
    ],
)
def test_a_share_and_its_loss(measure, factor, units, d_in, share):
    steps = BlockSteps(composition_measure(measure), factor, units)
    assert steps.share(d_in, 1.0) == share
    assert steps.loss(d_in, share) == 1.0
    assert steps.loss(0, share) == 0


def test_steps_that_are_not_proven_are_refused():
    with pytest.raises(UnsupportedMeasureError, match="up to 2 blocks"):
        BlockSteps(composition_measure(APPROXIMATE_ZCDP), 2, True)


# --- exact adversaries -------------------------------------------------------------------------

TRUTH = Fraction(3, 4)  # randomized response, with loss log 3
LOG3 = 1.0986122886681098


def played(tape, d_out, rule=None, moves=None):
    """The exact law of a block filter on three blocks; neighbours differ in a record of block 0."""

    def answer(rows):
        return tape.draw((TRUTH, 1 - TRUTH) if 0 in rows else (1 - TRUTH, TRUTH))

    response = costing(LOG3, answer)
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    made = make_block_filter(odometer, 1, d_out, blocks=weeks(), keys=range(3))
    datasets = [0, 11, 21], [11, 21]
    pair = oc.make_concurrent_composition(*SPACE, PURE, 1, [LOG3] * 2)
    sets = moves or [[0, 1], [1, 2]]
    launches_ = [verify.Move(f"{one}", lambda root, one=one: root(one, response)) for one in sets]
    interactive = verify.Move("pair", lambda root: root([0, 2], pair)(response))
    law = verify.Played(
        tape,
        begin=lambda side: made(datasets[side]),
        moves=[*launches_, *([] if moves else [interactive])],
        refusals=(BudgetExceededError,),
    )
    return made, law


def test_no_adaptive_choice_of_blocks_exceeds_the_budget():
    made, law = played(verify.Tape(), 2.5)
    worst = law.worst_loss(rounds=3)
    assert worst.ratio == 9  # two launches on block 0; a third one is refused
    assert worst.loss <= made.map(1)


def test_a_rule_that_charges_the_average_is_caught(monkeypatch):
    """A launch on n blocks that charges each of them an n-th of its loss."""
    admits = launches.WithinBlocks.admits

    def average(self, accumulator, charge):
        cheap = launches.OnBlocks(charge.places, charge.d_mid / len(charge.places))
        return admits(self, accumulator, cheap)

    monkeypatch.setattr(launches.WithinBlocks, "admits", average)
    made, law = played(verify.Tape(), 2.5, moves=[[0, 1, 2]])
    worst = law.worst_loss(rounds=3)
    assert worst.ratio == 27
    assert worst.loss > made.map(1)
