"""0.1.0 charged for children of a stream that never got an update."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, MessageLimitError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(measure=PURE):
    return oc.m.make_counter(*bits(), measure, TINY)


def odometer(measure=PURE):
    return oc.make_concurrent_odometer(*bits(), measure)


def compositor(measure=PURE):
    return oc.make_concurrent_composition(*bits(), measure, 1, [1e7, 1e7])


def shared(measure=PURE, **options):
    return oc.c.make_concurrent_continual(
        oc.make_concurrent_filter(odometer(measure), 1, 1e9), **options
    )([])


def native(measure=PURE):
    return dp.c.make_adaptive_composition(*bits(), measure, 1, [1e7, 1e7])


# --- what is refused, before anything is charged ---------------------------------------------


def test_compositions_on_a_stream_are_not_wrapped():
    compositions = (compositor(), oc.make_concurrent_filter(odometer(), 1, 1.0))
    for composition in (*compositions, oc.c.cast(compositor(), ZCDP)):
        for wrap in (
            oc.c.make_interactive,
            lambda one: oc.c.make_bounded_interactive(one, 5),
            lambda one: oc.c.make_interactive_postprocessing(one, lambda *now: now),
            lambda one: oc.c.make_indexed_composition(*bits(), one.output_measure, 1, [one]),
        ):
            with pytest.raises(InvalidTypeError, match="make_concurrent_continual"):
                wrap(composition)
    with pytest.raises(InvalidTypeError, match="make_concurrent_continual"):
        oc.c.make_parallel_continual(*bits(), bool, {True: compositor()})


def test_mechanisms_on_data_as_they_are_refuse_a_stream():
    for make in (
        lambda: oc.m.make_sparse_vector(*bits(), PURE, 1, 1.0, 1, 1, sensitivity=1),
        lambda: oc.m.make_above_threshold(*bits(), PURE, 1, scale=1.0, threshold=1, sensitivity=1),
        lambda: oc.m.make_guess_and_check(
            *bits(), PURE, 1, scale=1.0, tolerance=1, max_hits=1, sensitivity=1
        ),
    ):
        with pytest.raises(InvalidTypeError, match="is a stream, whose items come later"):
            make()


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=str)
def test_a_refused_composition_is_not_charged(measure):
    options = {} if measure == PURE else {"max_messages": 99}
    stream = shared(measure, **options)
    hidden = [
        compositor(measure),
        oc.make_concurrent_filter(odometer(measure), 1, 1.0),
        odometer(measure),
    ]
    for composition in hidden:
        with pytest.raises(InvalidTypeError, match="would not receive the updates"):
            stream(composition)
    assert stream.privacy_loss() == 0.0
    child = stream(counter(measure))
    stream.update(1)
    assert child(None) == 1


@pytest.mark.parametrize("below", [PURE, ZCDP], ids=str)
def test_what_a_child_launches_later_is_fed_and_counted(below):
    plan = oc.make_concurrent_composition(*bits(), PURE, 1, [1e4])
    stream = shared(ZCDP, max_messages=5)
    child = stream(native(ZCDP) if below == ZCDP else dp.c.make_pureDP_to_zCDP(plan))
    stream.update(1)
    later = child(counter(below))
    stream.update(1)
    assert [later(None) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(MessageLimitError):  # 1 launch, 3 queries, 1 update since then
        later(None)


def test_transformations_of_opendp_are_not_for_streams():
    """They would run once, on the empty stream, and items would pass them by."""
    twice = dp.t.make_user_transformation(
        *bits(), *bits(), function=lambda data: data, stability_map=lambda d_in: d_in
    )
    for behind in (counter(), odometer(), oc.c.make_interactive(counter())):
        with pytest.raises(InvalidTypeError, match="make_stream_map"):
            twice >> behind


def test_only_compositions_are_made_concurrent():
    for other in (counter(), oc.c.make_interactive(counter())):
        with pytest.raises(InvalidTypeError, match="^composition must be made by"):
            oc.c.make_concurrent_continual(other)
