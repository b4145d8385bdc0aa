"""Data and distances that are converted, and what a message about them says."""

import opendp.prelude as dp
import polars as pl
import pytest

from opendp_concurrent._opendp.calls import to_pointer
from opendp_concurrent._opendp.data import check_distance
from opendp_concurrent.errors import InvalidTypeError


def test_data_of_the_wrong_kind_are_named_by_their_class(space):
    frame = pl.LazyFrame({"age": [37]})
    with pytest.raises(InvalidTypeError, match="found LazyFrame") as raised:
        to_pointer(frame, space[0].carrier_type)
    assert "37" not in str(raised.value)


def test_a_distance_of_the_wrong_type_is_named():
    with pytest.raises(InvalidTypeError, match="^d_in"):
        check_distance(dp.symmetric_distance(), "d_in", 1.5)
    check_distance(dp.symmetric_distance(), "d_in", 1)
    check_distance(dp.l2_distance(T=float), "d_in", 1)
