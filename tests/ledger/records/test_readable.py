"""Whatever a row contains, a reader names the row, and raises one class of errors."""

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.errors import LedgerDamagedError, LedgerError
from opendp_concurrent.ledger.encoding import (
    UNREADABLE,
    is_text,
    reading,
    require_count,
    require_text,
)


@pytest.mark.parametrize("error", UNREADABLE)
def test_an_error_of_reading_names_the_row(error):
    with (
        pytest.raises(LedgerDamagedError, match="^charge 7 is unreadable: ") as raised,
        reading("charge 7"),
    ):
        raise error("first\nsecond" + 400 * "x")
    said = str(raised.value)
    assert said.isprintable()
    assert len(said) < 500


@pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerError])
def test_other_errors_pass(error):
    with pytest.raises(error) as raised, reading("charge 7"):
        raise error("as it was")
    assert str(raised.value) == "as it was"


@pytest.mark.parametrize("value", [None, 1, 1.5, b"label", "a\0b", "\udc80", ["label"]])
def test_what_is_not_text_is_named(value):
    with pytest.raises(LedgerDamagedError, match="charge 7 is unreadable: its label is not text"):
        require_text("charge 7", mechanism="count", label=value)


@pytest.mark.parametrize("value", [None, True, -1, 1.0, "1", b"1"])
def test_what_is_not_a_count_is_named(value):
    with pytest.raises(LedgerDamagedError, match="its sequence is not a non-negative integer"):
        require_count("the budget", sequence=value)


def test_text_and_counts_pass():
    require_text("charge 7", label="", mechanism="é 漢")
    require_count("the budget", sequence=0)
    require_count("the budget", sequence=2**63)
    assert is_text("\ud7ff\ue000")
