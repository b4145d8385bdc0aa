"""A refusal says whose bound it was, at which distance, and under which accumulator."""

import copy
import pickle

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.account import Account, Bound
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.lifecycle import labelled
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.accounting.store import InLedger
from opendp_concurrent.errors import BudgetExceededError, HaltedError

from ..build import PURE, SPACE, a_filter, an_odometer, costing, laplace
from .test_account import Book, Linear

ZERO = basic().start(oc.extend.composition_measure(PURE))


def limit(d_out, d_in=1, **arguments):
    """An account with a bound."""
    book = arguments.pop("book", None)
    keeper = None if book is None else InLedger(book)
    bound = Bound(
        d_in, Within(d_out), ZERO, store=keeper, measure="MaxDivergence", accumulator="basic()"
    )
    return Account(ZERO if keeper is None else None, bound=bound, **arguments)


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
    root = limit(1.0, book=book)
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
        labelled_root = limit(0.25, book=Book())
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
