import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError


def test_printed_values():
    sample = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 34.54), 1_000, 1_000_000)
    assert sample.rho == pytest.approx(1.3e-6, rel=1e-12)
    assert sample.omega == pytest.approx(17.2694, abs=1e-4)


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
    with mp.workdps(18):

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
                    lambda x, p=p, q=q, a=order: p(x) ** a * q(x) ** (1 - a), range(-12, 14, 2)
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
