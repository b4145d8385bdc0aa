"""The syntax that a statement may be made of. What is not listed is never sent to an engine.

No function is called by name, but those with which Spark reads a list, and DuckDB reads a timestamp
and counts bins.
Nothing is random, ordered by arrival, or a sum of floats.
"""

from __future__ import annotations

from typing import Any

from .dialects import exp

ALLOWED = frozenset(
    {
        # queries
        exp.Select,
        exp.From,
        exp.Offset,  # of 0 rows, which PostgreSQL does not merge with the query around it
        exp.Where,
        exp.Group,
        exp.Join,
        exp.Subquery,
        exp.Table,
        exp.TableAlias,
        exp.Alias,
        exp.Aliases,
        exp.Column,
        exp.Identifier,
        # values
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Neg,
        exp.Parameter,
        exp.Placeholder,
        exp.Cast,
        exp.DataType,
        exp.DataTypeParam,
        exp.Collate,
        exp.Unnest,
        exp.Inline,
        exp.ArraysZip,
        exp.VarMap,
        exp.Array,
        # conditions
        exp.And,
        exp.Or,
        exp.Not,
        exp.Paren,
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.In,
        exp.Is,
        exp.Case,
        exp.If,
        exp.Coalesce,
        exp.Nullif,
        # arithmetic of one row
        exp.Add,
        exp.Sub,
        exp.Mul,
        exp.Div,
        exp.IntDiv,
        exp.Floor,
        exp.Greatest,
        exp.Least,
        exp.TryCast,
        exp.Extract,
        exp.Var,
        exp.RegexpLike,
        exp.DPipe,
        exp.MD5,
        exp.WidthBucket,  # which only PostgreSQL searches with
        # aggregates and windows
        exp.Count,
        exp.Distinct,
        exp.Star,
        exp.Sum,
        exp.Window,
        exp.RowNumber,
        exp.DenseRank,
        exp.Order,
        exp.Ordered,
        exp.ReadParquet,  # which only DuckDB reads
    }
)
CALLED = frozenset({"FROM_JSON", "MAKE_TIMESTAMP", "EPOCH_US", "HISTOGRAM", "MAP_VALUES"})
COMPOUND = (  # their operands have parentheses, or the text would be read as another tree
    exp.And,
    exp.Or,
    exp.Not,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.DPipe,
)


def check_syntax(tree: exp.Expression) -> None:
    """Raise unless a tree is made of allowed nodes, and its compound operands have parentheses."""
    for node in tree.walk():
        if type(node) not in ALLOWED and not _is_called(node):
            raise AssertionError(
                f"a statement contains {type(node).__name__}, which is not allowed"
            )
        if isinstance(node, COMPOUND) and not isinstance(
            node.parent, (exp.Paren, exp.Where, exp.Floor)
        ):
            raise AssertionError(f"a statement contains {type(node).__name__} without parentheses")
        if isinstance(node, exp.Window) and not node.args["order"].expressions:
            raise AssertionError("a statement contains a window without an order")


def _is_called(node: Any) -> bool:
    return type(node) is exp.Anonymous and node.this in CALLED
