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


# --- user guide: adaptive composition --------------------------------------------------------


@both
def test_losses_as_an_array(api, space, meas_count):
    """OpenDP's ``Sequential`` of contingency tables passes an array."""
    made = api.make_composition(*space, dp.max_divergence(), 1, np.array([2.0, 1.0]))
    assert made.map(1) == 3.0
    assert isinstance(made(DATA)(meas_count), int)


# --- user guide: fully adaptive composition, privacy filters ---------------------------------


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


# --- user guide: chaining and nesting --------------------------------------------------------


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


def test_a_wrong_domain_says_what_to_do():
    for compositor in (NATIVE.context, OURS.context):
        with pytest.raises(TypeError, match=r"dp.vector_domain\(\)"):
            compositor(
                data=DATA,
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(epsilon=1.0),
                domain=dp.atom_domain(T=int),
            )
