"""Children of a context: nested contexts under other measures, blocks, parts."""

import opendp.context
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.context import accountant, query, search
from opendp_concurrent.context.context import ConcurrentContext
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures import composition_measure

from ..build import PURE, SPACE, ZCDP

pl = pytest.importorskip("polars")
FRAME = pl.LazyFrame({"n": [1, 2, 3, 4] * 50})
ROWS = [1, 2, 3, 4] * 50
KINDS = {
    "vector": (ROWS, oc.c.by_key(lambda n: n), lambda query: query.count().laplace().release()),
    "frame": (
        FRAME,
        oc.c.by_column("n"),
        lambda query: query.select(dp.len(signed=True)).release().collect().item(),
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def context(kind, loss=None, contributions=1, **keywords):
    loss = dp.loss_of(epsilon=4.0) if loss is None else loss
    return oc.concurrent_context(
        KINDS[kind][0], dp.unit_of(contributions=contributions), loss, **keywords
    )


# --- nested contexts under another measure -------------------------------------------------------

OUTER = dp.loss_of(epsilon=1.0, delta=1e-6)
INNER = {
    "pure": (lambda: PURE, None),
    "zCDP": (lambda: ZCDP, None),
    "Gaussian": (oc.gaussian_tradeoff, None),
    "one order": (lambda: oc.fixed_renyi_divergence(alpha=64.0), None),
    "approximate zCDP": (lambda: dp.approximate(ZCDP), 0.5),
}


@pytest.mark.parametrize(("kind", "split"), [("vector", None), ("frame", 2)])
@pytest.mark.parametrize("inner", INNER)
def test_a_nested_context_under_another_measure_costs_the_loss_of_its_query(kind, inner, split):
    make, alpha = INNER[inner]
    measure = make()
    open_ = context(kind, (OUTER[0], (2.0, 2e-6)))
    query = open_.query(epsilon=1.0, delta=1e-6)
    nested = query.compositor(split, output_measure=measure, alpha=alpha).release()
    assert type(nested) is ConcurrentContext
    assert nested.accountant.output_measure == measure
    spent, d_out = open_.current_privacy_loss(), OUTER[1]
    assert all(one <= most for one, most in zip(spent, d_out, strict=True))
    assert spent == pytest.approx(d_out, rel=1e-9)
    known, budget = composition_measure(measure), nested.remaining_privacy_loss()
    if split:
        assert len(budget) == 2
    else:
        assert known.at_most(nested.accountant.map(1), budget)


def test_conversions_that_are_not_known_are_refused():
    with pytest.raises(UnsupportedMeasureError, match="no conversion"):
        context("vector").query(epsilon=1.0).compositor(output_measure=ZCDP)
    with pytest.raises(InvalidTypeError, match="^alpha"):
        context("vector", OUTER).query(epsilon=1.0, delta=1e-7).compositor(
            output_measure=dp.approximate(ZCDP)
        )
    with pytest.raises(InvalidValueError, match="^d_out .* is below what each loss"):
        context("vector", OUTER).query(epsilon=0.3, delta=1e-7).compositor(
            output_measure=oc.fixed_renyi_divergence(alpha=8.0)
        )


def test_approximate_zcdp_inside_approximate_dp_is_as_opendp_converts():
    rho, delta = accountant.largest_by_opendp((1.0, 1e-6), 5e-7)
    epsilon, whole = accountant.by_opendp((rho, delta), 1e-6)
    assert delta == 5e-7
    assert epsilon <= 1.0
    assert whole <= 1e-6
    assert accountant.by_opendp((rho * (1 + 1e-9), delta), 1e-6)[0] > 1.0
    with pytest.raises(InvalidValueError, match="^d_out .* has no approximate zCDP"):
        accountant.largest_by_opendp((1.0, 1e-6), 2e-6)


# --- every query form makes at most 100 measurements ---------------------------------------------


@pytest.fixture
def trials(monkeypatch):
    """How often a search tries a number; OpenDP's own search is not used."""
    tried, original, halved = [], search._tried, search._halved

    def counted(condition, number):
        tried.append(number)
        return original(condition, number)

    def halving(condition, passing, failing):
        return halved(lambda number: (tried.append(number), condition(number))[1], passing, failing)

    def refused(*args, **kwargs):
        raise AssertionError("OpenDP's search takes more than 1,000 trials")

    monkeypatch.setattr(search, "_tried", counted)
    monkeypatch.setattr(search, "_halved", halving)
    for name in ("binary_search", "binary_search_param"):
        monkeypatch.setattr(opendp.context, name, refused)
    monkeypatch.setattr(search.dp, "binary_search", refused)
    return tried


# a frame searches as a vector does, but each trial takes long
@pytest.mark.parametrize(
    ("kind", "inner"),
    [*((kind, None) for kind in KINDS), ("frame", "pure"), *(("vector", one) for one in INNER)],
)
def test_nesting_takes_at_most_100_trials(kind, inner, trials):
    make, alpha = INNER[inner] if inner else (lambda: None, None)
    open_ = context(kind, OUTER)
    query = open_.query(epsilon=1.0, delta=1e-6)
    query.compositor(2, output_measure=make(), alpha=alpha).release()
    assert len(trials) <= 100


# --- blocks --------------------------------------------------------------------------------------


def test_a_block_filter_is_charged_once_at_release():
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=3.0)
    open_ = oc.concurrent_context([101, 102, 201], unit, loss, domain=SPACE[0])
    weeks = oc.c.by_key(lambda record: record // 100)
    root = open_.query().block_filter(1.0, weeks, [1, 2]).release()
    assert open_.current_privacy_loss() == 1.0
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    for blocks in ([1], [1, 2], [2]):
        assert isinstance(root(blocks, count), int)
    assert open_.current_privacy_loss() == 1.0
    with pytest.raises(BudgetExceededError, match="block 1 of filter 1 of the filter"):
        root([1], count)
    with pytest.raises(InvalidValueError, match=r"^the query has the privacy loss 0\.5"):
        open_.query(epsilon=0.5).block_filter(1.0, weeks, [1, 2])


# --- parts ---------------------------------------------------------------------------------------


@each_kind
def test_parts_are_contexts_that_cost_once(kind):
    (_, partition, ask), open_ = KINDS[kind], context(kind)
    parts = open_.query(epsilon=1.0).parallel_composition(partition, keys=[1, 2, 9]).release()
    assert open_.current_privacy_loss() == 1.0
    assert type(parts[1]) is ConcurrentContext
    for key, size in ((1, 50), (9, 0), (2, 50)):
        assert parts[key].remaining_privacy_loss() == 1.0
        assert abs(ask(parts[key].query(epsilon=0.5)) - size) < 120  # 10^-26
    assert parts[1].remaining_privacy_loss() == 0.5
    with pytest.raises(BudgetExceededError):
        ask(parts[1].query(epsilon=0.75))
    with pytest.raises(InvalidValueError, match="must be a key of measurements"):
        parts[3]
    assert open_.current_privacy_loss() == 1.0


@each_kind
@pytest.mark.parametrize(
    ("given", "share"),
    [
        *(({"epsilon": 1.0}, 0.5), ({"rho": 1.0}, 0.5), ({"mu": 1.0}, 0.5**0.5)),
        ({"epsilon": 1.0, "delta": 1e-6}, (0.5, 5e-7)),
    ],
    ids=str,
)
def test_two_parts_that_may_differ_share_the_loss(kind, given, share):
    loss = oc.loss_of(**given)
    open_ = context(kind, loss, contributions=2)
    query = open_.query(**given)
    parts = query.parallel_composition(KINDS[kind][1], keys=[1, 2, 3]).release()
    found = parts[1].remaining_privacy_loss()
    assert found == pytest.approx(share)
    assert parts[1].d_in == 2
    one = query.parallel_composition(KINDS[kind][1], keys=[1])
    assert one.resolve().map(2) == loss[1]  # only one part can differ


def test_parts_of_measurements_are_as_the_constructor_makes_them():
    open_ = context("vector")
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    parts = open_.query().parallel_composition(KINDS["vector"][1], {1: count}).release()
    assert isinstance(parts[1], int)
    assert open_.current_privacy_loss() == 0.5


# --- queries as queries of a mechanism ---------------------------------------------------------


def test_a_query_on_a_vector_is_asked():
    open_ = context("vector")
    search_ = open_.query(epsilon=1.0).above_threshold(PURE, 1, threshold=100).release()
    assert search_(open_.query().count())
    with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
        search_(open_.query(epsilon=1.0).count().laplace())


def test_missing_parameters_are_named():
    def ask():
        return context("vector").query(epsilon=0.5)

    scores = ask().quantile_score_candidates
    with pytest.raises(InvalidValueError, match="needs the parameters candidates, alpha;"):
        scores()
    with pytest.raises(InvalidValueError, match="needs the parameters threshold, max_hits;"):
        ask().sparse_vector(PURE, 1, scale=1.0)
    partly = ask().clamp()  # its bounds are missing
    with pytest.raises(InvalidValueError, match="laplace needs the parameters scale;"):
        partly.laplace()
    with pytest.raises(ValueError, match="too many"):
        ask().laplace(1.0, 2, 3, 4)
    assert isinstance(ask().count().laplace().release(), int)


UNIT = dp.unit_of(contributions=1)


def on_list():
    return UNIT, [1.0, 2.0, 4.0] * 20


def on_table():
    duckdb = pytest.importorskip("duckdb")
    stored = duckdb.connect().execute(
        "CREATE TABLE t AS SELECT range AS person, 20 + range AS age, 'north' AS region "
        "FROM range(60)"
    )
    schema = {"person": int, "age": int, "region": str}
    return oc.tables.unit_of(units=1), oc.tables.scan(stored, "t", schema, "person")


def on_frame():
    return UNIT, pl.LazyFrame({"age": [20, 30] * 30})


LAUNCHES = {
    "composition": lambda query: query.concurrent_composition(PURE, 1, [0.25, 0.25]),
    "sparse vector": lambda query: query.sparse_vector(PURE, 1, threshold=10, max_hits=2),
    "above threshold": lambda query: query.above_threshold(PURE, 1, threshold=10),
    "guess and check": lambda query: query.guess_and_check(PURE, 1, tolerance=10.0, max_hits=2),
    "split": lambda query: query.compositor(2),
    "compositor": lambda query: query.compositor(),
}


@pytest.mark.parametrize("make", [on_list, on_table, on_frame])
@pytest.mark.parametrize("launch", LAUNCHES)
def test_each_mechanism_is_launched_within_the_loss_of_the_query(make, launch):
    unit, data = make()
    open_ = oc.concurrent_context(data, unit, dp.loss_of(epsilon=1.0))
    LAUNCHES[launch](open_.query(epsilon=0.5)).release()
    assert open_.current_privacy_loss() == pytest.approx(0.5, rel=1e-9)
    assert open_.current_privacy_loss() <= 0.5


ADVICE = {"list": (on_list, query.LISTS), "table": (on_table, query.TABLES)}
ADVICE["frame"] = on_frame, query.FRAMES
CODE = {
    "list": ["len", "average", "quantile", "median"],
    "table": ["filter", "groupby", "agg", "std", "var", "avg", "len", "n_unique", "assign", "drop"],
    "frame": ["where", "len", "avg"],
}


@pytest.mark.parametrize("kind", ADVICE)
def test_names_of_other_libraries_are_answered_with_what_to_write(kind):
    make, known = ADVICE[kind]
    unit, data = make()
    query = oc.concurrent_context(data, unit, dp.loss_of(epsilon=9.0)).query(epsilon=1.0)
    for name, text in known.items():
        with pytest.raises(AttributeError, match="has no " + name) as caught:
            getattr(query, name)
        assert str(caught.value) == text
    few = query.truncate(1) if kind == "table" else query
    names = {"few": few, "pl": pl, "oc": oc, "dp": dp}
    for name in CODE[kind]:
        code = known[name].partition(": ")[2].removeprefix("use ").partition(", or ")[0]
        code = code.removeprefix("by= and keys=, such as ").replace("[...]", "[0.0, 30.0]")
        eval("few." + code.replace("n=count", "n=few.count"), names)
    if kind == "list":
        candidates, filled = [0.0, 2.0, 9.0], query.impute_constant(0.0)
        assert filled.private_quantile(candidates=candidates, alpha=0.5).release() in candidates
        with pytest.raises(InvalidValueError, match=r"clamp\(\(0\.0, 10\.0\)\)\.sum"):
            query.sum((0, 10))
