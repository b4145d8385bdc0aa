"""How OpenDP looks for a number that is missing."""

import opendp.prelude as dp
import pytest
from opendp.context import PartialChain
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery

PURE = dp.max_divergence()


@pytest.fixture
def query(space):
    def query(data=(1, 2), loss=(PURE, 0.5), **keywords):
        return dp.Context.compositor(
            list(data) if isinstance(data, tuple) else data,
            dp.unit_of(contributions=1),
            loss,
            split_evenly_over=1,
            **keywords,
        ).query()

    return query


def test_a_query_that_misses_a_number_has_a_chain_that_takes_it(query):
    made = query().count().laplace()
    assert isinstance(made._chain, PartialChain)
    assert made._chain(4.0).map(1) == 0.25
    assert made.resolve().param == 2.0


def test_a_query_that_misses_none_is_cast_when_it_is_resolved(query):
    made = query(loss=dp.loss_of(rho=0.5)).count().laplace(scale=1.0)
    assert made._chain.output_measure == PURE
    assert made.new_with(chain=made._chain).resolve().output_measure == made._output_measure


def test_a_number_is_forgotten_when_the_measure_is_cast(query):
    assert query(loss=dp.loss_of(rho=0.5)).count().laplace().param() is None


def test_a_threshold_is_not_found(query):
    made = query(loss=dp.loss_of(epsilon=1.0, delta=1e-6)).count_by().laplace_threshold(2.0)
    with pytest.raises(dp.OpenDPException, match="threshold"):
        made.resolve()


def test_queries_on_frames_have_these_parts(query):
    pl = pytest.importorskip("polars")
    made = query(pl.LazyFrame({"a": [1]}), margins=[dp.polars.Margin(by=(), max_length=9)])
    assert type(made) is LazyFrameQuery
    inner, plan = (object.__getattribute__(made, name) for name in ("_query", "polars_plan"))
    assert (inner._d_in, inner._d_out, inner._output_measure) == (1, 0.5, PURE)
    assert isinstance(plan, pl.LazyFrame)
    groups = made.group_by("a")
    assert type(groups) is LazyGroupByQuery
    assert groups._query is inner
    again = LazyGroupByQuery(groups._lgb_plan, inner).agg(dp.len(signed=True))
    assert type(again) is type(LazyFrameQuery(plan, inner).select("a")) is LazyFrameQuery


def test_a_threshold_of_the_largest_integer_adds_no_delta_to_speak_of(query):
    pl = pytest.importorskip("polars")
    loss = dp.loss_of(epsilon=1.0, delta=1e-7)
    made = query(pl.LazyFrame({"a": [1]}), loss, margins=[dp.polars.Margin(by=(), max_length=9)])
    plan = object.__getattribute__(made.group_by("a").agg(dp.len(signed=True)), "polars_plan")
    space = object.__getattribute__(made, "_query")._chain
    make = dp.m.make_private_lazyframe
    epsilon, delta = make(*space, loss[0], plan, 1.0, 2**32 - 1).map(1)
    assert (epsilon, delta) == (1.0, pytest.approx(0.0, abs=1e-15))
    with pytest.raises(dp.OpenDPException, match="key-set"):
        make(*space, loss[0], plan, 1.0)
