import itertools
import math

import pytest

import opendp_concurrent as oc


def by_enumeration(readings, epsilon):
    """Each rule when to stop is a set of answers so far that no other of them begins."""
    up = 1 / (1 + math.exp(-epsilon))

    def best(seen):
        first = math.prod(up if one else 1 - up for one in seen)
        second = math.prod(1 - up if one else up for one in seen)
        stopped = max(0.0, first - math.exp(readings[len(seen) - 1]) * second) if seen else 0.0
        if len(seen) == len(readings):
            return stopped
        return max(stopped, sum(best((*seen, one)) for one in (True, False)))

    return best(())


@pytest.mark.parametrize("readings", list(itertools.product([0.0, 0.4, 1.1], repeat=4)))
def test_the_worst_time_is_that_of_all_rules(readings):
    found = oc.verify.worst_stopping(readings, 0.5)
    assert found == pytest.approx(by_enumeration(readings, 0.5), abs=1e-14)


def test_the_plain_sum_is_never_exceeded():
    assert oc.verify.worst_stopping([0.5 * n for n in range(1, 9)], 0.5) == 0.0
    assert oc.verify.worst_stopping([0.0], 0.5) == pytest.approx(math.tanh(0.25))
