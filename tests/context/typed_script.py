# ruff: noqa: B018
"""A day of an analyst, with mistakes that type checkers should report: see test_types.py."""

import duckdb
import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger

dp.enable_features("contrib", "honest-but-curious")

# --- filters, odometers and compositors

space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
root = budget([1, 2, 3])
count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=20.0)
release = root(count)
spent = root.privacy_loss(1)
left = root.remaining()
told = root.describe(count)
print(told.loss, told.admitted, root.risk(prior=0.1).advantage)
root.remaining(1)  # wrong: too many arguments (mypy, pyright)
root.risk(prior="half")  # wrong: not a number (mypy, pyright)
root.remainng()  # wrong: misspelt (pyright)
root.describe(query=count, din=1)  # wrong: no such argument (mypy, pyright)
told.losses  # wrong: misspelt (mypy, pyright)

with odometer([1, 2, 3]) as free:
    child = free(oc.make_concurrent_odometer(*space, dp.max_divergence()))
    print(free.privacy_loss(1), free.loss_after([count], 1))
    free.admits()  # wrong: no query (mypy, pyright)
    free.remaining()  # wrong: an odometer has no bound (pyright)

planned = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.5, 0.5])([1, 2, 3])
shares = planned.remaining()
print(planned.privacy_loss())
oc.make_concurrent_filter(odometer, 1, 1.0, halts=True)  # wrong: no such argument (mypy, pyright)
oc.make_concurrent_filter(odometer, 1, 1.0, halt="yes")  # wrong: not a bool (mypy, pyright)
oc.make_concurrent_filter([1], 1, 1.0)  # wrong: not an odometer (mypy, pyright)

# --- accumulators and measures

pairs = dp.approximate(dp.max_divergence())
rule = oc.accumulators.zcdp(delta_slack=1e-7)
many = oc.make_concurrent_odometer(*space, pairs, accumulator=rule)
share = oc.c.largest_share((pairs, (1.0, 1e-6)), launches=100, accumulator=rule)
oc.accumulators.zcdp(delta_slack="small")  # wrong: not a number (mypy, pyright)
oc.accumulators.zcdp(slack=1e-7)  # wrong: no such argument (mypy, pyright)
oc.c.largest_share((pairs, (1.0, 1e-6)), launches="many")  # wrong: not a number (mypy, pyright)
curve = oc.TradeoffFunction.gaussian(1.0).compose(oc.TradeoffFunction.laplace(0.5))
delta = curve.delta(1.0) + curve.beta(0.05)
curve.delta_at(1.0)  # wrong: misspelt (mypy, pyright)
oc.TradeoffFunction.gaussian(mu="1")  # wrong: not a number (mypy, pyright)

# --- mechanisms

svt = oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scale=400.0, threshold=5.0)
error = svt.accuracy(0.05, answers=10)
asked = root(svt)
oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scal=4.0)  # wrong: (mypy, pyright)
svt.accuracy(beta="small")  # wrong: not a number (mypy, pyright)

# --- contexts

context = oc.concurrent_context(
    data=[1, 2, 3],
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
)
number = context.query(epsilon=0.1).count().laplace().release()
alice = context.limited("alice", dp.loss_of(epsilon=0.5))
alice.query(epsilon=0.1).count().laplace().release()
print(alice.remaining_privacy_loss(), context.summarize(prior=0.01).risk.success)
context.limited(3, dp.loss_of(epsilon=0.5))  # wrong: a label is text (mypy, pyright)
context.limited(dp.loss_of(epsilon=0.5))  # wrong: a limit has a label (mypy, pyright)
context.query(epsilon=0.1).summarize(alpha="x")  # wrong: not a number (mypy, pyright)
context.remaining()  # wrong: it is remaining_privacy_loss (pyright)

# --- tables

connection = duckdb.connect()
connection.execute(
    "CREATE TABLE visits AS SELECT i % 9 AS person, ['a', 'b'][1 + i % 2] AS zone, i % 5 AS hours "
    "FROM range(90) t(i)"
)
visits = oc.tables.scan(connection, "visits", {"person": int, "zone": str, "hours": int}, "person")
on_table = oc.concurrent_context(visits, oc.tables.unit_of(units=1), dp.loss_of(epsilon=1.0))
few = on_table.query(epsilon=0.1).where(oc.tables.col("hours") > 1).truncate(3)
by_zone = few.count("zone", keys=["a", "b"]).laplace().release()
mean = few.mean("hours", (0, 9)).laplace().release()
print(few.count().laplace().summarize(alpha=0.05).accuracy)
few.sum("hours")  # wrong: bounds are missing (mypy, pyright)
few.count("zone", key=["a"])  # wrong: no such argument (mypy, pyright)
few.count(by=3)  # wrong: not a column (mypy, pyright)
few.count().release(frames="pandas")  # wrong: no such argument (mypy, pyright)
oc.tables.unit_of(unit=1)  # wrong: no such argument (mypy, pyright)
oc.tables.scan(connection, "visits", units="person")  # wrong: no such argument (mypy, pyright)

# --- ledgers


def audit(path: str) -> None:
    with create_ledger(path, dataset="survey") as ledger:
        entries = ledger.entries(label="report")
        summary = ledger.summary()
        summary.launch  # wrong: misspelt (mypy, pyright)
        ledger.charged(3)  # wrong: a label is text (mypy, pyright)
        print(summary.launches, [entry.d_mid for entry in entries])
