import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidValueError, LedgerDamagedError

pytest.importorskip("matplotlib")
pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger import create_ledger

from .drawn import lines

F = oc.TradeoffFunction
PURE = dp.max_divergence()


@pytest.fixture
def ledger(tmp_path):
    with create_ledger(tmp_path / "budget.db", "survey") as made:
        yield made


def launch(space, ledger, measure, d_mids, d_out=None, **keywords):
    accumulator = keywords.pop("accumulator", None)
    kept = {"ledger": ledger, "d_in": 1} if d_out is None else {}
    spawn = oc.make_concurrent_odometer(*space, measure, accumulator=accumulator, **kept)
    if d_out is not None:
        spawn = oc.make_concurrent_filter(spawn, 1, d_out, ledger=ledger, **keywords)
    root = spawn([1, 2, 3])
    for d_mid in d_mids:
        root(dp.m.make_user_measurement(*space, measure, len, lambda d_in, loss=d_mid: loss))


def test_the_loss_is_drawn_launch_by_launch_with_its_bound(space, ledger):
    launch(space, ledger, PURE, [0.25, 0.5, 0.125], 1.0)
    drawn = lines(plot.plot_ledger(ledger, against="launches"))
    assert drawn["spent"].tolist() == [[1, 2, 3], [0.25, 0.75, 0.875]]
    assert drawn["bound"][1].tolist() == [1.0, 1.0]


def test_against_time_it_is_drawn_where_the_clock_was(space, ledger):
    from matplotlib.dates import date2num

    launch(space, ledger, PURE, [0.25, 0.5], 1.0)
    ax = plot.plot_ledger(ledger)
    times = [date2num(entry.time) for entry in ledger.entries()]
    assert lines(ax)["spent"][0].tolist() == pytest.approx(times)
    assert ax.get_xlabel() == "day (UTC)"
    assert ax.get_ylabel() == "privacy loss (ε, pure DP)"


def test_an_odometer_has_no_bound(space, ledger):
    launch(space, ledger, PURE, [0.25])
    assert set(lines(plot.plot_ledger(ledger))) == {"spent"}


@pytest.mark.parametrize(
    ("measure", "d_mids", "arguments", "height", "name"),
    [
        (
            lambda: dp.approximate(PURE),
            [(0.25, 1e-9), (0.5, 0.0)],
            {"d_out": (1.0, 1e-6)},
            0.75,
            "ε, (ε, δ)-DP",
        ),
        (
            lambda: oc.truncated_concentrated_divergence(4.0),
            [oc.TruncatedConcentrated(0.25, 8.0)] * 2,
            {"d_out": oc.TruncatedConcentrated(1.0, 4.0)},
            0.5,
            "ρ, truncated concentrated DP",
        ),
        (
            dp.renyi_divergence,
            [lambda alpha: 0.25 * alpha] * 2,
            {"d_out": lambda alpha: alpha, "orders": [2.0, 8.0]},
            1.0,
            "loss at order 2, Rényi DP",
        ),
        (
            oc.tradeoff,
            [F.pure(0.25)] * 2,
            {"d_out": F.pure(0.25).power(4), "accumulator": oc.accumulators.ladder(F.pure(0.25))},
            F.pure(0.25).power(2).epsilon(1e-6),
            "ε at δ = 1e-06, f-DP",
        ),
    ],
    ids=["approximate", "truncated", "curves", "functions"],
)
def test_losses_that_are_no_number_are_drawn_as_one(
    space, ledger, measure, d_mids, arguments, height, name
):
    launch(space, ledger, measure(), d_mids, **arguments)
    ax = plot.plot_ledger(ledger)
    assert lines(ax)["spent"][1][-1] == pytest.approx(height)
    assert ax.get_ylabel() == f"privacy loss ({name})"


def test_a_fresh_ledger_is_drawn_empty(ledger):
    ax = plot.plot_ledger(ledger)
    assert lines(ax)["spent"].size == 0
    assert ax.get_ylabel() == "privacy loss"


def test_an_infinite_loss_leaves_a_gap(space, ledger):
    launch(space, ledger, PURE, [0.25, float("inf")])
    ax = plot.plot_ledger(ledger, against="launches")
    assert lines(ax)["spent"][1].tolist() == [0.25, float("inf")]
    ax.figure.canvas.draw()


def block_filter(space, ledger, d_out=1.0):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    blocks = oc.c.by_key(lambda record: record)
    keys = [*range(20), "$a$"]
    return oc.c.make_block_filter(odometer, 1, d_out, blocks=blocks, keys=keys, ledger=ledger)([1])


def on_blocks(root, blocks, loss):
    space = root._blocks._space
    root(blocks, dp.m.make_user_measurement(*space, PURE, len, lambda d_in: loss))


def test_each_block_of_a_block_filter_has_a_line(space, ledger):
    root = block_filter(space, ledger)
    plot.plot_ledger(ledger).figure.canvas.draw()  # of no launch
    on_blocks(root, [1, "$a$"], 0.25)
    on_blocks(root, [2], 0.5)
    ann = root(oc.c.make_limited(oc.make_concurrent_odometer(*space, PURE), 1, 0.5, label="ann"))
    on_blocks(ann, [1, 2], 0.125)
    ax = plot.plot_ledger(ledger, against="launches")
    drawn = lines(ax)
    assert list(drawn) == ["block 2", "block 1", r"block '\$a\$'", "bound"]
    assert drawn["block 2"].tolist() == [[2, 3], [0.5, 0.625]]
    assert drawn["block 1"].tolist() == [[1, 3], [0.25, 0.375]]
    assert drawn[r"block '\$a\$'"].tolist() == [[1], [0.25]]
    assert ax.get_ylabel() == "privacy loss (ε, pure DP)"
    assert ax.get_legend().get_title().get_text() == ""
    ax.figure.canvas.draw()


def test_of_many_blocks_those_with_the_largest_losses_are_drawn(space, ledger):
    root = block_filter(space, ledger, 100.0)
    for block in range(12):
        on_blocks(root, [block], 1.0 + block)
    ax = plot.plot_ledger(ledger)
    assert set(lines(ax)) == {f"block {block}" for block in range(2, 12)} | {"bound"}
    title = ax.get_legend().get_title().get_text()
    assert title == "10 of 12 blocks,\nthe largest losses"


def test_limits_and_labels_have_lines_over_whole_days(space, ledger):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=ledger)([1, 2, 3])
    ann = root(oc.c.make_limited(odometer, 1, 0.5, label="$ann"))
    with oc.labelled("a"):
        ann(dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 0.25))
    ax = plot.plot_ledger(ledger, by="limit")
    assert lines(ax)[r"\$ann"][1].tolist() == [0.25]
    start, end = ax.get_xlim()
    assert (start % 1, end - start) == (0, 1)
    assert list(lines(plot.plot_ledger(ledger, by="label", against="launches"))) == ["a", "bound"]
    with pytest.raises(
        InvalidValueError, match=r"by \('block'\) must be something that the ledger"
    ):
        plot.plot_ledger(ledger, by="block")


def test_given_axes_are_drawn_on(ledger):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plot.plot_ledger(ledger, ax=ax) is ax


def test_misuse_names_the_argument(ledger):
    with pytest.raises(InvalidValueError, match="against"):
        plot.plot_ledger(ledger, against="money")


def test_what_does_not_fit_together_is_not_drawn(space, ledger):
    launch(space, ledger, PURE, [0.25])
    with ledger._store.writing({}) as (driver, _):
        driver.execute("UPDATE opendp_concurrent_budgets SET record = '0'")
    with pytest.raises(LedgerDamagedError, match="running total"):
        plot.plot_ledger(ledger)
