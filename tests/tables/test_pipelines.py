"""Random pipelines give the same integers in an engine as in plain Python."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .pipelines import data, pipelines

RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def agree(engine, draw):
    found = draw(data())
    pipeline = draw(pipelines(found.schema, found.unit))
    table = engine.load(found)
    asked = pipeline.build(table.space)
    assert asked(table) == pipeline.answer(found.rows, found.unit), pipeline.parts


@settings(max_examples=500, deadline=None, suppress_health_check=RELAXED)
@given(st.data())
def test_an_engine_gives_the_integers_of_plain_python(engine, draws):
    agree(engine, draws.draw)
