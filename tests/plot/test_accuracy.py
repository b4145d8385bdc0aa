"""The picture of accuracies has the numbers that the mechanisms say."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError

pytest.importorskip("matplotlib")
dp.enable_features("contrib", "honest-but-curious")
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
TABLE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()


def test_each_line_is_the_accuracy():
    one = oc.m.make_certified_laplace(*REAL, 2.0, PURE)
    other = oc.m.make_above_threshold(*TABLE, PURE, 1, 2.0, 100)
    ax = plot.plot_accuracy({"noise": one, "threshold": other}, answers=10)
    for line, mechanism in zip(ax.get_lines(), (one, other), strict=True):
        betas, errors = line.get_xydata().T
        assert betas[0] == pytest.approx(1e-6)
        for index in (0, 30, 60):
            beta = float(betas[index])
            assert errors[index] == mechanism.accuracy(beta, answers=10)
    assert ax.get_xscale() == "log"


def test_what_has_no_accuracy_is_refused():
    odometer = oc.make_concurrent_composition(*TABLE, PURE, 1, [1.0])
    with pytest.raises(InvalidTypeError, match="^the accuracy of"):
        plot.plot_accuracy({"composition": odometer})
    with pytest.raises(InvalidTypeError, match="^mechanisms"):
        plot.plot_accuracy({})
    with pytest.raises(InvalidTypeError, match="^mechanisms"):
        plot.plot_accuracy({"count": 3})
