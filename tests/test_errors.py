"""Exceptions as values: they can be printed, copied and sent to another process."""

import copy
import inspect
import math
import pickle
import sys

import pytest

from opendp_concurrent import errors
from opendp_concurrent.errors import SHOWN, pass_interrupt, shown

KINDS = [
    one
    for one in vars(errors).values()
    if inspect.isclass(one) and issubclass(one, errors.ConcurrentError)
]


@pytest.mark.parametrize("again", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_each_error_survives_pickling_with_its_fields(again):
    for kind in KINDS:
        arguments = [
            "one"
            for one in list(inspect.signature(kind.__init__).parameters.values())[1:]
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        ]
        error = kind(*arguments)
        other = again(error)
        assert type(other) is kind
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize("asked", [math.inf, (math.inf, 0.0)])
def test_an_infinite_loss_is_named(asked):
    error = errors.BudgetExceededError(0.0, asked, 1.0, d_out=1.0)
    assert "no budget admits an infinite privacy loss, such as that of a noise scale of 0" in str(
        error
    )
    assert "what remains" not in str(error)
    assert "infinite" not in str(errors.BudgetExceededError(0.0, 2.0, 1.0, d_out=1.0))


class Hostile:
    def __repr__(self):
        raise ValueError("row 17")


def test_a_value_that_cannot_be_written_is_named_by_its_class():
    assert shown(Hostile()) == "one Hostile"


def test_a_long_value_is_cut():
    assert shown("x" * (SHOWN - 2)) == repr("x" * (SHOWN - 2))
    assert shown("x" * (SHOWN - 1)) == "'" + "x" * (SHOWN - 4) + "..."
    assert len(shown(list(range(10**4)))) == SHOWN


class Told(KeyboardInterrupt):
    """An interrupt with a text of its own."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Told])
def test_an_interrupt_is_raised_anew_even_within_a_handler(kind):
    told = kind("row 3")
    if sys.version_info >= (3, 11):
        told.add_note("row 3")

    def handled():
        try:
            raise told from ValueError("row 3")
        except KeyboardInterrupt as error:
            pass_interrupt(error)

    with pytest.raises(KeyboardInterrupt) as caught:
        handled()
    found = caught.value
    assert type(found) is KeyboardInterrupt
    assert (found.args, found.__cause__, found.__context__) == ((), None, None)
    assert not getattr(found, "__notes__", [])
