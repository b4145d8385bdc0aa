"""What ``dp.Context`` takes, and what registers a constructor with it."""

import opendp.context
import opendp.prelude as dp
import pytest
from opendp.context import Query

PURE = dp.max_divergence()


class Queryable(dp.OdometerQueryable):
    """An odometer queryable without a native one."""

    def __init__(self, loss=0.25):
        self.loss, self.queries = loss, []

    def __call__(self, query):
        self.queries.append(query)
        return "answered"

    def privacy_loss(self, d_in):
        return self.loss


class Accountant:
    """All that a context asks of its accountant."""

    def __init__(self, space, measure):
        self.input_domain, self.input_metric = self.input_space = space
        self.output_measure = measure


@pytest.fixture
def context(space):
    def context(measure=PURE, loss=0.25, d_out=1.0):
        return dp.Context(Accountant(space, measure), Queryable(loss), d_in=2, d_out=d_out)

    return context


@pytest.fixture
def registry(monkeypatch):
    registry = dict(opendp.context.constructors)
    monkeypatch.setattr(opendp.context, "constructors", registry)
    return registry


def test_a_query_has_these_parts(context, space):
    context = context()
    query = context.query(epsilon=0.5)
    assert type(query) is Query
    parts = query._chain, query._output_measure, query._d_in, query._d_out
    assert parts == (space, PURE, 2, 0.5)
    assert query._context is context
    copy = Query(*parts, query._context, lambda answer: [answer])
    assert copy.count().laplace().release() == ["answered"]


# --- registration -----------------------------------------------------------------------------


def test_a_registered_constructor_is_a_method_of_queries(registry, context, user):
    def make_mine(input_domain, input_metric, number):
        return user(lambda rows: number)

    dp.register(make_mine)
    assert "mine" in registry
    context = context()
    context.query().mine(7).release()
    assert context.queryable.queries[0]([1]) == 7


def test_a_name_is_registered_once(registry):
    def make_mine(input_domain, input_metric):
        raise AssertionError

    dp.register(make_mine)
    with pytest.raises(ValueError, match="already registered"):
        dp.register(make_mine)
    dp.register(make_mine, name="mine_too")
