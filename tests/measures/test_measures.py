import math

import opendp.prelude as dp
import pytest

from opendp_concurrent.measures import Composability, by_tag, composition_measure
from opendp_concurrent.measures import opendp as kinds
from opendp_concurrent.measures.divergences import (
    ApproximateMaxDivergence,
    ApproximateZeroConcentratedDivergence,
    MaxDivergence,
    SmoothedMaxDivergence,
    ZeroConcentratedDivergence,
)
from opendp_concurrent.measures.measure import singleton
from opendp_concurrent.measures.renyi import (
    RENYI_DIVERGENCE,
    FixedRenyiDivergence,
    RenyiCurve,
    RenyiDivergence,
)
from opendp_concurrent.measures.shapes import NumberMeasure, PairMeasure
from opendp_concurrent.measures.tradeoffs import GaussianTradeoff, TradeoffDivergence
from opendp_concurrent.measures.truncated import TruncatedConcentratedDivergence

KNOWN = [
    composition_measure(one)
    for one in (
        dp.max_divergence(),
        dp.approximate(dp.max_divergence()),
        dp.zero_concentrated_divergence(),
        dp.approximate(dp.zero_concentrated_divergence()),
        dp.renyi_divergence(),
    )
]
PAIRS = [known for known in KNOWN if known.zero == (0.0, 0.0)]
every = pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)


@pytest.mark.parametrize(
    ("cls", "parameters", "kind", "shape"),
    [
        (MaxDivergence, (), kinds.PURE, NumberMeasure),
        (ApproximateMaxDivergence, (), kinds.APPROXIMATE, PairMeasure),
        (ZeroConcentratedDivergence, (), kinds.ZCDP, NumberMeasure),
        (ApproximateZeroConcentratedDivergence, (), kinds.APPROXIMATE_ZCDP, PairMeasure),
        (RenyiDivergence, (), kinds.RENYI, None),
        (FixedRenyiDivergence, (2.0,), kinds.FIXED, NumberMeasure),
        (TruncatedConcentratedDivergence, (3.0,), kinds.TRUNCATED, None),
        (GaussianTradeoff, (), kinds.GAUSSIAN, NumberMeasure),
        (TradeoffDivergence, (), kinds.TRADEOFF, None),
        (SmoothedMaxDivergence, (), kinds.PROFILE, None),
    ],
)
def test_a_class_knows_its_measures_by_object_and_by_name(cls, parameters, kind, shape):
    one = singleton(cls, *parameters)
    assert cls.find(one.opendp()) is one
    assert cls.from_tag(one.name) is one
    assert cls.from_tag(f"{one.name}?") is None
    assert one.kind == kind
    assert one.name.startswith(kind)
    for other in (NumberMeasure, PairMeasure):
        assert isinstance(one, other) == (other is shape)
    if kind != kinds.PROFILE:
        assert by_tag(one.name) is one


@every
def test_a_measure_says_what_lets_its_children_be_concurrent(known):
    uniform = "ZeroConcentratedDivergence" in known.name and "Approximate" in known.name
    assert known.composability is (Composability.UNIFORM if uniform else Composability.CONCURRENT)
    assert "arxiv.org" in known.reason


@pytest.mark.parametrize("known", PAIRS, ids=lambda known: known.name)
def test_pairs_have_the_product_order(known):
    assert known.at_most((1.0, 0.1), (1.0, 0.2))
    assert not known.at_most((1.0, 0.2), (2.0, 0.1))
    assert not known.at_most((2.0, 0.1), (1.0, 0.2))


def test_a_curve_is_equal_to_itself_only_and_remembers_its_values():
    calls = []

    def line(alpha):
        calls.append(alpha)
        return alpha / 2

    curve = RENYI_DIVERGENCE.validate("d_mid", line)
    assert isinstance(curve, RenyiCurve)
    assert RENYI_DIVERGENCE.validate("d_mid", curve) is not curve  # which somebody else may hold
    assert curve != RENYI_DIVERGENCE.validate("d_mid", line)
    assert [curve(2.0), curve(2.0), curve(4.0)] == [1.0, 1.0, 2.0]
    assert calls == [2.0, 4.0]


def test_a_distance_stays_the_same_when_validated():
    pure = composition_measure(dp.max_divergence())
    assert pure.validate("d_mid", 1) == 1.0
    assert math.copysign(1.0, pure.validate("d_mid", -0.0)) == 1.0
