import inspect
from typing import Annotated

import pytest

from opendp_concurrent import _checks as checks
from opendp_concurrent._checks import GUARDS, Count, Positive, checked, of_annotation
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


@checked(name=checks.one_of("a", "b"))
def made(
    scale: "Positive", size: "Count | None" = None, *, flat: "bool" = False, name: "str" = "a"
):
    return scale, size, flat, name


def test_what_annotations_say_is_checked():
    assert made(2) == (2.0, None, False, "a")
    assert made(0.5, 3, flat=True, name="b") == (0.5, 3, True, "b")
    for wrong in ({"scale": 0.0}, {"size": 0}, {"name": "c"}):
        with pytest.raises(InvalidValueError, match=f"^{next(iter(wrong))} "):
            made(**{"scale": 1.0} | wrong)
    for wrong in ({}, {"scale": 1.0, "other": 2}):
        with pytest.raises(TypeError, match=r"^made\(\) "):
            made(**wrong)
    with pytest.raises(InvalidTypeError, match="^flat must be True or False"):
        made(1.0, flat=1)


def test_a_function_tells_its_guards_in_the_order_of_its_parameters():
    assert list(made.__guards__) == ["scale", "size", "flat", "name"]
    assert made.__guards__["size"].kind == "None or count"
    assert list(inspect.signature(made).parameters) == ["scale", "size", "flat", "name"]


def test_a_guard_of_no_parameter_is_a_mistake():
    with pytest.raises(AssertionError, match="wrong"):

        @checked(other=checks.count)
        def wrong(size: "Count"):
            return size


def test_an_annotation_that_cannot_be_read_is_a_mistake():
    with pytest.raises(NameError):

        @checked
        def wrong(size: "Missing"):  # noqa: F821
            return size


def test_an_object_of_opendp_without_a_guard_is_a_mistake(monkeypatch):
    from opendp.mod import Domain

    assert of_annotation(Domain) is GUARDS[Domain]
    monkeypatch.delitem(GUARDS, Domain)
    with pytest.raises(KeyError):
        of_annotation(Domain)


def test_what_carries_no_guard_is_not_guarded():
    for annotation in (float, "text", list[int], int | str, Annotated[float, "a remark"]):
        assert of_annotation(annotation) is None
