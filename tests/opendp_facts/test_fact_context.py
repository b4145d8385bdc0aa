"""What the queries of ``dp.Context`` are made of, and what registers a constructor with it."""

import opendp.context
import opendp.prelude as dp
import pytest
from opendp.context import Query

PURE = dp.max_divergence()


@pytest.fixture
def context():
    return dp.Context.compositor(
        [1, 2], dp.unit_of(contributions=2), (PURE, 1.0), split_evenly_over=2
    )


@pytest.fixture
def registry(monkeypatch):
    registry = dict(opendp.context.constructors)
    monkeypatch.setattr(opendp.context, "constructors", registry)
    return registry


def test_a_query_has_these_parts(context, space):
    query = context.query()
    assert type(query) is Query
    parts = query._chain, query._output_measure, query._d_in, query._d_out
    assert parts == (context.accountant.input_space, PURE, 2, 0.5)
    assert query._context is context
    (answer,) = Query(*parts, context, lambda answer: [answer]).count().laplace().release()
    assert isinstance(answer, int)


def test_a_registered_constructor_is_a_method_of_queries_once(registry, context, user):
    def make_mine(input_domain, input_metric, number):
        return user(lambda rows: number, 0.5)

    dp.register(make_mine)
    assert "mine" in registry
    assert context.query().mine(7).release() == 7
    with pytest.raises(ValueError, match="already registered"):
        dp.register(make_mine)
    dp.register(make_mine, name="mine_too")
