"""What every engine does: integers only, one constant error, and known connections."""

from decimal import Decimal

import pytest

from opendp_concurrent.errors import TableError
from opendp_concurrent.tables import plan as nodes
from opendp_concurrent.tables.engine import integers
from opendp_concurrent.tables.scan import engine_of
from opendp_concurrent.tables.schema import schema_of

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
