"""0.1.0 hung, filled memory or died on bad arguments, took nonsense, or raised raw errors."""

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    NativeConstructorError,
    SharesUsedError,
)

dp.enable_features("contrib", "honest-but-curious")

T = oc.TradeoffFunction
PURE = dp.max_divergence()
BITS = oc.integer_stream(0, 1), oc.event_presence()


@pytest.fixture
def vector():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def context(**split):
    return oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), **split
    )


@pytest.mark.parametrize(
    "value",
    [-(10**5000), "a" * 10**6, [[[]]] * 10**5, object()],
    ids=["digits", "text", "list", "object"],
)
def test_a_message_is_short_whatever_the_value(value):
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        oc.c.make_interactive_postprocessing(
            oc.m.make_counter(*BITS, PURE, 1.0), print, max_asks=value
        )
    assert len(str(caught.value)) < 1000


def test_what_opendp_refuses_is_named_and_is_an_opendp_exception():
    with pytest.raises(NativeConstructorError, match=r"input_domain \(.*String") as caught:
        oc.m.make_certified_laplace(dp.atom_domain(T=str), dp.absolute_distance(T=int), 1.0, PURE)
    assert isinstance(caught.value, OpenDPException)


def test_a_split_context_that_is_used_up():
    one = context(split_evenly_over=1)
    one.query().count().laplace().release()
    with pytest.raises(SharesUsedError, match="all shares of it are used") as caught:
        one.query()
    assert isinstance(caught.value, ValueError)
    assert one.remaining_privacy_loss() == []


def test_an_odometer_of_ours_in_a_native_function(vector):
    """OpenDP says it in its own words: the import changes none of its constructors."""
    with pytest.raises(dp.OpenDPException, match="null pointer"):
        dp.c.make_privacy_filter(oc.make_concurrent_odometer(*vector, PURE), 1, 1.0)


def test_data_are_not_in_the_message(vector):
    for made in (
        oc.make_concurrent_odometer(*vector, PURE),
        oc.make_concurrent_filter(oc.make_concurrent_odometer(*vector, PURE), 1, 1.0),
    ):
        for data in (["secret"], [1.25], {"secret": 1}, "secret", [10**12], iter([1])):
            with pytest.raises(ConcurrentError, match="^arg must be data") as caught:
                made(data)
            assert not any(word in str(caught.value) for word in ("secret", "1.25", str(10**12)))
