"""Exceptions as values: they can be printed, copied and sent to another process."""

import copy
import inspect
import math
import pickle

import pytest

from opendp_concurrent import errors

KINDS = [
    one
    for one in vars(errors).values()
    if inspect.isclass(one) and issubclass(one, errors.ConcurrentError)
]


def test_users_find_every_error_in_one_module():
    assert {one.__name__ for one in KINDS} >= {
        *("BlockExceededError", "ForkedError", "LedgerError", "MechanismError", "StreamError"),
        "TableError",
    }
    assert {one.__module__ for one in KINDS} == {"opendp_concurrent.errors"}


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


@pytest.mark.parametrize(
    ("account", "words"),
    [
        (("filter",), "the filter"),
        (("odometer", "filter 'a'"), "filter 'a' of the odometer"),
        (("filter of ledger 'a b'", "odometer 2"), "odometer 2 of the filter of ledger 'a b'"),
        (("filter 'b of c' of ledger 'a'",), "filter 'b of c' of ledger 'a'"),
    ],
)
def test_a_path_is_read_from_its_end(account, words):
    assert errors.phrase(account) == words


@pytest.mark.parametrize("asked", [math.inf, (math.inf, 0.0)])
def test_an_infinite_loss_is_named(asked):
    error = errors.BudgetExceededError(0.0, asked, 1.0, d_out=1.0)
    assert "no budget admits an infinite privacy loss, such as that of a noise scale of 0" in str(
        error
    )
    assert "what remains" not in str(error)
    assert "infinite" not in str(errors.BudgetExceededError(0.0, 2.0, 1.0, d_out=1.0))


def test_an_error_of_an_event_has_the_event_and_a_public_name():
    event = object()
    assert errors.UnsupportedEventError("not known", event).event is event
