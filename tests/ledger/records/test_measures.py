"""A measure is written as its tag and its parameters; tags never change."""

from math import inf

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger import encoding as measures
from opendp_concurrent.measures import composition_measure, registered

ORDER = {"order": {"double": "0x1.199999999999ap+0"}}
WRITTEN = {  # for ever
    dp.max_divergence: ("MaxDivergence", {"pure": {}}),
    lambda: dp.approximate(dp.max_divergence()): (
        "Approximate(MaxDivergence)",
        {"approximate": {}},
    ),
    dp.zero_concentrated_divergence: ("ZeroConcentratedDivergence", {"zcdp": {}}),
    lambda: dp.approximate(dp.zero_concentrated_divergence()): (
        "Approximate(ZeroConcentratedDivergence)",
        {"approximate-zcdp": {}},
    ),
    dp.renyi_divergence: ("RenyiDivergence", {"renyi": {}}),
    lambda: oc.fixed_renyi_divergence(1.1): (
        "FixedRenyiDivergence(alpha=1.1)",
        {"fixed-renyi": ORDER},
    ),
    lambda: oc.fixed_renyi_divergence(1e300): (
        "FixedRenyiDivergence(alpha=1e+300)",
        {"fixed-renyi": {"order": {"double": "0x1.7e43c8800759cp+996"}}},
    ),
    lambda: oc.approximate_renyi_divergence(1.1): (
        "ApproximateRenyiDivergence(alpha=1.1)",
        {"approximate-renyi": ORDER},
    ),
    lambda: oc.truncated_concentrated_divergence(2.5): (
        "TruncatedConcentratedDivergence(omega=2.5)",
        {"tcdp": {"omega": {"double": "0x1.4000000000000p+1"}}},
    ),
    lambda: oc.truncated_concentrated_divergence(inf): (
        "TruncatedConcentratedDivergence(omega=inf)",
        {"tcdp": {"omega": {"double": "inf"}}},
    ),
    oc.gaussian_tradeoff: ("GaussianTradeoff", {"gdp": {}}),
    oc.tradeoff: ("Tradeoff", {"fdp": {}}),
}


def test_every_measure_has_a_tag_that_never_changes():
    found = set()
    for make, (name, shape) in WRITTEN.items():
        assert composition_measure(make()).name == name
        assert measures.written(name) == shape
        assert measures.read(shape) == name
        found |= {*shape}
    ours = [one for one in registered() if one.__module__.startswith("opendp_concurrent.")]
    assert found == {one.tag for one in ours}
    assert len(found) == len(ours)


@pytest.mark.parametrize(
    "name",
    ["", "MaxDivergence()", "FixedRenyiDivergence", "FixedRenyiDivergence(alpha=02.0)"],
)
def test_a_name_that_is_no_measure_of_ours_is_written_as_it_is(name):
    assert measures.written(name) == measures.read(name) == name
