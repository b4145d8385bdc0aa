"""The kinds of data that are analysed here, one class each.

Everything that differs between kinds is asked of the kind: :class:`.Kind` in ``kind.py``. It
converts, cuts, selects, joins and keeps, and nobody else converts.

* ``kind.py`` has a user's own objects, scalars, vectors and frames, and columns of pandas, Polars,
  NumPy and PyArrow in place of lists. Tables in an engine add their own kind.
* ``partition.py`` says how data are cut into disjoint parts.
"""

from .kind import (
    Cut,
    Kind,
    Of,
    Owners,
    Uncollected,
    as_lazyframe,
    check_files,
    collected,
    columns_in,
    is_frame,
    kind_of,
    kind_of_data,
    register,
    uncollected,
)
from .partition import (
    ByRecord,
    BySplit,
    Partition,
    by_column,
    by_entry,
    by_key,
    by_split,
    by_values,
    itself,
    partitioned,
)
