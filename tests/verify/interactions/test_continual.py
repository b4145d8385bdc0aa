"""Strongly adaptive adversaries: the dynamic programme is right, and bad mechanisms are caught."""

from itertools import product
from math import exp, log

import numpy as np
import pytest

from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidValueError, StreamHaltedError

PRESENCE = verify.events_differ(1)
CHANGE = verify.events_differ(1, presence=False)
ITEMS = (None, 1)


class Tree:
    """A counter that releases its nodes, written apart from the package; some of them are wrong."""

    def __init__(self, release, levels=2, defect=None):
        self.items, self.nodes, self.release = [], {}, release
        self.scale, self.defect = 2.0 * levels, defect

    def update(self, item):
        self.items.append(item or 0)

    def blocks(self):
        end, start = len(self.items), 0
        for bit in reversed(range(end.bit_length())):
            if end >> bit & 1:
                yield start, start + (1 << bit)
                start += 1 << bit

    def __call__(self, query):
        released = []
        for start, end in self.blocks():
            total = sum(self.items[start:end])
            if self.defect == "last" and end == len(self.items) > 1:
                released.append(total)
            elif self.defect == "reuse":
                if not self.nodes:
                    self.nodes[0] = self.release(0, self.scale)
                released.append(total + self.nodes[0])
            else:
                if (start, end) not in self.nodes or self.defect == "fresh":
                    self.nodes[start, end] = self.release(total, self.scale)
                released.append(self.nodes[start, end])
        return tuple(released)


def tree(levels=2, defect=None):
    noise = verify.clamped_noise(0, 1)
    return verify.Replayed(lambda release: Tree(release, levels, defect), noise)


class Table:
    """A mechanism given by its law: probabilities from the stream and the answers so far."""

    start = ((), ())
    queries = (None,)

    def __init__(self, chances):
        self.chances = chances

    def update(self, state, item):
        return ((*state[0], item), state[1])

    def answers(self, state, query):
        stream, told = state
        if not stream:
            return [("nothing yet", 1.0, state)]
        chances = enumerate(self.chances(stream, told))
        return [(answer, chance, (stream, (*told, answer))) for answer, chance in chances]


def brute_force(mechanism, items, neighbouring, horizon):
    """The views of all deterministic adversaries, who ask or not after each pair."""

    def views(streams, told):
        if len(streams[0]) == horizon:
            return [[(1.0, 1.0)]]
        found = []
        for pair in product(items, repeat=2):
            after = tuple((*stream, item) for stream, item in zip(streams, pair, strict=True))
            if not neighbouring(*after):
                continue
            found += views(after, told)
            chances = [mechanism.chances(stream, told) for stream in after]
            for onward in product(*(views(after, (*told, answer)) for answer in range(2))):
                found.append(
                    [
                        (chances[0][answer] * p, chances[1][answer] * q)
                        for answer, view in enumerate(onward)
                        for p, q in view
                    ]
                )
        return found

    return views(((), ()), ())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("neighbouring", [PRESENCE, CHANGE], ids=["presence", "change"])
def test_the_programme_is_the_best_of_all_adversaries(seed, neighbouring):
    generator, known = np.random.default_rng(seed), {}

    def chances(stream, told):
        return known.setdefault((stream, told), generator.dirichlet([1.0, 1.0]).tolist())

    items = (0, 1) if neighbouring is CHANGE else ITEMS
    mechanism = Table(chances)
    views = brute_force(mechanism, items, neighbouring, 2)
    assert len(views) > 150
    for epsilon in (0.0, 0.4, 1.0):
        delta = max(sum(max(0.0, p - exp(epsilon) * q) for p, q in view) for view in views)
        found = verify.continual_delta([mechanism], items, neighbouring, 2, epsilon)
        assert found == pytest.approx(delta, abs=1e-12)
    largest = max(log(p / q) for view in views for p, q in view)
    found = verify.continual_epsilon([mechanism], items, neighbouring, 2)
    assert found == pytest.approx(largest, abs=1e-9)
    renyi = max(log(sum(p**3 / q**2 for p, q in view)) / 2 for view in views)
    found = verify.continual_renyi([mechanism], items, neighbouring, 2, 3.0)
    assert found == pytest.approx(renyi, abs=1e-9)


def test_updates_are_adapted_to_answers():
    """It tells which kind of item it will reveal: only who waits for that can send it."""

    def chances(stream, told):
        if not told:
            return [0.5, 0.5]
        return [1.0, 0.0] if stream[-1] == told[0] else [0.0, 1.0]

    mechanism = Table(chances)

    def fixed(first, second):
        """An adversary who has chosen both streams beforehand."""
        views = {}
        for side, stream in enumerate((first, second)):
            for told in product(range(2), repeat=2):
                chance = chances(stream[:1], ())[told[0]] * chances(stream, told[:1])[told[1]]
                views.setdefault(told, [0.0, 0.0])[side] = chance
        return sum(max(0.0, p - q) for p, q in views.values())

    streams = list(product((None, 0, 1), repeat=2))
    pairs = [pair for pair in product(streams, repeat=2) if PRESENCE(*pair)]
    assert max(fixed(*pair) for pair in pairs) == 0.5
    assert verify.continual_delta([mechanism], (None, 0, 1), PRESENCE, 2, 0.0) == 1.0


@pytest.mark.parametrize(("delta", "count", "expected"), [(0.01, 3, 0.029701), (0.1, 2, 0.19)])
def test_parallel_mechanisms_with_delta_add_up(delta, count, expected):
    """Each announces whether it will reveal; the unequal update goes to one that will [HSV25]."""

    class Announcer:
        queries, start = (None,), (None, False)

        def __init__(self, part):
            self.part = part

        def update(self, state, item):
            return state[0], state[1] or item == self.part

        def answers(self, state, query):
            if state[0] is None:
                return [
                    (fails, chance, (fails, state[1]))
                    for fails, chance in ((True, delta), (False, 1 - delta))
                ]
            return [(state[0] and state[1], 1.0, state)]

    parts = [Announcer(part) for part in range(count)]
    items = (None, *range(count))
    # one step is enough: the announcement is asked for before it
    found = verify.continual_delta(parts, items, PRESENCE, 1, 0.0)
    assert found == pytest.approx(expected, abs=1e-12)
    alone = verify.continual_delta(parts[:1], items, PRESENCE, 1, 0.0)
    assert alone == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize(("horizon", "levels"), [(1, 1), (2, 2), (3, 2)])
def test_a_tree_has_the_loss_of_its_levels(horizon, levels):
    found = verify.continual_epsilon([tree(levels)], ITEMS, PRESENCE, horizon)
    assert found == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("levels", "defect", "asks"), [(2, "last", 1), (2, "reuse", 1), (2, "fresh", 2), (1, None, 1)]
)
def test_defects_are_caught(levels, defect, asks):
    bad = tree(levels, defect)
    assert verify.continual_epsilon([bad], ITEMS, PRESENCE, 2, asks=asks) > 0.5 + 1e-6
    assert verify.continual_delta([bad], ITEMS, PRESENCE, 2, 0.5, asks=asks) > 1e-3


def test_a_hidden_node_hides():
    """Sums of nodes tell less than nodes; the programme sees through hidden states."""
    noise = verify.clamped_noise(0, 1)

    def last(kind):
        return lambda handle, query: kind(handle(None)) if len(handle.items) == 3 else None

    sums, tuples = (verify.Replayed(Tree, noise, ask=last(kind)) for kind in (sum, tuple))
    found = [verify.continual_delta([one], ITEMS, PRESENCE, 3, 0.1) for one in (sums, tuples)]
    assert 0.0 < found[0] < found[1] - 1e-3


def test_two_mechanisms_on_one_stream_compose():
    found = verify.continual_epsilon([tree(), tree(1)], ITEMS, PRESENCE, 2)
    assert found == pytest.approx(0.5 + 2 * 0.5, abs=1e-9)
    one = verify.continual_delta([tree()], ITEMS, PRESENCE, 2, 0.5)
    assert one == pytest.approx(0.0, abs=1e-12)
    both = [tree(), tree()]
    two = verify.continual_delta(both, ITEMS, PRESENCE, 2, 0.5)
    assert verify.continual_delta(both, ITEMS, PRESENCE, 2, 1.0) < 1e-12 < two


def test_renyi_of_gaussian_nodes():
    noise = verify.clamped_noise(-6, 7, gaussian=True)
    once = verify.Replayed(lambda release: Tree(release, 1), noise)  # of scale 2
    for order in (1.5, 2.0, 8.0):
        found = verify.continual_renyi([once], ITEMS, PRESENCE, 1, order)
        assert 0.9 * order / 8 <= found <= order / 8 + 1e-9


@pytest.mark.parametrize(
    ("first", "second", "presence", "change"),
    [
        ((0, 1), (0, 1), True, True),
        ((0, 1), (0, None), True, True),
        ((0, 1), (0, 0), False, True),
        ((None, 1), (0, None), False, False),
    ],
)
def test_relations(first, second, presence, change):
    assert PRESENCE(first, second) is PRESENCE(second, first) is presence
    assert CHANGE(first, second) is change
    assert verify.events_differ(2, presence=False)(first, second)


@pytest.mark.parametrize("side", [0, 1])
def test_an_identifier_forwards_one_side(side):
    class Recorder(list):
        update = list.append

        def __call__(self, query):
            return query, list(self)

    handle = Recorder()
    identifier = verify.Identifier(handle, side, PRESENCE)
    identifier.update(3, 3)
    assert identifier("q") == ("q", [3])
    identifier.update(None, 4)
    assert handle == [3, (None, 4)[side]]
    for _ in range(2):
        with pytest.raises((InvalidValueError, StreamHaltedError)):
            identifier.update(None, 4)
    with pytest.raises(StreamHaltedError):
        identifier("q")
    assert len(handle) == 2


def test_neighbours_are_neighbours_in_both_directions():
    with pytest.raises(InvalidValueError, match="^neighbouring must be symmetric"):
        verify.continual_epsilon([tree()], (0, 1), lambda s, t: s <= t, 1)


def test_noise_is_that_of_the_clamped_distribution():
    q, law = exp(-1 / 2.0), verify.clamped_noise(0, 4)
    for value in (0, 1, 3):
        inner = [(1 - q) / (1 + q) * q ** abs(j - value) for j in range(1, 4)]
        exact = [q**value / (1 + q), *inner, q ** (4 - value) / (1 + q)]
        assert [p for _, p in law(value, 2.0)] == pytest.approx(exact, rel=1e-9)
