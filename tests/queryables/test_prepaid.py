import os
import threading
from concurrent.futures import ThreadPoolExecutor

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    ClosedChildError,
    ForkedError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    PrepaidPriceError,
    PrepaidUsedError,
    PrivacyMapError,
    ReentrantLaunchError,
    SpaceMismatchError,
)

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
APPROXIMATE = dp.approximate(dp.max_divergence())
RULE = oc.accumulators.best_rule((1.0, 1e-6), typical=[(0.01, 0.0)])


def filtered(d_out=1.0, measure=PURE, accumulator=None, d_in=1, **options):
    odometer = oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)
    return oc.make_concurrent_filter(odometer, d_in, d_out, **options)([1, 2, 3])


def unbounded(measure=PURE):
    return oc.make_concurrent_odometer(*SPACE, measure)([1, 2, 3])


def count(epsilon):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def user(price, measure=PURE, function=len, TO="int"):
    return dp.m.make_user_measurement(*SPACE, measure, function, price, TO=TO)


def interactive(epsilon):
    return oc.make_concurrent_composition(*SPACE, PURE, d_in=1, d_mids=[epsilon / 2] * 2)


def spend(launch, most=10**6):
    for number in range(most):
        try:
            launch()
        except BudgetExceededError:
            return number
    return most


def test_prepaid_launches_are_charged_at_once_and_launched_later():
    root, query = filtered(), count(0.125)
    block = root.prepaid(query, 4)
    assert (root.privacy_loss(), block.unspent, block.paid) == (0.5, 4, 4)
    for left in (3, 2, 1, 0):
        assert isinstance(block(query), int)
        assert block.unspent == left
    assert root.privacy_loss() == 0.5
    with pytest.raises(PrepaidUsedError, match=r"the prepaid launches \(4\) are used up") as caught:
        block(query)
    assert caught.value.launches == 4
    assert root.privacy_loss() == 0.5


def test_a_block_that_is_not_admitted_as_a_whole_charges_nothing():
    root = filtered()
    with pytest.raises(
        BudgetExceededError, match="asked 0.125 for each of 9 launches.*prepay fewer"
    ) as caught:
        root.prepaid(count(0.125), 9)
    assert (caught.value.asked, caught.value.launches) == (0.125, 9)
    assert root.privacy_loss() == 0.0
    root.prepaid(count(0.125), 8)
    assert root.remaining() == 0.0


def test_what_is_not_launched_in_a_with_block_is_lost():
    root, query = filtered(), count(0.125)
    with root.prepaid(query, 4) as block:
        block(query)
    assert (block.unspent, root.privacy_loss()) == (3, 0.5)
    assert repr(block) == "PrepaidQueryable(3 of 4 launches unspent, closed)"
    with pytest.raises(PrepaidUsedError, match="were closed, and what was not launched is lost"):
        block(query)
    worker = root.leased(query, 2)
    worker.close()
    with pytest.raises(PrepaidUsedError):
        worker(query)


@pytest.mark.parametrize("size", [1, 2, 7, 50, 1000])
def test_as_many_are_admitted_as_without_prepaying(size):
    def fresh():
        return filtered((1.0, 1e-6), APPROXIMATE, RULE)

    query = dp.c.make_approximate(count(0.01))
    root = fresh()
    assert spend(lambda: root(query)) == 490
    root = fresh()
    worker = root.leased(query, size)
    assert spend(lambda: worker(query)) == 490
    assert worker.unspent == 0
    with pytest.raises(BudgetExceededError):
        root(query)


@pytest.mark.parametrize(("size", "launches"), [(2, 250), (5, 115), (10, 100)])
def test_one_charge_of_several_launches_would_waste_the_budget(size, launches):
    rule = oc.accumulators.best_rule((1.0, 1e-6), typical=[(size / 100, 0.0)])
    root = filtered((1.0, 1e-6), APPROXIMATE, rule)
    query = user(lambda _: (size / 100, 0.0), APPROXIMATE)
    assert size * spend(lambda: root(query)) == launches


def test_additive_losses_are_admitted_to_the_last():
    root, query = filtered(0.9), count(0.1)
    alone = spend(lambda: root(query))
    root = filtered(0.9)
    worker = root.leased(query, 4)
    assert spend(lambda: worker(query)) == alone
    assert root.privacy_loss() <= 0.9


def test_another_measurement_may_be_launched_if_it_costs_at_most_as_much():
    root = filtered()
    block = root.prepaid(count(0.25), 3)
    block(count(0.125))
    block(count(0.25))
    with pytest.raises(PrepaidPriceError, match="0.5 at d_in=1.*not known to cost") as caught:
        block(count(0.5))
    assert (caught.value.asked, caught.value.paid, caught.value.d_in) == (0.5, 0.25, 1)
    assert (block.unspent, root.privacy_loss()) == (1, 0.75)


def test_a_d_mid_is_a_price_at_the_d_in_of_the_bound():
    root = filtered(d_in=2)
    block = root.prepaid(0.25, 3)
    block(count(0.125))
    with pytest.raises(PrepaidPriceError):
        block(count(0.25))
    assert (block.unspent, root.privacy_loss()) == (2, 0.75)
    with pytest.raises(PrivacyMapError, match="known at d_in=2 only; prepay a measurement"):
        root.privacy_loss(1)
    block(count(0.125))
    with pytest.raises(InvalidTypeError, match="price must be a measurement, found float"):
        unbounded().prepaid(0.25, 3)
    for price in (-0.5, "x", None, float("nan")):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="price"):
            root.prepaid(price, 3)


def test_pairs_must_be_at_most_in_both_parts():
    root = filtered((1.0, 1e-6), APPROXIMATE)
    block = root.prepaid((0.25, 1e-8), 3)
    with pytest.raises(PrepaidPriceError):
        block(user(lambda d_in: (0.125 * d_in, 1e-7), APPROXIMATE))
    block(user(lambda d_in: (0.25 * d_in, 1e-8), APPROXIMATE))
    assert block.unspent == 2


def test_a_map_of_python_is_read_at_every_launch():
    prices = [0.125]
    query = user(lambda d_in: prices[0] * d_in)
    block = filtered().prepaid(query, 3)
    block(query)
    prices[0] = 0.25
    with pytest.raises(PrepaidPriceError):
        block(query)
    prices[0] = 0.0625
    block(query)
    prices[0] = float("nan")
    with pytest.raises(PrivacyMapError):
        block(query)
    assert block.unspent == 1


def test_a_loss_that_is_read_later_covers_what_was_launched():
    steep = user(lambda d_in: 0.125 * d_in**3)
    root = filtered(8.0)
    block = root.prepaid(count(0.125), 3)
    block(steep)
    with pytest.raises(PrivacyMapError, match="prepaid price is not known to cost at most as much"):
        root.privacy_loss(2)
    root = filtered(8.0)
    block = root.prepaid(count(0.125), 3)
    assert root.privacy_loss(2) == 0.75
    with pytest.raises(PrepaidPriceError, match="at d_in=2"):
        block(steep)
    block(user(lambda d_in: 0.125 * d_in))
    assert (root.privacy_loss(2), root.privacy_loss(3), block.unspent) == (0.75, 1.125, 2)


def test_odometers_prepay_too():
    root, query = unbounded(), count(0.125)
    block = root.prepaid(query, 2)
    block(query)
    assert (root.privacy_loss(1), root.privacy_loss(3)) == (0.25, 0.75)
    with pytest.raises(PrepaidPriceError):
        block(count(0.25))
    block(count(0.0625))
    assert root.privacy_loss(4) == 1.0


def test_children_of_children_prepay_at_every_ancestor():
    root, query = filtered(1.0), count(0.125)
    child = root(oc.make_concurrent_odometer(*SPACE, PURE))
    block = child.prepaid(query, 3)
    assert (child.privacy_loss(1), root.privacy_loss()) == (0.375, 0.375)
    block(query)
    with pytest.raises(BudgetExceededError, match="the filter refuses"):
        child.prepaid(query, 6)
    worker = child.leased(query, 4)
    assert spend(lambda: worker(query)) == 5
    assert (child.privacy_loss(1), root.privacy_loss()) == (1.0, 1.0)


def test_below_a_transformation_the_price_is_in_the_childs_units():
    root = filtered(1.0)
    doubled = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows * 2, lambda d: 2 * d)
    child = root(doubled >> oc.make_concurrent_odometer(*SPACE, PURE))
    block = child.prepaid(count(0.125), 2)
    assert root.privacy_loss() == 0.5
    block(count(0.125))
    with pytest.raises(PrepaidPriceError, match="at d_in=2"):
        block(count(0.25))
    assert (child.privacy_loss(1), root.privacy_loss()) == (0.5, 0.5)


def test_a_compositor_prepays_with_its_next_shares():
    root = oc.make_concurrent_composition(*SPACE, PURE, d_in=1, d_mids=[0.25, 0.25, 0.125])(
        [1, 2, 3]
    )
    with pytest.raises(BudgetExceededError, match="for each of 3 launches"):
        root.prepaid(count(0.25), 3)
    block = root.prepaid(count(0.25), 2)
    assert root.remaining() == (0.125,)
    block(count(0.25))
    worker = root.leased(count(0.125), 5)
    assert (worker.unspent, root.remaining()) == (1, ())


def test_a_compositor_in_any_order_prepays():
    half = oc.TradeoffFunction.gaussian(0.5)
    root = oc.make_concurrent_composition(
        *SPACE, oc.tradeoff(), d_in=1, d_mids=[half] * 3, order="any"
    )([1, 2, 3])
    query = user(lambda _: half, oc.tradeoff())
    with pytest.raises(BudgetExceededError):
        root.prepaid(query, 4)
    worker = root.leased(query, 5)
    assert (worker.unspent, len(root.remaining())) == (3, 0)
    worker(query)


def test_interactive_children_are_launched_from_a_block():
    root = filtered()
    with root.prepaid(0.25, 2) as block:
        first, second = block(interactive(0.25)), block(interactive(0.25))
    for child in (first, second, first, second):
        assert isinstance(child(count(0.125)), int)
    assert root.privacy_loss() == 0.5


def test_an_odometer_is_not_launched_from_a_block():
    block = filtered().prepaid(0.25, 2)
    with pytest.raises(InvalidTypeError, match="must be a measurement.*handle that prepaid"):
        block(oc.make_concurrent_odometer(*SPACE, PURE))
    with pytest.raises(InvalidTypeError):
        block(3)
    with pytest.raises(SpaceMismatchError):
        block(dp.c.make_approximate(count(0.25)))
    assert block.unspent == 2


def test_a_prepaid_launch_under_a_sequential_measure_closes_the_older_child():
    measure = dp.approximate(dp.zero_concentrated_divergence())
    root = filtered((1.0, 1e-6), measure)
    share = (0.125, 0.0)
    child_of = dp.c.make_adaptive_composition(*SPACE, measure, d_in=1, d_mids=[share])
    query = user(lambda d_in: (0.125 * d_in, 0.0), measure)
    older = root(child_of)
    block = root.prepaid(share, 3)
    assert isinstance(older(query), int)  # prepaying launches nothing
    older = root(child_of)
    newer = block(child_of)
    with pytest.raises(ClosedChildError):
        older(query)
    assert isinstance(newer(query), int)
    root(query)
    block(query)
    assert block.unspent == 1


def test_a_halted_filter_launches_nothing_more():
    root, query = filtered(halt=True), count(0.125)
    block = root.prepaid(query, 2)
    with pytest.raises(BudgetExceededError):
        root.prepaid(query, 7)
    with pytest.raises(HaltedError):
        block(query)
    root = filtered(halt=True)
    assert root.leased(query, 20).unspent == 8  # fewer are no refusal


def test_a_filter_that_halts_while_a_map_is_read_launches_nothing():
    root = filtered(halt=True)
    limit = root(oc.c.make_limited(oc.make_concurrent_odometer(*SPACE, PURE), 1, 4.0, label="ann"))
    block, ran = limit.prepaid(count(0.25), 2), []

    def price(d_in):
        with pytest.raises((BudgetExceededError, HaltedError)):
            root(count(4.0))
        return 0.25 * d_in

    with pytest.raises(HaltedError):
        block(user(price, function=ran.append))
    assert (ran, block.unspent, root.privacy_loss()) == ([], 2, 0.5)


def test_a_child_that_is_closed_while_a_map_is_read_uses_no_launch():
    measure, ask = dp.approximate(dp.zero_concentrated_divergence()), True
    root = filtered((2.0, 1e-6), measure)
    child = oc.make_concurrent_composition(*SPACE, measure, d_in=1, d_mids=[(0.1, 0.0)] * 2)
    block = root(child).prepaid(user(lambda d_in: (0.05, 0.0), measure), 2)

    def price(d_in):
        nonlocal ask
        if ask:
            ask = False
            root(child)
        return 0.05, 0.0

    with pytest.raises(ClosedChildError):
        block(user(price, measure))
    assert block.unspent == 2


def test_rényi_curves_are_compared_at_the_orders_of_the_filter():
    measure = dp.renyi_divergence()
    root = filtered(lambda alpha: alpha, measure, orders=(2.0, 4.0))
    block = root.prepaid(user(lambda d_in: lambda alpha: 0.25 * alpha * d_in, measure), 2)
    block(user(lambda d_in: lambda alpha: 0.125 * alpha * d_in, measure))
    with pytest.raises(PrepaidPriceError):
        block(user(lambda d_in: lambda alpha: 0.5 * alpha * d_in, measure))
    assert block.unspent == 1
    root = unbounded(measure)
    with pytest.raises(PrepaidPriceError):  # before anything is paid that could not be launched
        root.prepaid(user(lambda d_in: lambda alpha: 0.25 * alpha * d_in, measure), 2)
    assert root.privacy_loss(1)(2.0) == 0.0


def test_a_mechanism_cannot_launch_from_the_block_that_pays_for_it():
    found = []

    def function(_):
        for use in (lambda: block(count(0.125)), lambda: block.unspent, block.close):
            with pytest.raises(ReentrantLaunchError):
                use()
        found.append(1)
        return 1

    block = filtered().prepaid(0.25, 2)
    block(user(lambda _: 0.25, function=function))
    assert (found, block.unspent) == ([1], 1)


def test_a_mechanism_that_fails_has_used_its_launch():
    def function(_):
        raise ValueError("broken")

    block = filtered().prepaid(0.25, 2)
    with pytest.raises(Exception, match="broken"):
        block(user(lambda _: 0.25, function=function))
    assert block.unspent == 1


def test_an_interrupt_uses_at_most_one_launch():
    def function(_):
        raise KeyboardInterrupt

    root = filtered()
    block = root.prepaid(0.25, 2)
    with pytest.raises(KeyboardInterrupt):
        block(user(lambda _: 0.25, function=function))
    assert (block.unspent, root.privacy_loss()) == (1, 0.5)
    assert isinstance(block(count(0.25)), int)


@pytest.mark.parametrize("size", [1, 3])
def test_threads_share_a_block(size):
    root, query = filtered(300.0), count(1.0)
    worker = root.leased(query, size)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(spend, lambda: worker(query)) for _ in range(4)]
        assert sum(one.result() for one in found) == 300
    assert (worker.paid, worker.unspent) == (300, 0)


def test_threads_use_a_block_exactly():
    root, query = filtered(300.0), count(1.0)
    block, barrier = root.prepaid(query, 100), threading.Barrier(4)

    def take(_):
        barrier.wait()
        launched = 0
        for _ in range(50):
            try:
                block(query)
            except PrepaidUsedError:
                return launched
            launched += 1
        return launched

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(4))) == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_cannot_use_a_block():
    root, query = filtered(), count(0.125)
    block = root.leased(query, 4)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            block(query)
        except ForkedError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"refused"
    assert block.unspent == 4


def test_arguments():
    root = filtered()
    for wrong in (0, -1, 10**6 + 1):
        with pytest.raises(InvalidValueError, match="count"):
            root.prepaid(count(0.1), wrong)
        with pytest.raises(InvalidValueError, match="size"):
            root.leased(count(0.1), wrong)
    with pytest.raises(InvalidTypeError, match="count"):
        root.prepaid(count(0.1), 2.5)
    with pytest.raises(InvalidTypeError, match="price is"):
        root.prepaid(dp.m.then_laplace(scale=1.0), 2)


def test_a_block_is_made_in_a_native_call():
    outer = dp.c.make_adaptive_composition(*SPACE, PURE, d_in=1, d_mids=[1.0])([1, 2, 3])
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    root = outer(oc.make_concurrent_filter(odometer, 1, 1.0))
    query = count(0.125)
    with root.prepaid(query, 2) as block:
        assert isinstance(block(query), int)
        with pytest.raises(PrepaidPriceError):
            block(count(0.5))
    assert block.unspent == 1
