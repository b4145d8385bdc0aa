"""A measure is written as its tag and its parameters; tags never change."""

import json

import opendp.prelude as dp
import pytest

import opendp_concurrent
from opendp_concurrent.ledger import encoding as measures
from opendp_concurrent.measures import composition_measure, registered


def every_measure():
    dp.enable_features("contrib", "honest-but-curious")
    return [
        *map(
            composition_measure,
            (
                dp.max_divergence(),
                dp.approximate(dp.max_divergence()),
                dp.zero_concentrated_divergence(),
                dp.approximate(dp.zero_concentrated_divergence()),
                dp.renyi_divergence(),
                opendp_concurrent.fixed_renyi_divergence(1.1),
                opendp_concurrent.fixed_renyi_divergence(1e300),
                opendp_concurrent.approximate_renyi_divergence(1.1),
                opendp_concurrent.truncated_concentrated_divergence(2.5),
                opendp_concurrent.truncated_concentrated_divergence(float("inf")),
                opendp_concurrent.gaussian_tradeoff(),
                opendp_concurrent.tradeoff(),
            ),
        ),
    ]


def test_every_measure_has_a_tag():
    found = set()
    for measure in every_measure():
        shape = measures.written(measure.name)
        ((tag, _),) = shape.items()
        assert measures.read(shape) == measure.name
        found.add(tag)
    ours = [one for one in registered() if one.__module__.startswith("opendp_concurrent.")]
    assert found == {one.tag for one in ours}
    assert len(found) == len(ours)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Max",
        "MaxDivergence()",
        "FixedRenyiDivergence",
        "FixedRenyiDivergence(alpha=2)",
        "FixedRenyiDivergence(alpha=02.0)",
        "FixedRenyiDivergence(omega=2.0)",
        "Tradeoff ",
    ],
)
def test_a_name_that_is_no_measure_of_ours_is_written_as_it_is(name):
    assert measures.written(name) == name
    assert measures.read(name) == name


def test_tags_of_measures_never_change():
    names = [measure.name for measure in every_measure()]
    texts = [json.dumps(measures.written(name)) for name in names]
    order = '{"double": "0x1.199999999999ap+0"}'
    assert dict(zip(names, texts, strict=True)) == {
        "MaxDivergence": '{"pure": {}}',
        "Approximate(MaxDivergence)": '{"approximate": {}}',
        "ZeroConcentratedDivergence": '{"zcdp": {}}',
        "Approximate(ZeroConcentratedDivergence)": '{"approximate-zcdp": {}}',
        "RenyiDivergence": '{"renyi": {}}',
        "FixedRenyiDivergence(alpha=1.1)": f'{{"fixed-renyi": {{"order": {order}}}}}',
        "FixedRenyiDivergence(alpha=1e+300)": (
            '{"fixed-renyi": {"order": {"double": "0x1.7e43c8800759cp+996"}}}'
        ),
        "ApproximateRenyiDivergence(alpha=1.1)": (f'{{"approximate-renyi": {{"order": {order}}}}}'),
        "TruncatedConcentratedDivergence(omega=2.5)": (
            '{"tcdp": {"omega": {"double": "0x1.4000000000000p+1"}}}'
        ),
        "TruncatedConcentratedDivergence(omega=inf)": '{"tcdp": {"omega": {"double": "inf"}}}',
        "GaussianTradeoff": '{"gdp": {}}',
        "Tradeoff": '{"fdp": {}}',
    }
