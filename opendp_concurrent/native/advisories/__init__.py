"""Known faults of OpenDP's own maps: what is recognised, and what is charged or refused instead.

Importing this room sets the fence. ``opendp_concurrent`` imports it for ``accept_advisories``.
"""

from . import fence as fence
