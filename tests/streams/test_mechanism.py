"""Updates and queries: what halts, is refused and hidden, what threads do; and alarms."""

import itertools
import math
import threading

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamError, StreamHaltedError
from opendp_concurrent.mechanisms.sparse_vector import NoisyComparison

from ..build import PURE, RENYI, SPACE, ZCDP, in_threads
from .machines import Heard

TINY = 1e-3  # noise is 0 but once in e^1000
BITS = oc.integer_stream(0, 1), oc.event_presence()
KINDS = [{"horizon": 50}, {}]


def counter(**options):
    return oc.m.make_counter(*BITS, PURE, TINY, **options)([])


INVALID = [2, 2**80, 1.0, float("nan"), object(), np.uint64(2**64 - 1)]


@pytest.mark.parametrize("item", INVALID, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_an_invalid_item_halts_for_good(item, options):
    for send in (
        lambda handle: handle.update(item),
        lambda handle: handle.update_all([1, item, 0]),
        lambda handle: handle.update_all([None, item]),
        lambda handle: handle(oc.handles.Update(item)),
    ):
        handle = counter(**options)
        handle.update(1)
        for message in (send, lambda h: h.update(1), lambda h: h(None), lambda h: h.update_all([])):
            with pytest.raises(StreamHaltedError):
                message(handle)


ARRAYS = [
    np.array([1, 2**64 - 1], dtype=np.uint64),  # which would wrap
    np.array([2**63], dtype=np.uint64),
    np.array([-1], dtype=np.int8),
    np.array([1.0, 0.0]),
    np.ones((2, 2), dtype=int),
    np.array([1, "1"], dtype=object),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_an_invalid_array_halts_for_good(array, options):
    handle = counter(**options)
    with pytest.raises(StreamHaltedError):
        handle.update_all(array)
    with pytest.raises(StreamHaltedError):
        handle(None)


@pytest.mark.parametrize(
    ("items", "total"),
    [
        ([], 0),
        ((1, 0, None), 1),
        (np.array([True, False, True]), 2),
        (np.array([1, 1], dtype=np.uint64), 2),
        (np.array([], dtype=np.float64), 0),
        (np.array([1, None, 1], dtype=object), 2),
        ([np.uint64(1), 1, np.int8(1)], 3),
        (range(2), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_batches_of_all_kinds(items, total, options):
    handle = counter(**options)
    handle.update_all(items)
    assert handle(None) == total
    handle.update(1)
    assert handle(None) == total + 1


def test_the_horizon():
    handle = counter(horizon=50)
    handle.update_all([1] * 48)
    with pytest.raises(StreamError, match=r"horizon \(50 steps\)"):
        handle.update_all([1] * 3)
    assert handle(None) == 48
    with pytest.raises(StreamError):
        handle.update_all([None] * 3)
    handle.update_all([1] * 2)
    for item in (1, None, 7):
        with pytest.raises(StreamError):
            handle.update(item)
    handle.update_all([])
    assert handle(None) == 50


# --- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"horizon": 4000}, {}], ids=str)
def test_eight_threads_update_and_ask(options):
    handle = counter(**options)

    def work(number):
        for turn in range(60):
            if turn % 3:
                handle.update(1)
            else:
                handle.update_all([1] * 5)
            assert 0 < handle(None) <= 8 * (40 + 100)

    in_threads(work, range(8))
    assert handle(None) == 8 * (40 + 100)


def test_of_eight_threads_one_has_the_step():
    handle, taken = counter(), []

    def work(number):
        for step in range(1, 41):
            try:
                handle.update(1, step)
            except StreamError:
                continue
            taken.append(step)

    in_threads(work, range(8))
    assert sorted(taken) == sorted(set(taken)) == list(range(1, len(taken) + 1))
    assert handle(None) == len(taken) >= 1


# --- launches and updates of one stream waited for each other for ever, and updates came twice ---


class Steps(Heard):
    """Tells how many steps have come to it, and does something at each."""

    def __init__(self, at_step=lambda step: None):
        super().__init__()
        self.at_step = at_step

    def update(self, item):
        super().update(item)
        self.at_step(len(self.items))

    def ask(self, query):
        return len(self.items)


def steps(at_step=lambda step: None):
    return oc.m.make_continual(*BITS, PURE, lambda: Steps(at_step), lambda d_in: 1.0 * d_in)


def test_a_launch_on_a_native_child_and_an_update_do_not_wait_for_each_other(make_stream):
    """An update that is at the first mechanism waits until the launch has taken the lock."""
    stream, updating, launching = make_stream(BITS)([]), threading.Event(), threading.Event()

    def start():
        launching.set()  # below the native child, whose lock is held
        assert updating.wait(20)
        return Steps()

    late = oc.m.make_continual(*BITS, PURE, start, lambda d_in: 1.0 * d_in)
    first = stream(steps(lambda step: updating.set()))
    native = stream(dp.c.make_adaptive_composition(*BITS, PURE, d_in=1, d_mids=[1.0] * 3))
    early = native(steps())  # takes turns with `native`

    def update():
        launching.wait(20)
        stream.update(1)

    both = [threading.Thread(target=update, daemon=True)]
    both.append(threading.Thread(target=native, args=(late,), daemon=True))
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(30)
    assert not any(thread.is_alive() for thread in both)
    assert [first(None), early(None)] == [1, 1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_was_cut_off_is_not_taken_again(error):
    """The first mechanism has the item, the second was stopped; so its step is over."""
    stop = [True]

    def fail(step):
        if stop and stop.pop():
            raise error

    both = oc.c.make_indexed_composition(*BITS, PURE, 1, [steps(), steps(fail)])([])
    with pytest.raises(error):
        both.update(1, step=1)
    with pytest.raises(StreamError, match="must be 2"):
        both.update(1, step=1)
    assert both((0, None)) == 1


# --- the alarm: a sparse vector whose data arrive ------------------------------------------------


def noise_of(alarm):
    """The noise of the comparisons of a fresh alarm."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        place = "opendp_concurrent.mechanisms.NoisyComparison"
        patch.setattr(place, lambda noise: seen.append(noise) or NoisyComparison(noise))
        alarm([])
    return seen[0]


def space(lower=0, upper=1, metric=None):
    return oc.integer_stream(lower, upper), metric or oc.event_presence()


@pytest.mark.parametrize("window", [None, 1, 3, 10])
def test_without_noise_it_compares_the_sum(window):
    random = np.random.default_rng(5)
    items = random.integers(-2, 4, size=60).tolist()
    alarm = oc.m.make_alarm(*space(-2, 3), PURE, TINY, 7, max_hits=1000, window=window)([])
    for step, item in enumerate(items, 1):
        alarm.update(item if item else None)
        now = sum(items[max(0, step - (window or step)) : step])
        assert bool(alarm(None)) == (now >= 7)
        assert alarm(now)
        assert not alarm(now + 1)
    batched = oc.m.make_alarm(*space(-2, 3), PURE, TINY, 7, window=window)([])
    batched.update_all(items)
    now = sum(items[-(window or 60) :])
    assert bool(batched(now - 0.5))
    assert batched(now).outcome is oc.handles.Outcome.EXHAUSTED


def test_hits_are_counted_and_queries_below_are_free():
    alarm = oc.m.make_alarm(*space(), PURE, TINY, 2, max_hits=2)([])
    said = []
    for _ in range(6):
        said.append(alarm(None).outcome.name)
        alarm.update(1)
    assert said == ["BELOW", "BELOW", "ABOVE", "ABOVE", "EXHAUSTED", "EXHAUSTED"]


LOSSES = [  # the move of an event, and how many of them a query's noise is shifted by
    ((0, 1), oc.event_presence, 1, 1),
    ((-4, 0), oc.event_presence, 4, 1),
    ((2, 5), oc.event_presence, 5, 1),
    ((-3, 2), oc.event_presence, 3, 2),
    ((-3, 2), oc.event_change, 5, 2),
    ((2, 5), oc.event_change, 5, 2),
]


@pytest.mark.parametrize(("bounds", "metric", "shift", "times"), LOSSES)
@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
def test_the_loss_is_that_of_the_sparse_vector(bounds, metric, shift, times, d_in):
    keywords = {"scale": 16.0, "query_scale": 64.0, "max_hits": 3, "threshold": 5}
    for refresh in (False, True):
        alarm = oc.m.make_alarm(*space(*bounds, metric()), PURE, refresh=refresh, **keywords)
        exact = (3 if refresh else 1) * d_in * shift / 16 + 3 * times * d_in * shift / 64
        assert exact <= alarm.map(d_in) <= exact * (1 + 1e-12)


def test_no_adaptive_pair_of_streams_exceeds_the_loss():
    """All pairs of binary streams of three steps, asked at each: laws summed over the noise."""
    scale, query_scale, threshold, reach = 2.0, 3.0, 1, 60
    decay, rate = math.exp(-1 / scale), math.exp(-1 / query_scale)

    center = round(rate / (1 - rate)) - round(decay / (1 - decay))  # of one-sided noise

    def mass(k):
        return (1 - decay) * decay**k

    def above(gap):
        """P(noise >= gap)."""
        return rate ** max(gap, 0)

    def law(stream, outcomes):
        """Outcomes: below until the first above, at which it ends."""
        total = 0.0
        for noise in range(reach + 1):
            probability = mass(noise)
            for step, said in enumerate(outcomes, 1):
                hit = above(threshold + center + noise - sum(stream[:step]))
                probability *= hit if said else 1 - hit
            total += probability
        return total

    conversations = [(0,) * k + (1,) for k in range(3)] + [(0, 0, 0)]
    alarm = oc.m.make_alarm(*space(), PURE, scale, threshold, query_scale=query_scale)
    worst = 0.0
    for stream in itertools.product([0, 1], repeat=3):
        for at in range(3):
            other = [*stream[:at], 1 - stream[at], *stream[at + 1 :]]
            for outcomes in conversations:
                worst = max(worst, math.log(law(stream, outcomes) / law(other, outcomes)))
    assert 0.3 < worst <= alarm.map(1)


@pytest.mark.parametrize("measure", [PURE, ZCDP, RENYI])
def test_its_noise_is_one_sided_at_the_same_loss(measure):
    """Under Rényi DP the threshold's noise is two-sided, which costs less there."""
    scales = {"scale": 4.0, "query_scale": 8.0}
    alarm = oc.m.make_alarm(*space(), measure, threshold=5, **scales)
    noise = noise_of(alarm)
    curves = measure == RENYI
    assert (noise.one_sided_query, noise.one_sided_threshold) == (True, not curves)
    static = oc.m.make_sparse_vector(
        *SPACE, measure, 1, threshold=5, max_hits=1, monotone=True, **scales
    )
    loss, other = alarm.map(1), static.map(1)
    if curves:  # outcomes decide the direction, which Rényi DP may charge for
        assert other(3.0) <= loss(3.0)
    else:
        assert loss == other


def test_the_noise_of_its_threshold_is_never_below_its_mean():
    """Laplace noise of scale 20 is in one run of six."""
    one, above = oc.m.make_alarm(*space(0, 100), PURE, 20.0, 100, query_scale=TINY), 0
    for _ in range(200):
        alarm = one([])
        alarm.update(100)
        above += bool(alarm(121))
    assert above == 0


def test_the_noise_of_its_queries_is_never_negative():
    """Two-sided noise, or noise that is subtracted, would say BELOW to almost half."""
    alarm = oc.m.make_alarm(*space(0, 1000), PURE, TINY, 100, query_scale=20.0, max_hits=2000)
    queryable = alarm([])
    queryable.update(1000)
    assert all(queryable(1000 - 20) for _ in range(200))
