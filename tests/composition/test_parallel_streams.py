"""0.1.0 took a stream in make_parallel_composition, and claimed the maximum for every measure."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

PURE = dp.max_divergence()
MEASURES = {
    "pure": lambda: PURE,
    "approximate": lambda: dp.approximate(PURE),
    "zcdp": dp.zero_concentrated_divergence,
    "gaussian": oc.gaussian_tradeoff,
}
PARTITIONS = {
    "split": lambda: oc.c.by_split(lambda data, keys: dict.fromkeys(keys, data)),
    "key": lambda: oc.c.by_key(lambda item: item),
    "values": lambda: oc.c.by_values({0: [0], 1: [1]}),
}


def stream():
    return oc.integer_stream(0, 1), oc.event_presence()


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("measure", MEASURES)
def test_a_stream_is_refused_with_the_reason(measure, partition):
    one = oc.m.make_counter(*stream(), MEASURES[measure](), 10.0)
    with pytest.raises(InvalidTypeError, match=r"HSV25.*make_parallel_continual"):
        oc.c.make_parallel_composition(*stream(), PARTITIONS[partition](), {0: one, 1: one})


def test_vectors_of_streams_are_refused():
    space = dp.vector_domain(stream()[0]), dp.symmetric_distance()
    count = dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 1.0, TO=int)
    with pytest.raises(InvalidTypeError, match="is a stream"):
        oc.c.make_parallel_composition(*space, PARTITIONS["key"](), {0: count})


def own():
    return dp.user_domain("Tables", lambda data: isinstance(data, dict)), dp.user_distance("Rows")


def hidden():
    """On a domain of one's own, and spawns a counter."""
    return dp.m.make_user_measurement(
        *own(),
        PURE,
        lambda data: oc.m.make_counter(*stream(), PURE, 1.0)([]),
        lambda d_in: 0.5,
        TO="ExtrinsicObject",
    )


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: one,
        dp.c.make_pureDP_to_zCDP,
        lambda one: oc.c.cast(one, dp.zero_concentrated_divergence()),
    ],
)
def test_a_child_that_takes_updates_is_refused_when_it_is_opened(wrap):
    parts = oc.c.make_parallel_composition(*own(), PARTITIONS["split"](), {0: wrap(hidden())})({})
    with pytest.raises(InvalidTypeError, match=r"takes updates.*HSV25"):
        parts(0)
    with pytest.raises(Exception, match="each measurement runs only once"):
        parts(0)


def made_before():
    """Hands out a counter that it did not spawn itself."""
    counter = oc.m.make_counter(*stream(), PURE, 1.0)([])
    return dp.m.make_user_measurement(
        *own(), PURE, lambda data: counter, lambda d_in: 0.5, TO="ExtrinsicObject"
    )


def test_a_child_that_was_made_elsewhere_is_refused_when_it_is_opened():
    parts = oc.c.make_parallel_composition(*own(), PARTITIONS["split"](), {0: made_before()})({})
    with pytest.raises(InvalidTypeError, match=r"measurements\[0\] takes updates.*HSV25"):
        parts(0)
