"""0.1.0 left a handle open that a mechanism had made in a thread, when the next launch began."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ClosedChildError

dp.enable_features("contrib", "honest-but-curious")

MEASURE = dp.approximate(dp.zero_concentrated_divergence())
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
SMALL = (0.01, 1e-9)  # what has a δ and is the user's excludes all others


def user(function, loss=SMALL):
    return dp.m.make_user_measurement(*SPACE, MEASURE, function, lambda d_in: loss)


class Holder:
    def __init__(self, handle):
        self.handle = handle


def refuse(one):
    raise TypeError("this descriptor does not apply")


class Odd(Holder):
    """As an array of JAX: one name of its slots cannot be read."""

    __slots__ = ()


Odd.__slots__, Odd.__weakref__ = ("__weakref__",), property(refuse)


def array(handle):
    found = np.empty(1, dtype=object)
    found[0] = handle
    return found


HIDING = {
    "itself": (lambda handle: handle, lambda answer: answer),
    "list": (lambda handle: [1, [handle]], lambda answer: answer[1][0]),
    "dictionary": (lambda handle: {"a": (handle,)}, lambda answer: answer["a"][0]),
    "closure": (lambda handle: lambda query: handle(query), lambda answer: answer),
    "default": (lambda handle: lambda query, h=handle: h(query), lambda answer: answer),
    "method": (lambda handle: handle.__call__, lambda answer: answer),
    "object": (Holder, lambda answer: answer.handle),
    "odd object": (Odd, lambda answer: answer.handle),
    "array": (array, lambda answer: answer[0]),
}
QUERY = user(len)


def compositor(rows):
    return oc.make_concurrent_composition(*SPACE, MEASURE, 1, [SMALL] * 5)(rows)


def odometer(rows):
    return oc.make_concurrent_odometer(*SPACE, MEASURE)(rows)


def native(rows):
    return dp.c.make_adaptive_composition(*SPACE, MEASURE, 1, [SMALL] * 5)(rows)


def machine(rows):
    return oc.c.make_interactive(QUERY)(rows)


def launched(rows):
    """A child that a compositor of its own handed out."""
    return odometer(rows)(dp.c.make_adaptive_composition(*SPACE, MEASURE, 1, [SMALL] * 5))


INSIDE = {
    "launched": launched,
    "compositor": compositor,
    "odometer": odometer,
    "native": native,
    "machine": machine,
}


def in_a_thread(function, *arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


PAIRS = [(hiding, inside) for hiding in HIDING for inside in INSIDE]
PAIRS.remove(("method", "native"))  # a method of OpenDP's own class finds no queryable any more


@pytest.mark.parametrize(("hiding", "inside"), PAIRS)
def test_a_handle_that_was_made_in_a_thread_is_closed_by_the_next_launch(hiding, inside):
    hide, find = HIDING[hiding]
    sneaky = user(lambda rows: hide(in_a_thread(INSIDE[inside], rows)), (0.2, 1e-7))
    root = oc.make_concurrent_odometer(*SPACE, MEASURE)([1, 2, 3])
    first = find(root(sneaky))
    first(QUERY)
    second = find(root(sneaky))
    with pytest.raises(ClosedChildError):
        first(QUERY)
    second(QUERY)


def test_a_handle_that_a_child_hands_out_later_belongs_to_the_same_launch():
    pair = oc.make_concurrent_composition(*SPACE, MEASURE, 1, [SMALL] * 5)

    def serve(rows):
        return dp.new_queryable(lambda query: [in_a_thread(pair, rows)])

    child = (root := oc.make_concurrent_odometer(*SPACE, MEASURE)([1]))(user(serve))
    (late,) = child("please")
    late(QUERY)
    root(QUERY)
    with pytest.raises(ClosedChildError):
        late(QUERY)
