"""A query of a context stands for its transformation, where a transformation is asked."""

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import Transformation

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.queryables.data import AsTransformation


def of_rows():
    context = oc.concurrent_context(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    return context.query(), context.query(epsilon=0.5).count().laplace(scale=4.0)


def of_a_frame():
    context = oc.concurrent_context(
        data=pl.LazyFrame({"n": [1, 2, 3]}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    return context.query(), None


@pytest.mark.parametrize("make", [of_rows, of_a_frame])
def test_queries_of_contexts_stand_for_transformations(make):
    query, measured = make()
    assert isinstance(query, AsTransformation)
    count = query.count() if measured is not None else query.select(pl.len())
    assert isinstance(count.as_transformation(), Transformation)
    assert count.as_transformation().map(1) == 1
    if measured is not None:
        with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
            measured.as_transformation()
