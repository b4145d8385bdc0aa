import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent._opendp import constructors as attributes
from opendp_concurrent._opendp import native_frame

pl = pytest.importorskip("polars")


def query_on(data, **options):
    context = oc.concurrent_context(
        data, dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), **options
    )
    return context.query(epsilon=0.5)


def test_a_query_is_made_again_of_its_parts():
    query = query_on([1, 2, 3]).count()
    parts = attributes.query_parts(query)
    assert (parts.output_measure, parts.d_in, parts.d_out) == (dp.max_divergence(), 1, 0.5)
    assert attributes.query_parts(type(query)(*parts)) == parts


def test_the_parts_of_frames_are_plans_and_queries():
    query = query_on(pl.LazyFrame({"n": [1, 1, 2]}), margins=[dp.polars.Margin(max_length=9)])
    plan, of_frame = attributes.frame_parts(query)
    assert plan.collect_schema() == {"n": pl.Int64}
    assert attributes.query_parts(of_frame).d_out == 0.5
    groups, of_groups = attributes.group_parts(query.group_by("n"))
    assert isinstance(groups, type(plan.group_by("n")))
    assert of_groups is of_frame


def test_the_plan_of_a_frame_can_be_written():
    assert callable(native_frame(pl.LazyFrame({"n": [1]})).serialize_json)
