"""A query says its noise and its accuracy before it is released; noisy integers are frames."""

import math
from datetime import date, datetime
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.context.answers import (
    ACCURACIES,
    LISTED,
    Labels,
    Noise,
    library_of,
    summarize,
)
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


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
        unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=loss)
        return str(oc.concurrent_context([1], unit, loss, **options).summarize())

    assert said(1.0).startswith("spent 0, remaining 1;")
    assert said(math.inf).startswith("spent 0, no bound;")
    assert said(1.0, split_evenly_over=3).startswith("spent 0, shares left: 3;")


# --- frames ---------------------------------------------------------------------------------------

NOISE = Noise("laplace", 3.0, 0.05)


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_row_for_each_key_in_the_units_of_the_column(name):
    pytest.importorskip(name)
    times = [datetime(2024, 1, 1, 9, 30), datetime(1970, 1, 1, 0, 0, 0, 1)]
    days = [date(2024, 1, 1), date(2024, 1, 2)]
    kinds = ("zone", str), ("day", date), ("ok", bool), ("at", datetime)
    rows = list(zip("ab", days, (True, False), times, strict=True))
    frame = Labels(kinds, rows).frame(library_of(frame=name), [3, -1], NOISE)
    assert type(frame).__module__.startswith(name)
    assert {one: frame[one].to_list() for one in frame.columns} == {
        **{"zone": ["a", "b"], "day": days, "ok": [True, False], "at": times},
        **{"value": [3, -1], "accuracy": [NOISE.accuracy()] * 2},
    }
    labels = Labels(value=float, unit=Fraction(1, 4))
    assert labels.numbers(10) == 2.5
    assert Labels(value=float, unit=Fraction("0.1")).numbers(3) == 0.3  # not 0.1 * 3
    frame = labels.frame(library_of(frame=name), 10, NOISE)
    assert frame["value"].to_list() == [2.5]
    assert frame["accuracy"].to_list() == [0.25 * NOISE.accuracy()]


def test_accuracies_are_tails_of_the_noise():
    """Discrete Laplace noise: P(|Z| >= a) = 2 p^a / (1 + p) with p = exp(-1/scale)."""
    for scale in (1.0, 7.5):
        p = math.exp(-1 / scale)
        found = ACCURACIES["laplace"](scale, 0.05)
        assert 2 * p ** math.ceil(found) / (1 + p) <= 0.05 * (1 + 1e-9)
        assert 2 * p ** (found - 1) / (1 + p) > 0.05
    # wide discrete Gaussian noise is a step beyond the continuous one
    wide, narrow = (ACCURACIES["gaussian"](scale, 0.05) for scale in (2 * LISTED, LISTED))
    assert wide == pytest.approx(1 + 2 * 1.96 * LISTED, rel=1e-4)
    assert narrow == pytest.approx(1.96 * LISTED, rel=1e-3)
