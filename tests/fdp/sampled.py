"""δ of subsampled Gaussian noise used many times, to any number of digits, with a proven error.

Nothing here is shared with the code that is tested: not the contour (this stays on the real axis),
not the integrand (the two tail probabilities apart), not the bounds, not the arithmetic.

Let P be the law with the unit, Q = N(0, 1) the one without, and L = ln r the loss, where
r(x) = 1 - q + q e^u and u = μx - μ²/2. Independent uses add up to S, and

    removed: δ(ε) = P(S > ε) - e^ε Q(S > ε);  added: δ(ε) = Q(S < -ε) - e^ε P(S < -ε).

*Inversion* [Davies 1973]. With η = 2π/D and t_j = (j + 1/2) η, the sum
1/2 + (η/π) Σ Im(φ(t_j) e^(-i t_j x)) / t_j is the mean of (1 + w(S - x))/2, where w is the square
wave of period 2D. So it is P(S > x) but for the probability of |S - x| > D. *Chernoff* bounds that.

*Truncation.* The density g of L has |φ(t)| <= ∫ |g⁽ⁿ⁾| / tⁿ, by parts, for each n. With
s = q e^u/r, dL = μ s dx, ds = μ s (1 - s) dx; so g⁽ⁿ⁾ is the normal density times a polynomial in x
and 1/s under Q, and under P the density is e^L g. The sum beyond Ω is below an integral: convexity.

*The trapezoidal rule* for φ. On |Im x| = d < π/μ, |r| is at most that at Re x and its argument at
most μd. So with step h it errs by at most 2 e^(d²/2 + tμd) / (e^(2πd/h) - 1), under both laws.

*Rounding.* Integers in units of 2^-bits. A phase is multiplied by a rotation for each frequency,
which costs one unit each time.
"""

from math import ceil, comb, exp, inf, log, log2, pi, sqrt

import mpmath as mp
import numpy as np
from mpmath import mpf

ORDERS = 12
MOST = 12_000_000  # nodes times frequencies; about 5 seconds


class TooLongError(Exception):
    """A case that would take too long."""


# --- where to stop ----------------------------------------------------------------------------


def derivatives(mu, rate):
    """∫ |g⁽ⁿ⁾| for n = 1, ..., ORDERS, of the law without the unit and of that with it."""
    end = 14.0
    x = np.linspace(-end - (ORDERS + 1) * mu, end + (ORDERS + 1) * mu, 8001)
    odds = log(rate) + mu * x - mu * mu / 2 - np.log1p(-rate)
    inverse = 1 + np.exp(-odds)  # 1/s
    ratio = (1 - rate) * (1 + np.exp(odds))
    dl = mu / inverse * (x[1] - x[0])
    terms, values = {(1, 0): 1 / mu}, []
    for _ in range(ORDERS + 1):
        with np.errstate(under="ignore"):
            masses = {j: np.exp(j * np.log(inverse) - x * x / 2) / sqrt(2 * pi) for j, _ in terms}
        powers = [x**m for m in range(ORDERS + 2)]
        values.append(sum(c * masses[j] * powers[m] for (j, m), c in terms.items()))
        onward = {}
        for (j, m), c in terms.items():
            new = [((j + 1, m + 1), -c / mu), ((j + 1, m), -j * c), ((j, m), j * c)]
            new += [((j + 1, m - 1), m * c / mu)] if m else []
            for key, one in new:
                onward[key] = onward.get(key, 0.0) + one
        terms = onward
    found = [], []
    for n in range(1, ORDERS + 1):
        within = sum(comb(n, j) * values[j] for j in range(n + 1)) * ratio
        found[0].append(1.05 * float(np.sum(np.abs(values[n]) * dl)))  # kinks: less than 1 %
        found[1].append(1.05 * float(np.sum(np.abs(within) * dl)))
    return found


def last_frequency(parts, wanted):
    """Ω, beyond which the sum is at most ``wanted`` under both laws."""
    known = [(derivatives(mu, rate), count) for mu, rate, count in parts]
    orders = np.arange(1, ORDERS + 1)

    def beyond(omega):
        worst = -inf
        for law in (0, 1):
            size, power = 0.0, 0.0
            for norms, count in known:
                each = np.log(norms[law]) - orders * log(omega)
                n = int(np.argmin(each))
                if each[n] < 0.0:
                    size, power = size + count * each[n], power + count * orders[n]
            worst = max(worst, size - log(pi * power) if power else inf)
        return worst

    low, high = 1e-3, 1e7
    while high > low * 1.01:
        middle = sqrt(low * high)
        low, high = (low, middle) if beyond(middle) <= log(wanted) else (middle, high)
    return high


LAMBDAS = np.concatenate([np.geomspace(1e-3, 60.0, 60), -np.geomspace(1e-3, 60.0, 60)])


def cumulants(mu, rate):
    """ln E[e^(λL)] under P at λ in LAMBDAS, and at λ - 1, which is that under Q."""
    x = np.arange(-16.0, 16.0 + 62.0 * mu, 0.02)
    loss = np.logaddexp(np.log1p(-rate), log(rate) + mu * x - mu * mu / 2)
    found = []
    for more in (0, 1):
        exponents = np.outer(LAMBDAS + more, loss) - x * x / 2
        top = np.max(exponents, axis=1)
        found.append(top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1) * 0.02))
        found[-1] += 1e-6 - log(2 * pi) / 2
    return found


def half_period(parts, points, wanted):
    """D, with a probability of at most ``wanted`` that S is farther from a point."""
    whole = [np.zeros_like(LAMBDAS), np.zeros_like(LAMBDAS)]
    for mu, rate, count in parts:
        for total, one in zip(whole, cumulants(mu, rate), strict=True):
            total += count * one

    def outside(distance):
        return max(
            float(np.min((total - LAMBDAS * (x + sign * distance))[sign * LAMBDAS > 0]))
            for total in whole
            for x in points
            for sign in (-1, 1)
        )

    low, high = 1e-6, 1e7
    while high > low * 1.01:
        middle = sqrt(low * high)
        low, high = (low, middle) if outside(middle) <= log(wanted) - log(2) else (middle, high)
    return high


# --- the sums -----------------------------------------------------------------------------------


def characteristic(mu, rate, step, nodes, wanted):
    """φ at the nodes under Q and under P, each to an absolute error of ``wanted``."""
    need, end = log(16 / wanted), step * nodes
    depth = min(sqrt(2 * need), 0.999 * pi / mu)
    width = 2 * pi * depth / (need + depth * depth / 2 + end * mu * depth)
    edge = sqrt(2 * need) + width  # beyond, the masses of both laws are below e^(-edge²/2)
    size = ceil((2 * edge + mu) / width)
    if size * nodes > MOST:
        raise TooLongError(size, nodes)
    bits = ceil(need / log(2) + log2(size) + log2(nodes) + mu * (edge + mu) / log(2)) + 10
    real, imaginary, cosines, sines, ratios = [], [], [], [], []

    def whole(value):
        return int(mp.nint(mp.ldexp(value, bits)))

    with mp.workprec(bits + 20):
        m, q, h, eta = mpf(mu), mpf(rate), mpf(width), mpf(step)
        for i in range(size + 1):
            x = h * i - mpf(edge)
            ratio = 1 - q + q * mp.exp(m * x - m * m / 2)
            loss = mp.log(ratio)
            mass, turn = h * mp.npdf(x), mp.expj(eta * loss)
            first = mass * mp.expj(eta * loss / 2)
            for kept, one in (
                (real, first.real),
                (imaginary, first.imag),
                (cosines, turn.real),
                (sines, turn.imag),
                (ratios, ratio),
            ):
                kept.append(whole(one))
    a, b, c, s, r = (
        np.array(one, dtype=object) for one in (real, imaginary, cosines, sines, ratios)
    )
    found = [], []
    for _ in range(nodes):
        found[0].append((a.sum(), b.sum()))
        found[1].append((int(a.dot(r)) >> bits, int(b.dot(r)) >> bits))
        a, b = (a * c - b * s) >> bits, (a * s + b * c) >> bits
    return [[mp.mpc(mp.ldexp(x, -bits), mp.ldexp(y, -bits)) for x, y in one] for one in found]


def tails(parts, points, wanted):
    """Q(S > x) and P(S > x) for each point, to an absolute error of ``wanted``.

    :param parts: μ, rate and count of each
    """
    with mp.workdps(ceil(-log(wanted) / log(10)) + 15):
        # at most 2^15 nodes: Σ 1/(j + 1/2) is below 13, and all errors of φ add up to a quarter
        distance = half_period(parts, points, wanted / 4)
        end = last_frequency(parts, wanted / 4)
        step = 2 * pi / distance
        nodes = ceil(end / step)
        if nodes > 2**15:
            raise TooLongError(nodes)
        each = wanted / (20 * sum(count for _, _, count in parts))
        waves = [[mp.mpc(1)] * nodes, [mp.mpc(1)] * nodes]
        for mu, rate, count in parts:
            for wave, one in zip(waves, characteristic(mu, rate, step, nodes, each), strict=True):
                wave[:] = [value * more**count for value, more in zip(wave, one, strict=True)]
        eta = mpf(step)
        for wave in waves:
            wave[:] = [value / (mp.pi * (j + mpf("0.5"))) for j, value in enumerate(wave)]
        found = []
        for x in points:
            first, turn = mp.expj(-eta * mpf(x) / 2), mp.expj(-eta * mpf(x))
            sums = [mpf("0.5"), mpf("0.5")]
            for j in range(nodes):
                for law in (0, 1):
                    value = waves[law][j]
                    sums[law] += value.real * first.imag + value.imag * first.real
                first *= turn
            found.append(tuple(sums))
        return found


def deltas(parts, epsilons, wanted):
    """δ at each ε, to an absolute error of ``wanted``: of a unit removed, and of one added."""
    error = wanted / (exp(max(0.0, *epsilons)) + 1)
    found = tails(parts, [*epsilons, *(-one for one in epsilons)], error)
    with mp.workdps(ceil(-log(error) / log(10)) + 15):
        scales = [mp.exp(mpf(one)) for one in epsilons]
        above, below = found[: len(epsilons)], found[len(epsilons) :]
        removed = [p - e * q for e, (q, p) in zip(scales, above, strict=True)]
        added = [1 - q - e * (1 - p) for e, (q, p) in zip(scales, below, strict=True)]
        return {"removed": removed, "added": added}
