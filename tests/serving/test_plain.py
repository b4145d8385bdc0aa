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
        (oc.handles.Outcome.BELOW, "BELOW"),
        (oc.TruncatedConcentrated(0.5, 20.0), {"rho": 0.5, "omega": 20.0}),
        (oc.errors.InvalidValueError("why"), "why"),
    ],
)
def test_values(value, expected):
    found = as_json(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        b"a",
        int,
        ValueError("row 7"),
        [len],
        np.longdouble(7),
        np.ones(2, np.longdouble),
        np.datetime64(7, "ns"),  # NumPy says that it is the integer 7
        np.array([7], "m8[ns]"),
        np.complex128(7),
    ],
)
def test_what_json_does_not_have_is_refused_without_its_value(value):
    with pytest.raises(InvalidTypeError, match="no form in JSON") as refused:
        as_json(value)
    assert "7" not in str(refused.value)


def test_what_json_cannot_write_is_refused():
    inside: list = []
    inside.append(inside)
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    for value, why in (
        (inside, "contains itself"),
        (deep, "nested too deeply"),
        ({1: 7, "1": 8}, "the same text"),
        (10**5000, "8192 bits"),
        ([-(2**8192)], "8192 bits"),
        (np.broadcast_to(1.0, 10**10), "10,000,000 numbers"),
    ):
        with pytest.raises(InvalidTypeError, match=f"value .*{why}"):
            as_json(value)
    assert json.loads(json.dumps(as_json(2**8192 - 1))) == 2**8192 - 1
