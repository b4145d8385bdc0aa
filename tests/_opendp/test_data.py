"""Data, maps, queryables and records of constructors, as they go to OpenDP and come back."""

import opendp.prelude as dp
import polars as pl
import pytest

from opendp_concurrent._opendp.calls import to_pointer
from opendp_concurrent._opendp.data import (
    evaluate,
    measurement_map,
    native_only,
    python_queryable,
)
from opendp_concurrent._opendp.private import PARTIAL_CONSTRUCTOR, made_as, to_then
from opendp_concurrent.errors import InvalidTypeError


def test_data_of_the_wrong_kind_are_named_by_their_class(space):
    frame = pl.LazyFrame({"age": [37]})
    with pytest.raises(InvalidTypeError, match="found LazyFrame") as raised:
        to_pointer(frame, space[0].carrier_type)
    assert "37" not in str(raised.value)


def test_a_map_in_python_is_known(space):
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    ours = dp.m.make_user_measurement(*space, dp.max_divergence(), len, lambda d_in: 0.5)
    chained = dp.c.make_composition([laplace, ours])
    assert native_only(measurement_map, laplace, 1) == (0.5, True)
    assert native_only(measurement_map, ours, 1) == (0.5, False)
    assert native_only(measurement_map, chained, 1) == (1.0, False)


def test_a_transition_is_not_read_from_the_queryable():
    made = python_queryable(lambda query: query + 1)
    assert evaluate(made, 1) == 2
    assert not getattr(made, "__opendp_dict__", {})
    assert dp.new_queryable(len).__opendp_dict__  # where OpenDP keeps it


def make_counted(input_domain, input_metric, scale):
    return dp.t.make_count(input_domain, input_metric) >> dp.m.then_laplace(scale=scale)


def test_a_then_form_is_chained_and_not_serialised(space):
    then_counted = to_then(make_counted)
    partial = then_counted(2.0)
    assert isinstance(partial, PARTIAL_CONSTRUCTOR)
    assert (space >> partial).map(1) == 0.5
    with pytest.raises(InvalidTypeError, match="serialise"):
        dp.serialize(partial)


def test_what_equals_another_is_recorded_as_it(space):
    made = dp.vector_domain(dp.atom_domain(T=int))
    equal = dp.t.make_count(*space).input_domain
    assert dp.serialize(made_as(equal, made)) == dp.serialize(made)
