"""Messages, and what a query server needs beside a budget: answers by keys, handles by names, JSON.

* ``serialization.py`` reads and writes messages; ``kinds.py`` bounds their size and depth,
  ``values.py`` lists what may be in one.
* ``stores.py`` keeps answers by key, and handles by name. ``docs/examples/server.py`` uses all of
  it. ``handles.py`` lists the classes of handles, for annotations; ``extend.py`` has what those
  need who write classes of their own, and the laws that their measurements keep.
* ``shared_release.py`` gives several analysts versions of one answer, at the noise of
  ``levels.py``.
"""

from .serialization import deserialize, serialize
from .shared_release import make_shared_release, then_shared_release
from .stores import AnswerStore, HandleStore, as_json
from .values import rebuild

__all__ = [
    "AnswerStore",
    "HandleStore",
    "as_json",
]
