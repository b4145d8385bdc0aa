"""Exact values of products of trade-off functions, in big floats and by enumeration.

A product is written as a list of parts, each a tuple of a kind, its arguments, and how often it is
there: ``("pure", (0.5,), 3)``. ``build`` makes the trade-off function, ``delta`` the exact profile.
A part is listed outcome by outcome, with P- and Q-masses; f = T(Q, P) has the profile
δ(ε) = Σ (p - e^ε q)₊. Gaussian and continuous Laplace parts are added in closed form.
"""

from math import inf, nextafter

import mpmath as mp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.fdp import finite as finite_pairs
from opendp_concurrent.fdp import inversion as contour
from opendp_concurrent.fdp import product

T = oc.TradeoffFunction
DIGITS = 60


def rounded_up(exact):
    """The least double above: what is said of shifts and of μ."""
    nearest = float(exact)
    return nearest if mpf(nearest) >= exact else nextafter(nearest, inf)


def response(epsilon, delta=0.0):
    e, d = mp.exp(mpf(epsilon)), mpf(delta)
    high, low = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
    pairs = [(high, low), (low, high), (d, mpf(0)), (mpf(0), d)]
    return pairs if delta else pairs[:2]


def laplace_steps(epsilon, steps):
    """Noise P(x) in proportion to α^|x|, against the same around ``steps``."""
    alpha, d = mp.exp(-mpf(epsilon) / int(steps)), int(steps)
    inner = (1 - alpha) / (1 + alpha)
    ends = 1 / (1 + alpha), alpha**d / (1 + alpha)
    middle = [(inner * alpha**x, inner * alpha ** (d - x)) for x in range(1, d)]
    return [ends, *middle, ends[::-1]]


def k_ary(prob, categories):
    truth = mpf(prob)
    lie = (1 - truth) / (categories - 1)
    return [(truth, lie), (lie, truth), *[(lie * (categories - 2),) * 2] * (categories > 2)]


def finite(first, second):
    """T(first, second): P is the second one, in proportion to the numbers."""
    q, p = [mpf(one) for one in first], [mpf(one) for one in second]
    whole_p, whole_q = mp.fsum(p), mp.fsum(q)
    return [(one / whole_p, other / whole_q) for one, other in zip(p, q, strict=True)]


def inverse(first, second):
    return finite(second, first)


def discrete_gaussian(scale, sensitivity=1):
    """Without what has less than 1e-340 of the mass."""
    s, reach = mpf(scale), int(40 * scale) + 2 + int(sensitivity)
    inside = range(-reach, reach + 1)
    weights = {x: mp.exp(-(mpf(x) ** 2) / (2 * s * s)) for x in range(-2 * reach, reach + 1)}
    whole = mp.fsum(weights[x] for x in inside)
    return [(weights[x] / whole, weights[x - int(sensitivity)] / whole) for x in inside]


LISTED = {
    "pure": response,
    "approximate": response,
    "laplace_steps": laplace_steps,
    "randomized_response": k_ary,
    "finite": finite,
    "inverse": inverse,
    "discrete_gaussian": discrete_gaussian,
}
MAKERS = {
    "pure": T.pure,
    "approximate": T.approximate,
    "laplace_steps": T.laplace,
    "randomized_response": T.randomized_response,
    "finite": T.finite,
    "inverse": lambda first, second: T.finite(first, second).inverse(),
    "discrete_gaussian": T.discrete_gaussian,
    "gaussian": T.gaussian,
    "laplace": T.laplace,
}


def power(pairs, count):
    """Outcomes of ``count`` independent ones, equal numbers of each merged."""
    if count <= 2:
        return pairs if count == 1 else times(pairs, pairs)
    total = {(): (mpf(1), mpf(1), 0)}
    for index, (p, q) in enumerate(pairs):
        last = index == len(pairs) - 1
        onward = {}
        for key, (one, other, used) in total.items():
            for n in [count - used] if last else range(count - used + 1):
                ways = mp.binomial(count - used, n)
                onward[(*key, n)] = (ways * one * p**n, other * q**n * ways, used + n)
        total = onward
    return [(p, q) for p, q, _ in total.values()]


def times(one, other):
    return [(p * r, q * s) for p, q in one for r, s in other]


def gaussian_delta(mu, epsilon):
    m, e = mpf(mu), mpf(epsilon)
    if not m:
        return max(1 - mp.exp(e), mpf(0))
    root = mp.sqrt(2)
    return (mp.erfc((e / m - m / 2) / root) - mp.exp(e) * mp.erfc((e / m + m / 2) / root)) / 2


def laplace_delta(epsilon0, epsilon):
    e0, e = mpf(epsilon0), mpf(epsilon)
    if e >= e0:
        return mpf(0)
    return 1 - mp.exp(e) if e <= -e0 else -mp.expm1((e - e0) / 2)


def laplace_pair_delta(epsilon1, epsilon2, epsilon):
    """Two Laplace mechanisms: an integral over the loss of the first, ε₁ - 2x at x in (0, ε₁).

    The profile of the second has three pieces there, each with a closed integral.
    """
    a, b, e = mpf(epsilon1), mpf(epsilon2), mpf(epsilon)
    low, high = (min(max((a - e + loss) / 2, mpf(0)), a) for loss in (-b, b))

    def flat(x):  # of e^-x (1 - e^(e - a + 2x))
        return -mp.exp(-x) - mp.exp(e - a + x)

    def curved(x):  # of e^-x (1 - e^((e - a - b) / 2 + x))
        return -mp.exp(-x) - mp.exp((e - a - b) / 2) * x

    inner = flat(low) - flat(mpf(0)) + curved(high) - curved(low)
    return (inner + laplace_delta(b, e - a) + mp.exp(-a) * laplace_delta(b, e + a)) / 2


def subsampled_delta(noise, size, rate, unit, epsilon):
    """The masses of both laws on the event that decides best, which is a half-line.

    Without the unit the law is Q; with it, (1 - rate) Q + rate P, where P is Q moved.
    """
    m, q, e = mpf(size), mpf(rate), mpf(epsilon)
    scale = mp.exp(e)
    ratio = scale if unit == "removed" else 1 / scale  # of the densities, at the end of the event
    if ratio <= 1 - q:
        return 1 - scale if unit == "removed" else mpf(0)
    loss = mp.log((ratio - (1 - q)) / q)  # of the noise alone
    if noise == "gaussian":
        x = loss / m + m / 2
        below = [mp.erfc(-(x - shift) / mp.sqrt(2)) / 2 for shift in (0, m)]
        above = [mp.erfc((x - shift) / mp.sqrt(2)) / 2 for shift in (0, m)]
    elif loss >= m:
        below, above = [mpf(1), mpf(1)], [mpf(0), mpf(0)]
    elif loss < -m:
        below, above = [mpf(0), mpf(0)], [mpf(1), mpf(1)]
    else:
        x = (loss + m) / 2
        above = [mp.exp(-x) / 2, 1 - mp.exp(x - m) / 2]
        below = [1 - one for one in above]
    if unit == "removed":
        return (1 - q) * above[0] + q * above[1] - scale * above[0]
    return below[0] - scale * ((1 - q) * below[0] + q * below[1])


class Exact:
    """What is certain: see the module."""

    gaussian_delta = staticmethod(gaussian_delta)
    laplace_delta = staticmethod(laplace_delta)

    @staticmethod
    def build(parts):
        return T.identity().compose(
            *(MAKERS[kind](*arguments).power(count) for kind, arguments, count in parts)
        )

    @staticmethod
    def outcomes(parts):
        """All outcomes of the parts that have a list."""
        total = [(mpf(1), mpf(1))]
        for kind, arguments, count in parts:
            if kind in LISTED:
                total = times(total, power(LISTED[kind](*arguments), count))
        return total

    laplace_pair_delta = staticmethod(laplace_pair_delta)
    subsampled_delta = staticmethod(subsampled_delta)

    def profile(self, parts, digits=DIGITS):
        """The exact profile, as a function of ε."""
        with mp.workdps(digits):
            listed = self.outcomes(parts)
            mu = mp.sqrt(mp.fsum(n * mpf(a[0]) ** 2 for kind, a, n in parts if kind == "gaussian"))
            noises = [a[0] for kind, a, n in parts for _ in range(n) if kind == "laplace"]
            assert not (mu and noises)
            assert len(noises) <= 2

        def rest(epsilon):
            if len(noises) == 2:
                return laplace_pair_delta(*noises, epsilon)
            return laplace_delta(noises[0], epsilon) if noises else gaussian_delta(mu, epsilon)

        def delta(epsilon):
            with mp.workdps(digits):
                e = mpf(epsilon)
                if not mu and not noises:
                    scale, noise = mp.exp(e), mpf(10) ** (8 - digits)
                    each = ((p - scale * q, p) for p, q in listed)
                    return mp.fsum(one for one, p in each if one > noise * p)
                return mp.fsum(p * rest(e - mp.log(p / q)) if q else p for p, q in listed if p)

        return delta

    @staticmethod
    def kinks(parts):
        """A few attainable losses of the listed parts, as doubles, the largest first."""
        with mp.workdps(30):
            found = {float(mp.log(p / q)) for p, q in Exact.outcomes(parts) if p and q}
        return sorted(found, reverse=True)


@pytest.fixture(scope="session")
def exact():
    return Exact()


@pytest.fixture(scope="session")
def contains(exact):
    """Check that bounds contain exact values of δ, and of ε at a few δ; return the bounds."""

    def check(parts, epsilons=(), deltas=(), function=None):
        made, delta = function or exact.build(parts), exact.profile(parts)
        beyond = mpf(sum(n for kind, _, n in parts if kind == "discrete_gaussian")) * mpf("1e-299")
        for epsilon in epsilons:
            bounds, value = made.delta_bounds(epsilon), delta(epsilon)
            assert 0.0 <= bounds.lower <= bounds.upper <= 1.0, (parts, epsilon, bounds)
            low, high = mpf(bounds.lower), mpf(bounds.upper)
            assert low - beyond <= value <= high, (parts, epsilon, bounds, value)
        for failure in deltas:
            bounds = made.epsilon_bounds(failure)
            assert 0.0 <= bounds.lower <= bounds.upper, (parts, failure, bounds)
            if bounds.upper < inf:
                assert delta(bounds.upper) <= mpf(failure), (parts, failure, bounds)
            if bounds.lower == inf:
                assert delta(10**4) > mpf(failure), (parts, failure, bounds)
            elif bounds.lower > 0.0:
                assert delta(bounds.lower) >= mpf(failure), (parts, failure, bounds)
        return made

    return check


@pytest.fixture(params=[2**22, 0], ids=["term by term", "too many terms"])
def inverted(request, monkeypatch):
    """Take the way of Fourier inversion where sums over outcomes would be taken."""
    monkeypatch.setattr(product, "MOST_ATOMS", 2)
    monkeypatch.setattr(product, "_MIXED", 2)
    monkeypatch.setattr(finite_pairs, "_DIRECT", request.param)
    monkeypatch.setattr(contour, "MOST_NODES", 2**14)  # for speed
    return request.param
