"""Several answers in one launch, and quantiles by group: against the truth, and what is refused."""

import math
from statistics import fmean

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.aggregates import Joint
from opendp_concurrent.tables.schema import Schema

from .pipelines import Data

SCHEMA = {"person": int, "age": int, "hours": float, "zone": str}
ROWS = [(p, p % 90, p % 7 * 0.5, "ab"[p % 2]) for p in range(2000)]
LOSSES = {"laplace": {"epsilon": 1e4}, "gaussian": {"rho": 1e7}}


@pytest.fixture(scope="module")
def visits(on_duckdb):
    return on_duckdb.load(Data.of(SCHEMA, "person", ROWS))


def asked(table, loss, count=9):
    return oc.concurrent_context(
        table, oc.tables.unit_of(units=1), dp.loss_of(**loss), split_evenly_over=count
    )


@pytest.mark.parametrize("noise", LOSSES)
def test_several_answers_by_group_are_one_frame(visits, noise):
    few = asked(visits, LOSSES[noise]).query().truncate(1)
    by = {"by": "zone", "keys": ["b", "a", "nobody"]}
    query = few.select(
        n=few.count(**by),
        age=few.mean("age", (0, 89), **by),
        s=few.sum(**by, column="age", bounds=(0, 89)),
    )
    frame = getattr(query, noise)().release(frame="polars")
    assert frame.columns == [
        *("zone", "n", "n_lower", "n_upper", "age", "age_lower", "age_upper"),
        *("s", "s_lower", "s_upper"),
    ]
    assert frame["n"].to_list() == pytest.approx([1000, 1000, 0], abs=2)
    truth = [fmean(row[1] for row in ROWS if row[3] == zone) for zone in "ba"]
    assert frame["age"].to_list()[:2] == pytest.approx(truth, rel=1e-2)
    assert math.isnan(frame["age"][2])


def test_answers_have_equal_shares():
    schema = Schema((("p", int), ("age", int), ("big", int)), ("p",))
    answers = [
        oc.tables.Answer("count"),
        oc.tables.Answer("sum", "big", (0, 10**6)),
        oc.tables.Answer("mean", "age", (0, 120)),
    ]
    for norm in ("l1", "l2"):
        joint, power = Joint.of(schema, answers, norm), {"l1": 1, "l2": 2}[norm]
        shares, at = [], 0
        for part in joint.parts:
            own = joint.per_row[at : at + len(part.per_row)]
            at += len(own)
            shares.append(sum(one**power for one in own) ** (1 / power))
        assert max(shares) <= 17 / 16 * min(shares)


@pytest.mark.parametrize("noise", LOSSES)
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_quantiles_by_group(visits, noise, alpha):
    few = asked(visits, LOSSES[noise]).query().truncate(1)
    query = few.quantile("age", range(90), alpha, by="zone", keys=["a", "b"])
    for zone, one in zip("ab", getattr(query, noise)().release(), strict=True):
        ages = [row[1] for row in ROWS if row[3] == zone]
        truth = max(c for c in range(90) if sum(a < c for a in ages) <= alpha * len(ages))
        assert one.lower <= truth <= one.upper
        assert abs(one.value - truth) <= 2


def test_what_does_not_fit_together_is_refused_before_the_charge(visits):
    context = asked(visits, {"epsilon": 1.0})
    few = context.query().truncate(1)
    by = {"by": "zone", "keys": ["a"]}
    wrong = {
        "columns must be": lambda: few.select(),
        "n must be a count": lambda: few.select(n=few.count().laplace()),
        "m must be a count": lambda: few.select(m=few.median("age", range(9))),
        "q must be a count": lambda: few.select(q=few.quantile("age", range(9), **by)),
        "o must be a count": lambda: few.select(o=context.query().truncate(1).count()),
        "x must be a count": lambda: few.select(x="age"),
        "must have the by": lambda: few.select(a=few.count(), b=few.count(**by)),
        "given together": lambda: few.quantile("age", range(9), by="zone"),
        "increasing": lambda: few.quantile("age", [2, 1], **by),
        "at most 1000": lambda: few.quantile("age", range(1001), **by),
        "laplace": lambda: few.select(n=few.count()).release(),
    }
    for message, ask in wrong.items():
        with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
            ask()
    assert context.current_privacy_loss() == []
