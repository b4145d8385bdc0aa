"""The only code that touches OpenDP's private names and versions.

* ``advisories.py`` refuses what has a known fault.
* ``calls.py`` converts data, runs, and carries errors and interrupts through native calls;
  ``data.py`` reads domains, distances and maps; ``interrupts.py`` keeps interrupts away from what
  must not be half done.
* ``private.py`` has all differences between the versions of OpenDP, its private attributes, and the
  hooks by which an import changes its functions. ``_hooks.py`` at the top puts them.
* ``prelude.py`` is what the package reads OpenDP's names from, as ``dp``.

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
from .interrupts import CRITICAL, Lock, interruptible, uninterruptible
from .private import (
    HAS_NOISY_TOP_K,
    KEEPS_DESCRIPTORS,
    PARTIAL_CONSTRUCTOR,
    VERSION,
    QueryParts,
    chaining,
    curve_of,
    descriptor,
    deserializing,
    frame_parts,
    group_parts,
    made_as,
    make_chain_mt,
    make_user_measurement,
    make_user_transformation,
    new_privacy_profile,
    query_parts,
    take_in_lists,
    to_then,
    unchained,
    user_distance,
    user_domain,
)

set_once()
guard()

if TYPE_CHECKING:
    import opendp.prelude as dp  # whose types are known
else:
    from . import prelude as dp
