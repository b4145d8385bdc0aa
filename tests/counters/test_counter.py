"""Counters: the loss that they declare, their sums, their variance."""

import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.counters.dyadic import BalancedLeaves
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3  # noise is 0 but once in e^1000

KINDS = {
    "tree": {"horizon": 70, "method": "tree"},
    "smooth": {"horizon": 70, "method": "smooth"},
    "doubling": {"method": "tree"},
    "default": {"horizon": 70},
    "endless": {},
}


@pytest.fixture(params=KINDS)
def options(request):
    return KINDS[request.param]


# --- the loss --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "method", "nodes"),
    [
        (1, "tree", 1),
        (2, "tree", 2),
        (1023, "tree", 10),
        (1024, "tree", 11),
        (2**20 - 1, "tree", 20),
        (1, "smooth", 1),
        (1000, "smooth", 7),
        (2**20 - 1, "smooth", 12),
        (None, "tree", 1),
    ],
)
def test_losses_of_the_literature(bits, horizon, method, nodes):
    counter = oc.m.make_counter(*bits, PURE, float(nodes), horizon=horizon, method=method)
    assert counter.map(1) == pytest.approx(1.0, rel=1e-12)
    assert counter.map(1) >= 1.0
    counter = oc.m.make_counter(*bits, ZCDP, math.sqrt(nodes), horizon=horizon, method=method)
    assert counter.map(1) == pytest.approx(0.5, rel=1e-12)


SHIFTS = {  # of (lower, upper): by an item and nothing, by a change
    (0, 1): (1, 1),
    (-3, 5): (5, 8),
    (2, 7): (7, 7),
    (-9, -4): (9, 9),
    (-1, 0): (1, 1),
}


@pytest.mark.parametrize("bounds", SHIFTS)
@pytest.mark.parametrize("metric", ["presence", "change"])
@pytest.mark.parametrize("horizon", [None, 10, 1000])
def test_losses_against_their_formulas(bounds, metric, horizon):
    space = oc.integer_stream(*bounds), getattr(oc, f"event_{metric}")()
    shift, nodes = SHIFTS[bounds][metric == "change"], (horizon or 1).bit_length()
    scale = 40.0

    def loss(measure, d_in):
        options = {"horizon": horizon, "method": "tree"}
        return oc.m.make_counter(*space, measure, scale, **options).map(d_in)

    for d_in in (0, 1, 2, 3):
        rho = nodes * (d_in * shift / scale) ** 2 / 2
        mu = math.sqrt(nodes) * (d_in * shift + 1) / scale if d_in else 0.0
        assert loss(PURE, d_in) == pytest.approx(d_in * shift * nodes / scale, rel=1e-9)
        assert loss(dp.approximate(PURE), d_in) == (pytest.approx(loss(PURE, d_in)), 0.0)
        assert loss(ZCDP, d_in) == pytest.approx(rho, rel=1e-9)
        assert loss(oc.fixed_renyi_divergence(8.0), d_in) == pytest.approx(8 * rho, rel=1e-9)
        assert loss(oc.gaussian_tradeoff(), d_in) == pytest.approx(mu, rel=1e-9)
        truncated = loss(oc.truncated_concentrated_divergence(4.0), d_in)
        assert truncated.rho == pytest.approx(rho, rel=1e-9)
        assert loss(dp.renyi_divergence(), d_in)(5.0) == pytest.approx(5 * rho, rel=1e-9)


@pytest.mark.parametrize(
    ("d_in", "error"), [(-1, ValueError), (1.5, TypeError), (math.nan, ValueError)]
)
def test_distances_that_are_no_number_of_events(bits, d_in, error):
    with pytest.raises(error, match="^d_in"):
        oc.m.make_counter(*bits, PURE, 1.0).map(d_in)


@pytest.mark.parametrize("measure", [oc.tradeoff, lambda: dp.approximate(ZCDP)])
def test_measures_without_noise_of_their_own(bits, measure):
    with pytest.raises(UnsupportedMeasureError):
        oc.m.make_counter(*bits, measure(), 1.0)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((-1.0,), {}, InvalidValueError, "^scale"),
        ((0.0,), {}, InvalidValueError, "^scale"),
        ((math.inf,), {}, InvalidValueError, "^scale"),
        ((math.nan,), {}, InvalidValueError, "^scale"),
        ((2.0**51,), {}, InvalidValueError, "^scale"),
        (("1",), {}, InvalidTypeError, "^scale"),
        ((1.0,), {"horizon": 0}, InvalidValueError, "^horizon"),
        ((1.0,), {"horizon": 1.5}, InvalidTypeError, "^horizon"),
        ((1.0,), {"horizon": True}, InvalidTypeError, "^horizon"),
        ((1.0,), {"horizon": 2**62}, InvalidValueError, "^horizon"),
        ((1.0,), {"method": "sqrt"}, InvalidValueError, "^method"),
        ((1.0,), {"method": "smooth"}, InvalidValueError, "^method"),
    ],
)
def test_bad_arguments(bits, arguments, options, error, match):
    with pytest.raises(error, match=match):
        oc.m.make_counter(*bits, PURE, *arguments, **options)


def test_what_is_no_stream_of_integers(space):
    for domain, metric in (
        (space[0], oc.event_presence()),
        (oc.category_stream(2), oc.event_presence()),
        (oc.integer_stream(0, 1), dp.symmetric_distance()),
        (oc.integer_stream(0, 1), oc.user_presence()),
    ):
        with pytest.raises(InvalidTypeError):
            oc.m.make_counter(domain, metric, PURE, 1.0)


# --- sums ------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_exact_without_noise_in_any_interleaving(options, measure, seed):
    generator = np.random.default_rng(seed)
    space = oc.integer_stream(-3, 5), oc.event_change()
    counter = oc.m.make_counter(*space, measure, TINY, **options)([])
    stream = [None if one == 6 else one for one in generator.integers(-3, 7, size=70).tolist()]
    taken = 0
    while taken < 70:
        size = int(generator.integers(0, min(9, 71 - taken)))
        now, kind = stream[taken : taken + size], generator.integers(4)
        if kind == 0 and size:
            now = now[:1]
            counter.update(now[0], taken + 1)
        elif kind == 1 and None not in now:
            counter.update_all(np.array(now, dtype=np.int8))
        elif kind == 2:
            counter.update_all(tuple(now))
        else:
            counter.update_all(now)
        taken += len(now)
        if generator.integers(2):
            assert counter(None) == sum(one or 0 for one in stream[:taken])
    assert counter(None) == sum(one or 0 for one in stream)


def test_nothing_has_come(bits, options):
    counter = oc.m.make_counter(*bits, PURE, 1e9, **options)([])
    assert counter(None) == 0
    counter.update_all([])
    assert counter(None) == 0


def test_an_answer_is_given_again_between_updates(bits, options):
    counter = oc.m.make_counter(*bits, PURE, 1e6, **options)([])
    answers = []
    for _ in range(70):
        counter.update(1)
        answers.append(counter(None))
        assert counter(None) == counter(None) == answers[-1]
    assert len(set(answers)) > 50


def test_nodes_keep_their_noise_while_they_are_in_use(bits):
    """Of one tree: from 2^k on, only what was added since is new. Draws differ but for 10^-12."""
    counter = oc.m.make_counter(*bits, PURE, 1e12, horizon=127, method="tree")([])
    counter.update_all([0] * 64)
    sixty_four = counter(None)
    counter.update(0)
    one_more = counter(None) - sixty_four
    counter.update(0)
    assert counter(None) - sixty_four != one_more
    counter.update_all([0] * 61)
    assert counter(None) != sixty_four
    fresh = [oc.m.make_counter(*bits, PURE, 1e12, horizon=127, method="tree")([]) for _ in range(2)]
    for one in fresh:
        one.update_all([0] * 64)
    assert fresh[0](None) != fresh[1](None)


def test_a_number_of_any_size_is_added_as_it_is():
    """Integers of NumPy do not wrap, one by one as in a batch."""
    space = oc.integer_stream(0, 200), oc.event_presence()
    for kind in (np.int8, np.uint8, np.int16, np.uint64):
        for options in KINDS.values():
            counter = oc.m.make_counter(*space, PURE, TINY, **options)([])
            for _ in range(5):
                counter.update(kind(100))
            counter.update_all(np.array([100, 100, 100], dtype=kind))
            counter.update_all([kind(100), None])
            assert counter(None) == 900
            objects = np.array([kind(100)] * 3 + [None], dtype=object)
            counter.update_all(objects)
            assert counter(None) == 1200


def test_items_at_the_ends(options):
    space = oc.integer_stream(-(2**31), 2**31), oc.event_presence()
    counter = oc.m.make_counter(*space, PURE, TINY, **options)([])
    counter.update_all([2**31] * 60)
    counter.update(-(2**31))
    assert counter(None) == 59 * 2**31


def test_another_query_is_refused(bits, options):
    counter = oc.m.make_counter(*bits, PURE, TINY, **options)([])
    counter.update(1)
    for query in ("count", 0, [], ("top", 1)):
        with pytest.raises(InvalidTypeError, match="^the query must be None"):
            counter(query)
    assert counter(None) == 1


# --- the noise -------------------------------------------------------------------------------

RUNS = 2000
# A mean of n squares of standard normals is off by more than 2 sqrt(24/n) + 48/n less than once in
# 1e10 [LM00, Lemma 1]. A histogram of n categories has n counters with noise of their own.
SLACK = 2 * math.sqrt(24 / RUNS) + 48 / RUNS


@pytest.fixture
def counters():
    return oc.category_stream(RUNS), oc.event_presence()


def noise_at(histogram, steps):
    handle, before, found = histogram([]), 0, []
    for step in steps:
        handle.update_all([None] * (step - before))
        before = step
        found.append(handle(None))
    return np.array(found, dtype=float)


def variances(histogram, steps):
    return (noise_at(histogram, steps) ** 2).mean(axis=1)


@pytest.mark.parametrize("method", ["tree", "smooth"])
def test_variance_is_that_of_the_nodes_in_use(counters, method):
    horizon, scale, steps = 20, 50.0, [1, 2, 3, 7, 8, 15, 20]
    counter = oc.m.make_histogram_counter(*counters, ZCDP, scale, horizon=horizon, method=method)
    if method == "tree":
        nodes = [step.bit_count() for step in steps]
    else:
        leaves = BalancedLeaves(horizon)
        nodes = [nonempty(leaves, step) for step in steps]
        assert max(nodes) == leaves.height > min(nodes)
    expected = np.array(nodes) * scale**2
    assert np.all(np.abs(variances(counter, steps) / expected - 1) < SLACK)


def nonempty(leaves, count):
    """Nodes of a prefix that hold an item, by definition."""
    leaf = leaves.leaf(count)
    low, used = 0, [leaves.leaf(one) for one in range(count)]
    nodes = 0
    for bit in reversed(range(leaf.bit_length())):
        if leaf >> bit & 1:
            nodes += any(low <= one < low + (1 << bit) for one in used)
            low += 1 << bit
    return nodes


def test_variance_by_doubling(counters):
    """After 7 steps three totals; at step 13, those, and two nodes of the epoch of 8 steps."""
    scale, steps = 50.0, [1, 2, 3, 7, 13]
    counter = oc.m.make_histogram_counter(*counters, ZCDP, scale, method="tree")
    widths = [2, 2 + 2, 2 + 2, 6, 6 + 2 * 6]  # in squares of the scale
    expected = np.array(widths) * scale**2
    assert np.all(np.abs(variances(counter, steps) / expected - 1) < SLACK)


def test_mean_variance_of_a_tree_is_that_of_its_bits():
    bits = [step.bit_count() for step in range(1, 1025)]
    assert np.mean(bits) * 11 == pytest.approx(55.0107, abs=1e-4)  # theory 8.6


@pytest.mark.parametrize(("options", "widths"), [({"horizon": 3}, 1), ({}, 2)], ids=str)
def test_laplace_noise_has_its_scale(counters, options, widths):
    """The mean of |noise| of one node is nearly the scale; sums of exponentials, by Chernoff."""
    histogram = oc.m.make_histogram_counter(*counters, PURE, 50.0, **options)
    mean = np.abs(noise_at(histogram, [1])).mean() / 50.0
    assert abs(mean / widths - 1) < 0.16  # RUNS (x - log(1 + x)) > 22


# --- an audit --------------------------------------------------------------------------------

STEPS = [2**k for k in range(10)]  # the first item is alone in these nodes with none


def first_item_seen(counter):
    """Whether five of the ten nodes around the first item look as if it were 1.

    With noise for one node it is so in 89 % of the runs with that item, in 2 % of those without.
    """
    return sum(answer >= 1 for answer in counter) >= 5


def asked(measurement):
    def run(stream):
        handle, taken, answers = measurement([]), 0, []
        for step in STEPS:
            handle.update_all(stream[taken:step])
            taken = step
            answers.append(handle(None))
        handle.update_all(stream[taken:])
        handle(None)
        return answers

    return run


def test_an_audit_flags_a_forgotten_height(bits):
    """At T = 1000, of scale 10 for ε = 1, and of scale 1, which is for one node."""
    zeros = [0] * 1000
    one = [1, *zeros[1:]]
    right = oc.m.make_counter(*bits, PURE, 10.0, horizon=1000, method="tree")
    assert right.map(1) == pytest.approx(1.0)
    found = verify.audit(asked(right), one, zeros, first_item_seen, n=600)
    assert not found.violates(1.0)
    wrong = oc.m.make_counter(*bits, PURE, 1.0, horizon=1000, method="tree")
    found = verify.audit(asked(wrong), one, zeros, first_item_seen, n=600)
    assert found.violates(1.0)  # but for one run of the audit in 10^13
    assert not found.violates(wrong.map(1))
