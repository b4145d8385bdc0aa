"""What a mechanism says of its error before it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.queryables.named_queries import Accuracy, of_one


@given(st.floats(1e-12, 0.999), st.integers(1, 10**6))
def test_all_answers_fail_with_beta_if_each_fails_on_its_own(beta, answers):
    each = of_one(lambda failing: failing)(beta, answers)
    assert 1 - (1 - each) ** answers == pytest.approx(beta, rel=1e-6, abs=1e-9)
    assert beta / answers <= each * (1 + 1e-12)
    assert each <= beta * (1 + 1e-12)


def test_the_number_of_answers_is_that_of_a_release_or_must_be_given():
    bound = lambda beta, answers: answers / beta  # noqa: E731
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, None) == 8.0
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, 3) == 6.0
    with pytest.raises(InvalidTypeError, match="^answers must be given"):
        Accuracy("Laplace", 1.0, bound).at(0.5, None)
