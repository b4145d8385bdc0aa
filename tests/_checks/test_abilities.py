import pytest

from opendp_concurrent._checks import hashable, with_method
from opendp_concurrent.errors import InvalidTypeError


class Unhashable:
    __hash__ = None


class Opens:
    def open(self):
        return self


@pytest.mark.parametrize("value", [[], {}, ([],), Unhashable()])
def test_what_has_no_hash_is_refused_by_name(value):
    with pytest.raises(InvalidTypeError, match="^state must be hashable, found"):
        hashable(state=value)
    assert hashable(state=(1, "a")) == (1, "a")


def test_a_method_of_the_class_is_needed():
    opens = with_method("open", "have open()")
    door = Opens()
    assert opens(door=door) is door
    lying = Unhashable()
    lying.open = lambda: None
    for wrong in (lying, None, "open"):
        with pytest.raises(InvalidTypeError, match=r"^door must have open\(\), found"):
            opens(door=wrong)
