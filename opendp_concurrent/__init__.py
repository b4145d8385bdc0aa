"""Concurrent composition of interactive differential privacy mechanisms, for OpenDP."""

from opendp.context import constructors, register

from .accumulators.basic import basic
from .composition.chain import install, make_chain_ot, make_chain_po
from .composition.concurrent_composition import (
    make_concurrent_composition,
    then_concurrent_composition,
)
from .composition.concurrent_filter import make_concurrent_filter
from .composition.concurrent_odometer import make_concurrent_odometer, then_concurrent_odometer
from .context import concurrent_context

__all__ = [
    "basic",
    "concurrent_context",
    "make_chain_ot",
    "make_chain_po",
    "make_concurrent_composition",
    "make_concurrent_filter",
    "make_concurrent_odometer",
    "then_concurrent_composition",
    "then_concurrent_odometer",
]

install()
for _constructor in (
    make_concurrent_composition,
    make_concurrent_odometer,
    make_concurrent_filter,
):
    if _constructor.__name__.removeprefix("make_") not in constructors:
        register(_constructor)
del _constructor
