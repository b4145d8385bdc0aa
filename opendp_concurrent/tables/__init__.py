"""Tables that stay in an engine: DuckDB, PostgreSQL or Spark.

The engine aggregates, OpenDP adds the noise, and this package charges. Transformations of tables
are in ``oc.t``.

* ``scan.py`` reads a table or a file once, before its owner; ``schema.py``, ``table.py`` and
  ``domain.py`` say what it is.
* ``expressions.py`` and ``typed.py`` have columns and conditions, ``steps.py`` selections, joins
  and tables of persons, ``aggregates.py``, ``moments.py``, ``numbers.py`` and ``keys.py`` the
  statistics; each has the proof of its stability. ``plan.py`` is what they build.
* ``engine.py`` runs a plan, in ``duckdb.py``, ``postgres.py`` or ``spark.py``; ``render.py``,
  ``clauses.py`` and ``dialects.py`` write its statement. They need sqlglot, so ``engine.py``
  imports them when the first table is scanned.
"""

from .aggregates import (
    ROWS,
    Joint,
    make_distinct_units,
    make_distinct_values,
    make_quantile_scores,
    make_rows_per_unit,
    make_table_answers,
    make_table_count,
    make_table_histogram,
    make_table_prefixes,
    make_table_sum,
    then_distinct_units,
    then_distinct_values,
    then_quantile_scores,
    then_rows_per_unit,
    then_table_answers,
    then_table_count,
    then_table_histogram,
    then_table_prefixes,
    then_table_sum,
    unit_of_sum,
)
from .csv_file import Csv
from .domain import Tables, domain_of_record, table_domain, tables_of, units
from .expressions import (
    Answer,
    Expression,
    Then,
    col,
    count,
    count_distinct,
    lit,
    max,  # noqa: A004
    min,  # noqa: A004
    sum,  # noqa: A004
    when,
)
from .keys import make_table_keys, then_table_keys
from .moments import Estimate, bounds_of, powers_of_two, spaced, strategy_for
from .scan import describe_schema, scan
from .schema import (
    KEYS,
    KINDS,
    LARGEST,
    ROW,
    Decimal,
    Keys,
    Schema,
    Type,
    groups_of,
    in_unit,
    name_of,
    names_of,
    value_of,
)
from .steps import (
    make_group_truncate,
    make_per_unit,
    make_private_join,
    make_public_join,
    make_table_select,
    make_truncate,
    make_where,
    make_with_columns,
    then_group_truncate,
    then_per_unit,
    then_private_join,
    then_public_join,
    then_table_select,
    then_truncate,
    then_where,
    then_with_columns,
)
from .table import TABLES, Table, unit_of

__all__ = [
    "ROW",
    "Answer",
    "Csv",
    "Decimal",
    "Estimate",
    "Expression",
    "Table",
    "Then",
    "col",
    "count",
    "count_distinct",
    "describe_schema",
    "lit",
    "max",
    "min",
    "scan",
    "sum",
    "unit_of",
    "when",
]
