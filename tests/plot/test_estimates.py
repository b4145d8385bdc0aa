import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError

pytest.importorskip("matplotlib")
Estimate = oc.tables.Estimate


def test_each_estimate_has_its_interval():
    ax = plot.plot_estimates({"$a": Estimate(2.0, 1.0, 4.0), "b": Estimate(3.0, 2.5, 3.25)})
    (bars,) = ax.collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[1.0, 4.0], [2.5, 3.25]]
    assert ax.get_lines()[0].get_ydata().tolist() == [2.0, 3.0]
    assert [one.get_text() for one in ax.get_xticklabels()] == [r"\$a", "b"]


def test_an_estimate_of_nothing_leaves_a_gap():
    nan = float("nan")
    ax = plot.plot_estimates({"none": Estimate(nan, nan, nan)}, ylabel="mean")
    assert np.isnan(np.asarray(ax.get_lines()[0].get_ydata(), float)).all()
    ax.figure.canvas.draw()


def test_what_is_no_estimate_is_refused():
    with pytest.raises(InvalidTypeError, match=r"estimates\['a'\] must be an Estimate"):
        plot.plot_estimates({"a": 1.0})
