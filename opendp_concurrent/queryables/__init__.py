"""What analysts hold: handles, and the session behind them.

* ``session.py`` is the way of a launch: a handle sends to its session, the session prices, charges
  and runs. ``root.py`` has the handles of odometers, filters and compositors, and makes
  them; ``child.py`` has what a launch returns.
* ``mechanism.py`` has the measurements and odometers of this package, ``named_queries.py`` what can
  be asked by name, ``data.py`` the sealed data, ``stream.py`` the handles of streams.
"""

from typing import TYPE_CHECKING

from .child import (
    ChildOdometerQueryable,
    ChildQueryable,
    MachineQueryable,
    WrappedOdometerQueryable,
    adopt,
    without_frames,
)
from .data import (
    AsTransformation,
    Sealed,
    SealedHandle,
    check_process,
    hidden,
    hide_errors,
    in_python,
    run,
    seal,
    seal_live,
    seal_selected,
    seal_transformed,
    take_in,
    unseal,
)
from .mechanism import (
    ConcurrentMeasurement,
    ConcurrentOdometer,
    Inside,
    Spawn,
    accuracy_of,
    interactive,
    is_bounded,
    is_free,
    known_accuracy,
    may_be_live,
    may_feed_many,
    postprocess,
    read_map,
    require_launches,
    takes_stream,
)
from .named_queries import (
    MOST,
    NONE,
    NOT_SAVED,
    PARTS,
    READ,
    SYNTHESISE,
    SYNTHETIC,
    Accuracy,
    Description,
    Queries,
    Readable,
    WithParts,
    WithSynthetic,
    answering,
    bounded_integer,
    canonical,
    fields,
    of_one,
    queries_of,
    require,
    restore_exactly,
    rows,
)
from .root import (
    ConcurrentCompositionQueryable,
    ConcurrentFilterQueryable,
    ConcurrentOdometerQueryable,
    RootSession,
    as_concurrent,
    check_ledger,
    head,
    open_book,
    spawn_composition,
    spawn_filter,
    spawn_limited,
    spawn_odometer,
)
from .session import Handle, MeasurementPrice, Session, check_space, validate_d_in
from .stream import (
    MESSAGES,
    NOT_CONTINUAL,
    DataMessage,
    FedQueryable,
    Feed,
    Meter,
    OwnStreamQueryable,
    QueryOnlyQueryable,
    Restore,
    Room,
    Save,
    Stream,
    StreamItems,
    Updatable,
    Update,
    Updates,
    check_items,
    check_step,
    is_stream,
    query_side,
    same_domain,
    start_of,
)

if TYPE_CHECKING:
    from .mechanism import MeasurementOf, OdometerOf
