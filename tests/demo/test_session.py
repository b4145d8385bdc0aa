from math import nan

import opendp.prelude as dp
import pytest

from opendp_concurrent.demo import session
from opendp_concurrent.demo.session import OPENDP, OURS, Demonstration

dp.enable_features("contrib", "honest-but-curious")

BOUNDS = (0.0, 100.0)
REFUSED_BY_OPENDP = ["ask_for_less", "chained_odometer", "approximate_zcdp"]


@pytest.mark.parametrize("contributions", [1, 3, 7, 20, 10**6])
def test_every_launch_is_priced_for_the_rows_of_a_person(contributions):
    one = Demonstration(OURS, [30.0] * 10, BOUNDS, contributions)
    assert one.count(1 / 8).map(contributions) == 1 / 8
    assert one.below(50.0, 1 / 32).map(contributions) == 1 / 32
    refused, asked = [], 0.0
    for step, loss in one.steps():
        said, ran = session.attempt(step)
        assert ran or step == one.ask_too_much, said
        asked += loss if ran else 0.0
        assert one.root.privacy_loss(contributions) == asked
        refused += [] if ran else [step.__name__]
    assert refused == ["ask_too_much"]
    if contributions > 1:
        with pytest.raises(Exception, match="must be at most"):
            one.root.privacy_loss(contributions + 1)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1e-6, 1e-9), (-1e9, 3.0)])
def test_a_sum_fits_the_price_of_its_child(bounds):
    one = Demonstration(OURS, [0.5] * 10, bounds)
    one.open_two(), one.open_search()
    assert session.attempt(one.query_in_turn)[1]


def answers(values, bounds):
    one = Demonstration(OURS, values, bounds)
    one.noisy = lambda query, *_: query  # as without noise, to see what is asked
    one.root = one.two = lambda query: query(values)
    one.search = lambda query: query(values)
    return one


def test_missing_values_are_rows_and_in_no_statistic():
    one = answers([20.0] * 30 + [40.0] * 10 + [nan] * 9, (0.0, 64.0))
    assert one.count_rows() == "about 49 rows"
    assert one.query_in_turn() == "about 40 values, mean about 25, median about 22"


@pytest.mark.parametrize(("noise", "said"), [(1000.0, "64"), (-1000.0, "0")])
def test_a_mean_stays_within_the_bounds(noise, said):
    one = answers([20.0] * 3, (0.0, 64.0))
    replies = iter([3, noise])  # a count and a sum
    one.two = lambda query: next(replies)
    assert f"mean about {said}," in one.query_in_turn()


def test_opendp_refuses_what_the_demonstration_says_it_refuses():
    native = Demonstration(OPENDP, [30.0] * 10, BOUNDS)
    steps = [step for step, _ in native.steps() if step != native.child_odometer]
    steps += [native.chained_odometer, native.approximate_zcdp]
    refused = [step.__name__ for step in steps if not session.attempt(step)[1]]
    assert refused == ["ask_too_much", *REFUSED_BY_OPENDP]


def test_what_opendp_refuses_runs_here():
    ours = Demonstration(OURS, [30.0] * 10, BOUNDS)
    for name in REFUSED_BY_OPENDP:
        assert session.attempt(getattr(ours, name))[1], name


def test_a_session_is_printed_in_ascii_and_short_lines(capsys):
    session.show_published("survey", [30.0] * 1000, BOUNDS)
    printed = capsys.readouterr().out
    assert printed.isascii()
    table = printed.split("\n\n")[1].splitlines()
    assert len(table) == 8
    assert max(map(len, table)) <= 88
    assert "refused" in table[5]
    assert "the refusal: BudgetExceededError: " in printed
    assert all(name.replace("_", " ") in printed for name in REFUSED_BY_OPENDP)
