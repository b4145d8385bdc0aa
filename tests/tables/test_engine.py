"""What every engine does: integers only, one constant error, and known connections."""

from contextlib import contextmanager
from decimal import Decimal
from threading import Barrier

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import TableError
from opendp_concurrent.tables import plan as nodes
from opendp_concurrent.tables.duckdb import DuckDB
from opendp_concurrent.tables.engine import integers
from opendp_concurrent.tables.postgres import Connections
from opendp_concurrent.tables.scan import engine_of
from opendp_concurrent.tables.schema import schema_of

from ..build import in_threads
from .pipelines import Data

SCAN = nodes.Scan(("table", "main", "t"), schema_of({"person": int}, "person"))


@pytest.mark.parametrize("value", [None, 1.0, True, "1", Decimal("1.5"), Decimal("NaN")])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises((TypeError, ArithmeticError)):
        integers([(value,)], nodes.Sums(()))


@pytest.mark.parametrize("answer", [[(None,)], [(1.5,)], ValueError("row: secret")])
def test_any_failure_is_one_constant_error(engine, monkeypatch, answer):
    ours = engine_of(engine.connection)

    def run(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ours, "run", run)
    with pytest.raises(TableError) as caught:
        ours.ask(SCAN, nodes.Sums((nodes.ROW,)))
    assert caught.value.args == TableError().args
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "kind", "way"), [("duckdb", DuckDB, "_opened"), ("postgres", Connections, "one")]
)
def test_threads_run_their_statements_side_by_side(request, monkeypatch, name, kind, way):
    """Each statement waits for the other: a connection that they shared would not get there."""
    engine = request.getfixturevalue(f"on_{name}")
    table = engine.load(Data.of({"person": int}, "person", [(1,), (2,), (2,)]))
    count = table.space >> oc.t.then_distinct_units()
    opened, meet, answers = vars(kind)[way], Barrier(2, timeout=20), []

    @contextmanager
    def waiting(self):
        with opened(self) as found:
            meet.wait()
            yield found

    monkeypatch.setattr(kind, way, waiting)
    in_threads(lambda _: answers.append(count(table)), range(2))
    assert answers == [2, 2]
