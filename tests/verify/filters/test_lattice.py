"""Likelihood ratios as whole numbers of steps."""

import math

import pytest

from opendp_concurrent import verify
from opendp_concurrent.verify.adversary import Lattice


def pairs_of(menu):
    return [pair for one in menu for pair in one.pairs]


def test_rational_losses_share_a_step():
    menu = [verify.randomized_response(epsilon) for epsilon in (0.5, 0.75, 1.0)]
    lattice = Lattice(pairs_of(menu))
    assert lattice.steps == [pytest.approx(0.25)]
    counted = [sorted(lattice.steps_of(*pair) for pair in one.pairs) for one in menu]
    assert counted == [[(-2,), (2,)], [(-3,), (3,)], [(-4,), (4,)]]


def test_other_losses_have_steps_of_their_own():
    lattice = Lattice(pairs_of(map(verify.randomized_response, (1.0, math.sqrt(2)))))
    assert lattice.steps == [pytest.approx(1.0), pytest.approx(math.sqrt(2))]


def test_ratios_do_not_depend_on_the_order_of_launches():
    menu = [verify.random_mechanism(seed, 3, epsilon=1.0) for seed in range(3)]
    lattice = Lattice(pairs_of(menu))
    answers = [(*one.pairs[0], lattice.steps_of(*one.pairs[0])) for one in menu]

    def ratio(order):
        found = lattice.origin
        for index in order:
            found = lattice.after(found, answers[index][2])
        return found

    assert ratio((0, 1, 2, 0)) == ratio((2, 0, 0, 1))
    exact = sum(math.log(answers[index][0] / answers[index][1]) for index in (0, 1, 2, 0))
    assert lattice.log(ratio((0, 1, 2, 0))) == pytest.approx(exact, abs=4 * lattice.error)


def test_impossible_answers_and_answers_without_a_loss():
    failing = verify.randomized_response(0.5, 0.125)
    steps = [Lattice(failing.pairs).steps_of(*pair) for pair in failing.pairs]
    assert steps.count(None) == 1  # impossible under Q
    nothing = verify.FiniteMechanism((0.5, 0.5), (0.5, 0.5))
    lattice = Lattice(nothing.pairs)
    assert lattice.steps == []
    assert [lattice.steps_of(*pair) for pair in nothing.pairs] == [(), ()]


def test_no_step_misses_its_loss_by_more_than_is_said():
    menu = [verify.random_mechanism(seed, 4, epsilon=2.0) for seed in range(20)]
    lattice = Lattice(
        pairs_of([*menu, *(verify.randomized_response(one / 7) for one in range(1, 8))])
    )
    for one in menu:
        for p, q in one.pairs:
            assert abs(lattice.log(lattice.steps_of(p, q)) - math.log(p / q)) <= lattice.error
    assert lattice.error < 1e-12
