"""What leaves code that sees rows."""

import sys

import pytest

from opendp_concurrent.errors import pass_interrupt


@pytest.mark.parametrize("error", [ValueError("row 3"), SystemExit("row 3"), GeneratorExit(3)])
def test_the_caller_hides_all_that_is_no_interrupt(error):
    assert pass_interrupt(error) is None


class Told(KeyboardInterrupt):
    """An interrupt with a text of its own."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Told])
def test_an_interrupt_is_raised_anew_even_within_a_handler(kind):
    told = kind("row 3")
    if sys.version_info >= (3, 11):
        told.add_note("row 3")

    def handled():
        try:
            raise told from ValueError("row 3")
        except KeyboardInterrupt as error:
            pass_interrupt(error)

    with pytest.raises(KeyboardInterrupt) as caught:
        handled()
    found = caught.value
    assert type(found) is KeyboardInterrupt
    assert (found.args, found.__cause__, found.__context__) == ((), None, None)
    assert not getattr(found, "__notes__", [])
