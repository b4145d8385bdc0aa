"""What a measure of another package must be; tests/contracts has what it may not change."""

from abc import ABCMeta

import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures import MaxDivergence, NumberMeasure, registered
from opendp_concurrent.measures.registering import check_class, check_names


def measure(**attributes):
    usual = {
        "kind": "acme.One",
        "reason": "none",
        "distance_form": "one",
        "opendp": lambda self: dp.user_divergence("acme.One", "acme.One"),
    }
    return type("One", (NumberMeasure,), {**usual, **attributes})


def test_what_is_well_formed_is_accepted():
    keywords = {"lambda_": lambda **given: given["lambda_"]}
    one = measure(tag="acme:one", keywords=keywords, read_from=("MaxDivergence",))
    check_class(one)
    check_names(one, registered())
    check_names(measure(), [*registered(), one])


@pytest.mark.parametrize(
    ("attributes", "word"),
    [
        ({"kind": 3}, "kind"),
        ({"kind": type("Text", (str,), {})("acme.One")}, "kind"),
        ({"reason": None}, "reason"),
        ({"tag": None}, "tag"),
        ({"composability": "sequential"}, "composability"),
        ({"noise": "Laplace"}, "noise"),
        ({"one_number": 1}, "one_number"),
        ({"needs_orders": None}, "needs_orders"),
        ({"adaptive_updates": "no"}, "adaptive_updates"),
        ({"takes_delta": 0}, "takes_delta"),
        ({"read_from": "MaxDivergence"}, "read_from"),
        ({"read_from": (3,)}, "read_from"),
        ({"conversions_to": None}, "conversions_to"),
        ({"conversions_to": {"MaxDivergence": float}}, "conversions_to"),
        ({"conversions_from": {3: None}}, "conversions_from"),
    ],
)
def test_an_attribute_of_another_type_is_named(attributes, word):
    with pytest.raises(InvalidTypeError, match=rf"^measure\.{word} "):
        check_class(measure(**attributes))


def test_a_metaclass_of_another_package_is_refused():
    kind = type("Equal", (ABCMeta,), {"__eq__": lambda *_: True, "__hash__": lambda _: 1})
    with pytest.raises(InvalidTypeError, match="without a metaclass"):
        check_class(kind("One", (measure(),), {}))


@pytest.mark.parametrize(
    ("attributes", "error", "expected"),
    [
        ({"tag": "pure"}, InvalidValueError, r"^measure\.tag \('pure'\) must be left out"),
        (
            {"tag": "acme:two"},
            InvalidValueError,
            r"^measure\.tag .* is already the tag of acme.Two",
        ),
        ({"keywords": {"epsilon": float}}, InvalidValueError, r"^measure\.keywords \(epsilon\)"),
        ({"keywords": {"a b": float}}, InvalidTypeError, r"^measure\.keywords has 'a b'"),
        ({"keywords": {"kappa": 3}}, InvalidTypeError, r"^measure\.keywords has 'kappa'"),
        ({"keywords": None}, InvalidTypeError, r"^measure\.keywords .* must be a mapping"),
        ({"keywords": {3: float}}, InvalidTypeError, r"^measure\.keywords .* keys are strings"),
    ],
)
def test_names_of_others_are_refused(attributes, error, expected):
    others = [MaxDivergence, measure(kind="acme.Two", tag="acme:two")]
    with pytest.raises(error, match=expected):
        check_names(measure(**attributes), others)
