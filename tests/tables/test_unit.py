"""Privacy units of tables: what counts units by the table's own column, and what does not."""

import duckdb
import opendp.prelude as dp
import pytest
from opendp.metrics import change_one_id_distance

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import units
from opendp_concurrent.tables.unit import unit_on

pl = pytest.importorskip("polars")
dp.enable_features("contrib", "honest-but-curious")


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect().execute("CREATE TABLE t (person INT, other INT)")
    return oc.tables.scan(connection, "t", {"person": int, "other": int}, "person")


def test_units_are_counted():
    assert oc.tables.unit_of() == (units(), 1)
    assert oc.tables.unit_of(units=3) == (units(), 3)


@pytest.mark.parametrize("identifier", ["person", pl.col("person")])
def test_an_identifier_of_opendp_is_the_unit(table, identifier):
    assert unit_on(table, *dp.unit_of(contributions=3, identifier=identifier)) == (units(), 3)


def test_a_changed_unit_is_one_removed_and_one_added(table):
    assert unit_on(table, change_one_id_distance("person"), 2) == (units(), 4)


@pytest.mark.parametrize(
    "unit",
    [
        dp.unit_of(contributions=3),
        dp.unit_of(changes=1),
        dp.unit_of(contributions=1, identifier="other"),
        dp.unit_of(contributions=1, identifier="nothing"),
        dp.unit_of(contributions=1, identifier=pl.col("person") % 7),
        dp.unit_of(changes=1, identifier="other"),
        dp.unit_of(contributions=[dp.polars.Bound(per_group=3)], identifier="person"),
    ],
    ids=str,
)
def test_what_counts_something_else_is_refused(table, unit):
    with pytest.raises(InvalidTypeError, match="^privacy_unit .* own column 'person'"):
        unit_on(table, *unit)


@pytest.mark.parametrize("distance", [1.5, -1, True, None, "1"])
def test_the_number_of_units_is_whole(table, distance):
    for metric in (units(), dp.unit_of(contributions=1, identifier="person")[0]):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="^privacy_unit"):
            unit_on(table, metric, distance)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^units"):
        oc.tables.unit_of(units=distance)
