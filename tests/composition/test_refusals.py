"""What a combinator refuses of its own: the class of the error, and the argument that it names."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
SEQUENTIAL = dp.approximate(dp.zero_concentrated_divergence())


def of(measure=PURE, loss=0.25):
    return dp.m.make_user_measurement(*SPACE, measure, len, lambda d_in: loss)


def indexed(measurements, measure=PURE):
    return oc.c.make_indexed_composition(*SPACE, measure, 1, measurements)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (InvalidTypeError, "delta", lambda: oc.c.cast(of(), oc.tradeoff(), delta=1e-6)),
        (InvalidTypeError, "measurements", lambda: indexed(of())),
        (InvalidTypeError, r"measurements\[1\]", lambda: indexed([of(), len])),
        (InvalidValueError, "measurements", lambda: indexed([])),
        (
            UnsupportedMeasureError,
            "Approximate",
            lambda: indexed([of(SEQUENTIAL, (0.1, 1e-9))] * 2, SEQUENTIAL),
        ),
        (
            InvalidTypeError,
            "postprocessor",
            lambda: oc.c.make_interactive_postprocessing(of(), 7),
        ),
    ],
)
def test_it_is_refused_by_the_name_of_the_argument(error, words, call):
    with pytest.raises(error, match=f"^{words}"):
        call()
