"""The exact Rényi divergence of randomized response over any number of categories."""

from __future__ import annotations

from functools import lru_cache

from ...exact.bracket import Bracket, Digits, upper


@lru_cache(maxsize=65536)
def response_to_renyi(prob: float, categories: int, order: float) -> float:
    """Return the least double at or above the divergence.

    Let p be the probability of the truth and r = (1-p)/(k-1) that of each other category. Then it
    is 1/(α-1) log(p^α r^(1-α) + r^α p^(1-α) + (k-2) r). The terms are for the true answer, the
    neighbour's, and all others, which are equally likely under both. For k = 2: [Mir17, Table II].

    :param prob: p, in [1/k, 1)
    :param categories: k, at least 2
    :param order: α, finite, above 1
    """

    def divergence(real: Digits) -> Bracket:
        p, a = real(prob), real(order)
        r = (1 - p) / (categories - 1)
        loss = (p / r).ln()
        decay = (-((a - 1) * loss)).exp()  # the moment is e^((α-1) loss) times the next expression
        return loss + (p + r * decay * decay + (categories - 2) * r * decay).ln() / (a - 1)

    return max(0.0, upper(divergence))
