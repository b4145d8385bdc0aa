"""The numbers of the documentation: what a constructor is worth beside the plainest alternative."""

from inspect import getdoc
from math import exp, inf, log
from pathlib import Path

import pytest

import opendp_concurrent as oc
from opendp_concurrent.numerics.bracket import zcdp_to_epsilon

T = oc.TradeoffFunction
PAGE = (Path(__file__).parents[2] / "docs" / "dp-accounting.rst").read_text()
DELTA = 1e-6
TRUTH = exp(0.1) / (exp(0.1) + 3)
SKEWED = [0.5, 0.3, 0.2], [0.45, 0.33, 0.22]
SEVERAL = [0.1, 0.3, 0.5], [1e-2, 1e-4, 1e-9]
LIES = (1 - TRUTH) / 3


def pure(epsilon, count):
    return T.pure(epsilon).power(count).epsilon(DELTA)


def zcdp(rho):
    return zcdp_to_epsilon(rho, DELTA)


def of_one_use(f, count, epsilons):
    """The best (ε, δ)-DP of one use, composed optimally."""
    each = (T.approximate(one, f.delta(one)).power(count) for one in epsilons)
    return min(one.epsilon(DELTA) for one in each)


SAMPLED = oc.fdp.Session.subsampled_laplace(1.0, 0.01).removed
# constructor: the function, how often, and the alternative that this can compute
WORTH = {
    "pure": (T.pure(0.1), 100, zcdp(0.5)),
    "approximate": (T.approximate(0.1, 1e-9), 100, None),
    "gaussian": (T.gaussian(0.1), 100, zcdp(0.5)),
    "laplace": (T.laplace(0.1), 100, zcdp(0.5)),
    "discrete_laplace": (T.discrete_laplace(10.0), 100, zcdp(0.5)),
    "discrete_gaussian": (T.discrete_gaussian(10.0), 100, zcdp(0.5)),
    "randomized_response": (T.randomized_response(TRUTH, 4), 100, pure(0.1, 100)),
    "subsampled_gaussian": (oc.fdp.Session.subsampled_gaussian(1.0, 0.01), 1000, None),
    "subsampled_laplace": (SAMPLED, 1000, pure(SAMPLED.product.largest_loss, 1000)),
    "finite": (T.finite(*SKEWED), 100, pure(log(0.5 / 0.45), 100)),
    "from_profile": (T.from_profile(*SEVERAL), 20, of_one_use(T.from_profile(*SEVERAL), 20, [0.5])),
    "from_loss_distribution": (
        T.from_loss_distribution([-0.1, 0.0, 0.1], [LIES, 2 * LIES, TRUTH]),
        100,
        pure(0.1, 100),
    ),
    "mixture": (T.mixture([0.9, 0.1], [T.pure(0.1), T.pure(1.0)]), 100, pure(1.0, 100)),
}


@pytest.mark.parametrize("name", WORTH)
def test_numbers_of_the_documentation(name):
    function, count, other = WORTH[name]
    found = function.power(count).epsilon(DELTA)
    assert found < (inf if other is None else other)
    text = " ".join((getdoc(getattr(T, name)) or "").split())
    row = PAGE[PAGE.index("Comparison with other accountants") :]
    row = row[row.index(f"``{name}") :].split("   * -")[0]
    for number in (found, other):
        if number is not None:
            assert f"{number:.3f}" in text, (name, number)
            assert f"{number:.3f}" in row, (name, number)


def test_every_constructor_has_a_number_or_a_reason():
    public = {name for name, one in vars(T).items() if isinstance(one, classmethod)}
    assert {name for name in public if name[0] != "_"} == {*WORTH, "identity", "worst"}
