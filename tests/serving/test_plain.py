"""What JSON has for answers, losses and descriptions."""

import json

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.serving import as_json

dp.enable_features("contrib", "honest-but-curious")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, True),
        (None, None),
        (0.5, 0.5),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        ((1.0, 1e-6), [1.0, 1e-6]),
        ({"a": [1, (2, float("inf"))], 3: None}, {"a": [1, [2, "inf"]], "3": None}),
        (np.array([[1.0, np.inf]]), [[1.0, "inf"]]),
        (np.int32(3), 3),
        (np.float64("nan"), "nan"),
        (np.bool_(True), True),
        (oc.m.Outcome.BELOW, "BELOW"),
        (oc.TruncatedConcentrated(0.5, 20.0), {"rho": 0.5, "omega": 20.0}),
        (oc.errors.InvalidValueError("why"), "why"),
    ],
)
def test_values(value, expected):
    found = as_json(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"a", int, ValueError("row 7"), [len]])
def test_what_json_does_not_have_is_refused_without_its_value(value):
    with pytest.raises(InvalidTypeError, match="no form in JSON") as refused:
        as_json(value)
    assert "7" not in str(refused.value)


def test_a_description_has_its_fields():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 1.0)([1])
    count = space >> dp.t.then_count() >> dp.m.then_laplace(0.5)
    found = as_json(root.describe(count, d_in=1))
    assert (found["loss"], found["interactive"]) == (2.0, False)
    assert found["refusal"].startswith("the filter refuses")
    json.dumps(found, allow_nan=False)
