"""Random pipelines give the same integers in each engine as in plain Python."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .pipelines import data, pipelines

RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def agree(engines, draw):
    found = draw(data())
    pipeline = draw(pipelines(found.schema, found.unit))
    expected = pipeline.answer(found.rows, found.unit, found.schema)
    for engine in engines:
        table = engine.load(found)
        asked = pipeline.build(table.space)
        assert asked(table) == expected, (engine.name, pipeline.parts)


def check(engines, examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=RELAXED)
    @given(st.data())
    def agrees(draws):
        agree(engines, draws.draw)

    agrees()


def test_duckdb_and_postgres_give_the_integers_of_plain_python(on_duckdb, on_postgres):
    check([on_duckdb, on_postgres], 25)


@pytest.mark.slow
def test_a_thousand_pipelines_give_the_integers_of_plain_python(on_duckdb, on_postgres):
    check([on_duckdb, on_postgres], 1000)


@pytest.mark.parametrize("examples", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_spark_gives_the_integers_of_plain_python(on_spark, examples):
    check([on_spark], examples)
