"""The only code that touches OpenDP's private names and versions.

* ``advisories.py`` refuses what has a known fault, ``constructors.py`` makes and remembers how.
* ``calls.py`` converts data, runs, and carries errors and interrupts through native calls;
  ``data.py`` reads domains, distances and maps; ``interrupts.py`` keeps interrupts away from what
  must not be half done.
* ``versions.py`` has all differences between the versions of OpenDP.
* ``prelude.py`` is what the package reads OpenDP's names from, as ``dp``.
* ``hook.py`` makes the hooks, by which an import changes functions of OpenDP. ``_hooks.py`` at the
  top puts them.

Importing this package changes OpenDP, too: the types of native functions are set only where they
change, so that threads do not race for them, and callbacks are wrapped (``calls.py``).
"""

from typing import TYPE_CHECKING

from .advisories import accept_advisories, refuse
from .calls import (
    apply,
    call_native,
    carry,
    guard,
    inside_native_call,
    invoke,
    remember,
    set_once,
    tell_launched,
    to_pointer,
    to_python,
    transform,
)
from .constructors import (
    MEASUREMENT,
    ODOMETER,
    PARTIAL_CONSTRUCTOR,
    TRANSFORMATION,
    VERSION,
    QueryParts,
    descriptor,
    frame_parts,
    group_parts,
    made_as,
    make_chain_mt,
    make_user_measurement,
    make_user_transformation,
    new_privacy_profile,
    query_parts,
    to_then,
    unchained,
    user_distance,
    user_domain,
)
from .data import (
    check_distance,
    element_domain,
    empty_frame,
    evaluate,
    evaluate_odometer,
    is_member,
    measurement_map,
    native_only,
    python_queryable,
    space_of,
    transformation_map,
)
from .hook import chaining, copy_lists, deserializing, infer_as_measurement
from .interrupts import CRITICAL, Lock, interruptible, uninterruptible
from .versions import HAS_NOISY_TOP_K, KEEPS_DESCRIPTORS, curve_of

set_once()
guard()

if TYPE_CHECKING:
    import opendp.prelude as dp  # whose types are known
else:
    from . import prelude as dp
