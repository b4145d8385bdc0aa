"""The syntax that a statement may be made of: the tests send no statement with another one.

No function is called by name, but those with which Spark reads a list, and DuckDB a timestamp.
Nothing is random, ordered by arrival, or a sum of floats.
"""

from sqlglot import exp

_NAMES = """
    Select From Where Group Join Subquery Table TableAlias Alias Aliases Column Identifier
    Literal Boolean Null Parameter Placeholder Cast TryCast DataType DataTypeParam Collate
    Array Unnest Inline ArraysZip VarMap
    And Or Not Paren EQ NullSafeEQ NEQ LT LTE GT GTE In Is Case If Coalesce Nullif RegexpLike
    Neg Add Sub Mul Div IntDiv Floor Greatest Least Extract Var DPipe MD5
    Count Distinct Star Sum Min Max Window RowNumber DenseRank Order Ordered
    ReadParquet WidthBucket Offset
"""  # the last ones: of DuckDB, of PostgreSQL, and of 0 rows, which PostgreSQL does not merge
ALLOWED = frozenset(getattr(exp, name) for name in _NAMES.split())
CALLED = frozenset({"FROM_JSON", "MAKE_TIMESTAMP", "EPOCH_US", "TRANSLATE", "LENGTH"})
# their operands have parentheses, or the text would be read as another tree
_OPERATIONS = "And Or Not Add Sub Mul Div IntDiv DPipe"
COMPOUND = tuple(getattr(exp, name) for name in _OPERATIONS.split())


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


def _is_called(node: exp.Expression) -> bool:
    return type(node) is exp.Anonymous and node.this in CALLED
