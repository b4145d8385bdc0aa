"""OpenDP's functions that are handed Python objects, each call of which is a section.

Native code counts its references to a Python object by calling Python, which does not count if an
interrupt is raised there. The object is then freed while native code still uses it, and the process
crashes. So no interrupt may arrive in such a call.
"""

from typing import Any

from opendp import combinators, domains, measurements, measures, metrics, transformations

from ..interrupts import whole

make_chain_mt = whole(combinators.make_chain_mt)
make_user_measurement = whole(measurements.make_user_measurement)
make_user_transformation = whole(transformations.make_user_transformation)
new_privacy_profile = whole(measures.new_privacy_profile)
user_distance = whole(metrics.user_distance)
user_domain = whole(domains.user_domain)


@whole
def descriptor(one: Any) -> Any:
    """Return the Python object that a domain was made with, or None."""
    return getattr(one, "descriptor", None)
