"""``transformation >> other`` raises an error before ``other`` is asked.

``Transformation.__rshift__`` declares an overload for odometers and implements none. It raises
``ValueError`` for what it does not know, where Python's protocol is to return ``NotImplemented``,
so that ``__rrshift__`` of the other object is called. With that, a library can offer odometers
that are chained after a transformation.
"""

import opendp.prelude as dp

dp.enable_features("contrib")


class Odometer:
    """An odometer that is written in Python."""

    def __rrshift__(self, transformation):
        return "chained", transformation


transformation = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
assert (transformation >> Odometer()) == ("chained", transformation)
try:
    transformation >> "text"
except TypeError:
    pass
else:
    raise AssertionError("text was chained")
