"""A query says its noise and its accuracy before it is released, and nothing is charged."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.context.answers import summarize
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

dp.enable_features("contrib", "honest-but-curious")


def context(**loss):
    return oc.concurrent_context(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**(loss or {"epsilon": 1.0})),
        split_evenly_over=2,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )


def test_opendps_noise_is_known_through_a_chain():
    made = context()
    found = made.query().clamp((0, 5)).sum().laplace().summarize(alpha=0.05)
    assert (found.distribution, found.scale) == ("Laplace", pytest.approx(10.0))
    beyond = [2 * math.exp(-m / 10) / (1 + math.exp(-0.1)) for m in range(60)]
    assert found.accuracy == next(m for m in range(59) if beyond[m + 1] <= 0.05)
    assert made.remaining_privacy_loss() == [0.5, 0.5]  # nothing was charged
    assert made.query().count().laplace().summarize().accuracy is None


def test_ours_and_opendps_agree():
    for name in ("laplace", "gaussian"):
        made = context(rho=1.0)
        native = getattr(made.query().count(), name)()
        scale = native.param()
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        ours = getattr(oc.m, f"make_certified_{name}")(
            *space, scale, dp.zero_concentrated_divergence()
        )
        found = native.summarize(alpha=0.1)
        assert found.scale == pytest.approx(scale)
        assert found.accuracy <= ours.accuracy(0.1) <= found.accuracy + 1


def test_a_mechanism_of_ours_takes_the_number_of_answers():
    query = context().query().sparse_vector(dp.max_divergence(), 1, threshold=9, max_hits=2)
    found = query.summarize(0.05, answers=100)
    assert found.accuracy == query.resolve().accuracy(0.05, answers=100)
    assert found.scale == pytest.approx(query.param())
    with pytest.raises(InvalidTypeError, match="^answers must be given"):
        query.summarize(0.05)
    with pytest.raises((InvalidValueError, InvalidTypeError), match="^beta"):
        query.summarize(0.0, answers=100)


def test_the_summary_reads_as_a_table():
    said = repr(context().query().count().laplace().summarize(alpha=0.05)).splitlines()
    assert said[0].split() == ["distribution", "scale", "accuracy", "alpha"]
    assert said[1].split() == ["Laplace", "2", "6", "0.05"]
    assert "accuracy" not in repr(context().query().count().laplace().summarize())


def test_noise_that_is_not_known_is_refused():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    postprocessed = space >> dp.t.then_count() >> dp.m.then_laplace(2.0) >> (lambda count: -count)
    with pytest.raises(InvalidTypeError, match="^the accuracy of"):
        summarize(postprocessed, 0.05, None)
    coarse = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with pytest.raises(InvalidTypeError, match="^the accuracy of"):
        summarize(dp.m.make_laplace(*coarse, 2.0, k=3), 0.05, None)


def test_a_summary_says_what_is_left():
    def said(loss, **options):
        unit = dp.unit_of(contributions=1)
        return str(
            oc.concurrent_context([1], unit, dp.loss_of(epsilon=loss), **options).summarize()
        )

    assert said(1.0).startswith("spent 0, remaining 1;")
    assert said(math.inf).startswith("spent 0, no bound;")
    assert said(1.0, split_evenly_over=3).startswith("spent 0, shares left: 3;")
