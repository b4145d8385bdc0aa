"""Tables that stay in an engine: DuckDB, PostgreSQL or Spark.

The engine aggregates, OpenDP adds the noise, and this package charges. Transformations of tables
are in ``oc.t``.
"""

from ..public import names_of
from .budgets import create_budgets
from .joint import Answer
from .moments import Estimate
from .predicate import Column, Predicate, column
from .scan import scan
from .seals import create_seals, seal, sealed
from .table import Table
from .unit import unit_of

__all__ = [
    "Answer",
    "Column",
    "Estimate",
    "Predicate",
    "Table",
    "column",
    "create_budgets",
    "create_seals",
    "scan",
    "seal",
    "sealed",
    "unit_of",
]
__getattr__, __dir__ = names_of(__name__, __all__)
