"""A new kind of data is one new file: a toy is cut, filtered by block, and analysed by person."""

from collections import Counter

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.data import kind as kinds
from opendp_concurrent.data.kind import Kind, kind_of, kind_of_data
from opendp_concurrent.errors import BlockExceededError, InvalidTypeError, InvalidValueError

dp.enable_features("contrib", "honest-but-curious")
PURE = dp.max_divergence()

# --- the file that somebody writes who has another kind of data ----------------------------------

BAGS = dp.user_domain("bags of integers", lambda data: isinstance(data, Counter), descriptor="bag")


class Bags(Kind):
    """A bag has how often each value occurs. Adding or removing one occurrence is distance 1."""

    by_function = has_rows = True

    def has(self, domain):
        return getattr(domain, "descriptor", None) == "bag"

    def takes(self, data):
        return isinstance(data, Counter)

    def inferred(self, data):
        return data, BAGS

    def accepted(self, data, domain):
        converted.append(type(data))
        return Counter(data)

    def rows(self, data, domain):
        return np.array(sorted(data.elements()))

    def domain_of_parts(self, domain):
        return domain

    def cutter(self, domain, of, owners, keys):
        def cut(bag):
            parts = {key: Counter() for key in keys}
            for value, many in bag.items():
                key = owners.get(of(value))
                if key is not None:
                    parts[key][value] = many
            return parts

        return cut

    def joined(self, parts):
        return sum(parts, Counter())

    def size(self, data):
        return len(data)


# --- what it gets for that -----------------------------------------------------------------------

SPACE = BAGS, dp.symmetric_distance()
converted = []


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(kinds, "_KNOWN", list(kinds._KNOWN))
    oc.extend.register()(Bags)
    converted.clear()


def total(loss=0.125):
    return dp.m.make_user_measurement(
        *SPACE, PURE, lambda bag: sum(bag.values()), lambda d_in: loss * d_in, TO=int
    )


def test_the_domain_or_the_data_tell_the_kind():
    assert type(kind_of(BAGS)) is Bags is type(kind_of_data(Counter()))
    for other in (dp.user_domain("own", lambda _: True), dp.vector_domain(dp.atom_domain(T=int))):
        assert type(kind_of(other)) is not Bags
    with pytest.raises(InvalidTypeError, match="cannot be split into parts"):
        kind_of(dp.atom_domain(T=int)).domain_of_parts(dp.atom_domain(T=int))
    with pytest.raises(InvalidTypeError, match=r"^partition .by_column.* is for LazyFrames"):
        oc.c.by_column("x").cutter(BAGS, (1,))


def test_data_are_converted_once():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 1, 12])
    assert [root(total()), root(total())] == [3, 3]
    assert converted == [list]


def test_parts():
    tens = oc.c.by_key(lambda value: value // 10)
    parts = oc.c.make_parallel_composition(*SPACE, tens, {0: total(), 1: total()})
    assert parts.map(1) == 0.125
    opened = parts(Counter({1: 2, 11: 1, 12: 4, 30: 9}))
    assert (opened(0), opened(1)) == (2, 5)
    with pytest.raises(InvalidValueError, match="does not add up"):
        oc.c.make_parallel_composition(BAGS, dp.l1_distance(T=int), tens, {0: total()})


def test_blocks():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    tens = oc.c.by_key(lambda value: value // 10)
    root = oc.c.make_block_filter(odometer, 1, 0.25, blocks=tens, keys=[0, 1])(
        Counter({1: 2, 11: 1, 25: 7})
    )
    root.add_blocks([3], [30, 30, 45])
    assert [root([0, 1, 3], total()), root([3], total())] == [5, 2]
    with pytest.raises(BlockExceededError):
        root([1, 3], total())
    assert (root.remaining(0), root.remaining(3)) == (0.125, 0.0)
