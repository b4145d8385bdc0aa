"""The individual filter on a table in an engine: the engine keeps the budgets.

The proof is that of ``individual_filter.py``, with units for people. What a unit adds to a sum, and
what it is charged, are functions of its own rows; what it has spent is a function of its own rows
and of the queries so far. Launches are transactions that exclude each other, so those of several
handles and processes on the same budgets are one sequence, on which the sum of each unit's charges
is at most the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from opendp.mod import Domain, Measure, Metric

from ..combinators.constructor import constructor
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError
from ..errors.data import TableError
from ..native import opendp as _native
from ..queryables.data import Sealed, in_python
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..tables.budgets import Budgets
from ..tables.domain import tables_of, units_in
from ..tables.own_tables import budgets_name
from ..tables.plan import Where
from ..tables.steps import table_given
from ..tables.table import Table
from ..types import Distance, Query
from .integer_noise import IntegerNoise
from .noise_loss import NoiseLoss, noise_loss
from .noisy_table_sum import NoisyTableSum, SumInSteps, steps_of
from .price import individual_budget
from .unit_price import BUDGET, UnitPrice, terms_of


class _TableFilter:
    """State machine of the filter: the table, and the budgets beside it."""

    __slots__ = ("_budgets", "_d_out", "_failed", "_loss", "_table", "_terms")

    def __init__(self, table: Table, name: tuple[str, ...], loss: NoiseLoss, d_out: float) -> None:
        self._table, self._budgets = table, Budgets(table, name)
        self._loss, self._d_out, self._failed = loss, d_out, False
        self._terms = terms_of(loss, d_out)
        self._budgets.check(self._terms)

    def check(self, query: Query) -> tuple[SumInSteps, UnitPrice]:
        """Return the steps of the query and its price, or raise."""
        if not isinstance(query, NoisyTableSum):
            raise InvalidTypeError(
                f"the query must be a NoisyTableSum, found {type(query).__name__}"
            )
        query = NoisyTableSum(query.column, query.bound, query.scale, query.quantum, query.where)
        steps = steps_of(query, self._table.tables.schema)
        return steps, UnitPrice.of(steps.reach, steps.scale, self._loss, self._d_out)

    def __call__(self, query: Query) -> float:
        steps, price = self.check(query)
        noise = IntegerNoise(self._loss, steps.scale)
        if self._failed:
            raise TableError
        relation = self._table.relation
        if steps.where is not None:
            relation = Where(relation, steps.where)
        self._failed = True  # if the engine fails, nothing is charged, but that may tell of rows
        total = self._budgets.charge(relation, steps.value, price, BUDGET, self._terms)
        self._failed = False
        return float(noise.add(total)) * steps.step


@constructor(budgets=budgets_name)
def make_individual_table_filter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_out: float,
    budgets: str | Sequence[str],
) -> ConcurrentMeasurement:
    """Release noisy sums over a table, where each unit has a budget of its own.

    The returned measurement spawns a queryable that takes any number of queries, each a
    :class:`.NoisyTableSum`. It is :func:`.make_individual_filter` for units of a table in DuckDB or
    PostgreSQL: a query charges each unit the loss of its own number, and leaves out, without a
    charge, each unit whose remaining budget is too small. Who is left out is secret.

    What each unit has spent is in the table ``budgets``, which the owner makes by
    :func:`.create_budgets`. A query is one transaction. It writes what all units have spent, and
    the noise is drawn once this is durable. If the process is killed in between, the units stay
    charged. If the engine fails, nothing is charged, and the handle answers no further query.

    Guarantee: a unit loses at most ``d_out`` by all queries of all handles, in any process, that
    were ever invoked on these budgets. A group of k units loses at most k ``d_out`` for pure DP,
    and at most k² ``d_out`` for zCDP and Rényi DP [FZ21]. It assumes that whether the engine fails,
    and how long it takes, does not depend on the rows. The table may change between queries: units
    that are new have their whole budget.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables; no truncation is needed
    :param input_metric: units added or removed
    :param output_measure: pure DP, zero-concentrated DP, or Rényi DP of a fixed order
    :param d_out: budget of each unit
    :param budgets: name of a table of budgets, or its schema and its name, in the database of the
        table
    :return: a measurement that spawns a queryable. Invoking it raises if the budgets are not there,
        or stand for another measure or ``d_out``, or if the engine cannot keep budgets: Spark
        cannot
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; use :func:`.cast` on what is returned

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute(
    ...     "CREATE TABLE calls AS "
    ...     "SELECT range % 1000 AS person, 1 + range % 3 AS minutes FROM range(3000)"
    ... )
    >>> calls = oc.tables.scan(connection, "calls", {"person": int, "minutes": int}, "person")
    >>> oc.tables.create_budgets(calls, "spent")
    >>> measurement = oc.m.make_individual_table_filter(
    ...     *calls.space, dp.zero_concentrated_divergence(), d_out=0.5, budgets="spent"
    ... )
    >>> measurement.map(1), measurement.map(2)
    (0.5, 2.0)
    >>> queryable = measurement(calls)
    >>> round(queryable(oc.m.NoisyTableSum("minutes", bound=60, scale=60.0)), -3)
    6000.0
    """
    tables = tables_of(input_domain, input_metric)
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)

    def spawn(token: Sealed) -> MachineQueryable:
        table = table_given(tables, in_python(token))
        machine = _TableFilter(table, tuple(budgets), loss, budget)  # a name in its parts
        return MachineQueryable(machine, "IndividualTableFilter")

    def privacy_map(d_in: Distance) -> float:
        return loss.of_group(units_in(d_in=d_in), budget)

    return make_measurement(
        (input_domain, input_metric),
        output_measure,
        spawn,
        privacy_map,
        f"IndividualTableFilter({output_measure}, d_out={budget})",
    )


then_individual_table_filter = _native.to_then(make_individual_table_filter)
