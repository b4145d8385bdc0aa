"""Accumulators that blocks share, against one accumulator for each block."""

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.composition.block_totals import Shared

RNG = np.random.default_rng(8)
STARTS = {
    "advanced": oc.accumulators.advanced(delta_slack=1e-7).start(None),
    "best_rule": oc.accumulators.best_rule(d_out=(1.0, 1e-6), typical=[(0.1, 0.0)]).start(None),
    "either": oc.accumulators.either(
        oc.accumulators.basic(), oc.accumulators.zcdp(delta_slack=1e-7)
    ).start(None),
}


@pytest.mark.parametrize("name", STARTS)
def test_each_block_has_the_accumulator_of_its_own_launches(name):
    start, d_out = STARTS[name], (1.0, 1e-6)
    rule, shared, exact = Within(d_out), Shared(start, d_out), [start] * 6
    shared.grow(6)
    refusals = 0
    for _ in range(60):
        places = np.unique(RNG.integers(0, 6, size=3))
        d_mid = (float(RNG.choice([0.05, 0.1, 0.15])), 0.0)
        verdicts = [rule.admits(exact[place], d_mid) for place in places]
        refused = [
            at for at, one in enumerate(verdicts) if isinstance(one, oc.errors.BudgetExceededError)
        ]
        after = shared.after(shared.read(places), d_mid)
        if refused:
            refusals += 1
            assert after[0] == refused[0]
            assert str(after[1]) == str(verdicts[refused[0]])
        else:
            shared.write(places, after)
            for place, one in zip(places, verdicts, strict=True):
                exact[place] = one
        for place in range(6):
            found = shared.accumulator(shared.read([place])[0])
            assert found.to_record() == exact[place].to_record()
    assert refusals > 5


@pytest.mark.parametrize("name", STARTS)
def test_a_copy_keeps_only_the_accumulators_of_its_blocks(name):
    shared = Shared(STARTS[name], (1.0, 1e-6))
    shared.grow(6)
    for _ in range(5):
        shared.write([0, 1], shared.after(shared.read([0, 1]), (0.01, 0.0)))
    cells = shared.read([0, 1])
    after = shared.after(shared.read([1]), (0.01, 0.0))
    copy = shared.copy([1], after)
    assert (shared.kept, copy.kept, len(copy)) == (6, 3, len(shared))
    for place, expected in ((0, cells[0]), (5, [0])):
        one = copy.accumulator(copy.read([place])[0])
        assert one.to_record() == shared.accumulator(expected).to_record()
    (last,) = after.accumulators
    assert copy.accumulator(copy.read([1])[0]).to_record() == last.to_record()
    assert shared.read([1])[0] == cells[1]  # it has no effect on the original
