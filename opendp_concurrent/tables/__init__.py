"""Tables that stay in an engine: DuckDB, PostgreSQL or Spark.

The engine aggregates, OpenDP adds the noise, and this package charges. Transformations of tables
are in ``oc.t``.
"""

from .csv_file import Csv
from .describe import describe_schema
from .expression import Expression, Then, col, column, lit, when
from .joint import Answer
from .moments import Estimate
from .scan import scan
from .schema import ROW, Decimal
from .table import Table
from .unit import unit_of

Column = Predicate = Expression  # an expression may be a column, a condition, or both
__all__ = [
    "ROW",
    "Answer",
    "Column",
    "Csv",
    "Decimal",
    "Estimate",
    "Expression",
    "Predicate",
    "Table",
    "Then",
    "col",
    "column",
    "describe_schema",
    "lit",
    "scan",
    "unit_of",
    "when",
]
