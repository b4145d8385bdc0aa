"""How values are written in messages."""

import pytest

from opendp_concurrent.errors import SHOWN, rounded, shown


class Hostile:
    def __repr__(self):
        raise ValueError("row 17")


def test_a_value_that_cannot_be_written_is_named_by_its_class():
    assert shown(Hostile()) == "one Hostile"


def test_a_long_value_is_cut():
    assert shown("x" * (SHOWN - 2)) == repr("x" * (SHOWN - 2))
    assert shown("x" * (SHOWN - 1)) == "'" + "x" * (SHOWN - 4) + "..."
    assert len(shown(list(range(10**4)))) == SHOWN


@pytest.mark.parametrize(
    ("loss", "text"), [(0.1 + 0.2, "0.3"), ((1 / 3, 1e-6), "(0.333333, 1e-06)"), (3, "3")]
)
def test_people_are_shown_six_digits(loss, text):
    assert rounded(loss) == text
