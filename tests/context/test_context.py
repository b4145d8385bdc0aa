from fractions import Fraction
from math import inf, nextafter
from pathlib import Path
from types import SimpleNamespace

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.composition.casts import conversion
from opendp_concurrent.context.accountant import loss_under
from opendp_concurrent.errors import (
    BudgetExceededError,
    EndedError,
    InvalidTypeError,
    InvalidValueError,
    LimitMismatchError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE

from ..build import PURE, SPACE, ZCDP, costing

UNIT = dp.unit_of(contributions=1)
DATA = [1, 2, 3, 4, 5]


def context_of(loss=None, **options):
    """A context of pure DP, or of another loss."""
    return oc.concurrent_context(DATA, UNIT, loss or dp.loss_of(epsilon=1.0), **options)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 10, 11, 33, 49, 100])
@pytest.mark.parametrize("budget", [1.0, 0.1, 3.7])
def test_a_context_spends_all_of_an_even_split(k, budget):
    context = context_of((PURE, budget), split_evenly_over=k)
    assert context.accountant.map(1) <= budget
    for share in list(context.remaining_privacy_loss()):
        exact = costing(lambda d_in, share=share: share, space=context.accountant.input_space)
        assert context(exact) == 5
    with pytest.raises(ValueError, match="exhausted"):
        context.query()
    with pytest.raises(BudgetExceededError):
        context.queryable(exact)


def test_nested_contexts_are_concurrent_under_one_filter():
    context = context_of(dp.loss_of(epsilon=4.0))
    one, other = (
        context.query(epsilon=1.0).compositor(split_evenly_over=2).release() for _ in range(2)
    )
    for nested in (one, other, one, other):
        assert isinstance(nested.query().count().laplace().release(), int)
    assert context.current_privacy_loss() == 2.0
    filtered = context.query(epsilon=1.0).clamp((0, 10)).compositor().release()
    filtered.query(epsilon=0.25).sum().laplace().release()
    assert filtered.remaining_privacy_loss() == pytest.approx(0.75)
    assert "ConcurrentFilter" in repr(filtered.accountant)


def test_renyi_curves_are_split_on_a_grid():
    curve = dp.renyi_divergence(), lambda alpha: alpha
    context = context_of(curve, split_evenly_over=3, orders=[2, 4])
    assert context.accountant.map(1)(4) <= 4.0
    assert len(context.remaining_privacy_loss()) == 3


def test_an_accounting_rule_in_a_context():
    rule = oc.accumulators.best_rule((1.0, 1e-3), [(0.03, 0.0)])
    context = context_of(dp.loss_of(epsilon=1.0, delta=1e-3), accumulator=rule)
    for _ in range(40):
        assert isinstance(context.query(epsilon=0.03, delta=0.0).count().laplace().release(), int)
    epsilon, delta = context.current_privacy_loss()
    assert epsilon < 0.6  # the plain sum is 1.2
    assert delta == 1e-3
    assert context.remaining_privacy_loss()[0] > 0.3
    with pytest.raises(InvalidTypeError, match="^accumulator .* is for losses that are chosen"):
        context_of(dp.loss_of(epsilon=1.0, delta=1e-6), split_evenly_over=3, accumulator=rule)


def test_an_error_about_data_of_no_known_domain_has_no_row():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [41, 77123], "name": ["zoe", "bob"]})
    column, unknown = pandas.Series([41, "zoe 77123"]), SimpleNamespace(row=77123)
    for data in (frame, column, [77123, "zoe"], {"zoe": [77123]}, unknown):
        with pytest.raises(InvalidTypeError, match="^data .* must be") as caught:
            oc.concurrent_context(data, UNIT, dp.loss_of(epsilon=1.0))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "77123" not in str(caught.value)
        assert "zoe" not in str(caught.value)


def test_contexts_below_limits_share_the_cap():
    context = context_of()
    half = dp.loss_of(epsilon=0.5)
    analysts = [context.limited(name, half) for name in ("alice", "bob", "carol")]
    for analyst in analysts[:2]:
        analyst.query(epsilon=0.5).count().laplace().release()
        with pytest.raises(BudgetExceededError, match="^limit '"):
            analyst.query(epsilon=0.125).count().laplace().release()
    with pytest.raises(BudgetExceededError, match="^the filter refuses"):
        analysts[2].query(epsilon=0.5).count().laplace().release()
    assert analysts[2].remaining_privacy_loss() == 0.5
    assert context.remaining_privacy_loss() == 0.0
    assert context.limited("alice", half).remaining_privacy_loss() == 0.0
    with pytest.raises(LimitMismatchError, match="^d_out of the limit 'alice'"):
        context.limited("alice", dp.loss_of(epsilon=0.75))


def test_a_limit_of_a_nested_context_is_in_its_measure_and_units():
    context = context_of(dp.loss_of(epsilon=1.0, delta=1e-6))
    team = context.limited("team", dp.loss_of(epsilon=0.5, delta=1e-6))
    ann = team.limited("ann", dp.loss_of(epsilon=0.25, delta=1e-6))
    ann.query(epsilon=0.25, delta=0.0).count().laplace().release()
    assert team.remaining_privacy_loss() == (0.25, 1e-6)
    inner = context.query(epsilon=0.25, delta=1e-7).compositor(
        output_measure=dp.zero_concentrated_divergence()
    )
    assert inner.release().limited("bob", dp.loss_of(rho=1e-6)).remaining_privacy_loss() == 1e-6
    with pytest.raises(SpaceMismatchError, match="^output_measure does not match"):
        context.limited("bob", dp.loss_of(rho=0.5))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_share_that_a_failed_launch_has_used_is_not_the_next_querys(error):
    """The next query was built for the used share, and used up the larger one after it."""
    loss = dp.loss_of(epsilon=4.0)
    context = context_of(loss, split_by_weights=[1, 3], domain=SPACE[0])

    def fail(rows):
        raise error

    with pytest.raises((dp.OpenDPException, KeyboardInterrupt)):
        context(costing(1.0, fail))
    assert list(context.remaining_privacy_loss()) == [3.0]
    query = context.query().count().laplace().resolve()
    assert 2.99 < query.map(1) <= 3.0
    context(query)
    assert list(context.remaining_privacy_loss()) == []


# --- as OpenDP's contexts are --------------------------------------------------------------------


@pytest.mark.parametrize("make", [dp.Context.compositor, oc.concurrent_context])
def test_a_nested_context_has_the_domain_of_the_whole_data(make):
    context = make([1, 2, 3], UNIT, dp.loss_of(epsilon=1.0), split_evenly_over=1)
    child = context.query().clamp((0, 5)).compositor(split_evenly_over=2).release()
    assert child.accountant.input_domain == context.accountant.input_domain
    assert child.query_space[0] == dp.vector_domain(dp.atom_domain(bounds=(0, 5)))
    assert child.d_out == 1.0
    assert child.remaining_privacy_loss() == [0.5, 0.5]
    child.query().sum().laplace().release()
    assert child.remaining_privacy_loss() == [0.5]


def test_a_mistake_in_a_query_is_told_with_what_to_do():
    query = context_of().query(epsilon=0.1)
    for call, advice in (
        (lambda: query.cout(), r"did you mean \.count\("),
        (lambda: query.count().release(), "add noise first"),
        (lambda: query.count().gaussian().release(), r"use \.laplace"),
        (lambda: context_of(split_evenly_over=2).query(epsilon=0.1), r"call context\.query\(\)$"),
    ):
        with pytest.raises((AttributeError, ValueError), match=advice):
            call()


@pytest.mark.parametrize("data", ["a/Flights.CSV.gz", "flights.parquet", Path("f")])
def test_the_name_of_a_file_is_no_data(data):
    """It was taken for a text, the data of one person; a query of it failed with another error."""
    with pytest.raises(InvalidTypeError, match=r"^data .*=oc.tables.scan\("):
        oc.concurrent_context(data, UNIT, dp.loss_of(epsilon=1.0))


def test_nothing_remains_after_ten_tenths():
    """It was 8.3e-17: a loss is rounded down. What is left is never more than may be launched."""
    context = context_of()
    for spent in range(10):
        assert context.remaining_privacy_loss() <= Fraction(10 - spent, 10) + Fraction(1, 2**50)
        context.query(epsilon=0.1).count().laplace().release()
    assert context.remaining_privacy_loss() == 0.0
    pairs = context_of(dp.loss_of(epsilon=1.0, delta=1e-6))
    for _ in range(10):
        pairs.query(epsilon=0.1, delta=1e-7).count().laplace().release()
    assert pairs.remaining_privacy_loss() == (0.0, 1e-6)
    assert Within(1.0).remaining(basic().start(MAX_DIVERGENCE).after(1 - 2.0**-52)) == 2.0**-52
    assert Within(1e-30).remaining(basic().start(MAX_DIVERGENCE)) == 1e-30


@pytest.mark.parametrize("below", ["itself", "compositor", "limit", "parts", "child"])
def test_what_is_closed_refuses_for_good_and_keeps_what_was_spent(below):
    with context_of() as root:
        child, part = root.query(epsilon=0.5), oc.c.by_values({"a": [1]})
        used = {
            "itself": lambda: root,
            "compositor": lambda: child.compositor(split_evenly_over=2).release(),
            "limit": lambda: root.limited("alice", dp.loss_of(epsilon=0.5)),
            "parts": lambda: child.parallel_composition(part, keys=["a"]).release()["a"],
            "child": lambda: child.compositor(split_evenly_over=2).release(),
        }[below]()
        if below != "child":
            used.close()
            used.close()
            with pytest.raises(EndedError, match="close"):
                used.query(**{} if used.d_mids else {"epsilon": 0.1}).count().laplace().release()
    with pytest.raises(EndedError):  # below what is closed, too
        used.query(**{} if used.d_mids else {"epsilon": 0.1}).count().laplace().release()
    spent = {"itself": 0.0, "limit": 0.0}.get(below, 0.5)
    assert root.remaining_privacy_loss() == 1.0 - spent


def test_a_refusal_is_short_in_a_notebook():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.user_ns["context"] = context_of()
    told = shell.run_cell("x = 1\ncontext.query(epsilon=2.0).count().laplace().release()")
    lines = told.error_in_exec._render_traceback_()
    assert lines[0] == "line 2: context.query(epsilon=2.0).count().laplace().release()"
    assert lines[1].startswith("BudgetExceededError: the filter refuses: spent 0 of 1, asked 2")
    assert len(lines) == 2


@given(st.floats(1e-6, 1e3))
def test_it_is_the_largest_double_that_converts_to_at_most_the_loss(rho):
    found, convert = loss_under(PURE, ZCDP, rho), conversion(PURE, ZCDP)
    assert convert(found) <= rho < convert(nextafter(found, inf))


def test_the_delta_of_the_conversion_is_used():
    approximate = dp.approximate(PURE)
    deltas = 1e-6, 1e-7, 1e-9
    found = {delta: loss_under(ZCDP, approximate, (1.0, 1e-6), delta) for delta in deltas}
    assert found[1e-6] > found[1e-7] > found[1e-9] > 0
    for delta, rho in found.items():
        assert conversion(ZCDP, approximate, delta=delta)(rho)[0] <= 1.0


def test_a_loss_that_no_positive_loss_converts_to_is_refused():
    with pytest.raises(InvalidValueError, match=r"^d_out \(0\.0\) under .*pass a larger loss"):
        loss_under(PURE, ZCDP, 0.0)
    with pytest.raises(UnsupportedMeasureError):
        loss_under(oc.gaussian_tradeoff(), PURE, 1.0)
