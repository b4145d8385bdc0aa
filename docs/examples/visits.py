"""A million visits to doctors, one budget, one ledger: counts, sums, a search and a counter.

    python docs/examples/visits.py FOLDER

The numbers of visits and of chronic diseases are public data: those of 20,190 person-years in the
RAND Health Insurance Experiment, which statsmodels contains as ``randhie``. To get a million
visits, each person-year is repeated, and each copy counts as another person. Regions and weeks are
made up: they are computed from the number of the person and of the visit.

FOLDER receives ``visits.parquet``, ``budget.db`` and ``visits.svg``. It needs the extras ``demo``,
``tables``, ``ledger`` and ``plot``.
"""

import sys
from pathlib import Path

import duckdb
import numpy as np
import opendp.prelude as dp
import pandas
from opendp.mod import Measurement
from statsmodels.datasets import randhie

import opendp_concurrent as oc

ROWS = 1_000_000
REGIONS = ["centre", "east", "north", "south", "west"]
WEEKS = range(52)
SLOTS = 2**13  # more persons than have their first visit in one week in the east
SCHEMA = {"person": int, "region": str, "week": int, "diseases": int}
ZCDP = dp.zero_concentrated_divergence()
col = oc.tables.col


def write_visits(path: Path, rows: int = ROWS) -> None:
    """Write visits, one in a row, as a Parquet file."""
    survey = randhie.load_pandas().data
    visits = survey["mdvis"].to_numpy(dtype=int)
    copies = -(-rows // visits.sum())
    per_person = np.tile(visits, copies)
    person = np.repeat(np.arange(per_person.size), per_person)[:rows]
    week = (person * 17 + np.arange(rows) * 29) % 60
    table = {
        "person": person,
        "region": np.array(REGIONS)[person * 7 % 11 % 5],
        "week": np.where(week < 52, week, week - 50),  # twice as many visits in weeks 2 to 9
        "diseases": np.tile(survey["disea"].to_numpy(), copies)[person].round().astype(int),
    }
    with duckdb.connect() as connection:
        connection.register("made", pandas.DataFrame(table))
        connection.execute(f"COPY made TO '{path}' (FORMAT parquet)")


def counter_of_weeks(visits: oc.tables.Table, scale: float) -> Measurement:
    """Count the persons who have had a visit in the east, week after week, by a counter.

    Each week has as many steps as ``SLOTS``. If n persons have their first visit in the week, then
    its first n steps are 1 and the others 0. A person more or less changes one step.
    """
    stream = oc.integer_stream(0, 1), oc.event_change()
    counter = oc.m.make_counter(*stream, ZCDP, scale=scale, horizon=SLOTS * len(WEEKS))
    east = visits.space >> oc.t.then_where(col("region") == "east")
    first = east >> oc.t.then_truncate(1, order_by=["week"])
    weekly = first >> oc.t.then_table_count("week", WEEKS)

    def function(table):
        arrivals, handle = iter(weekly(table)), counter([])

        def transition(query, is_internal):
            persons = next(arrivals, None)
            if persons is not None:
                handle.update_all((np.arange(SLOTS) < persons).astype(int))
            return handle.read()

        return dp.new_queryable(transition, Q="ExtrinsicObject", A="ExtrinsicObject")

    def privacy_map(d_in):
        return counter.map(weekly.map(d_in))  # so many steps differ

    return dp.m.make_user_measurement(
        *visits.space, ZCDP, function, privacy_map, TO="ExtrinsicObject"
    )


def analyse(folder: Path, frame: str = "polars") -> dict:
    """Analyse the visits under a budget of rho = 0.5, and return what is released."""
    path, budget = folder / "visits.parquet", folder / "budget.db"
    visits = oc.tables.scan(duckdb.connect(), str(path), SCHEMA, unit="person")
    oc.ledger.create_ledger(budget, dataset="visits").close()
    context = oc.concurrent_context(
        data=visits,
        privacy_unit=oc.tables.unit_of(units=1),
        privacy_loss=dp.loss_of(rho=0.5),
        ledger=oc.ledger.open_ledger(budget, dataset="visits"),
    )
    losses = []

    def spent(released):
        losses.append(context.current_privacy_loss())
        return released

    few = context.query(rho=0.05).truncate(5)
    counts = spent(few.count("region", REGIONS).gaussian().release(frame=frame))
    once = context.query(rho=0.05).truncate(1)
    sums = once.sum("diseases", (0, 40), by="region", keys=REGIONS).gaussian()
    diseases = spent(sums.release(frame=frame))

    search = spent(
        context.query(rho=0.1)
        .sparse_vector(ZCDP, 1, threshold=5_000, max_hits=9, sensitivity=1, monotone=True)
        .release()
    )
    counter = spent(context(counter_of_weeks(visits, scale=15.0)))
    seen, busy = [], []
    for week in WEEKS:  # both children are queried in turn, and cost nothing more
        seen.append(spent(counter(None)))
        in_week = context.query().where(col("week") == week).where(col("region") == "east")
        if search(in_week.truncate(1).count()):
            busy.append(week)
        spent(None)
    return {
        "counts": counts,
        "diseases": diseases,
        "busy": busy,
        "seen": seen,
        "losses": losses,
        "remaining": context.remaining_privacy_loss(),
    }


def draw(found: dict, path: Path) -> None:
    """Draw the loss after each launch and each query."""
    ax = oc.plot.plot_session(found["losses"], d_out=0.5, ylabel="ρ spent on a million visits")
    ax.figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Write the visits, analyse them, print the frames, and draw the picture."""
    folder = Path(sys.argv[1])
    dp.enable_features("contrib", "honest-but-curious")
    write_visits(folder / "visits.parquet")
    found = analyse(folder)
    print("visits by region, at most 5 of a person:", found["counts"], sep="\n")
    print("chronic diseases of patients:", found["diseases"], sep="\n")
    print("weeks in which more than 5,000 patients came in the east:", found["busy"])
    print("patients in the east after 13, 26, 39 and 52 weeks:", found["seen"][12::13])
    print(f"rho spent: {found['losses'][-1]:.4f}, remaining: {found['remaining']:.4f}")
    draw(found, folder / "visits.svg")


if __name__ == "__main__":
    main()
