"""OpenDP's own AIM, MST, Fixed, Sequential and PCA run unedited on compositors of this package."""

import random
import warnings

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_concurrent as oc
from opendp_concurrent.context import swapped
from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement

pytest.importorskip("mbi", reason="run by hand, in an environment with opendp[mbi,scikit-learn]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # jax and scikit-learn deprecate
]
dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")

LOSSES = [{"epsilon": 2.0, "delta": 1e-7}, {"rho": 0.5, "delta": 1e-7}]


def algorithms():
    return [
        dp.mbi.AIM(),
        dp.mbi.MST(),
        dp.mbi.Fixed(queries=[dp.mbi.Count(("A", "B"))]),
        dp.mbi.Sequential(
            algorithms=[dp.mbi.Fixed(queries=[dp.mbi.Count(("A",))]), dp.mbi.AIM()], weights=[2, 8]
        ),
    ]


@pytest.fixture(scope="module")
def frame():
    draw = random.Random(7)
    rows = 2_000
    first = [draw.randrange(3) for _ in range(rows)]
    return pl.LazyFrame(
        {
            "A": first,
            "B": [(one + draw.randrange(2)) % 3 for one in first],
            "C": [draw.uniform(0, 100) for _ in range(rows)],
            "D": [draw.choice(["x", "y"]) for _ in range(rows)],  # its values are not public
        }
    )


@pytest.fixture
def made(monkeypatch):
    """Names of OpenDP that were called, within swapped_in."""
    called = []

    def noted(theirs, ours):
        name = theirs.__name__
        return theirs, lambda *args, **kwargs: called.append(name) or ours(*args, **kwargs)

    pairs = [noted(*both) for both in swapped._FUNCTIONS]
    monkeypatch.setattr(swapped, "_FUNCTIONS", pairs)
    return called


def table(frame, loss, algorithm):
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(**loss)
    )
    made = (
        context.query(**loss)
        .contingency_table(
            keys={"A": [0, 1, 2], "B": [0, 1, 2]}, cuts={"C": [25, 50, 75]}, algorithm=algorithm
        )
        .release()
    )
    return context, made


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("number", range(4), ids=["AIM", "MST", "Fixed", "Sequential"])
def test_contingency_tables(frame, loss, number, made):
    algorithm = algorithms()[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, _ = table(frame, loss, algorithm)
        with oc.swapped_in():
            ours, released = table(frame, loss, algorithm)
    assert isinstance(ours.accountant, ConcurrentMeasurement)
    assert not isinstance(theirs.accountant, ConcurrentMeasurement)
    assert released.synthesize().shape[1] == 4
    if number != 2:  # Fixed composes nothing
        assert "make_adaptive_composition" in made
    if number in (0, 3):  # AIM
        assert "make_privacy_filter" in made
    # Both charge what the query was given; ours never more than the budget.
    (spent, theirs_spent) = ours.current_privacy_loss(), theirs.current_privacy_loss()
    assert spent == pytest.approx(theirs_spent, rel=1e-9)


def test_pca(made):
    import numpy as np

    rows, columns = 2_000, 4
    data = np.random.default_rng(3).normal(size=(rows, columns))
    data -= data.mean(axis=0)
    with oc.swapped_in():
        model = dp.sklearn.decomposition.PCA(
            epsilon=1.0, row_norm=1.0, n_samples=rows, n_features=columns
        )
        model.fit(data)
        measurement = dp.sklearn.decomposition.PCA(
            epsilon=1.0, row_norm=1.0, n_samples=rows, n_features=columns
        ).measurement()
    assert model.components_.shape == (columns, columns)
    assert made.count("make_adaptive_composition") >= 2
    assert measurement.map(2) <= 2.0
