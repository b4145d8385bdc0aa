"""Guards: what passes, and as what; what is refused, by the name of the argument."""

import inspect
import math
from fractions import Fraction
from typing import Annotated

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent import _checks as checks
from opendp_concurrent._checks import (
    GUARDS,
    Count,
    Positive,
    check_key,
    checked,
    hashable,
    of_annotation,
    weights,
    with_method,
)
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    NativeConstructorError,
    SharesUsedError,
)

from ..build import DATA, PURE, a_filter, an_odometer

BITS = oc.integer_stream(0, 1), oc.event_presence()


def test_an_integer_without_an_exact_double_is_refused():
    with pytest.raises(InvalidValueError, match="cannot be represented exactly as a double"):
        checks.non_negative(epsilon=2**53 + 1)


def test_numbers_pass_as_doubles():
    assert checks.non_negative(x=3) == 3.0
    assert isinstance(checks.non_negative(x=3), float)
    assert math.copysign(1.0, checks.non_negative(x=-0.0)) == 1.0
    assert checks.non_negative(x=math.inf) == math.inf


def test_the_components_of_a_loss_are_named():
    assert checks.epsilon_delta(d_mid=(1, 0)) == (1.0, 0.0)
    with pytest.raises(InvalidValueError, match=r"^d_mid\[0\] \(-1"):
        checks.epsilon_delta(d_mid=(-1.0, 0.0))
    with pytest.raises(InvalidValueError, match=r"^d_mid\[1\] \(nan"):
        checks.epsilon_delta(d_mid=(1.0, math.nan))


def test_orders_come_sorted_and_without_doubles():
    assert checks.orders(orders=[4, 2.0, 4.0]) == (2.0, 4.0)


def test_weights_are_exact():
    assert weights(weights=[0.1, 0, 3]) == [Fraction(0.1), 0, 3]


@pytest.mark.parametrize("key", ["a", 1, None, ("a", 1), (1, (2.5, b"x"))], ids=repr)
def test_what_is_hashable_and_equals_itself_is_a_key(key):
    check_key("keys", key)


@pytest.mark.parametrize("key", [math.nan, ("a", math.nan), (1, (2, math.nan))], ids=repr)
def test_what_does_not_equal_itself_is_none(key):
    with pytest.raises(InvalidValueError, match="^keys has .*does not equal itself"):
        check_key("keys", key)


@pytest.mark.parametrize("key", [[1], ("a", [1]), {}], ids=repr)
def test_what_has_no_hash_is_none(key):
    with pytest.raises(InvalidTypeError, match="^keys has .*is not hashable"):
        check_key("keys", key)


class Unhashable:
    __hash__ = None


class Opens:
    def open(self):
        return self


@pytest.mark.parametrize("value", [[], {}, ([],), Unhashable()])
def test_what_has_no_hash_is_refused_by_name(value):
    with pytest.raises(InvalidTypeError, match="^state must be hashable, found"):
        hashable(state=value)
    assert hashable(state=(1, "a")) == (1, "a")


def test_a_method_of_the_class_is_needed():
    opens = with_method("open", "have open()")
    door = Opens()
    assert opens(door=door) is door
    lying = Unhashable()
    lying.open = lambda: None
    for wrong in (lying, None, "open"):
        with pytest.raises(InvalidTypeError, match=r"^door must have open\(\), found"):
            opens(door=wrong)


# --- guards that annotations declare ---


@checked(name=checks.one_of("a", "b"))
def made(
    scale: "Positive", size: "Count | None" = None, *, flat: "bool" = False, name: "str" = "a"
):
    return scale, size, flat, name


def test_what_annotations_say_is_checked():
    assert made(2) == (2.0, None, False, "a")
    assert made(0.5, 3, flat=True, name="b") == (0.5, 3, True, "b")
    for wrong in ({"scale": 0.0}, {"size": 0}, {"name": "c"}):
        with pytest.raises(InvalidValueError, match=f"^{next(iter(wrong))} "):
            made(**{"scale": 1.0} | wrong)
    for wrong in ({}, {"scale": 1.0, "other": 2}):
        with pytest.raises(TypeError, match=r"^made\(\) "):
            made(**wrong)
    with pytest.raises(InvalidTypeError, match="^flat must be True or False"):
        made(1.0, flat=1)


def test_a_function_tells_its_guards_in_the_order_of_its_parameters():
    assert list(made.__guards__) == ["scale", "size", "flat", "name"]
    assert made.__guards__["size"].kind == "None or count"
    assert list(inspect.signature(made).parameters) == ["scale", "size", "flat", "name"]


def test_a_guard_of_no_parameter_is_a_mistake():
    with pytest.raises(AssertionError, match="wrong"):

        @checked(other=checks.count)
        def wrong(size: "Count"):
            return size


def test_an_annotation_that_cannot_be_read_is_a_mistake():
    with pytest.raises(NameError):

        @checked
        def wrong(size: "Missing"):  # noqa: F821
            return size


def test_an_object_of_opendp_without_a_guard_is_a_mistake(monkeypatch):
    from opendp.mod import Domain

    assert of_annotation(Domain) is GUARDS[Domain]
    monkeypatch.delitem(GUARDS, Domain)
    with pytest.raises(KeyError):
        of_annotation(Domain)


def test_what_carries_no_guard_is_not_guarded():
    for annotation in (float, "text", list[int], int | str, Annotated[float, "a remark"]):
        assert of_annotation(annotation) is None


# --- 0.1.0 hung, filled memory or died on bad arguments, or raised raw errors ---


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
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    one = oc.concurrent_context(DATA, unit, loss, split_evenly_over=1)
    one.query().count().laplace().release()
    with pytest.raises(SharesUsedError, match="all shares of it are used") as caught:
        one.query()
    assert isinstance(caught.value, ValueError)
    assert one.remaining_privacy_loss() == []


def test_an_odometer_of_ours_in_a_native_function():
    """OpenDP says it in its own words: the import changes none of its constructors."""
    with pytest.raises(dp.OpenDPException, match="null pointer"):
        dp.c.make_privacy_filter(an_odometer(), 1, 1.0)


def test_data_are_not_in_the_message():
    for made in (an_odometer(), a_filter()):
        for data in (["secret"], [1.25], {"secret": 1}, "secret", [10**12], iter([1])):
            with pytest.raises(ConcurrentError, match="^arg must be data") as caught:
                made(data)
            assert not any(word in str(caught.value) for word in ("secret", "1.25", str(10**12)))
