"""A linear query was checked and then copied: a thread put a value of 10^6 past the check."""

import sys
from enum import IntEnum

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import _checks as owned
from opendp_concurrent._checks import plain
from opendp_concurrent.errors import ConcurrentError, InvalidValueError
from opendp_concurrent.mechanisms.histogram import Universe
from opendp_concurrent.mechanisms.linear_answers import Batch

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, ZCDP, RENYI = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
STREAM = oc.integer_stream(0, 1), oc.event_presence()
HUGE = 1e6


class TurningArray(np.ndarray):
    """An array whose methods tell of other values than its memory has."""

    def min(self, *args, **kwargs):
        return 0.0

    def max(self, *args, **kwargs):
        return 1.0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return np.zeros(4)

    def __array_function__(self, func, types, args, kwargs):
        return np.zeros(4)

    def copy(self, *args, **kwargs):
        return np.zeros(4)


class Lender:
    """Lends its own array out, and says that it is a copy."""

    def __init__(self, values):
        self.mine, self.reads = np.array(values, dtype=float), 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return self.mine if self.reads == 1 else np.full_like(self.mine, HUGE)


class Turning(list):
    """A list that says something else each time that it is read."""

    def __init__(self, *contents):
        super().__init__(contents[0])
        self.contents, self.reads = contents, 0

    def turn(self):
        self.reads += 1
        return self.contents[min(self.reads, len(self.contents)) - 1]

    def __iter__(self):
        return iter(self.turn())

    def __getitem__(self, index):
        return self.turn()[index]

    def __len__(self):
        return len(self.contents[0])

    def __bool__(self):
        return True


class TurningDict(dict):
    """A dictionary whose values are others when they are read again."""

    def __init__(self, *contents):
        super().__init__(contents[0])
        self.contents, self.reads = contents, {}

    def _content(self, key):
        self.reads[key] = self.reads.get(key, 0) + 1
        return self.contents[min(self.reads[key], len(self.contents)) - 1]

    def __getitem__(self, key):
        return self._content(key)[key]

    def __iter__(self):
        return iter(self._content("__iter__"))

    def keys(self):
        return self._content("__iter__").keys()

    def items(self):
        return self._content("items").items()


# --- linear queries --------------------------------------------------------------------------


def test_a_linear_query_shares_no_memory_with_its_author():
    universe, mine = Universe(4), np.array([0.0, 1.0, 0.5, 0.25])
    for given in (mine, mine[::-1], mine.view(TurningArray), Lender(mine), memoryview(mine)):
        kept = owned.array(given, np.float64)
        assert type(kept) is np.ndarray
        assert not np.shares_memory(kept, mine)
    query = universe.vector(mine)
    mine[:] = HUGE
    assert query.max() <= 1.0


class FlippedInBetween(TurningArray):
    """Memory that changes as soon as it was looked at, as another thread would do it."""

    def min(self, *args, **kwargs):
        lowest = float(np.ndarray.min(self.view(np.ndarray)))
        self.view(np.ndarray)[0] = HUGE
        return lowest


@pytest.mark.parametrize("kind", [TurningArray, FlippedInBetween, Lender, list])
def test_what_is_checked_is_what_is_asked(kind):
    good = np.array([0.0, 1.0, 0.5, 0.25])
    given = {
        TurningArray: lambda: good.copy().view(TurningArray),
        FlippedInBetween: lambda: good.copy().view(FlippedInBetween),
        Lender: lambda: Lender(good),
        list: lambda: Turning([0.0, 1.0, 0.5, 0.25], [HUGE] * 4),
    }[kind]
    query = Universe(4).vector(given())
    assert query.tolist() == good.tolist()
    matrix = Batch([given(), given()], Universe(4)).matrix
    assert matrix.tolist() == [good.tolist()] * 2


def test_values_outside_of_the_range_are_found_whatever_an_array_says_of_itself():
    bad = np.array([0.0, HUGE, 0.5, 0.25]).view(TurningArray)
    for ask in (Universe(4).vector, lambda one: Batch([one], Universe(4))):
        with pytest.raises(InvalidValueError, match=r"values in \[0, 1\]"):
            ask(bad)


def changed_at(moment, change, ask):
    """Ask, and change the caller's memory at the given one of the interpreter's next calls.

    What another thread does by chance, at every moment at which it can, one after the other.
    """
    left = moment

    def on_event(*_):
        nonlocal left
        left -= 1
        if left == 0:
            change()

    sys.setprofile(on_event)
    try:
        return ask()
    finally:
        sys.setprofile(None)


MOMENTS = range(1, 120)


@pytest.mark.parametrize("batch", [False, True])
def test_memory_that_changes_at_any_moment_gets_nothing_past_the_check(batch):
    universe = Universe(4)

    def ask():
        query = Batch([mine], universe).matrix if batch else universe.vector(mine)
        return float(query.max())

    asked, refused = [], 0
    for moment in MOMENTS:
        mine = np.zeros(4)
        try:
            asked.append(changed_at(moment, lambda mine=mine: mine.__setitem__(2, HUGE), ask))
        except InvalidValueError:
            refused += 1
    assert refused
    assert max(asked) <= 1.0


def test_a_batch_is_read_once():
    class Growing(Turning):
        def __len__(self):
            return 1

    many = [[1.0, 0.0]] * 3
    batch = Batch(Growing([[1.0, 0.0]], many, many, many), Universe(2))
    assert len(batch.matrix) == 1
    array = np.zeros((2, 2)).view(TurningArray)
    assert Batch(array, Universe(2)).matrix.tolist() == [[0.0, 0.0]] * 2


def test_weights_and_projection_answer_by_what_was_checked():
    weights = oc.m.make_private_multiplicative_weights(
        *SPACE, ZCDP, d_in=1, d_out=1.0, universe=4, queries=50, size=100_000
    )([0, 1, 2, 3] * 25_000)
    hostile = FlippedInBetween((4,))
    hostile.view(np.ndarray)[:] = [1.0, 0.0, 0.0, 0.0]
    assert abs(weights(hostile).value) < 90_000
    projected = oc.m.make_projected_queries(
        *SPACE, ZCDP, d_in=1, d_mids=[0.5], universe=4, size=100_000
    )([0, 1, 2, 3] * 25_000)
    assert abs(projected([Lender([1.0, 0.0, 0.0, 0.0])])[0] - 25_000) < 10_000


# --- lists and dictionaries ------------------------------------------------------------------


def test_the_universe_is_read_once():
    universe = Universe(Turning([1, 2], [1, 2, 3], [4]))
    assert (universe.cells, list(universe.values)) == (2, [1, 2])
    with pytest.raises(InvalidValueError, match="distinct"):
        Universe(Turning([1, 1], [1, 2], [1, 2]))


def test_d_mids_are_read_once():
    for d_mids in (Turning([0.5], [0.5, 9.0]), Turning([0.5], [], [9.0])):
        compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, d_mids)
        assert compositor.map(1) == 0.5
        assert len(compositor([1]).remaining()) == 1
    projected = oc.m.make_projected_queries(
        *SPACE, ZCDP, d_in=1, d_mids=Turning([0.5], [9.0, 9.0], [-1.0]), universe=2, size=9
    )
    assert projected.map(1) == 0.5
    for _ in range(2):  # the loss of a batch is not read again when one is spawned
        assert len(projected([1] * 9)([[1.0, 0.0]])) == 1
    answer = oc.fdp.optimal_composition(Turning([0.5, 0.5], [0.1], [0.1]))
    assert answer.epsilon(0.0) == 1.0


def test_orders_are_read_once():
    def curve(alpha):
        return alpha / 10

    for orders in (Turning([2.0, 4.0], [2.0], []), Turning([2.0, 4.0], [])):
        made = oc.make_concurrent_composition(*SPACE, RENYI, 1, [curve], orders=orders)
        assert made.map(1)(4.0) == 0.4

    class Empty(Turning):
        def __len__(self):
            return 2

    with pytest.raises(ConcurrentError, match="orders must be a nonempty sequence"):
        oc.make_concurrent_composition(*SPACE, RENYI, 1, [curve], orders=Empty([]))


def test_mechanisms_that_are_composed_are_read_once():
    cheap = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    dear = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=0.1)
    turning = Turning([cheap], [dear], [dear, dear], [dear])
    made = oc.c.make_indexed_composition(*SPACE, PURE, 1, turning)
    assert made.map(1) == 0.1
    made([1, 2])  # launches what was priced
    parts = oc.c.by_values({"low": range(5), "high": range(5, 10)})
    measurements = TurningDict({"low": cheap}, {"low": dear}, {"low": dear})
    made = oc.c.make_parallel_composition(*SPACE, parts, measurements)
    assert made.map(1) == 0.1
    for _ in range(5):
        assert -400 < made([1, 2])("low") < 400


def test_groups_are_read_once():
    groups = TurningDict({"a": Turning([1], [1, 2]), "b": [2]}, {"a": [1, 2], "b": [2]})
    parts = oc.c.by_values(groups)
    assert parts.owners == {1: "a", 2: "b"}
    with pytest.raises(InvalidValueError, match="overlap"):
        oc.c.by_values({"a": Turning([1, 2], [1]), "b": [2]})


def test_categories_are_read_once():
    categories = Turning(["x", "y", "z"], ["x", "y"], ["x"])
    made = oc.m.make_certified_randomized_response(categories, 0.5, oc.fixed_renyi_divergence(2.0))
    honest = oc.m.make_certified_randomized_response(
        ["x", "y", "z"], 0.5, oc.fixed_renyi_divergence(2.0)
    )
    assert made.map(1) == honest.map(1)


def test_messages_are_read_once():
    class Pair(tuple):
        reads = 0

        def __iter__(self):
            self.reads += 1
            return iter(tuple(self[:]) if self.reads == 1 else (lambda rows: 10**6, 0))

        def __getitem__(self, index):
            return tuple.__getitem__(self, index)

    count = SPACE >> dp.t.then_count()
    sparse = oc.m.make_above_threshold(*SPACE, PURE, 1, scale=0.1, threshold=1000)
    assert sparse([1])(Pair((count, 500))).outcome is oc.m.Outcome.BELOW
    cheap = count >> dp.m.then_laplace(scale=10.0)
    indexed = oc.c.make_indexed_composition(*SPACE, PURE, 1, [cheap])([1])
    assert isinstance(indexed(Pair((0, None))), int)


# --- streams ---------------------------------------------------------------------------------


def counter():
    return oc.m.make_counter(*STREAM, PURE, scale=1e-3)([])


def test_items_that_arrive_are_copied_and_then_checked():
    class Flipping(np.ndarray):
        def min(self, *args, **kwargs):
            self.view(np.ndarray)[:] = 10**6
            return 0

        def max(self, *args, **kwargs):
            return 1

    queryable, items = counter(), np.ones(5, dtype=np.int64).view(Flipping)
    queryable.update_all(items)
    assert queryable(None) == 5
    items[:] = 7
    assert queryable(None) == 5

    queryable = counter()
    queryable.update_all(Turning([1, 1, 1], [10**6] * 3, [10**6] * 9))
    assert queryable(None) == 3


def test_items_that_change_at_any_moment_are_those_that_were_checked():
    for moment in MOMENTS:
        queryable, items = counter(), np.ones(3, dtype=np.int64)
        change = lambda items=items: items.__setitem__(1, 10**6)  # noqa: E731
        try:
            changed_at(moment, change, lambda q=queryable, items=items: q.update_all(items))
        except ConcurrentError:
            continue
        assert queryable(None) == 3


def test_trade_off_functions_are_made_of_copies():
    points = np.array([0.5, 1.0])
    f = oc.TradeoffFunction.gaussian(1.0)
    assert not np.shares_memory(owned.array(points, float), points)
    assert f.delta(points.view(TurningArray)[:2]).tolist() == f.delta(points).tolist()
    masses = Turning([0.25, 0.75], [0.0, 1.0])
    assert oc.TradeoffFunction.finite(masses, [0.75, 0.25]) == oc.TradeoffFunction.finite(
        [0.25, 0.75], [0.75, 0.25]
    )


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.float64(1.0), 1.0), (np.str_("a"), "a"), (Number.ONE, 1), (True, True)],
)
def test_a_subclass_becomes_pythons_own_class(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


def test_other_values_stay_as_they_are():
    value = [1.0]
    assert plain(value) is value
