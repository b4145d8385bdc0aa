"""Four interactive mechanisms of one filter, asked in turn on a table of the survey."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

from .data import COLUMNS

RHO, QUESTIONS = 2.0, 60
NAMES = tuple(COLUMNS)
STRIDE = 1009  # a prime


def _questions(universe: list[tuple[int, ...]]) -> list[tuple[str, list[float]]]:
    """Ranges of levels of two columns each, as linear questions, in an order without a pattern."""
    questions = []
    for one, two in combinations(range(len(NAMES)), 2):
        ranges = [
            [(low, high) for high in range(levels) for low in range(high + 1)]
            for levels in (COLUMNS[NAMES[one]], COLUMNS[NAMES[two]])
        ]
        for (low, high), (least, most) in product(*ranges):
            text = f"{NAMES[one]} {low}..{high} and {NAMES[two]} {least}..{most}"
            value = [
                float(low <= cell[one] <= high and least <= cell[two] <= most) for cell in universe
            ]
            questions.append((text, value))
    return [questions[STRIDE * turn % len(questions)] for turn in range(QUESTIONS)]


def show(records: list[int], universe: list[tuple[int, ...]]) -> None:
    """Launch the four, ask them in turn, and print what they said and what it cost."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    zcdp = dp.zero_concentrated_divergence()
    count = space >> dp.t.then_count() >> dp.m.then_gaussian(scale=20.0)
    size = len(records)  # public here: the survey says how many answered
    weights = oc.m.make_private_multiplicative_weights(
        *space, zcdp, d_in=1, d_out=1.0, universe=len(universe), questions=QUESTIONS, size=size
    )
    rare = oc.m.make_sparse_vector(
        *space, zcdp, d_in=1, scale=20.0, threshold=900, max_hits=3, monotone=True
    )
    wrong = oc.m.make_sparse_vector(
        *space, zcdp, 1, scale=30.0, threshold=300, max_hits=3, sensitivity=1.0, answer_scale=30.0
    )
    counts = oc.make_concurrent_composition(*space, zcdp, d_in=1, d_mids=[count.map(1)] * 2)
    odometer = oc.make_concurrent_odometer(*space, zcdp)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=RHO)(records)

    print(f"\n{len(records)} rows in {len(universe)} cells; one filter, zCDP, rho = {RHO}")
    print("launched, and paid for:")
    children = {}
    for name, child in (
        ("weights", weights),
        ("rare", rare),
        ("wrong", wrong),
        ("counts", counts),
    ):
        children[name] = root(child)
        print(f"  {name:<8} {child.map(1):.4f}   spent {root.privacy_loss():.4f}")
    spent = root.privacy_loss()

    answered = updated = 0
    said = []
    for turn, (text, question) in enumerate(_questions(universe)):
        answer = children["weights"](question)
        updated += bool(answer)
        total = _total(question)
        off = children["wrong"](oc.m.Deviation(total, answer.value))
        if off:
            said.append(f"  {text}: {answer.value:.0f} from weights, {off.value:.0f} off")
        big = children["rare"](lambda rows, total=total: int(total(rows)))
        if big:
            said.append(f"  {text}: more than 900")
        answered += 3
        if turn % 30 == 10:
            said.append(f"  a count between the others: {children['counts'](count)}")
            answered += 1
    print(f"{answered} answers, interleaved, {updated} of them updates of the weights")
    print("\n".join(said))
    assert root.privacy_loss() == spent
    print(f"still spent {root.privacy_loss():.4f}, remaining {root.remaining():.4f}")
    print(f"the weights promise an error of {weights.plan.error:.0f} for all {QUESTIONS} at once")


def _total(question: list[float]) -> Any:
    """A linear question as a callable on the rows: of sensitivity 1."""
    return lambda rows: sum(question[row] for row in rows)
