"""The ``then_`` forms of our constructors, and records of how things were made."""

import opendp.prelude as dp
import pytest

from opendp_concurrent._opendp.constructors import PARTIAL_CONSTRUCTOR, made_as, to_then
from opendp_concurrent.errors import InvalidTypeError


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
