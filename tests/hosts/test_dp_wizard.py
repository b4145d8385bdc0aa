"""Notebooks that dp-wizard generates make their contexts of this package, within swapped_in."""

import random
import warnings

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

pytest.importorskip("dp_wizard", reason="run by hand, in an environment with dp-wizard")
pytestmark = pytest.mark.slow

import matplotlib as mpl
import polars as pl
from dp_wizard.types import ColumnName, Product
from dp_wizard.utils.code_generators import AnalysisPlan, AnalysisPlanColumn
from dp_wizard.utils.code_generators.analyses import histogram, mean, median
from dp_wizard.utils.code_generators.notebook_generator import NotebookGenerator

from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement

mpl.use("agg")

STATISTICS = {"histogram": histogram, "mean": mean, "median": median}
CASES = [
    (contributions, groups, columns)
    for contributions in (1, 10)
    for groups in ({}, {"1A": []}, {"1A": ["expected", "values"]})
    for columns in (
        {"2B": "histogram"},
        {"2B": "mean"},
        {"2B": "median"},
        {"2B": "histogram", "3C": "mean", "4D": "median"},
    )
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of 1,000 rows, some of which have a group that is not public."""
    draw = random.Random(5)
    lines = ["1A,2B,3C,4D"]
    for _ in range(1_000):
        group = draw.choice(["expected", "values", "other"])
        lines.append(",".join([group, *(f"{draw.uniform(4, 16):.2f}" for _ in range(3))]))
    made = tmp_path_factory.mktemp("data") / "abc.csv"
    made.write_text("\n".join(lines) + "\n")
    return str(made)


def notebook(product, path, contributions, groups, columns):
    """The code of a notebook, as the application writes it."""
    plan = AnalysisPlan(
        product=product,
        groups={ColumnName(name): keys for name, keys in groups.items()},
        analysis_columns={
            ColumnName(name): [
                AnalysisPlanColumn(
                    statistic_name=STATISTICS[statistic].name,
                    lower_bound=5,
                    upper_bound=15,
                    bin_count=10,
                    weight=4,
                )
            ]
            for name, statistic in columns.items()
        },
        schema_columns={ColumnName(name): pl.Float32() for name in columns},
        contributions=contributions,
        contributions_entity="Family",
        path=path,
        epsilon=1,
        max_rows=100_000,
    )
    return NotebookGenerator(plan, "A note").make_py(reformat=True)


def run(code):
    """Run a notebook; return its names and what it raised."""
    import matplotlib.pyplot as plt

    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        except Exception as error:
            last = [line for line in str(error).splitlines() if line.strip(' "()')][-1:]
            return names, f"{type(error).__name__}: {' '.join(last).strip()[:80]}"
        finally:
            plt.close("all")
    return names, None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_statistics_run_on_contexts_of_this_package(case, path):
    with oc.swapped_in():
        names, error = run(notebook(Product.STATISTICS, path, *case))
    assert error is None
    context = names["stats_context"]
    assert isinstance(context, dp.Context)
    assert isinstance(context.accountant, ConcurrentMeasurement)
    assert context.remaining_privacy_loss() == []  # the plan spends all of its budget


@pytest.mark.parametrize("case", CASES, ids=str)
def test_synthetic_data_are_made_where_opendp_alone_makes_them(case, path):
    code = notebook(Product.SYNTHETIC_DATA, path, *case)
    _, alone = run(code)
    with oc.swapped_in():
        names, error = run(code)
    assert error == alone
    if alone is not None:
        pytest.skip(f"OpenDP alone fails in the same way: {alone}")
    assert isinstance(names["synth_context"].accountant, ConcurrentMeasurement)
