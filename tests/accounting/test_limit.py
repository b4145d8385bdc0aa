"""Terms of a limit, which do not change."""

import numpy as np
import pytest

from opendp_concurrent.accounting.best_rule import Zcdp
from opendp_concurrent.accounting.store import Limit, Terms, require_same_terms
from opendp_concurrent.errors import LimitMismatchError
from opendp_concurrent.measures.measure import Basic

TERMS = {
    "measure": "MaxDivergence",
    "accumulator": Basic(),
    "metric": "SymmetricDistance()",
    "d_in": 1,
    "d_out": 0.5,
}


def test_equal_terms_are_the_same():
    require_same_terms(("a",), Terms(**TERMS), Terms(**TERMS))
    arrays = [Terms(**TERMS | {"d_in": (np.array([1.0, 2.0]),)}) for _ in range(2)]
    require_same_terms(("a",), *arrays)
    require_same_terms(("a",), Terms(**TERMS), Terms(**TERMS | {"d_in": 1.0}))  # the same number


@pytest.mark.parametrize(
    ("field", "argument", "other"),
    [
        ("measure", "output_measure", "ZeroConcentratedDivergence"),
        ("accumulator", "accumulator", Zcdp(1e-6)),
        ("metric", "input_metric", "InsertDeleteDistance()"),
        ("d_in", "d_in", 2),
        ("d_out", "d_out", 0.25),
    ],
)
def test_other_terms_are_refused_by_the_name_of_the_argument(field, argument, other):
    said = f"^{argument} of the limit 'team' > 'ann' does not match: it was opened with"
    with pytest.raises(LimitMismatchError, match=said) as refusal:
        require_same_terms(("team", "ann"), Terms(**TERMS), Terms(**TERMS | {field: other}))
    assert refusal.value.limit == ("team", "ann")
    assert (refusal.value.name, refusal.value.given) == (argument, repr(other))


def test_other_arrays_are_other_terms():
    arrays = [Terms(**TERMS | {"d_in": (np.array([1.0, end]),)}) for end in (2.0, 3.0)]
    with pytest.raises(LimitMismatchError, match="^d_in"):
        require_same_terms(("a",), *arrays)


def test_a_limit_is_shown_short():
    assert str(Limit("ann", Terms(**TERMS | {"d_out": 1 / 3}))) == "'ann', 0.333333 at d_in=1"
