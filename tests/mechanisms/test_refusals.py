"""Measures and shares that a mechanism refuses of its own, by class and name of the argument."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, UnsupportedMeasureError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def weights(measure, **options):
    given = {"size": 1000, **options}
    return oc.m.make_private_multiplicative_weights(*SPACE, measure, 1, 1.0, 4, 9, **given)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (UnsupportedMeasureError, "output_measure", lambda: weights(dp.renyi_divergence())),
        (UnsupportedMeasureError, "output_measure", lambda: weights(oc.tradeoff())),
        (InvalidValueError, "beta", lambda: weights(ZCDP, beta=1.0)),
        (
            UnsupportedMeasureError,
            "output_measure",
            lambda: oc.m.make_projected_queries(*SPACE, PURE, 1, [0.5], 4, size=10),
        ),
        (
            InvalidValueError,
            "beta",
            lambda: oc.mechanisms.sparse_vector_accuracy(2.0, 4.0, 9, beta=0.0),
        ),
    ],
)
def test_it_is_refused_by_the_name_of_the_argument(error, words, call):
    with pytest.raises(error, match=f"^{words}"):
        call()
