"""A measurement of a subclass is no measurement in a list.

``RuntimeType.infer`` compares the exact class. So a library that extends ``dp.Measurement``, or a
user who adds a method, cannot pass its measurements to ``dp.c.make_composition``.
"""

import opendp.prelude as dp

dp.enable_features("contrib")


class Named(dp.Measurement):
    """A measurement that has a name."""

    _type_ = dp.Measurement._type_
    name = "mine"


measurement = dp.m.make_laplace(
    dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
)
measurement.__class__ = Named  # as OpenDP does with its domains
assert dp.c.make_composition([measurement, measurement]).map(1.0) == 2.0
assert str(dp.RuntimeType.infer([measurement])) == "Vec<AnyMeasurementPtr>"
