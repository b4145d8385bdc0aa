"""The kinds of data that are analysed here, one class each.

Everything that differs between kinds is asked of the kind: :class:`.Kind` in ``kind.py``. It
converts, cuts, selects, joins and keeps, and nobody else converts.

* ``kind.py`` has scalars and objects of one's own, ``columns.py`` columns and frames that are read
  lazily, ``frames.py`` vectors and frames. Tables in an engine add their own kind.
* ``partition.py`` says how data are cut into disjoint parts.
"""

from __future__ import annotations

from . import frames as _frames  # each kind is registered
from .columns import Uncollected, as_lazyframe, collected, is_frame, readable, types_of, uncollected
from .kind import Cut, Kind, Of, Owners, check_files, columns_in, kind_of, kind_of_data, register
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
