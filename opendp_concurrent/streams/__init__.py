"""Continual mechanisms: what is asked while rows still come.

* ``stream.py`` makes streams, ``mechanism.py`` the mechanisms on them; ``concurrent.py``,
  ``parallel.py`` and ``transformations.py`` compose and transform them.
* ``counter.py`` chooses among counters: ``digits.py`` (pure DP, signed digits) and ``factors.py``
  (Gaussian, a factorisation with normalised columns). ``window.py`` and ``alarm.py`` build on them.
"""

from .alarm import make_alarm, then_alarm
from .concurrent import StreamQueryable, make_concurrent_continual
from .counter import make_counter, then_counter
from .mechanism import ContinualQueryable, from_record, make_continual, then_continual
from .on_stream import make_on_stream, then_on_stream
from .parallel import make_parallel_continual, then_parallel_continual
from .stream import (
    category_stream,
    event_change,
    event_presence,
    integer_stream,
    record_stream,
    user_presence,
)
from .transformations import (
    make_bounded_contributions,
    make_stream_clamp,
    make_stream_filter,
    make_stream_map,
    then_bounded_contributions,
    then_stream_clamp,
    then_stream_filter,
    then_stream_map,
)
from .window import (
    counter_rmse,
    make_histogram_counter,
    make_window_counter,
    then_histogram_counter,
    then_window_counter,
    window_rmse,
)

__all__ = ["counter_rmse", "window_rmse"]
