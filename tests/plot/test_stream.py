"""A stream, and what continual mechanisms said of it."""

import pytest

from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

pytest.importorskip("matplotlib")


def test_answers_are_drawn_at_their_steps_and_alarms_as_vertical_lines():
    answers = {"tree": [0.0, 2.0, 2.5], "doubling": [1.0, 1.0, 3.0]}
    ax = plot.plot_stream([1, 4, 9], answers, alarms=[4], ylabel="visits")
    drawn = {line.get_label(): line.get_xydata().T.tolist() for line in ax.get_lines()[:2]}
    assert drawn == {name: [[1, 4, 9], values] for name, values in answers.items()}
    assert list(ax.get_lines()[2].get_xdata()) == [4, 4]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "visits")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["tree", "doubling"]


@pytest.mark.parametrize(
    ("steps", "answers", "error", "name"),
    [
        ([1, 2], {}, InvalidTypeError, "answers"),
        ([1, 2], [0.0, 1.0], InvalidTypeError, "answers"),
        ([1, 2], {"a": "01"}, InvalidTypeError, r"answers\['a'\]"),
        ([1, 2], {"a": [0.0]}, InvalidValueError, r"answers\['a'\].* for each of the 2 steps"),
        ([1, 0.5], {"a": [0.0, 1.0]}, InvalidTypeError, "steps"),
    ],
)
def test_what_cannot_be_drawn_is_named(steps, answers, error, name):
    with pytest.raises(error, match=name):
        plot.plot_stream(steps, answers)
