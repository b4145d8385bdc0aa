"""The exact law of a selection from a finite mechanism, which knows nothing of the package."""

import math
from fractions import Fraction
from itertools import accumulate, pairwise

from opendp_concurrent import verify


def weights(scale, eta, most):
    """Probabilities of 1, 2, ..., ``most`` runs."""
    decay, product, found = math.exp(-1 / scale), Fraction(1), []
    for k in range(1, most + 1):
        found.append(float(product) * decay**k)
        product *= (k + Fraction(eta)) / (k + 1)
    whole = math.fsum(found)
    return [one / whole for one in found]


def selected(law, runs):
    """The law of the best of K answers; answers are in the order of their scores."""
    below = [0.0, *accumulate(law)]
    below[-1] = 1.0

    def moment(q):
        return math.fsum(p * q**k for k, p in enumerate(runs, 1))

    return [moment(high) - moment(low) for low, high in pairwise(below)]


def selection(mechanism, runs):
    """The finite mechanism that releases the best answer of K runs."""
    return verify.FiniteMechanism(
        tuple(selected(mechanism.first, runs)), tuple(selected(mechanism.second, runs))
    )


def renyi(first, second, order):
    """The divergence of the two laws, at least 0."""
    logs = [
        order * math.log(p) + (1 - order) * math.log(q)
        for p, q in zip(first, second, strict=True)
        if p > 0
    ]
    top = max(logs)
    moment = top + math.log(math.fsum(math.exp(one - top) for one in logs))
    return max(0.0, moment / (order - 1))
