"""What analysts hold: handles, and the session behind them.

* ``session.py`` is the way of a launch: a handle sends to its session, the session prices, charges
  and runs. ``root.py`` has the handles of odometers, filters and compositors, and makes
  them; ``child.py`` has what a launch returns, and the queries that have a name.
* ``mechanism.py`` has the measurements and odometers of this package, ``data.py`` the sealed data,
  ``stream.py`` the handles of streams.
"""

from typing import TYPE_CHECKING

from .child import (
    NONE,
    PARTS,
    READ,
    SYNTHESISE,
    SYNTHETIC,
    ChildOdometerQueryable,
    ChildQueryable,
    MachineQueryable,
    Queries,
    Readable,
    WithParts,
    WithSynthetic,
    WrappedOdometerQueryable,
    adopt,
    answering,
    queries_of,
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
    Accuracy,
    ConcurrentMeasurement,
    ConcurrentOdometer,
    Description,
    Inside,
    Spawn,
    accuracy_of,
    interactive,
    is_bounded,
    is_free,
    known_accuracy,
    may_be_live,
    may_feed_many,
    of_one,
    postprocess,
    read_map,
    require_launches,
    takes_stream,
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
    MOST,
    NOT_CONTINUAL,
    NOT_SAVED,
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
    bounded_integer,
    canonical,
    check_items,
    check_step,
    fields,
    is_stream,
    query_side,
    require,
    restore_exactly,
    rows,
    same_domain,
    start_of,
)

if TYPE_CHECKING:
    from .mechanism import MeasurementOf, OdometerOf
