"""What Python functions raise in native calls; OpenDP's callbacks are as OpenDP made them."""

import traceback

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent._opendp.calls import call_native, carry
from opendp_concurrent.errors import BudgetExceededError

from ..build import PURE, SPACE, costing
from ..forks import run_program


def user(function, privacy_map=lambda d_in: 0.1):
    return costing(privacy_map, function)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", ["function", "map", "transition", "nested"])
def test_what_is_no_exception_comes_out_below_a_call_of_ours(kind, call):
    def fail(argument):
        raise kind("its own words")

    calls = {
        "function": lambda: user(fail)([1]),
        "map": lambda: user(len, fail).map(1),
        "transition": lambda: dp.new_queryable(fail)(1),
        "nested": lambda: user(user(fail))([1]),
    }
    with pytest.raises(kind, match="its own words") as caught:
        call_native(calls[call])
    assert caught.value.__cause__ is None
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert all(frame.name != "fail" for frame in frames)  # its frames may hold data


def test_an_interrupt_that_a_function_swallows_is_raised_all_the_same():
    def fail(rows):
        raise KeyboardInterrupt

    inner = user(fail)

    def swallow(rows):
        try:
            return inner(rows)
        except Exception:
            return 7

    with pytest.raises(KeyboardInterrupt):
        call_native(user(swallow), [1])


def test_a_function_of_ours_raises_no_other_than_exceptions_to_opendp():
    def fail(argument):
        raise KeyboardInterrupt

    queryable = dp.new_queryable(carry(fail))
    with pytest.raises(dp.OpenDPException, match="stopped by KeyboardInterrupt"):
        queryable(1)  # OpenDP's own call, which nothing of ours surrounds
    with pytest.raises(KeyboardInterrupt):
        call_native(queryable, 1)


def no():
    raise BudgetExceededError(0.5, 1.0, 0.25)


def test_our_errors_cross_native_calls_with_their_values():
    def refuse(rows):
        call_native(no)

    with pytest.raises(BudgetExceededError) as caught:
        call_native(user(user(refuse)), [1])
    assert (caught.value.spent, caught.value.asked, caught.value.remaining) == (0.5, 1.0, 0.25)


def test_an_error_that_was_swallowed_is_not_raised_for_another():
    def swallow(rows):
        try:
            call_native(no)
        except BudgetExceededError:
            raise KeyError("another") from None

    with pytest.raises(Exception, match="another") as caught:
        call_native(user(swallow), [1])
    assert not isinstance(caught.value, BudgetExceededError)


HOSTILE = """
import dataclasses

@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    text: str

def behind(text):
    try:
        raise ValueError from Frozen(text)
    except ValueError as found:
        return found

kinds = [Frozen, behind, type("Base", (BaseException,), {}), SystemExit]
kinds += [lambda text: ValueError(chr(0xD800) + text)]
odometer = oc.make_concurrent_odometer(*space, PURE)
for make in kinds:
    def fail(_):
        raise make("a row")
    for opaque in (False, True):
        root = oc.make_concurrent_filter(odometer, 1, 1e9, opaque_errors=opaque)([1, 2, 3])
        for query, charged in (
            (dp.m.make_user_measurement(*space, PURE, fail, lambda d_in: d_in), True),
            (dp.m.make_user_measurement(*space, PURE, len, fail), False),
        ):
            try:
                root(query)
            except BaseException as error:
                assert oc.errors.charged(error) is charged
                assert not (opaque and charged and "a row" in str(error))
print("lives")
"""


def test_no_class_of_an_exception_ends_the_process():
    """OpenDP's callbacks write the text of what is raised, outside of any handler."""
    run = run_program(HOSTILE)
    assert (run.returncode, run.stdout) == (0, "lives\n"), run.stderr[-2000:]


def test_the_text_of_an_exception_begins_where_the_function_does():
    def fail(_):
        raise ValueError("my reason")

    root = oc.make_concurrent_odometer(*SPACE, PURE)([1])
    with pytest.raises(
        OpenDPException, match="(?s)Traceback.*in fail.*ValueError: my reason"
    ) as told:
        root(user(fail))
    assert "in interruptible" not in str(told.value)
