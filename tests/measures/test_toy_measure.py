"""A measure from outside the package: one class, which then works everywhere.

The expected loss is D(P||Q) = E_P[ln(P/Q)], at most κ for all ordered pairs of neighbours, in nats.
It adds up, also for concurrent children with losses that are chosen on the way. Proof: by the chain
rule, D of the view is the expectation over P of the sum over messages of D of each given the past.
What the analyst sends adds nothing. Given the past, a message of a child depends on what that child
was sent and has said. So, given the history at which a child is launched with κ_i, its messages add
D of its own transcript against an adversary who plays the analyst and the other children as under
P, which is at most κ_i. The expectation of the sum of the κ_i is at most what bounds the sum on
every history, which is the bound of a filter.

An ε-DP mechanism has D at most ε tanh(ε/2), that of randomized response [Ste24]; a ρ-zCDP one at
most ρ, as the order falls to 1.
"""

from typing import ClassVar

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.measures import Composability, composition_measure
from opendp_concurrent.measures.conversion import pure_to_zcdp
from opendp_concurrent.plot import plot_ledger, plot_session

from ..build import laplace

NAME = "toy.ExpectedLoss"


# --- the one class ---------------------------------------------------------------------------


def expected_loss():
    """OpenDP's measure object."""
    return dp.user_divergence(NAME, NAME)


@oc.extend.register()
class ExpectedLoss(oc.extend.NumberMeasure):
    """The Kullback-Leibler divergence, in nats."""

    kind = NAME
    composability = Composability.CONCURRENT
    reason = "the chain rule of the Kullback-Leibler divergence"
    distance_form = "kappa"
    why_not = "an expectation bounds no tail"
    keywords: ClassVar = {"kappa": oc.extend.checks.non_negative}
    conversions_from: ClassVar = {
        "MaxDivergence": oc.extend.Conversion(lambda epsilon, ends: pure_to_zcdp(epsilon)),
        "ZeroConcentratedDivergence": oc.extend.Conversion(lambda rho, ends: rho),
    }

    def opendp(self):
        return expected_loss()

    @classmethod
    def loss_of(cls, **given):
        return expected_loss(), given["kappa"]

    @classmethod
    def symbol(cls, loss, order):
        return "κ in nats"


# --- it works everywhere ---------------------------------------------------------------------

COST = pure_to_zcdp(0.5)


@pytest.fixture
def child():
    return oc.c.cast(laplace(0.5), expected_loss())


def test_it_is_known_and_mechanisms_are_certified_under_it(child):
    assert isinstance(composition_measure(expected_loss()), ExpectedLoss)
    assert child.map(1) == COST < 0.5 * 0.5 / 2
    integers = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    assert oc.m.make_certified_laplace(*integers, 2.0, expected_loss()).map(1) == COST
    gaussian = oc.m.make_certified_gaussian(*integers, 2.0, expected_loss())
    assert gaussian.map(1) == 0.125
    gdp = oc.m.make_certified_gaussian(*integers, 2.0, oc.gaussian_tradeoff())
    assert oc.c.cast(gdp, expected_loss()).map(1) > 0.125  # by way of zCDP
    assert oc.loss_of(kappa=0.25) == (expected_loss(), 0.25)


def test_what_does_not_follow_is_refused(child):
    with pytest.raises(oc.errors.UnsupportedMeasureError, match="an expectation bounds no tail"):
        oc.c.cast(child, dp.zero_concentrated_divergence())
    with pytest.raises(oc.errors.UnsupportedMeasureError, match="supports Approximate"):
        oc.make_concurrent_odometer(
            *child.input_space, expected_loss(), accumulator=oc.accumulators.zcdp(1e-6)
        )


def test_it_is_composed_up_front_and_on_the_way(space, child):
    compositor = oc.make_concurrent_composition(*space, expected_loss(), 1, [COST, 2 * COST])
    assert compositor.map(1) == pytest.approx(3 * COST, rel=1e-12)
    root = compositor([1, 2, 3])
    root(child)
    assert root.remaining() == (2 * COST,)
    odometer = oc.make_concurrent_odometer(*space, expected_loss())
    spending = odometer([1, 2, 3])
    first, second = (spending(oc.c.make_interactive(child)) for _ in range(2))
    assert all(isinstance(one(None), int) for one in (first, second))
    assert spending.privacy_loss(1) == 2 * COST
    assert spending.privacy_loss(2) == 2 * pure_to_zcdp(1.0)
    bounded = oc.make_concurrent_filter(odometer, 1, 2.5 * COST)([1, 2, 3])
    bounded(child)
    bounded(child)
    with pytest.raises(BudgetExceededError):
        bounded(child)
    assert bounded.privacy_loss() == 2 * COST


def test_parallel_parts_are_joined(space, child):
    dear = oc.c.cast(laplace(1.0), expected_loss())
    parallel = oc.c.make_parallel_composition(
        *space, oc.c.by_key(lambda row: row % 2), {0: child, 1: dear}
    )
    assert parallel.map(1) == pure_to_zcdp(1.0)
    at_two = (pure_to_zcdp(1.0), 2 * pure_to_zcdp(1.0), pure_to_zcdp(2.0))
    assert parallel.map(2) == max(at_two)


def test_a_ledger_goes_on_with_it(space, child, tmp_path):
    odometer, path = oc.make_concurrent_odometer(*space, expected_loss()), tmp_path / "budget.db"

    def spend(ledger):
        bounded = oc.make_concurrent_filter(odometer, 1, 2.5 * COST, ledger=ledger)([1, 2, 3])
        bounded(child)
        return bounded

    with create_ledger(path, dataset="toy") as ledger:
        assert spend(ledger).privacy_loss() == COST
    with open_ledger(path, dataset="toy") as ledger:
        bounded = spend(ledger)
        assert bounded.privacy_loss() == 2 * COST
        with pytest.raises(BudgetExceededError):
            bounded(child)
        assert plot_ledger(ledger).get_ylabel() == f"privacy loss (κ in nats, {NAME})"
    axes = plot_session([COST, 2 * COST], d_out=0.5, output_measure=expected_loss())
    assert axes.get_lines()[0].get_ydata().tolist() == [COST, 2 * COST]
    assert axes.get_ylabel() == "κ in nats"


@pytest.mark.parametrize("limit", [2.0, 2.5, 3.0])
def test_no_analyst_exceeds_the_filter(limit):
    measure = composition_measure(expected_loss())
    menu = [
        verify.Item(f"{epsilon}", pure_to_zcdp(epsilon), verify.randomized_response(epsilon))
        for epsilon in (0.5, 1.0)
    ]
    start = oc.accumulators.basic().start(measure)
    worst = verify.worst_renyi(menu, start, Within(limit * COST), order=1.0)
    assert worst <= limit * COST * (1 + 1e-12)
    looser = verify.worst_renyi(menu, start, Within(2 * limit * COST), order=1.0)
    assert looser > limit * COST  # the check can fail


# --- registering -----------------------------------------------------------------------------


def test_a_kind_or_a_measure_that_is_known_is_refused():
    with pytest.raises(InvalidTypeError, match="a class can be registered"):
        oc.extend.register()(ExpectedLoss())
    with pytest.raises(InvalidTypeError, match=r"must define .*distance_form.*opendp"):
        oc.extend.register()(
            type("Nothing", (oc.extend.NumberMeasure,), {"kind": "toy.Nothing", "reason": "none"})
        )
    with pytest.raises(InvalidValueError, match="is already the kind of opendp_concurrent"):
        oc.extend.register()(type("Pure", (ExpectedLoss,), {"kind": "MaxDivergence"}))
    with pytest.raises(InvalidValueError, match="is already the tag of"):
        oc.extend.register()(type("Other", (ExpectedLoss,), {"kind": "toy.Other", "tag": "pure"}))


def test_without_registering_it_is_unknown():
    with pytest.raises(oc.errors.UnsupportedMeasureError, match=r"oc\.extend\.register"):
        composition_measure(dp.user_divergence("toy.Unknown", "toy.Unknown"))


def test_children_are_sequential_unless_the_author_has_a_theorem():
    """What a measure leaves out has the safe value."""
    assert oc.extend.NumberMeasure.composability is Composability.SEQUENTIAL
