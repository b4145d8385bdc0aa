"""What leaves a mechanism whose errors are hidden has nothing of a row in any frame."""

import logging

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import MechanismError

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROW = 918273645


def launched(failing):
    """Launch a mechanism that fails, and return what comes out."""

    def function(rows):
        raise failing(f"cannot handle {rows[0]}")

    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 1.0, opaque_errors=True)([ROW])
    measurement = dp.m.make_user_measurement(
        *SPACE, dp.max_divergence(), function, lambda d_in: 0.25 * d_in, TO=int
    )
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        root(measurement)
    return caught.value


def told(error):
    """What a tool that prints the locals of all frames would show of this package's frames."""
    found = [repr(error), repr(error.__cause__), repr(error.__context__)]
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    for frame in frames:
        if frame.f_globals["__name__"].startswith("opendp_concurrent"):
            for value in frame.f_locals.values():
                found.append(repr(value))
                if isinstance(value, BaseException):
                    found += [repr(value.__context__), repr(value.__cause__)]
    assert len(frames) > 1
    return " ".join(found)


class Exiting(logging.Handler):
    def emit(self, record):
        raise SystemExit(f"row {ROW}")


def test_a_log_that_fails_hides_what_it_was_told():
    logger = logging.getLogger("opendp_concurrent.measurements")
    handler = Exiting()
    logger.addHandler(handler)
    try:
        error = launched(ValueError)
    finally:
        logger.removeHandler(handler)
    assert type(error) is MechanismError
    assert str(ROW) not in told(error)
