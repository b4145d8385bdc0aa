"""Contexts on tables, on each engine: answers, children, parts, refusals and failures."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import TableError

from .pipelines import Data

ZONES = ["a", "b", "c"]
SCHEMA = {"person": int, "zone": str, "week": int}
ONE = oc.tables.unit_of(units=1)
col = oc.tables.col


@pytest.fixture(scope="module")
def visits(engine):
    """Of 20 persons, each 4 visits in one zone."""
    rows = [(person, ZONES[person % 2], week) for person in range(20) for week in range(4)]
    found = Data(SCHEMA, "person", [dict(zip(SCHEMA, row, strict=True)) for row in rows])
    table = engine.load(found, "visits of contexts")
    yield table
    del table


def context(table, epsilon=1e12):
    return oc.concurrent_context(table, ONE, dp.loss_of(epsilon=epsilon))


def test_children_on_a_stored_truncation(visits):
    on = context(visits)
    bounded = on.query(epsilon=1e11).truncate(3, ["week"], materialize=True).compositor().release()
    assert bounded.query(epsilon=1e9).count().laplace().release() == 60
    search = bounded.query(epsilon=1e10).sparse_vector(
        dp.max_divergence(), 1, threshold=35, max_hits=2, sensitivity=3
    )
    child = search.release()
    late = lambda week: bounded.query().where(col("week") >= week).count()  # noqa: E731
    assert [bool(child(late(week))) for week in (0, 2)] == [True, False]
    assert bounded.query(epsilon=1e9).count().laplace().release() == 60  # interleaved
    assert bool(child(late(1)))
    assert on.current_privacy_loss() == 1e11


def test_a_launch_that_fails_in_the_engine_stays_charged(visits, monkeypatch):
    on = context(visits)
    query = on.query(epsilon=1e9).truncate(3).count().laplace()

    def fail(*anything):
        raise RuntimeError("person 7 has no zone")

    with monkeypatch.context() as patched:
        patched.setattr(type(visits.engine()), "run", fail)
        with pytest.raises(TableError) as caught:
            query.release()
    assert "person 7" not in str(caught.value)
    charged = on.current_privacy_loss()
    assert charged == pytest.approx(1e9)
    assert query.release() == 60
    assert on.current_privacy_loss() == pytest.approx(2 * charged)
