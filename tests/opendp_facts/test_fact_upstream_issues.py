"""What ``docs/for-opendp.rst`` says of OpenDP and no other file of this folder pins."""

import inspect

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
APPROXIMATE = dp.approximate(PURE)

OURS = """
certified_gaussian certified_geometric certified_laplace
concurrent_composition concurrent_filter concurrent_odometer continual_alarm continual_counter
continual_histogram continual_window guess_and_check indexed_composition individual_filter
interactive_above_threshold parallel_composition
private_multiplicative_weights projected_queries sparse_vector
"""
LACKING = {
    "combinators": ["make_chain_ot", "make_chain_po", "make_RDP_to_approxDP", "make_zCDP_to_RDP"],
    "measurements": ["make_above_threshold", "make_sparse_vector"],
}


@pytest.fixture
def odometer(space):
    return dp.c.make_fully_adaptive_composition(*space, PURE)


@pytest.fixture
def counted(space):
    """Make a measurement whose privacy map keeps what it was asked."""
    calls = []

    def counted():
        return dp.m.make_user_measurement(
            *space, PURE, len, lambda d_in: calls.append(d_in) or 2.0**-10
        )

    counted.calls = calls
    return counted


# --- opendp#2909 ------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [1, 5, 20])
def test_a_native_filter_evaluates_the_square_of_the_queries_privacy_maps(
    odometer, counted, queries
):
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    for _ in range(queries):
        root(counted())
    assert len(counted.calls) == queries**2


def test_a_native_odometer_evaluates_all_maps_at_each_query_for_its_loss(odometer, counted):
    root = odometer([1])
    for _ in range(10):
        root(counted())
    assert counted.calls == []
    for asked in (1, 2, 3):
        root.privacy_loss(1)
        assert len(counted.calls) == 10 * asked


# --- opendp#2131, opendp#2789 -----------------------------------------------------------------


@pytest.mark.parametrize("shares", [[0.1, 0.9], [1 / 7] * 7, [0.1] * 10])
def test_a_native_compositor_costs_more_than_what_was_split(space, shares):
    assert dp.c.make_adaptive_composition(*space, PURE, 1, shares).map(1) > 1.0


# --- opendp#657 -------------------------------------------------------------------------------


def test_a_native_odometer_of_mixed_mechanisms_adds_up(space, laplace):
    gaussian = space >> dp.t.then_count() >> dp.m.then_gaussian(scale=200.0)
    mixed = [
        dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta=1e-10),
        dp.c.make_approximate(laplace(0.02)),
    ]
    root = dp.c.make_fully_adaptive_composition(*space, APPROXIMATE)([1])
    for one in mixed * 10:
        root(one)
    added = [10 * sum(part) for part in zip(*(one.map(1) for one in mixed), strict=True)]
    assert root.privacy_loss(1) == pytest.approx(tuple(added), rel=1e-12)


# --- opendp#744, opendp#683, opendp#937, opendp#2045, opendp#2046 -----------------------------


@pytest.mark.parametrize(("module", "name"), [(m, n) for m in LACKING for n in LACKING[m]])
def test_opendp_has_no_constructor_of_this_name(module, name):
    assert not hasattr(getattr(dp, module[0]), name), f"OpenDP has {name} now: see for-opendp.rst"


def test_opendp_has_registered_none_of_our_names(succeeds):
    """In a process of its own, as importing this package registers them."""
    succeeds(
        "from opendp.context import constructors\n"
        f"taken = set({OURS.split()!r}) & set(constructors)\n"
        "assert not taken, taken\n"
        "assert 'laplace' in constructors"
    )


# --- opendp#1849 ------------------------------------------------------------------------------
# in test_fact_queryables.py: test_a_native_queryable_refuses_a_query_while_another_thread_asks

# --- opendp#1449 ------------------------------------------------------------------------------


def test_a_native_context_says_what_remains(space):
    context = dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=4,
        domain=space[0],
    )
    context.query().count().laplace().release()
    assert context.remaining_privacy_loss() == [0.25] * 3


def test_a_refusal_of_a_native_filter_names_the_loss_that_would_be(odometer, user):
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    root(user(len, 0.75))
    with pytest.raises(OpenDPException, match=r"pending privacy loss \(1.25\) would exceed"):
        root(user(len, 0.5))
    with pytest.raises(OpenDPException, match="exhausted"):
        root(user(len, 0.25))


# --- opendp#2421 ------------------------------------------------------------------------------


def test_a_native_odometer_of_approximate_zcdp_hosts_what_asks_its_own_child(space, user):
    measure, free = dp.approximate(ZCDP), (0.0, 0.0)
    query = user(len, free, measure)
    own = dp.c.make_adaptive_composition(*space, measure, 1, [free]) >> (lambda child: child(query))
    assert dp.c.make_fully_adaptive_composition(*space, measure)([1])(own) == 1


# --- casts, and what a drop-in has to offer ---------------------------------------------------


def test_native_casts_take_interactive_measurements(space, odometer):
    zcdp = dp.c.make_fully_adaptive_composition(*space, ZCDP)
    profile = dp.c.make_zCDP_to_approxDP(dp.c.make_privacy_filter(zcdp, 1, 0.5))
    fixed = dp.c.make_fix_delta(profile, delta=1e-6)
    assert fixed.map(1) == (pytest.approx(5.2215344445), 1e-6)
    assert isinstance(fixed([1]), dp.OdometerQueryable)
    pure = dp.c.make_privacy_filter(odometer, 1, 0.5)
    assert dp.c.make_approximate(pure).map(1) == (0.5, 0.0)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_native_zcdp_of_pure_dp_is_half_the_square(laplace, scale):
    measurement = laplace(1 / scale)
    assert dp.c.make_pureDP_to_zCDP(measurement).map(1) == pytest.approx(scale**-2 / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (
            dp.c.make_adaptive_composition,
            ["input_domain", "input_metric", "output_measure", "d_in", "d_mids"],
        ),
        (
            dp.c.make_fully_adaptive_composition,
            ["input_domain", "input_metric", "output_measure"],
        ),
        (dp.c.make_privacy_filter, ["odometer", "d_in", "d_out"]),
        (
            dp.Context.compositor,
            [
                "data",
                "privacy_unit",
                "privacy_loss",
                "split_evenly_over",
                "split_by_weights",
                "domain",
                "margins",
            ],
        ),
    ],
    ids=["compositor", "odometer", "filter", "context"],
)
def test_the_parameters_of_what_we_replace(function, parameters):
    assert [*inspect.signature(function).parameters] == parameters
