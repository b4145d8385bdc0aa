"""δ of two kinds of noise together, to 17 digits: a mean of the profile of one over the other.

Noise is written as a number, the ε of Laplace noise; ("normal", μ); or (kind, size, rate, unit),
noise with a subsampled unit. Two numbers may stand together. Then

    δ(ε) = E_P[δ'(ε - L)]

for the loss L of one and the profile δ' of the other. Panels of an integral are halved until a rule
of twice the nodes agrees; they end where a profile bends.
"""

from functools import cache
from itertools import pairwise

import mpmath as mp
from mpmath import mpf
from mpmath.calculus.quadrature import GaussLegendre

from . import conftest as closed

DEPTH = 90  # halvings of a panel
TOLERANCE = mpf("1e-18")
FAR = mpf(10) ** 6  # an ε beyond which no profile that is drawn here changes


def profile(noises, e):
    """The closed form of one kind of noise, or of two numbers."""
    if len(noises) == 2:
        return closed.laplace_pair_delta(*noises, e)
    (noise,) = noises
    if not isinstance(noise, tuple):
        return closed.laplace_delta(noise, e)
    if noise[0] == "normal":
        far = e > FAR * noise[1] + FAR
        return mpf(0) if far else closed.gaussian_delta(noise[1], e)
    return max(mpf(0), closed.subsampled_delta(*noise, e)) if e < FAR else mpf(0)


def together(one, other, e):
    """δ of a product of two of the above."""
    atoms, density, loss, ends, back = law(one)
    total = mp.fsum(p * profile(other, e - at) for p, at in atoms if p)
    if not ends[0] < ends[1]:
        return total
    cuts = [x for kink in kinks(other) for x in back(e - kink) if ends[0] < x < ends[1]]
    found = integral(
        lambda x: density(x) * profile(other, e - loss(x)), sorted({*ends, *cuts}), total
    )
    return total + found


def law(noise):
    """Atoms (mass, loss); density and loss at x on an interval; where a loss is reached."""
    kind, *rest = noise if isinstance(noise, tuple) else ("laplace", noise, 1, None)
    if kind == "normal":
        (m,) = map(mpf, rest)
        reach = normal_reach()
        return (
            [],
            mp.npdf,
            lambda x: m * m / 2 - m * x,
            (-reach, reach),
            lambda at: [m / 2 - at / m] if m else [],
        )
    size, rate, unit = rest
    m, q = mpf(size), mpf(rate)
    sign = -1 if unit == "added" else 1

    def ratio(u):
        return 1 - q + q * mp.exp(u)

    def weight(u):
        return mpf(1) if unit == "added" else ratio(u)

    def inner(at):
        """The loss of the whole noise, where that of the sampled noise is ``at``."""
        y = (mp.exp(sign * at) - (1 - q)) / q
        return [mp.log(y)] if y > 0 else []

    if kind == "gaussian":
        reach = normal_reach()

        def u(x):
            return m * x - m * m / 2

        return (
            [],
            lambda x: mp.npdf(x) * weight(u(x)),
            lambda x: sign * mp.log(ratio(u(x))),
            (-reach, reach + m),
            lambda at: [one / m + m / 2 for one in inner(at)],
        )
    return (
        [(mp.exp(-e) / 2 * weight(v), sign * mp.log(ratio(v))) for e, v in ((0, -m), (m, m))],
        lambda x: mp.exp(-x) / 2 * weight(2 * x - m),
        lambda x: sign * mp.log(ratio(2 * x - m)),
        (mpf(0), m),
        lambda at: [(one + m) / 2 for one in inner(at)],
    )


def normal_reach():
    """Beyond, the normal density is below what is compared."""
    return mp.sqrt(2 * mp.log(10) * mp.mp.dps)


def kinks(noises):
    """Where a profile bends, or turns in a short while."""
    if len(noises) == 2:
        a, b = map(mpf, noises)
        return [a + b, a - b, b - a, -a - b]
    (noise,) = noises
    if not isinstance(noise, tuple):
        return [mpf(noise), -mpf(noise)]
    if noise[0] == "normal":
        return [side * noise[1] * x for x in (1, 6, 30) for side in (-1, 1)]

    kind, size, rate, unit = noise
    m, q, sign = mpf(size), mpf(rate), -1 if unit == "added" else 1
    steps = (-1, 1) if kind == "laplace" else (-12, -6, -3, 0, 3, 6, 12)
    return [sign * mp.log(1 - q), *(sign * mp.log(1 - q + q * mp.exp(m * x)) for x in steps)]


@cache
def rule(degree, precision):
    return GaussLegendre(mp.mp).calc_nodes(degree, precision)


def integral(f, ends, beside):
    """The integral of a positive function between the ends, in fewer digits than asked for.

    Rules of 12 and of 24 nodes agree to 1e-18, so that the second one has more.
    """

    def over(a, b, degree):
        half, middle = (b - a) / 2, (a + b) / 2
        return half * mp.fsum(w * f(middle + half * x) for x, w in rule(degree, mp.mp.prec))

    least = mpf(10) ** (10 - mp.mp.dps)
    with mp.workdps(max(50, mp.mp.dps // 4)):
        panels = [(a, b, over(a, b, 3), 0) for a, b in pairwise(ends)]
        total = beside + mp.fsum(one[2] for one in panels)
        found = mpf(0)
        while panels:
            a, b, coarse, depth = panels.pop()
            fine = over(a, b, 4)
            if abs(fine - coarse) <= TOLERANCE * total + least:
                found += fine
                continue
            assert depth < DEPTH, (a, b)
            total += max(mpf(0), fine - coarse)
            middle = (a + b) / 2
            panels += [(x, y, over(x, y, 3), depth + 1) for x, y in ((a, middle), (middle, b))]
        return found
