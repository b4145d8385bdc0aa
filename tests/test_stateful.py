"""Random trees of compositors, odometers, filters and limits, against a model in fractions."""

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

from .build import APPROXIMATE, DATA, PURE, SPACE, ZCDP, an_odometer, costing
from .moments import interrupted_at

# Python drops what is raised while an object is destroyed
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
LARGEST_D_IN = 3
losses = st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.7, 1e-17, 5e-324])
budgets = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0, 1.1, 3.7])
deltas = st.sampled_from([0.0, 1e-9, 1e-7, 3e-7])


class Node:
    """The model: which shares or bound, and every launch as a function of d_in."""

    def __init__(self, handle, parent=None, stability=1, d_in=None, d_out=None, d_mids=None):
        self.handle, self.parent, self.stability = handle, parent, stability
        self.d_in, self.d_out, self.d_mids = d_in, d_out, d_mids
        self.launched = []
        # largest d_in that is asked here, in units of the queries
        self.reach = (parent.reach if parent else d_in or 1) * stability
        self.reach = max(self.reach, LARGEST_D_IN * stability)

    def chain(self):
        """This node and all that are charged for its launches, each with its own price."""
        node, factor = self, 1
        while node is not None:
            factor *= node.stability
            yield node, factor
            node = node.parent

    def spent(self, d_in):
        if self.d_mids is not None:
            parts = self.d_mids[: len(self.launched)]
        else:
            parts = [price(d_in) for price in self.launched]
        return [sum(map(Fraction, column)) for column in zip(*parts, strict=True)] or [0] * 2

    def admitted(self, price):
        """Whether each account of the chain admits a launch, the innermost first."""
        return [
            one.admits(lambda d_in, factor=factor: price(d_in * factor))
            for one, factor in self.chain()
        ]

    def admits(self, price):
        if self.d_mids is not None:
            consumed = len(self.launched)
            if consumed == len(self.d_mids):
                return False
            share = self.d_mids[consumed]
            return all(a <= b for a, b in zip(price(self.d_in), share, strict=True))
        if self.d_out is None:
            return True
        after = zip(self.spent(self.d_in), price(self.d_in), self.d_out, strict=False)
        return all(a + Fraction(b) <= Fraction(c) for a, b, c in after)


class Trees(RuleBasedStateMachine):
    """Runs the real handles beside the model."""

    nodes = Bundle("nodes")
    measure = None
    pair = False

    @initialize()
    def start(self):
        self.known = []

    # --- what is offered -------------------------------------------------------------------

    def native(self, parts):
        return parts if self.pair else parts[0]

    def parts(self, native):
        return tuple(native) if self.pair else (native,)

    def measurement(self, epsilon, delta, function=len):
        return costing(self.native((epsilon, delta)), function, self.measure)

    def odometer(self, stability):
        plain = an_odometer(self.measure)
        if stability == 1:
            return plain
        repeat = dp.t.make_user_transformation(
            *SPACE, *SPACE, function=lambda rows: rows * 2, stability_map=lambda d_in: 2 * d_in
        )
        return repeat >> plain

    def keep(self, node):
        self.known.append(node)
        return node

    # --- opening ---------------------------------------------------------------------------

    @rule(target=nodes, stability=st.sampled_from([1, 2]))
    def root_odometer(self, stability):
        return self.keep(Node(self.odometer(stability)(DATA), stability=stability))

    @rule(
        target=nodes,
        stability=st.sampled_from([1, 2]),
        d_in=st.sampled_from([1, 2]),
        epsilon=budgets,
        delta=deltas,
    )
    def root_filter(self, stability, d_in, epsilon, delta):
        d_out = self.native((epsilon, delta))
        spawned = oc.make_concurrent_filter(self.odometer(stability), d_in, d_out)(DATA)
        parts = self.parts(d_out)
        return self.keep(Node(spawned, stability=stability, d_in=d_in, d_out=parts))

    @rule(target=nodes, d_mids=st.lists(st.tuples(losses, deltas), min_size=1, max_size=5))
    def root_compositor(self, d_mids):
        made = self.compositor(1, d_mids)
        shares = [self.parts(self.native(d_mid)) for d_mid in d_mids]
        return self.keep(Node(made(DATA), d_in=1, d_mids=shares))

    def compositor(self, d_in, d_mids):
        return oc.make_concurrent_composition(
            *SPACE, self.measure, d_in, [self.native(d_mid) for d_mid in d_mids]
        )

    # --- launching -------------------------------------------------------------------------

    def launch(self, node, query, price, handle=None):
        """Launch on both; the answer, or None if both refuse. A falsy answer is no launch."""
        handle, admitted = handle or node.handle, node.admitted(price)
        before = [self.readings(one) for one, _ in node.chain()]
        if handle == node.handle:  # else it has been launched
            assert node.handle.admits(query) == all(admitted)
        if not all(admitted):
            with pytest.raises(BudgetExceededError) as refusal:
                handle(query)
            assert refusal.value.spent == before[admitted.index(False)]  # the innermost refuses
            assert [self.readings(one) for one, _ in node.chain()] == before
            return None
        answer = handle(query)
        for one, factor in node.chain() if answer is not False else ():
            one.launched.append(lambda d_in, factor=factor: price(d_in * factor))
        return answer

    @rule(node=nodes, epsilon=losses, delta=deltas)
    def launch_measurement(self, node, epsilon, delta):
        query = self.measurement(epsilon, delta)
        answer = self.launch(node, query, lambda d_in: self.parts(query.map(d_in)))
        assert answer is None or answer >= 3

    @rule(node=nodes, epsilon=losses, delta=deltas)
    def launch_what_fails(self, node, epsilon, delta):
        """It is charged as if it had answered: a refund would tell of the data."""
        query = self.measurement(epsilon, delta, lambda rows: 1 // 0)

        def handle(query):
            with pytest.raises(OpenDPException) as error:
                node.handle(query)
            if isinstance(error.value, BudgetExceededError):
                raise error.value

        self.launch(node, query, lambda d_in: self.parts(query.map(d_in)), handle)

    @rule(node=nodes, epsilon=losses, delta=deltas, moment=st.integers(1, 120))
    def launch_interrupted(self, node, epsilon, delta, moment):
        """It is charged at each account or at none, and at each if it ran."""
        ran = []
        query = self.measurement(epsilon, delta, lambda rows: ran.append(1) or 3)

        def handle(query):
            interrupted_at(moment, ask, query)
            return bool(ran) or node.handle._session.account.launches > len(node.launched)

        def ask(query):
            with suppress(BudgetExceededError):
                node.handle(query)

        if all(node.admitted(lambda d_in: self.parts(query.map(d_in)))):
            self.launch(node, query, lambda d_in: self.parts(query.map(d_in)), handle)
        else:
            handle(query)
            assert not ran

    @rule(node=nodes, epsilon=losses, delta=deltas)
    def launch_in_threads(self, node, epsilon, delta):
        query, ran = self.measurement(epsilon, delta), []

        def ask(_):
            with suppress(BudgetExceededError):
                ran.append(node.handle(query))

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(ask, range(3)))
        answers = [
            self.launch(node, query, lambda d_in: self.parts(query.map(d_in)), lambda query: True)
            for _ in range(3)
            if all(node.admitted(lambda d_in: self.parts(query.map(d_in))))
        ]
        assert len(ran) == len(answers)

    @rule(target=nodes, node=nodes, epsilon=budgets, delta=deltas)
    def launch_filter(self, node, epsilon, delta):
        d_out = self.native((epsilon, delta))
        query = oc.make_concurrent_filter(self.odometer(1), node.reach, d_out)
        answer = self.launch(node, query, lambda d_in: self.parts(d_out))
        if answer is None:
            return node
        return self.keep(Node(answer, d_in=node.reach, d_out=self.parts(d_out)))

    @rule(
        target=nodes,
        node=nodes,
        d_mids=st.lists(st.tuples(losses, deltas), min_size=1, max_size=3),
    )
    def launch_compositor(self, node, d_mids):
        query = self.compositor(node.reach, d_mids)
        shares = [self.parts(self.native(d_mid)) for d_mid in d_mids]
        answer = self.launch(node, query, lambda d_in: self.parts(query.map(d_in)))
        if answer is None:
            return node
        return self.keep(Node(answer, d_in=node.reach, d_mids=shares))

    @rule(target=nodes, node=nodes, stability=st.sampled_from([1, 2]))
    def open_odometer(self, node, stability):
        if node.reach * stability > 24:
            return node
        before = self.readings(node)
        handle = node.handle(self.odometer(stability))
        assert self.readings(node) == before
        return self.keep(Node(handle, parent=node, stability=stability))

    @rule(
        target=nodes,
        node=nodes,
        stability=st.sampled_from([1, 2]),
        d_in=st.sampled_from([1, 2]),
        epsilon=budgets,
        delta=deltas,
    )
    def open_limit(self, node, stability, d_in, epsilon, delta):
        if node.reach * stability > 24:
            return node
        before, d_out = self.readings(node), self.native((epsilon, delta))
        label = f"limit {len(self.known)}"
        limited = oc.c.make_limited(self.odometer(stability), d_in, d_out, label=label)
        handle = node.handle(limited)
        assert self.readings(node) == before
        assert node.handle(limited) is handle
        return self.keep(
            Node(handle, parent=node, stability=stability, d_in=d_in, d_out=self.parts(d_out))
        )

    # --- queries -------------------------------------------------------------------------

    def readings(self, node):
        return node.handle.privacy_loss(node.d_in or 1)

    @rule(node=nodes, d_in=st.integers(min_value=1, max_value=LARGEST_D_IN))
    def ask_loss(self, node, d_in):
        if node.d_mids is None:
            self.compare(node, d_in)

    def compare(self, node, d_in):
        found = self.parts(node.handle.privacy_loss(d_in))
        for loss, exact in zip(found, node.spent(d_in), strict=False):
            assert Fraction(loss) >= exact
            assert Fraction(math.nextafter(loss, -math.inf)) < exact or loss == exact == 0

    @rule(node=nodes)
    def ask_remaining(self, node):
        if node.d_out is not None:
            for remaining, budget, spent in zip(
                self.parts(node.handle.remaining()),
                node.d_out,
                node.spent(node.d_in),
                strict=False,
            ):
                assert Fraction(remaining) <= Fraction(budget) - spent
                assert Fraction(math.nextafter(remaining, math.inf)) > Fraction(budget) - spent

    @invariant()
    def no_loss_is_below_the_exact_sum_or_above_its_next_double(self):
        for node in getattr(self, "known", [])[-5:]:
            self.compare(node, node.d_in or 1)


class PureTrees(Trees):
    measure = PURE


class ApproximateTrees(Trees):
    measure = APPROXIMATE
    pair = True


class ConcentratedTrees(Trees):
    measure = ZCDP


@pytest.mark.parametrize("programs", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("trees", [PureTrees, ApproximateTrees, ConcentratedTrees])
def test_a_tree_of_accounts_says_what_was_launched(trees, programs):
    run_state_machine_as_test(
        trees, settings=settings(max_examples=programs, stateful_step_count=30)
    )
