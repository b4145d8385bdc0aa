"""What the other rooms use of OpenDP's private names, in one place.

``advisories`` refuses what has a known fault, ``constructors`` makes, ``data`` converts, ``calls``
runs, ``maps`` prices, ``records`` remembers how things were made. For errors and interrupts in
native calls see :mod:`.calls`; for threads see :mod:`.argtypes`; for what this package changes
in OpenDP see :mod:`.hook`.
"""

from .advisories import refuse
from .argtypes import set_once
from .calls import (
    apply,
    call_native,
    carry,
    guard,
    inside_native_call,
    invoke,
    remember,
    tell_launched,
    transform,
)
from .constructors import (
    descriptor,
    make_chain_mt,
    make_user_measurement,
    make_user_transformation,
    new_privacy_profile,
    user_distance,
    user_domain,
)
from .data import check_distance, element_domain, empty_frame, to_pointer, to_python
from .maps import measurement_map, native_only, space_of, transformation_map
from .queryables import evaluate, evaluate_odometer, python_queryable
from .records import (
    MEASUREMENT,
    ODOMETER,
    PARTIAL_CONSTRUCTOR,
    TRANSFORMATION,
    VERSION,
    made_as,
    to_then,
    unchained,
)
from .versions import curve_of

set_once()
guard()
