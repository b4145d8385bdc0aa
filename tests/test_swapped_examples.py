"""OpenDP's documented examples of its compositors, filters and Context, names swapped.

Each story runs with OpenDP's own names and with ours: same arguments, same kinds of answers.
"""

from types import SimpleNamespace

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc

NATIVE = SimpleNamespace(
    make_composition=dp.c.make_adaptive_composition,
    then_composition=dp.c.then_adaptive_composition,
    make_odometer=dp.c.make_fully_adaptive_composition,
    then_odometer=dp.c.then_fully_adaptive_composition,
    make_filter=dp.c.make_privacy_filter,
    context=dp.Context.compositor,
)
OURS = SimpleNamespace(
    make_composition=oc.make_concurrent_composition,
    then_composition=oc.then_concurrent_composition,
    make_odometer=oc.make_concurrent_odometer,
    then_odometer=oc.then_concurrent_odometer,
    make_filter=oc.make_concurrent_filter,
    context=oc.concurrent_context,
)
DATA = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
both = pytest.mark.parametrize("api", [NATIVE, OURS], ids=["native", "ours"])


@pytest.fixture
def meas_count(space):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


@pytest.fixture
def meas_sum(space):
    return space >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=5.0)


# --- user guide: adaptive composition --------------------------------------------------------


@both
def test_adaptive_composition(api, meas_count, meas_sum):
    meas_adaptive_comp = api.make_composition(
        input_domain=dp.vector_domain(dp.atom_domain(T=int)),
        input_metric=dp.symmetric_distance(),
        output_measure=dp.max_divergence(),
        d_in=1,
        d_mids=[2.0, 1.0],
    )
    assert meas_adaptive_comp.map(1) == 3.0
    qbl_adaptive_comp = meas_adaptive_comp(DATA)
    assert isinstance(qbl_adaptive_comp, dp.Queryable)
    assert isinstance(qbl_adaptive_comp(meas_sum), int)
    assert isinstance(qbl_adaptive_comp(meas_count), int)
    with pytest.raises(OpenDPException):
        qbl_adaptive_comp(meas_count)


@both
def test_positional_arguments(api, space, meas_count):
    qbl = api.make_composition(*space, dp.max_divergence(), 1, [2.0, 1.0])(DATA)
    assert isinstance(qbl(meas_count), int)
    qbl = api.make_filter(api.make_odometer(*space, dp.max_divergence()), 1, 2.0)(DATA)
    assert isinstance(qbl(meas_count), int)


@both
def test_losses_as_an_array(api, space, meas_count):
    """OpenDP's ``Sequential`` of contingency tables passes an array."""
    made = api.make_composition(*space, dp.max_divergence(), 1, np.array([2.0, 1.0]))
    assert made.map(1) == 3.0
    assert isinstance(made(DATA)(meas_count), int)


# --- user guide: fully adaptive composition, privacy filters ---------------------------------


@both
def test_fully_adaptive_composition(api, meas_count, meas_sum):
    odom_fully_adaptive_comp = api.make_odometer(
        input_domain=dp.vector_domain(dp.atom_domain(T=int)),
        input_metric=dp.symmetric_distance(),
        output_measure=dp.max_divergence(),
    )
    assert isinstance(odom_fully_adaptive_comp, dp.Odometer)
    qbl_fully_adaptive_comp = odom_fully_adaptive_comp(DATA)
    assert isinstance(qbl_fully_adaptive_comp, dp.OdometerQueryable)
    assert qbl_fully_adaptive_comp.privacy_loss(1) == 0.0
    assert isinstance(qbl_fully_adaptive_comp(meas_sum), int)
    assert isinstance(qbl_fully_adaptive_comp.invoke(meas_count), int)
    assert qbl_fully_adaptive_comp.privacy_loss(1) == 3.0


@both
def test_privacy_filter(api, meas_count):
    meas_fully_adaptive_comp = api.make_filter(
        api.make_odometer(
            input_domain=dp.vector_domain(dp.atom_domain(T=int)),
            input_metric=dp.symmetric_distance(),
            output_measure=dp.max_divergence(),
        ),
        d_in=1,
        d_out=2.0,
    )
    qbl_fully_adaptive_comp = meas_fully_adaptive_comp(DATA)
    assert isinstance(qbl_fully_adaptive_comp, dp.OdometerQueryable)
    for _ in range(2):
        assert isinstance(qbl_fully_adaptive_comp(meas_count), int)
    assert qbl_fully_adaptive_comp.privacy_loss(1) == 2.0
    with pytest.raises(OpenDPException):
        qbl_fully_adaptive_comp(meas_count)
    if api is OURS:  # native answers no query after it has refused
        assert qbl_fully_adaptive_comp.privacy_loss(1) == 2.0


@both
def test_odometer_of_the_class_docstring(api):
    meas_rr = dp.m.make_randomized_response_bool(prob=0.6)
    odometer = api.make_odometer(
        input_domain=meas_rr.input_domain,
        input_metric=meas_rr.input_metric,
        output_measure=meas_rr.output_measure,
    )
    qbl_comp = odometer(True)
    assert qbl_comp(meas_rr) in (True, False)
    assert qbl_comp(meas_rr) in (True, False)
    assert qbl_comp.privacy_loss(1) == pytest.approx(0.8109302162163288, rel=1e-15)


# --- user guide: chaining and nesting --------------------------------------------------------


@both
def test_chaining(api, space, meas_count, meas_sum):
    meas_adaptive_comp = api.make_composition(
        input_domain=dp.vector_domain(dp.atom_domain(T=int)),
        input_metric=dp.symmetric_distance(),
        output_measure=dp.max_divergence(),
        d_in=1,
        d_mids=[2.0, 1.0],
    )
    str_space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    meas_adaptive_comp_str = str_space >> dp.t.then_cast_default(int) >> meas_adaptive_comp
    assert meas_adaptive_comp_str.map(1) == 3.0
    qbl_adaptive_comp_str = meas_adaptive_comp_str([str(number) for number in DATA])
    assert isinstance(qbl_adaptive_comp_str(meas_sum), int)
    assert isinstance(qbl_adaptive_comp_str(meas_count), int)

    sum_trans = space >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    chained = sum_trans >> api.then_composition(
        output_measure=dp.max_divergence(), d_in=sum_trans.map(1), d_mids=[2.0, 1.0]
    )
    laplace = sum_trans.output_space >> dp.m.then_laplace(scale=10.0)
    assert isinstance(chained(DATA)(laplace), int)
    filtered = sum_trans >> api.make_filter(
        sum_trans.output_space >> api.then_odometer(dp.max_divergence()), sum_trans.map(1), 1.0
    )
    assert isinstance(filtered(DATA)(laplace), int)


@both
def test_nesting(api, space, meas_count):
    qbl_adaptive_comp = api.make_composition(
        input_domain=dp.vector_domain(dp.atom_domain(T=int)),
        input_metric=dp.symmetric_distance(),
        output_measure=dp.approximate(dp.max_divergence()),
        d_in=1,
        d_mids=[(2.0, 1e-6), (1.0, 0.0)],
    )(DATA)
    weights = [5.0, 1.0]

    def scale_weights(scale):
        return [scale * weight for weight in weights]

    def make_zcdp(scale):
        compositor = api.make_composition(
            input_domain=dp.vector_domain(dp.atom_domain(T=int)),
            input_metric=dp.symmetric_distance(),
            output_measure=dp.zero_concentrated_divergence(),
            d_in=1,
            d_mids=scale_weights(scale),
        )
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(compositor), delta=1e-6)

    scale = dp.binary_search_param(make_zcdp, d_in=1, d_out=(2.0, 1e-6), T=float)
    qbl_zcdp = qbl_adaptive_comp(make_zcdp(scale))
    rho_1, rho_2 = scale_weights(scale)
    assert (rho_1, rho_2) == pytest.approx((0.0734, 0.0146), abs=1e-4)

    def make_gaussian(then_aggregate):
        return lambda scale: (
            space >> dp.t.then_clamp((0, 10)) >> then_aggregate >> dp.m.then_gaussian(scale)
        )

    make_sum = make_gaussian(dp.t.then_sum())
    dg_scale = dp.binary_search_param(make_sum, d_in=1, d_out=rho_1)
    assert isinstance(qbl_zcdp(make_sum(dg_scale)), int)
    meas_count_approx = dp.c.make_approximate(meas_count)
    assert isinstance(qbl_adaptive_comp(meas_count_approx), int)

    def make_count(scale):
        return space >> dp.t.then_count() >> dp.m.then_gaussian(scale)

    dg_scale = dp.binary_search_param(make_count, d_in=1, d_out=rho_2)
    assert isinstance(qbl_zcdp(make_count(dg_scale)), int)
    with pytest.raises(OpenDPException):
        qbl_adaptive_comp(meas_count_approx)
    with pytest.raises(OpenDPException):
        qbl_zcdp(make_sum(dg_scale))


# --- user guide: Context ---------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "loss",
    [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5}, {"rho": 0.5, "delta": 1e-6}],
)
def test_context_with_even_split(api, loss):
    context = api.context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=3,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    assert isinstance(context, dp.Context)
    assert len(context.remaining_privacy_loss()) == 3
    noise = "gaussian" if "delta" in loss or "rho" in loss else "laplace"
    for _ in range(3):
        query = context.query().clamp((0, 10)).sum()
        assert isinstance(getattr(query, noise)().release(), int)
    assert len(context.current_privacy_loss()) == 3
    assert context.remaining_privacy_loss() == []
    with pytest.raises(ValueError, match="exhausted"):
        context.query()


@both
def test_context_with_weights(api):
    context = api.context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_by_weights=[1, 1, 2],
    )
    assert context.remaining_privacy_loss() == pytest.approx([0.25, 0.25, 0.5])
    assert isinstance(context.query().count().laplace().release(), int)
    assert context.query().count().laplace().param() == pytest.approx(4.0)


@both
def test_context_with_losses_chosen_on_the_way(api):
    context = api.context(
        data=DATA, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    assert isinstance(context.query(epsilon=0.5).count().laplace().release(), int)
    assert context.current_privacy_loss() == pytest.approx(0.5)
    assert context.remaining_privacy_loss() == pytest.approx(0.5)
    with pytest.raises(OpenDPException):
        context.query(epsilon=0.75).count().laplace().release()
    with pytest.raises(ValueError, match="Expected output measure"):
        context.query(rho=0.5)


@both
def test_context_without_a_bound(api):
    context = api.context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=(dp.max_divergence(), float("inf")),
    )
    assert isinstance(context.query(epsilon=0.5).count().laplace().release(), int)
    assert context.current_privacy_loss() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="unbounded"):
        context.remaining_privacy_loss()


@both
def test_context_nested(api):
    context = api.context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
    )
    nested = context.query().compositor(split_evenly_over=2).release()
    assert isinstance(nested, dp.Context)
    for _ in range(2):
        assert isinstance(nested.query().count().laplace().release(), int)
    clamped = context.query().clamp((0, 10)).compositor(split_evenly_over=2).release()
    for _ in range(2):
        assert isinstance(clamped.query().sum().laplace().release(), int)


@both
def test_context_nested_in_another_measure(api):
    context = api.context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=3.0, delta=1e-6),
        split_evenly_over=1,
    )
    nested = context.query().compositor(
        split_evenly_over=2, output_measure=dp.zero_concentrated_divergence()
    )
    assert isinstance(nested.release().query().count().gaussian().release(), int)


@both
@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 0.5, "delta": 1e-6}])
def test_context_on_polars(api, loss):
    frame = pl.LazyFrame({"age": [20, 30, 40] * 50}, schema={"age": pl.Int32})
    context = api.context(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=2,
        margins=[dp.polars.Margin(by=(), max_length=1000)],
    )
    query = context.query().select(dp.len(), pl.col("age").fill_null(0).dp.sum((0, 100)))
    assert query.summarize() is not None
    assert query.release().collect().shape == (1, 2)
    second = context.query().select(dp.len()).release()
    assert second.collect().shape == (1, 1)


@both
def test_context_on_polars_under_a_filter(api):
    frame = pl.LazyFrame({"age": [20, 30, 40] * 50}, schema={"age": pl.Int32})
    context = api.context(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        margins=[dp.polars.Margin(by=(), max_length=1000)],
    )
    first = context.query(epsilon=0.25).select(dp.len()).release()
    second = context.query(epsilon=0.25).select(dp.len()).release()
    assert first.collect().shape == second.collect().shape == (1, 1)
    assert context.current_privacy_loss() == pytest.approx(0.5)


@both
def test_context_with_bounds_on_contributions_per_group(api):
    frame = pl.LazyFrame({"who": [1, 2, 3] * 50, "age": [20, 30, 40] * 50})
    context = api.context(
        data=frame,
        privacy_unit=dp.unit_of(
            contributions=[
                dp.polars.Bound(per_group=5, by=[]),
                dp.polars.Bound(per_group=2, by=["age"]),
            ]
        ),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        margins=[dp.polars.Margin(by=(), max_length=1000)],
    )
    release = context.query().select(dp.len()).release()
    assert release.collect().shape == (1, 1)


@both
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_context_with_margins_in_the_older_form(api):
    context = api.context(
        data=pl.LazyFrame({"age": [20, 30, 40] * 50}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins={(): dp.polars.Margin(max_length=1000)},
    )
    assert context.query().select(dp.len()).release().collect().shape == (1, 1)


def test_a_wrong_domain_says_what_to_do():
    for compositor in (NATIVE.context, OURS.context):
        with pytest.raises(TypeError, match=r"dp.vector_domain\(\)"):
            compositor(
                data=DATA,
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(epsilon=1.0),
                domain=dp.atom_domain(T=int),
            )
