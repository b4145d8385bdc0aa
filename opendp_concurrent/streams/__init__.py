"""Continual mechanisms: what is asked while rows still come.

* ``stream.py`` makes streams, ``mechanism.py`` the mechanisms on them; ``concurrent.py`` and
  ``transformations.py`` compose and transform them.
* ``counter.py`` chooses among counters: ``digits.py`` (pure DP, signed digits) and ``factors.py``
  (Gaussian, a factorisation with normalised columns). ``window.py`` builds on them: windows,
  histograms and the alarm.
"""

from .concurrent import (
    StreamQueryable,
    make_concurrent_continual,
    make_on_stream,
    make_parallel_continual,
    then_on_stream,
    then_parallel_continual,
)
from .counter import make_counter, then_counter
from .mechanism import ContinualQueryable, from_record, make_continual, then_continual
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
    make_alarm,
    make_histogram_counter,
    make_window_counter,
    then_alarm,
    then_histogram_counter,
    then_window_counter,
    window_rmse,
)

__all__ = ["counter_rmse", "window_rmse"]
