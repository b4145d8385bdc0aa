"""Names for values of many classes: a signature says which of them it takes.

What each may be is decided by a metric, a measure, a mechanism or a user, not here, so mypy takes
any value. A value that has one class is annotated with that class, and not with a name of this
file.
"""

from typing import Any, TypeAlias

Distance: TypeAlias = Any  # d_in, as its metric counts: a number, a pair, an array, a mapping
Loss: TypeAlias = Any  # d_mid or d_out, as its measure states it: a number, a pair (ε, δ), a curve
Data: TypeAlias = Any  # rows that are protected: only their domain knows their class
Query: TypeAlias = Any  # what an analyst sends to a handle
Answer: TypeAlias = Any  # what a handle or a mechanism returns
Item: TypeAlias = Any  # an element of a stream
ItemSequence: TypeAlias = Any  # a sequence of items, or an array
Key: TypeAlias = Any  # names a block, a part or a group; hashable after `arguments.keys`
State: TypeAlias = Any  # what a rule or a postprocessor hands to its next step
Json: TypeAlias = Any  # what is written as JSON, or was read and has not been checked
DpEvent: TypeAlias = Any  # of dp-accounting, which is optional and has no types
Argument: TypeAlias = Any  # what a caller gave, and no guard has checked
