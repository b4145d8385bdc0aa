"""``dp.Context`` over filters of this package: queries, noise scales, ``swapped_in``.

* ``context.py`` makes contexts; ``query.py``, ``frame_query.py`` and ``table_query.py`` have the
  queries on lists, frames and tables; ``answers.py`` what they return.
* ``search.py`` finds the scale of the noise for a privacy loss, ``accountant.py`` the loss.
* ``swapped.py`` lets code that is written for OpenDP use this package.
"""

from .context import concurrent_context
from .search import largest_share, smallest_scale
from .swapped import swapped_in
