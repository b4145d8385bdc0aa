import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

LOSS = oc.TruncatedConcentrated(rho=0.5, omega=100.0)


def test_printed_values():
    sample = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 34.54), 1_000, 1_000_000)
    assert sample.rho == pytest.approx(1.3e-6, rel=1e-12)
    assert sample.omega == pytest.approx(17.2694, abs=1e-4)
    assert oc.measures.bad_event_probability(oc.TruncatedConcentrated(0.5), 1e-10) == pytest.approx(
        5.3707643660e-8, rel=1e-9
    )
    assert oc.measures.bad_event_probability(
        oc.TruncatedConcentrated(0.5, 2.0), 1e-10
    ) == pytest.approx(1.6487212707e-5, rel=1e-9)


@given(st.floats(1e-6, 0.1), st.integers(1, 10**6), st.integers(10, 10**9))
def test_subsampling_checks_its_conditions_and_rounds_outward(rho, n, population):
    loss = oc.TruncatedConcentrated(rho)
    with mp.workdps(60):
        s = mp.mpf(n) / population
        valid = s <= mp.mpf(1) / 10 and mp.log(1 / s) / (2 * mp.mpf(rho)) >= 3
        if not valid:
            with pytest.raises(InvalidValueError):
                oc.measures.subsampled_tcdp(loss, n, population)
            return
        assert mp.log(1 / s) >= 3 * mp.mpf(rho) * (2 + mp.log(1 / mp.mpf(rho), 2))
        found = oc.measures.subsampled_tcdp(loss, n, population)
        assert mp.mpf(found.rho) >= 13 * s * s * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.log(1 / s) / (4 * mp.mpf(rho))
        assert found.rho == pytest.approx(float(13 * s * s * mp.mpf(rho)), rel=1e-14)


def test_subsampling_covers_the_subsampled_gaussian():
    """The exact divergence of a mixture, N(0,1) against (1-s) N(0,1) + s N(mu,1), both ways."""
    s, rho = 0.01, 0.1
    mu = math.sqrt(2 * rho)
    found = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(rho), 1, 100)
    with mp.workdps(30):

        def density(x, mean):
            return mp.npdf(x, mean, 1)

        def mixture(x):
            return (1 - s) * density(x, 0) + s * density(x, mu)

        def replaced(x, sign):
            return (1 - s) * density(x, 0) + s * density(x, sign * mu / 2)

        pairs = [
            (mixture, lambda x: density(x, 0)),
            (lambda x: density(x, 0), mixture),
            (lambda x: replaced(x, 1), lambda x: replaced(x, -1)),  # one record by another
        ]
        for order in (1.5, 11.0):
            assert order < found.omega
            for p, q in pairs:
                moment = mp.quad(
                    lambda x, p=p, q=q, a=order: p(x) ** a * q(x) ** (1 - a), range(-14, 16)
                )
                assert mp.log(moment) / (order - 1) <= found.rho * order


@given(st.floats(0.0, 1e3), st.floats(1.5, 1e6), st.integers(1, 1000))
def test_groups_round_outward(rho, omega, size):
    loss = oc.TruncatedConcentrated(rho, omega)
    if size >= omega:
        with pytest.raises(InvalidValueError, match="^size"):
            oc.measures.group_tcdp(loss, size)
        return
    if omega / size <= 1.0 + 1e-12:
        return
    found = oc.measures.group_tcdp(loss, size)
    with mp.workdps(60):
        assert mp.mpf(found.rho) >= size * size * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.mpf(omega) / size


@pytest.mark.parametrize("mean", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("threshold", [0.0, 2.0, 5.0])
def test_bad_events_of_gaussian_noise_are_covered(mean, threshold):
    """P(X > t) under N(mean, 1) against q = P(X > t) under N(0, 1); rho = mean²/2."""
    with mp.workdps(40):
        q, p = mp.ncdf(-threshold), mp.ncdf(mean - threshold)
        bound = oc.measures.bad_event_probability(
            oc.TruncatedConcentrated(mean * mean / 2), float(q)
        )
        assert p <= bound <= 1


def test_ends_of_bad_events():
    assert oc.measures.bad_event_probability(LOSS, 0.0) == 0.0
    assert oc.measures.bad_event_probability(LOSS, 1.0) == 1.0
    assert oc.measures.bad_event_probability(oc.TruncatedConcentrated(0.0), 0.25) == 0.25
    assert oc.measures.bad_event_probability(oc.TruncatedConcentrated(math.inf), 0.25) == 1.0
    assert oc.measures.bad_event_probability(oc.TruncatedConcentrated(100.0), 0.25) == 1.0


def test_mutual_information():
    assert oc.measures.mutual_information(LOSS, 10) == 50.0
    assert oc.measures.mutual_information(LOSS, 10, independent=True) == 5.0
    assert (
        oc.measures.mutual_information(oc.TruncatedConcentrated(0.5, 1.5), 10, independent=True)
        == 5.0
    )
    assert oc.measures.mutual_information(oc.TruncatedConcentrated(0.0), 10) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: oc.measures.subsampled_tcdp(0.1, 1, 100), InvalidTypeError, "^loss must"),
        (
            lambda: oc.measures.subsampled_tcdp(LOSS, 1.0, 100),
            InvalidTypeError,
            "^sample_size must",
        ),
        (lambda: oc.measures.subsampled_tcdp(LOSS, 0, 100), InvalidValueError, "^sample_size"),
        (lambda: oc.measures.subsampled_tcdp(LOSS, 1, 0), InvalidValueError, "^population"),
        (
            lambda: oc.measures.subsampled_tcdp(LOSS, 11, 100),
            InvalidValueError,
            "^sample_size .11. must",
        ),
        (lambda: oc.measures.subsampled_tcdp(LOSS, 1, 100), InvalidValueError, "^loss.rho .0.5."),
        (
            lambda: oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.0), 1, 100),
            InvalidValueError,
            "^loss.rho .0.0. must be above 0",
        ),
        (
            lambda: oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 20.0), 1, 1000),
            InvalidValueError,
            "^loss.omega .20.0. must be at least",
        ),
        (lambda: oc.measures.group_tcdp(1.0, 2), InvalidTypeError, "^loss must"),
        (lambda: oc.measures.group_tcdp(LOSS, 100), InvalidValueError, "^size .100. must be below"),
        (lambda: oc.measures.group_tcdp(LOSS, True), InvalidTypeError, "^size must"),
        (lambda: oc.measures.bad_event_probability(1.0, 0.5), InvalidTypeError, "^loss must"),
        (lambda: oc.measures.bad_event_probability(LOSS, 1.5), InvalidValueError, "^probability"),
        (
            lambda: oc.measures.bad_event_probability(LOSS, math.nan),
            InvalidValueError,
            "^probability",
        ),
        (lambda: oc.measures.mutual_information(1.0, 2), InvalidTypeError, "^loss must"),
        (lambda: oc.measures.mutual_information(LOSS, 100), InvalidValueError, "^loss.omega"),
        (lambda: oc.measures.mutual_information(LOSS, -1), InvalidValueError, "^records"),
        (
            lambda: oc.measures.mutual_information(LOSS, 2, independent=1),
            InvalidTypeError,
            "^independent",
        ),
        (lambda: oc.TruncatedConcentrated(-1.0), InvalidValueError, "^rho"),
        (lambda: oc.TruncatedConcentrated(1.0, 1.0), InvalidValueError, "^omega .1.0. must be"),
        (lambda: oc.TruncatedConcentrated(1.0, math.nan), InvalidValueError, "^omega"),
        (lambda: oc.TruncatedConcentrated("1"), InvalidTypeError, "^rho"),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_tiny_rho_changes_little():
    for rho in (5e-324, 1e-300):
        assert (
            0.5
            <= oc.measures.bad_event_probability(oc.TruncatedConcentrated(rho), 0.5)
            <= 0.5 + 1e-12
        )
