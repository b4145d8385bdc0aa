"""The account alone: no OpenDP, no data, no FFI."""

import contextlib
import copy
import functools
import itertools
import math
import pickle
import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.account import Account, Bound
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.lifecycle import (
    TRANSITIONS,
    Event,
    Lifecycle,
    State,
    current_label,
    labelled,
    name_of_account,
    named,
)
from opendp_concurrent.accounting.price import StabilityMap
from opendp_concurrent.accounting.rule import Shares, Within
from opendp_concurrent.accounting.store import Charge, InLedger
from opendp_concurrent.errors import (
    BudgetExceededError,
    ClosedChildError,
    EndedError,
    HaltedError,
    InterruptedHandleError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
    PrivacyMapError,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE
from opendp_concurrent.measures.shapes import Planned

from ..build import PURE, SPACE, a_filter, an_odometer, costing, laplace

ZERO = basic().start(MAX_DIVERGENCE)


def at_most(left, right):
    return left <= right


class Linear:
    """A price of ``epsilon`` per unit of d_in, which counts how often it is read."""

    mechanism = "linear"

    def __init__(self, epsilon, largest=math.inf, alone=True):
        self.epsilon, self.largest, self.read = epsilon, largest, 0
        self.alone = alone

    def at(self, d_in, key=None):
        self.read += 1
        if d_in > self.largest:
            raise PrivacyMapError(d_in, "too far")
        return self.epsilon * d_in

    @property
    def free(self):
        return not self.alone

    def excludes(self, d_in, key=None):
        return self.alone

    def later(self, d_in):
        return self.at(d_in)

    def settled(self):
        return self


def odometer(**arguments):
    return Account(ZERO, **arguments)


def filter_(d_out, d_in=1, **arguments):
    book = arguments.pop("book", None)
    keeper = None if book is None else InLedger(book)
    halt, told = (
        arguments.pop("halt", False),
        {"measure": "MaxDivergence", "accumulator": "basic()"},
    )
    bound = Bound(d_in, Within(d_out), ZERO, halt, keeper, **told)
    return Account(ZERO if keeper is None else None, bound=bound, **arguments)


def compositor(*d_mids):
    return Account(None, bound=Bound(1, Shares(at_most), Planned(d_mids, 0, ZERO)))


def test_a_distance_once_asked_cannot_refuse_a_launch_of_a_filter():
    """Nor by a loss that turns out to be none when it is added, such as a curve that raises."""

    class Odd(Linear):
        def at(self, d_in, key=None):
            return self.epsilon if d_in == 1 else "no loss"

    account = filter_(1.0)
    assert account.privacy_loss(2) == 0.0
    account.launch(Odd(0.25))
    assert account.privacy_loss(1) == 0.25
    with pytest.raises(InvalidTypeError):
        account.privacy_loss(2)
    unbounded = odometer()
    assert unbounded.privacy_loss(2) == 0.0
    with pytest.raises(PrivacyMapError):
        unbounded.launch(Odd(0.25))
    assert unbounded.privacy_loss(1) == 0.0


def test_a_compositor_has_a_loss_at_its_own_distance_only():
    with pytest.raises(InvalidValueError, match="its loss is known only there"):
        compositor(0.5).privacy_loss(2)


class Doing(Linear):
    """A price that does something else the first time that it is read."""

    def __init__(self, epsilon, action):
        super().__init__(epsilon)
        self.action = action

    def at(self, d_in, key=None):
        if not self.read:
            self.read = 1
            self.action()
        return super().at(d_in)


def test_a_charge_by_a_price_that_launches_itself_is_decided_again():
    account = filter_(1.0)
    with pytest.raises(BudgetExceededError):
        account.launch(Doing(0.5, lambda: account.launch(Linear(0.75))))
    assert account.privacy_loss(1) == 0.75


def test_a_first_query_counts_what_a_price_launches_while_it_is_read():
    root = odometer()
    price = Doing(0.125, lambda: root.launch(Linear(0.25)))
    root.store.prices.append((price, False))  # charged, and never read at any distance yet
    assert root.privacy_loss(1) == 0.375
    assert root.privacy_loss(2) == 0.75


def test_a_price_that_halts_the_account_is_refused():
    root = filter_(1.0, halt=True)

    def halt():
        with pytest.raises(BudgetExceededError):
            root.launch(Linear(2.0))

    with pytest.raises(HaltedError):
        root.launch(Doing(0.25, halt))
    assert root.launches == 0
    price = Linear(0.25)
    with pytest.raises(HaltedError):
        root.launch(price)
    assert price.read == 0


class Book:
    """A ledger's book, in memory; the charges of others can be added to it."""

    def __init__(self, failing=False):
        self.failing, self.charges, self.accumulator = failing, [], ZERO

    dataset = "survey"
    launches = property(lambda self: len(self.charges))

    def check_process(self):
        pass

    def read(self):
        return self.accumulator

    def settle(self, launch, charge):
        from opendp_concurrent.ledger.book import decide

        with launch.chain[0].lock, self.turn() as turn:
            if not decide(launch, charge, turn):
                return None
        return launch.commit()

    @contextlib.contextmanager
    def turn(self):
        self.pending, self.planned = None, {}
        yield self
        if self.pending:
            if self.failing:
                raise LedgerError("disk full")
            charge, self.accumulator = self.pending
            self.charges.append(charge)

    def write(self, charge, after, limits=()):
        self.pending = charge, after

    def charged_by_another(self, d_mid):
        self.charges.append(Charge(d_mid, "", ""))
        self.accumulator = self.accumulator.after(d_mid)


def test_a_budget_in_a_ledger_is_known_at_its_own_distance():
    root = filter_(1.0, d_in=2, book=Book())
    with pytest.raises(InvalidValueError, match="the d_in of this budget in a ledger"):
        root.privacy_loss(1)


def test_prices_are_read_before_the_turn_is_taken():
    class Busy(Book):
        taken = False

        @contextlib.contextmanager
        def turn(self):
            self.taken = True
            with super().turn() as turn:
                yield turn
            self.taken = False

    book = Busy()

    class Price(Linear):
        @functools.cache  # noqa: B019  as prices are
        def at(self, d_in, key=None):
            assert not book.taken
            return super().at(d_in)

    root = filter_(1.0, book=book)
    root.launch(Price(0.25))
    odometer(parent=root, inward=StabilityMap(lambda d_in: 2 * d_in)).launch(Price(0.125))
    assert root.privacy_loss(1) == 0.5


def test_a_first_query_is_right_while_others_launch():
    account, price = odometer(), Linear(1.0)
    stop = threading.Event()

    def launch():
        while not stop.is_set():
            account.launch(price)

    thread = threading.Thread(target=launch)
    thread.start()
    try:
        for d_in in range(1, 50):
            before = account.launches
            assert account.privacy_loss(d_in) >= before * d_in
    finally:
        stop.set()
        thread.join()
    assert account.privacy_loss(7) == 7 * account.launches


# --- ? --------------------------------------------------------------------------------------------


def test_the_table_is_complete_and_nothing_opens_again():
    assert set(TRANSITIONS) == set(itertools.product(State, Event))
    assert State.OPEN not in TRANSITIONS.values()


@pytest.mark.parametrize(("state", "event"), list(TRANSITIONS))
def test_a_lifecycle_follows_the_table(state, event):
    one = Lifecycle(reason="why")
    one.state = state
    one.happen(event)
    assert one.state is TRANSITIONS[state, event]
    with pytest.raises((HaltedError, InterruptedHandleError, ClosedChildError, EndedError)):
        one.check()


def test_a_child_is_open_while_all_that_it_was_launched_from_are():
    root = Lifecycle()
    child = Lifecycle(Lifecycle(root))
    child.check()
    root.happen(Event.REFUSED_WITH_HALT)
    with pytest.raises(HaltedError):
        child.check()
    Lifecycle(parent := Lifecycle(), "why").happen(Event.SUPERSEDED)
    parent.check()  # closing a child leaves its parent open


# --- labels of launches --------------------------------------------------------------------------


def test_a_thread_that_is_started_inside_has_none():
    seen = []
    with labelled("here"):
        thread = threading.Thread(target=lambda: seen.append(current_label()))
        thread.start()
        thread.join()
    assert seen == [""]


# --- names of accounts, without accounts ---------------------------------------------------------


def test_a_label_is_shown_on_one_line_and_not_at_any_length():
    with labelled("two\nlines"):
        assert name_of_account("filter", None) == r"filter 'two\nlines'"
    with labelled("x" * 10_000):
        assert len(name_of_account("filter", None)) < 250


def test_a_block_gives_another_kind_and_label_and_takes_them_back():
    with labelled("outer"):
        with named("blocks"):
            assert name_of_account("filter", None) == "blocks 'outer'"
        with named("limit", "bob"):
            assert name_of_account("filter", None) == "limit 'bob'"
        assert current_label() == "outer"
        assert name_of_account("filter", None) == "filter 'outer'"
    with pytest.raises(ZeroDivisionError), named("limit", "bob"):
        raise ZeroDivisionError
    assert name_of_account("filter", None) == "filter"


def test_what_is_adopted_later_is_below_who_adopts_it_first():
    root, lost = Lifecycle(name="filter"), Lifecycle(name="odometer")
    between = Lifecycle(Lifecycle(root))
    assert (between.path, between.named, Lifecycle().path) == (("filter",), root, ())
    lost.adopt_by(root)
    lost.adopt_by(Lifecycle(name="compositor"))
    assert lost.path == ("filter", "odometer")


# --- a refusal says whose bound it was, at which distance, and under which accumulator ------------


def refused(ask, *query):
    with pytest.raises(BudgetExceededError) as error:
        ask(*query)
    return error.value


# --- the fields, and the message ---------------------------------------------------------------


def test_a_refusal_carries():
    root = a_filter(1.0)([1, 2, 3])
    root(laplace(0.5))
    error = refused(root, costing(0.75))
    numbers = error.spent, error.asked, error.remaining, error.d_out, error.d_in
    assert repr(numbers) == "(0.5, 0.75, 0.5, 1.0, 1)"
    assert (error.account, error.measure) == (("filter",), "MaxDivergence")
    assert error.accumulator == "basic()"


def test_the_message_has_the_subject_first_and_rounded_numbers():
    with oc.labelled("report"):
        root = a_filter(1.0)([1, 2, 3])
    root(costing(1 / 3))
    assert str(refused(root, costing(0.9))) == (
        "filter 'report' refuses: spent 0.333333 of 1, asked 0.9, remaining 0.666667 "
        "(MaxDivergence, basic(), d_in=1); nothing was charged; "
        "pass a query that costs at most what remains"
    )


def test_numbers_that_differ_by_less_than_is_shown_are_told_apart():
    root = a_filter(1.0)([1, 2, 3])
    for _ in range(9):
        root(costing(0.1))
    error = refused(root, costing(0.1))
    assert f"asked 0.1, remaining {error.remaining!r} (" in str(error)
    assert error.remaining < 0.1
    shares = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.1])([1, 2, 3])
    error = refused(shares, costing(0.1 + 2.0**-56))
    assert f"asked {0.1 + 2.0**-56!r}, next share 0.1, 1 of 1 left" in str(error)


def test_the_accumulator_is_the_one_that_refused():
    measure, rule = dp.approximate(PURE), oc.accumulators.advanced(delta_slack=1e-7)
    advanced = an_odometer(measure, accumulator=rule)
    root = oc.make_concurrent_filter(advanced, 2, (1.0, 1e-6))([1, 2, 3])
    big = dp.c.make_approximate(laplace(2.0))
    error = refused(root, big)
    assert (error.measure, error.d_in) == ("Approximate(MaxDivergence)", 2)
    assert error.accumulator == "advanced(delta_slack=1e-07)"
    assert (error.asked, error.d_out) == ((4.0, 0.0), (1.0, 1e-6))
    assert "(Approximate(MaxDivergence), advanced(delta_slack=1e-07), d_in=2)" in str(error)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_refusal_can_be_sent_to_another_process(again):
    error = refused(a_filter(0.25)([1, 2, 3]), laplace(0.5))
    other = again(error)
    assert type(other) is BudgetExceededError
    assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))


# --- whose bound -------------------------------------------------------------------------------


def test_a_label_names_the_account_that_was_launched_under_it():
    root = an_odometer()([1, 2, 3])
    with oc.labelled("team"):
        team = root(a_filter(1.0))
    with oc.labelled("ada"):
        child = team(an_odometer())
    with oc.labelled("count"):  # the label of the launch is not that of the account
        error = refused(child, laplace(2.0))
    assert error.account == ("odometer", "filter 'team'")
    inner = child(a_filter(0.25))
    error = refused(inner, laplace(0.5))
    assert error.account == ("odometer", "filter 'team'", "odometer 'ada'", "filter 1")
    assert str(error).startswith(
        "filter 1 of odometer 'ada' of filter 'team' of the odometer refuses: spent 0 of 0.25"
    )


def test_without_a_label_accounts_are_numbered_among_their_siblings():
    root = an_odometer()([1, 2, 3])
    shares = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25])
    root(laplace(0.5))  # no child: nothing stays open
    children = [root(one) for one in (a_filter(0.25), shares, an_odometer(), a_filter(0.25))]
    accounts = [
        refused(child, laplace(0.5)).account for child in (children[0], children[1], children[3])
    ]
    assert accounts == [("odometer", name) for name in ("filter 1", "compositor 2", "filter 4")]
    assert refused(children[2](a_filter(0.25)), laplace(0.5)).account == (
        "odometer",
        "odometer 3",
        "filter 1",
    )


def test_how_many_a_mechanism_makes_is_not_told():
    """A mechanism that makes a filter for each row would else tell how many rows there are."""

    def spawn(data):
        return [a_filter(0.25)(data) for _ in data][-1]

    opener = dp.m.make_user_measurement(
        *SPACE, PURE, spawn, lambda d_in: 0.25, TO="ExtrinsicObject"
    )
    wrapped = oc.c.make_interactive(opener)
    told = []
    for rows in ([1], [1, 2, 3]):
        root = an_odometer()(rows)
        handles = root(opener), root(wrapped), root(a_filter(0.25))
        told.append([refused(handle, laplace(0.5)).account for handle in handles])
    assert told[0] == told[1]


# --- compositors -------------------------------------------------------------------------------


def test_a_compositor_says_its_next_share():
    shares = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.25, 0.25])
    root = shares([1, 2, 3])
    root(laplace(0.5))
    error = refused(root, laplace(0.5))
    assert (error.remaining, error.d_out, error.account) == ((0.25, 0.25), None, ("compositor",))
    assert str(error) == (
        "the compositor refuses: spent 0.5, asked 0.5, next share 0.25, 2 of 3 left "
        "(MaxDivergence, basic(), d_in=1); nothing was charged; "
        "pass a query that costs at most the next share"
    )


def test_shares_in_any_order_do_not_cover_it():
    measure, shares = oc.tradeoff(), list(map(oc.TradeoffFunction.pure, (0.125, 0.25)))
    root = oc.make_concurrent_composition(*SPACE, measure, 1, shares, order="any")([1, 2])
    error = refused(root, oc.c.cast(laplace(0.5), measure))
    assert error.remaining == tuple(shares)
    assert "not covered by the 2 of 2 shares left (Tradeoff, " in str(error)


# --- everything that has a bound ---------------------------------------------------------------


def test_a_budget_in_a_ledger_is_named_by_its_dataset():
    """Also where the refusal comes in the turn, on what another process has charged."""
    book = Book()
    root = filter_(1.0, book=book)
    leaf = Account(ZERO, parent=root)
    book.charged_by_another(0.75)
    error = refused(leaf.launch, Linear(0.5))
    assert (error.account, error.spent, error.remaining) == (
        ("filter of ledger 'survey'",),
        0.75,
        0.25,
    )
    assert (error.d_in, error.measure, error.accumulator) == (1, "MaxDivergence", "basic()")
    with labelled("report"):
        labelled_root = filter_(0.25, book=Book())
    assert refused(labelled_root.launch, Linear(0.5)).account == (
        "filter 'report' of ledger 'survey'",
    )


def test_a_part_is_named_by_its_key():
    by = oc.c.by_values({"young": range(0, 30), 65: range(30, 120)})
    parts = oc.c.make_parallel_composition(
        *SPACE, by, {"young": a_filter(0.25), 65: a_filter(0.25)}
    )
    handle = parts([20, 40])
    assert refused(handle(65), laplace(0.5)).account == ("part 65", "filter")
    root = an_odometer()([20, 40])
    with oc.labelled("ages"):
        handle = root(parts)
    error = refused(handle("young"), laplace(0.5))
    assert error.account == ("odometer", "part 'young'", "filter")
    assert str(error).startswith("the filter of part 'young' of the odometer refuses: ")


def test_a_filter_that_has_halted_says_which_one():
    root = an_odometer()([1, 2, 3])
    with oc.labelled("strict"):
        strict = root(a_filter(0.25, halt=True))
    child = strict(an_odometer())
    assert refused(child, laplace(0.5)).account == ("odometer", "filter 'strict'")
    with pytest.raises(HaltedError, match="^filter 'strict' of the odometer has halted: ") as error:
        child(laplace(0.125))
    assert error.value.account == ("odometer", "filter 'strict'")
    assert str(HaltedError()).startswith("the filter has halted: ")


def test_equal_launches_below_a_child_are_kept_once_and_others_for_themselves():
    root = filter_(10.0)
    child = odometer(parent=root, inward=StabilityMap(lambda d_in: d_in * 2))
    one, other = Linear(0.125), Linear(0.25)
    for price in (one, one, other, one):
        child.launch(price)
    (first, _), (second, _), (third, _), (fourth, _) = root.store.prices
    assert first is second
    assert third is not first
    assert fourth is first
    assert root.privacy_loss(1) == 2 * (0.125 * 3 + 0.25)
