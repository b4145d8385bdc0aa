"""What this package changes in OpenDP: little at import, and more if :func:`install` is called.

``docs/for-opendp.rst`` lists each object that is changed, and a test compares the list with the
difference that an import makes.
"""

from opendp.context import constructors, register

from . import c, m, t
from ._checks import MODULE
from ._opendp import chaining, deserializing, take_in_lists
from .composition import chain, make_chain_ot
from .queryables import ConcurrentMeasurement, ConcurrentOdometer
from .serving import rebuild

_WITHOUT_THEN = ("concurrent_filter", "block_filter")  # they are not on a space
_CHAINING = chaining({ConcurrentOdometer: make_chain_ot, ConcurrentMeasurement: chain})
_DESERIALIZING = deserializing(MODULE, rebuild)


def put_hooks() -> None:
    """Let OpenDP chain what this package makes, and take it in lists and contexts. Idempotent.

    Measurements keep copies of lists, so that known faults are looked for in what runs.
    """
    _CHAINING.put()
    take_in_lists(ConcurrentMeasurement)
    for group in (c, m, t):
        for name in group.__all__:
            own = name.removeprefix("make_")
            if (f"then_{own}" in group.__all__ or own in _WITHOUT_THEN) and own not in constructors:
                register(vars(group)[name], own)


def install() -> tuple[str, ...]:
    """Let ``dp.deserialize`` read messages of what this package makes, too.

    It replaces one function of OpenDP for the whole process, until :func:`uninstall` is called.
    Nothing else in this package needs it: :func:`.deserialize` reads the same messages, and is safe
    for messages from strangers, for which ``dp.deserialize`` is not. What an import of this package
    changes in OpenDP is listed in :doc:`/for-opendp`.

    Calling it twice is the same as calling it once.

    :return: the names of the functions that are replaced

    :example:

    >>> oc.install()
    ('opendp.mod._deserialization_hook',)
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> made = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.5])
    >>> dp.deserialize(dp.serialize(made)).map(1)
    0.5
    >>> oc.uninstall()
    """
    _DESERIALIZING.put()
    return (str(_DESERIALIZING),)


def uninstall() -> None:
    """Undo :func:`install`: put OpenDP's function back.

    A function that somebody else has replaced since :func:`install` is left as it is.

    :example:

    >>> replaced = oc.install()
    >>> oc.uninstall()
    """
    _DESERIALIZING.undo()
