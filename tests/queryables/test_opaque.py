"""Errors of mechanisms, which may carry rows of the data, kept from the analyst."""

import logging

import pytest

from opendp_concurrent.accounting.lifecycle import Lifecycle
from opendp_concurrent.errors import MechanismError
from opendp_concurrent.queryables.data import hide_errors

SECRET = "row 31415"
OPAQUE, PLAIN = Lifecycle(opaque=True), Lifecycle()


def fail(error):
    raise error


def test_what_succeeds_is_returned(caplog):
    assert hide_errors(OPAQUE, int, "7") == hide_errors(PLAIN, int, "7") == 7
    assert caplog.records == []


def test_an_error_is_as_it_is_unless_it_is_hidden():
    error = ValueError(SECRET)
    with pytest.raises(ValueError, match=SECRET) as raised:
        hide_errors(PLAIN, fail, error)
    assert raised.value is error


def test_a_hidden_error_is_logged_for_the_owner_and_tells_nothing_to_the_analyst(caplog):
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(MechanismError) as raised,
    ):
        hide_errors(OPAQUE, fail, ValueError(SECRET))
    assert SECRET not in str(raised.value)
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None
    (record,) = caplog.records
    assert str(record.exc_info[1]) == SECRET


def test_an_error_that_is_hidden_already_is_logged_once(caplog):
    with pytest.raises(MechanismError):
        hide_errors(OPAQUE, hide_errors, OPAQUE, fail, ValueError(SECRET))
    assert len(caplog.records) == 1


def test_an_interrupt_is_no_error_of_a_mechanism(caplog):
    with pytest.raises(KeyboardInterrupt) as raised:
        hide_errors(OPAQUE, fail, KeyboardInterrupt())
    frames = []
    trace = raised.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "fail" not in frames  # whose arguments may be data
    assert caplog.records == []
