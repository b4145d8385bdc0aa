"""Known faults of OpenDP's maps are fenced on every path on which this package prices a query.

Each path launches a count whose grouping column is redefined after the truncation (charged 0.5,
truth 5,000), or a threshold whose δ is too small. Before the fence all of them were launched.
"""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import AdvisoryError, BudgetExceededError, InvalidValueError
from opendp_concurrent.ledger import create_ledger

pl = pytest.importorskip("polars")
dp.enable_features("contrib", "honest-but-curious")

ZCDP, APPROXIMATE = dp.zero_concentrated_divergence(), dp.approximate(dp.max_divergence())
SCHEMA = {"id": pl.Int64, "g": pl.Int64}
ROWS, ONE = pl.LazyFrame(schema=SCHEMA), pl.lit(0, dtype=pl.Int64)
DATA = pl.LazyFrame({"id": [0] * 100 + [1] * 100, "g": [*range(100)] * 2})
UNIT = dp.symmetric_id_distance(pl.col("id"))
SPACE = (
    dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in SCHEMA]),
    UNIT,
)
KEYS = pl.LazyFrame({"g": [0]})
ISSUE = "opendp#2949"


def truncated(frame):
    each = frame.filter(pl.int_range(pl.len()).over("id", "g") < 1)
    return each.filter(pl.struct("g").rank("dense").over("id") < 101)


def counted(frame, measure=ZCDP):
    grouped = frame.group_by("g").agg(dp.len(scale=1.0, signed=True))
    plan = KEYS.join(grouped, on="g", how="left")
    return dp.m.make_private_lazyframe(*SPACE, measure, plan)


def bad(measure=ZCDP):
    return counted(truncated(ROWS).with_columns(g=ONE), measure)


def good(measure=ZCDP):
    return counted(truncated(ROWS.with_columns(g=ONE)), measure)


def odometer(measure=ZCDP, **options):
    return oc.make_concurrent_odometer(*SPACE, measure, **options)


def filtered(measure=ZCDP, d_out=1e6):
    return oc.make_concurrent_filter(odometer(measure), 1, d_out)


def asked():
    root = odometer()(DATA)
    root.privacy_loss(1)
    return root


def with_a_ledger(path):
    book = create_ledger(path, dataset="visits")
    return oc.make_concurrent_filter(odometer(), 1, 1e6, ledger=book)(DATA)


ROOTS = {
    "filter": lambda _: filtered()(DATA),
    "odometer": lambda _: odometer()(DATA),
    "odometer whose loss was read": lambda _: asked(),
    "child odometer": lambda _: filtered()(DATA)(odometer()),
    "child filter": lambda _: filtered()(DATA)(filtered()),
    "limit": lambda _: filtered()(DATA)(oc.c.make_limited(odometer(), 1, 1e6, label="one")),
    "compositor": lambda _: oc.make_concurrent_composition(*SPACE, ZCDP, 1, [1e6])(DATA),
    "ledger": with_a_ledger,
}


@pytest.mark.parametrize("name", ROOTS)
def test_no_handle_launches_it(name, tmp_path):
    root = ROOTS[name](tmp_path / "a.db")
    before = root.privacy_loss(1) if name != "odometer" else None
    with pytest.raises(AdvisoryError, match=ISSUE):
        root(bad())
    assert before is None or root.privacy_loss(1) == before
    root(good())
    assert root.privacy_loss(1) > 0.0


WRAPPED = {
    "postprocessed": lambda: bad() >> (lambda frame: frame),
    "composed by OpenDP": lambda: dp.c.make_composition([bad(), good()]),
    "postprocessed here": lambda: oc.c.make_interactive_postprocessing(bad(), lambda one: one),
    "indexed": lambda: oc.c.make_indexed_composition(*SPACE, ZCDP, 1, [good(), bad()]),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_no_wrapper_hides_it(name):
    root = filtered()(DATA)
    with pytest.raises(AdvisoryError, match=ISSUE):
        root(WRAPPED[name]())
    assert root.privacy_loss(1) == 0.0


def test_no_cast_hides_it():
    measure = dp.approximate(dp.max_divergence())
    root = filtered(measure, (1e6, 0.1))(DATA)
    for made in (
        dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(bad()), 1e-6),
        oc.c.cast(bad(), measure, delta=1e-6),
    ):
        with pytest.raises(AdvisoryError, match=ISSUE):
            root(made)
    assert root.privacy_loss(1) == (0.0, 0.0)


def test_no_question_about_it_is_answered():
    root = filtered()(DATA)
    for ask in (
        lambda: root.loss_after([bad()]),
        lambda: root.describe(bad()),
    ):
        with pytest.raises(AdvisoryError, match=ISSUE):
            ask()
    assert root.privacy_loss(1) == 0.0


def test_selection_does_not_repeat_it():
    chosen = oc.c.make_private_selection(bad(), mean_runs=2, score=len)
    with pytest.raises(AdvisoryError, match=ISSUE):
        chosen.map(1)(2.0)


def test_a_context_refuses_it_and_admits_the_harmless_order():
    context = oc.concurrent_context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1, identifier="id"),
        privacy_loss=dp.loss_of(rho=0.5),
    )
    each = context.query(rho=0.1).truncate_per_group(1, by=["g"])
    few = each.truncate_num_groups(10, by=["g"]).with_columns(g=ONE)
    with pytest.raises(AdvisoryError, match=ISSUE):
        few.group_by("g").agg(dp.len(signed=True)).with_keys(KEYS).release()
    assert context.current_privacy_loss() == 0.0
    first = context.query(rho=0.1).with_columns(g=ONE).truncate_per_group(1, by=["g"])
    one = first.truncate_num_groups(10, by=["g"]).group_by("g")
    one.agg(dp.len(signed=True)).with_keys(KEYS).release()
    assert context.current_privacy_loss() > 0.0


def test_a_count_of_frames_is_checked_when_it_is_made():
    """Its record has no plan. A sample of groups after the redefinition has no stability."""
    rows = dp.lazyframe_domain([dp.series_domain("g", dp.atom_domain(T="i64"))])
    plan = pl.LazyFrame(schema={"g": pl.Int64}).with_columns(g=ONE).group_by("g").agg(pl.len())
    with pytest.raises(AdvisoryError, match=ISSUE):
        oc.t.make_frame_count(rows, dp.frame_distance(dp.symmetric_distance()), plan)
    assert oc.t.make_frame_count(rows, dp.symmetric_distance(), plan).map(1) == 2


# --- thresholds -------------------------------------------------------------------------------

TEXTS = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
RELEASE = dp.t.make_count_by(*TEXTS) >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
RIGHT = 0.01338980493269848


def threshold_filter(delta):
    return oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*TEXTS, APPROXIMATE), 1, (10.0, delta)
    )(["a"] * 9)


def test_a_threshold_pays_its_true_delta():
    assert RELEASE.map(1)[1] < 0.005
    root = threshold_filter(0.1)
    root(RELEASE)
    assert root.privacy_loss(1) == (1.0, RIGHT)
    assert root.describe(RELEASE).loss == (1.0, RIGHT)
    with pytest.raises(BudgetExceededError):
        threshold_filter(0.013)(RELEASE)


def test_a_message_pays_its_true_delta():
    noisy = dp.m.then_noise_threshold(APPROXIMATE, 1.0, 5)
    sent = oc.deserialize(oc.serialize(dp.t.make_count_by(*TEXTS, TV="i32") >> noisy))
    root = threshold_filter(0.1)
    root(sent)
    assert root.privacy_loss(1) == (1.0, RIGHT)


def test_a_context_searches_with_the_true_delta():
    context = oc.concurrent_context(
        data=["a"] * 9,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=0.01),
        domain=TEXTS[0],
    )
    context.query(epsilon=1.0, delta=0.01).count_by().laplace_threshold(1.0).release()
    assert 0.001 < context.current_privacy_loss()[1] <= 0.01


def test_parts_pay_their_true_delta():
    by_text = oc.c.by_key(len)
    assert oc.c.make_parallel_composition(*TEXTS, by_text, {1: RELEASE}).map(1)[1] >= RIGHT


# --- a function before an odometer -------------------------------------------------------------


def test_a_mean_of_no_rows_before_an_odometer_is_refused():
    """The function and the noise are on two sides of the odometer, so neither shows the other."""
    number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    rows = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    mean = dp.t.make_user_transformation(
        *rows, *number, lambda arg: sum(arg) / len(arg) if arg else float("nan"), float
    )
    tail = oc.make_concurrent_odometer(*number, dp.max_divergence())
    for made in (mean >> tail, oc.make_concurrent_filter(mean >> tail, 1, 1.0)):
        with pytest.raises(AdvisoryError, match="opendp#2935"):
            made([1.0])


PURE = dp.max_divergence()
NUMBER = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
INTS = dp.vector_domain(dp.atom_domain(T=int))
TWO = dp.vector_domain(dp.atom_domain(T=int), size=2)
ORDERED = dp.insert_delete_distance()
HEADS = {  # a transformation with a fault, its data, a distance, and whether a message can have it
    2925: (
        lambda: dp.t.make_b_ary_tree(TWO, dp.l1_distance(T=int), leaf_count=2, branching_factor=2),
        [2**31 - 1, 1],
    ),
    2926: (lambda: dp.t.make_metric_bounded(TWO, ORDERED), [0, 1]),
    2927: (
        lambda: dp.t.make_resize(INTS, ORDERED, 2, constant=0, MO="InsertDeleteDistance"),
        [0, 1],
    ),
    2935: (
        lambda: dp.t.make_user_transformation(
            INTS, dp.symmetric_distance(), *NUMBER, lambda arg: float("nan"), float
        ),
        [0, 1],
    ),
}
BELOW = {
    "compositor": lambda space: oc.make_concurrent_composition(*space, PURE, 9, [1.0]),
    "filter": lambda space: oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*space, PURE), 9, 1.0
    ),
    "OpenDP's compositor": lambda space: dp.c.make_adaptive_composition(*space, PURE, 9, [1.0]),
}
AROUND = {
    "chain": lambda head, one: head >> one,
    "chain of OpenDP": lambda head, one: dp.c.make_chain_mt(one, head),
    "function after it": lambda head, one: head >> one >> len,
    "function inside": lambda head, one: head >> (one >> len),
    "composition": lambda head, one: dp.c.make_composition([head >> one]),
    "composition inside": lambda head, one: head >> dp.c.make_composition([one]),
    "composition of compositions": lambda head, one: dp.c.make_composition(
        [dp.c.make_composition([head >> one]) >> len]
    ),
    "postprocessed here": lambda head, one: oc.c.make_interactive_postprocessing(
        head >> one, lambda answer: answer
    ),
    "interactive": lambda head, one: oc.c.make_interactive(head >> one >> len),
    "selected": lambda head, one: oc.c.make_private_selection(
        head >> one >> len, mean_runs=2, score=len
    ),
    "indexed": lambda head, one: oc.c.make_indexed_composition(
        head.input_domain, head.input_metric, PURE, 2, [head >> one]
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("issue", HEADS)
def test_no_wrapper_of_what_is_below_hides_it(issue, around):
    head, data = HEADS[issue][0](), HEADS[issue][1]
    above = head.input_domain, head.input_metric
    for below in BELOW.values():
        root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*above, PURE), 2, 99.0)(data)
        with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
            root(AROUND[around](head, below(head.output_space)))
        assert root.privacy_loss() == 0.0


def test_no_cast_of_what_is_below_hides_it():
    head = HEADS[2925][0]()
    made = dp.c.make_pureDP_to_zCDP(head >> BELOW["compositor"](head.output_space))
    above = oc.make_concurrent_odometer(head.input_domain, head.input_metric, ZCDP)
    with pytest.raises(AdvisoryError, match="opendp#2925"):
        oc.make_concurrent_filter(above, 1, 9.0)(HEADS[2925][1])(made)


@pytest.mark.parametrize("issue", [2925, 2926, 2927])
def test_no_message_hides_it(issue):
    head = HEADS[issue][0]()
    one, above = head >> BELOW["compositor"](head.output_space), head.input_space
    odometer = oc.make_concurrent_odometer(*above, PURE)
    for made in (one, dp.c.make_composition([one])):
        sent = oc.deserialize(oc.serialize(made), space=above, output_measure=PURE)
        root = oc.make_concurrent_filter(odometer, 2, 99.0)(HEADS[issue][1])
        with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
            root(sent)
        assert root.privacy_loss() == 0.0


def test_a_chain_that_is_called_by_the_owner_is_refused():
    """Nobody reads its map before it runs."""
    head, data = HEADS[2935][0](), HEADS[2935][1]
    for name in ("compositor", "filter"):
        with pytest.raises(AdvisoryError, match="opendp#2935"):
            (head >> BELOW[name](NUMBER))(data)


# --- a plan in two parts -----------------------------------------------------------------------


def first(frame=None):
    """Return the part above: the grouping column is redefined, or not."""
    plan = truncated(ROWS).with_columns(g=ONE) if frame is None else frame
    return dp.t.make_stable_lazyframe(*SPACE, plan, MO="FrameDistance<SymmetricDistance>")


def second(above):
    """Return the part below, which counts the groups."""
    grouped = ROWS.group_by("g").agg(dp.len(scale=1.0, signed=True))
    plan = KEYS.join(grouped, on="g", how="left")
    return dp.m.make_private_lazyframe(*above.output_space, ZCDP, plan)


def tail(above):
    return oc.make_concurrent_odometer(*above.output_space, ZCDP)


PARTS = {
    "odometer": lambda above: above >> tail(above),
    "postprocessed": lambda above: (above >> tail(above)) >> (lambda answer: answer),
    "limit": lambda above: oc.c.make_limited(above >> tail(above), 1, 9.0, label="one"),
    "filter": lambda above: above >> oc.make_concurrent_filter(tail(above), above.map(1), 9.0),
    "filter around": lambda above: oc.make_concurrent_filter(above >> tail(above), 1, 9.0),
    "compositor": lambda above: (
        above >> oc.make_concurrent_composition(*above.output_space, ZCDP, above.map(1), [9.0])
    ),
    "OpenDP's compositor": lambda above: (
        above >> dp.c.make_adaptive_composition(*above.output_space, ZCDP, above.map(1), [9.0])
    ),
    "indexed": lambda above: (
        above
        >> oc.c.make_indexed_composition(*above.output_space, ZCDP, above.map(1), [second(above)])
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_plan_is_not_split_over_two_handles(name):
    """Charged .5, truth 5,000: the counts are 100 and 0."""
    root, above = filtered(d_out=99.0)(DATA), first()
    with pytest.raises(AdvisoryError, match=ISSUE):
        root(PARTS[name](above))
    assert root.privacy_loss(1) == 0.0


@pytest.mark.parametrize("name", PARTS)
def test_a_plan_without_fault_is_split(name):
    root, above = filtered(d_out=99.0)(DATA), first(truncated(ROWS.with_columns(g=ONE)))
    handle = root(PARTS[name](above))
    if name == "OpenDP's compositor":
        assert handle(second(above)).collect().height == 1
    else:
        handle((0, second(above)) if name == "indexed" else second(above))
    assert root.privacy_loss(1) > 0.0


def test_a_root_is_not_split():
    above = first()
    for name in ("odometer", "filter around"):
        with pytest.raises(AdvisoryError, match=ISSUE):
            PARTS[name](above)(DATA)


def test_bounds_of_the_unit_are_known_when_a_loss_is_asked_for():
    """The odometer does not know its distance before."""
    metric = dp.frame_distance(dp.symmetric_distance())
    by_g = [dp.polars.Bound(by=["g"], per_group=1, num_groups=9), dp.polars.Bound(per_group=9)]
    above = dp.t.make_stable_lazyframe(SPACE[0], metric, ROWS.with_columns(g=ONE))
    made = above >> tail(above)
    root = made(DATA)
    root(second(above))
    assert root.privacy_loss([dp.polars.Bound(per_group=9)]) > 0.0
    with pytest.raises(AdvisoryError, match=ISSUE):
        root.privacy_loss(by_g)
    limited = oc.c.make_limited(made, by_g, 99.0, label="one")
    for below in (made, limited):
        over = oc.make_concurrent_filter(
            oc.make_concurrent_odometer(SPACE[0], metric, ZCDP), by_g, 99.0
        )(DATA)
        with pytest.raises(AdvisoryError, match=ISSUE):
            over(below)(second(above))
        assert over.privacy_loss() == 0.0


def test_a_context_is_not_split():
    unit = dp.unit_of(contributions=1, identifier="id")

    def context():
        made = oc.concurrent_context(data=DATA, privacy_unit=unit, privacy_loss=dp.loss_of(rho=9.0))
        return made, made.limited("alice", dp.loss_of(rho=8.0))

    def above(one, *, before):
        query = one.query(rho=0.1)
        query = query.with_columns(g=ONE) if before else query
        each = query.truncate_per_group(1, by=["g"]).truncate_num_groups(10, by=["g"])
        return each if before else each.with_columns(g=ONE)

    for one in context():
        with pytest.raises(AdvisoryError, match=ISSUE):
            above(one, before=False).compositor(split_evenly_over=1).release()
        assert one.current_privacy_loss() == 0.0
        child = above(one, before=True).compositor(split_evenly_over=1).release()
        child.query().group_by("g").agg(dp.len(signed=True)).with_keys(KEYS).release()
        assert one.current_privacy_loss() > 0.0


# --- data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [[1.0, float("nan")], (float("nan"),)])
def test_data_with_nan_are_refused_where_the_domain_has_none(data):
    """OpenDP reads NaN as 0 before it adds noise. The owner is told, as for columns."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    root = oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*space, dp.max_divergence()), 1, 1.0
    )
    with pytest.raises(InvalidValueError, match="has NaN, which the domain excludes"):
        root(list(data))
    root([1.0, float("inf")])
