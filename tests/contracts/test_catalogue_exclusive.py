"""Under approximate zCDP free children interleave, and exclusive ones are closed wherever they are.

And what halts stays halted, whatever is around it.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from time import time_ns

import opendp.prelude as dp
import pytest
from opendp.mod import Odometer

import opendp_concurrent as oc
from opendp_concurrent.errors import FiniteCommunicationError
from opendp_concurrent.ledger import create_ledger
from opendp_concurrent.queryables.stream import is_stream

from ..build import costing
from .catalogue import (
    MEASURES,
    REFUSALS,
    SUBJECTS,
    UNIFORM,
    WRAPPERS,
    Case,
    Kind,
    Recipe,
    Role,
    Wrapper,
    in_thread,
    is_ours,
    map_of,
    measured,
    odometer_for,
    of_measure,
    release_on,
)
from .laws import is_measurement, started
from .probes import Probe, Seen

MAKE, LOSS = MEASURES[UNIFORM]


# --- handles that hide -----------------------------------------------------------------------


class Box:
    """Something of the user's that has a handle in it."""

    def __init__(self, content):
        self.content = content


def hidden(name, put, take):
    """A measurement of the user's that gives the handle inside of something else."""

    def make(case):
        what = case.what
        made = costing(map_of(what), lambda rows: put(what, rows), case.measure, case.space)
        enter = case.enter

        def entered(send, doors):
            handle = take(doors[-1])
            doors.append(handle)
            return enter(handle if callable(handle) else lambda _: handle, doors)

        return replace(case, what=made, enter=entered)

    return Wrapper(name, None, (), make)


HIDING = (
    hidden("in a dictionary", lambda what, rows: {"handle": what(rows)}, lambda it: it["handle"]),
    hidden("in a list", lambda what, rows: [0, [what(rows)]], lambda it: it[1][0]),
    hidden("in an object", lambda what, rows: Box(what(rows)), lambda it: it.content),
    hidden(
        "in a dictionary, made in a thread",
        lambda what, rows: in_thread(lambda: {"handle": what(rows)}),
        lambda it: it["handle"],
    ),
    hidden(
        "made in a thread, in a dictionary",
        lambda what, rows: {"handle": in_thread(lambda: what(rows))},
        lambda it: it["handle"],
    ),
    hidden(
        "in a function that asks",
        lambda what, rows: (lambda handle: lambda query: handle(query))(what(rows)),
        lambda it: it,
    ),
)
SHORT = tuple(
    one
    for one in WRAPPERS
    if one.role is not None and "DP_to" not in one.name and "OpenDP" not in one.name
)
INNER = tuple(
    one for one in SUBJECTS if one.name.endswith(UNIFORM) and one.kind is not Kind.NONINTERACTIVE
)
FREE = tuple(one for one in INNER if one.kind in (Kind.COMPOSITION, Kind.ODOMETER))
WHOLE = tuple(one for one in INNER if one not in FREE)


# exclusive around what has a δ
OF_THE_USER = ("in a function", "in a thread", "in OpenDP's composition")
TRIED = {f"release {name}" for name in MEASURES} | {"probe pure", "table count"}


def _under_it(case):
    known = isinstance(case.what, Odometer) or case.measure == MAKE()
    return case if known else replace(case, what=oc.c.cast(case.what, MAKE()))


UNDER_IT = Wrapper("cast to approximate zCDP", Role.CAST, (), _under_it)
EXCLUSIVE = "it has its loss only as a whole"
NO_CAST = "no theorem leads from its measure to approximate zCDP"
# what is not interleaved under approximate zCDP, and why
LEFT_OUT = {
    f"native queryable {UNIFORM}": EXCLUSIVE,
    **dict.fromkeys(("probe approximate", f"probe {UNIFORM}"), "it needs a bound on its messages"),
    **{
        f"{what} {measure}": NO_CAST
        for what in ("release", "probe", "composition")
        for measure in ("approximate Rényi", "Rényi curve", "Rényi order", "tCDP", "trade-off")
    },
    "private selection of conversations": NO_CAST,
    **{
        one.name: "it is an odometer under another measure"
        for one in SUBJECTS
        if one.kind is Kind.ODOMETER and one not in FREE
    },
    **dict.fromkeys(
        ("in a context", "in a context that is split", "on a stream's odometer"), "it is a root"
    ),
    **dict.fromkeys(
        (
            *("profile to fDP", "pureDP to RDP", "pureDP to fDP", "pureDP to fixedRDP"),
            *("pureDP to tCDP", "zCDP to RDP", "zCDP to fDP", "zCDP to fixedRDP", "zCDP to tCDP"),
            *("GDP to fDP", "RDP to fixedRDP", "approxDP to fDP"),
        ),
        NO_CAST,
    ),
}


# --- the roots that it is launched on --------------------------------------------------------


def bound(case):
    """A d_in, and a budget there for ten."""
    d_in, loss = measured(case)
    rho, delta = loss or LOSS(d_in)
    return d_in, (10 * rho + 2.0, 10 * delta + 1e-3)


def filtered(case, **ledger):
    return oc.make_concurrent_filter(odometer_for(case), *bound(case), **ledger)(case.data)


def composed(case):
    d_in, loss = bound(case)
    return oc.make_concurrent_composition(*case.space, case.measure, d_in, [loss] * 9)(case.data)


def in_context(case):
    d_in, loss = bound(case)
    unit = case.space[1], d_in
    return oc.concurrent_context(case.data, unit, (case.measure, loss), domain=case.space[0])


ROOTS = {
    "odometer": lambda case: odometer_for(case)(case.data),
    "filter": filtered,
    "composition": composed,
    "context": in_context,
    "child odometer": lambda case: odometer_for(case)(case.data)(odometer_for(case)),
}


def running_on(space, measure, function, loss):
    """A measurement whose launch runs a function; on a stream, a continual mechanism."""
    if is_stream(space[0]):

        def start():
            function([])
            return Probe(Seen())

        return oc.m.make_continual(*space, measure, start, loss)
    return costing(loss, function, measure, space)


def answers(send, query):
    """Whether it answers; a refusal is an error of ours."""
    try:
        send(query)
    except REFUSALS:
        return False
    return True


def left_open(root_of, recipe):
    """Handles of an exclusive launch that answer when the next one runs, or has run."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or cases[-1].measure != MAKE():
        return
    whole: Case = cases[-1]
    try:
        root = root_of(whole)
        child = root(whole.what)
        talk = whole.talk(child)
    except REFUSALS:
        return
    if not answers(talk.ask, whole.query()):
        return
    asked = [("what is innermost", talk.ask)]
    if recipe.wrappers and recipe.wrappers[0] in HIDING:
        doors = [door for door in talk.doors if is_ours(door)]
        asked += [(f"handle {index}", door) for index, door in enumerate(doors)]
    queries = [whole.query(), None, release_on(whole.space, whole.measure, LOSS, Seen())]
    spoke, threads = [], []

    def ask_all(when):
        for name, send in asked:
            for query in queries:
                if answers(send, query):
                    spoke.append(f"{name} answers {when}")

    def function(rows):
        ask_all("while the next launch runs")
        thread = threading.Thread(target=ask_all, args=("in another thread",), daemon=True)
        thread.start()
        threads.append(thread)
        return len(rows)

    last = running_on(whole.space, whole.measure, function, LOSS)
    try:
        root(last)
    except FiniteCommunicationError:  # on a stream
        root(oc.c.make_bounded_interactive(last, 9))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    ask_all("after the next launch")
    yield from (f"{recipe}: {one}" for one in dict.fromkeys(spoke))


def beside_others(roots, recipe):
    """Whether three children answer as one does when they are interleaved, and in threads.

    None if they are not under approximate zCDP, or are refused; on each of some roots.
    """
    cases = recipe.cases()
    if cases is None or cases[-1].top or cases[-1].measure != MAKE():
        return [None] * len(roots)
    return [beside_others_on(root, cases[-1]) for root in roots]


def beside_others_on(root_of, whole):
    try:
        root = root_of(whole)
        talk = whole.talk(root(whole.what))
        told = [answers(talk.ask, whole.query()) for _ in range(2)]
        root = root_of(whole)
        talks = [whole.talk(root(whole.what)) for _ in range(2)]
        if not is_stream(whole.space[0]):
            root(dp.m.make_user_measurement(*whole.space, MAKE(), lambda _: 1, LOSS, TO="i32"))
        talks.append(whole.talk(root(whole.what)))
    except REFUSALS:
        return None
    first = [answers(one.ask, whole.query()) for one in talks]
    with ThreadPoolExecutor(3) as pool:
        second = [*pool.map(lambda one: answers(one.ask, whole.query()), talks)]
    return [first, second] == [[one] * 3 for one in told]


@pytest.fixture
def roots(tmp_path, request):
    """A ledger, and one of the others in turn."""

    def on_a_ledger(case):
        return filtered(case, ledger=create_ledger(tmp_path / f"{time_ns()}.db", dataset="rows"))

    (thing,) = request.node.callspec.params.values()
    things = SUBJECTS if thing in SUBJECTS else WRAPPERS
    return [[*ROOTS.values()][things.index(thing) % len(ROOTS)], on_a_ledger]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_every_mechanism_is_interleaved_or_left_out(subject, roots):
    recipe = Recipe(() if subject in FREE else (UNDER_IT,), subject)
    found = beside_others(roots, recipe)
    if subject.name in LEFT_OUT:
        assert True not in found
    else:
        assert found == [True, True]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_every_wrapper_is_interleaved_or_left_out(wrapper, roots):
    recipes = [Recipe((wrapper,), one) for one in FREE if wrapper.name not in OF_THE_USER]
    recipes += [Recipe((UNDER_IT, wrapper), one) for one in SUBJECTS if one.name in TRIED]
    found = (beside_others(roots, recipe) for recipe in recipes)
    expected = [None, None] if wrapper.name in LEFT_OUT else [True, True]
    assert next((one for one in found if one != [None, None]), [None, None]) == expected


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("subject", WHOLE, ids=lambda one: one.name)
def test_the_next_launch_closes_what_is_wrapped(root, subject):
    some = SHORT[(list(ROOTS).index(root) + WHOLE.index(subject)) % 3 :: 3]
    recipes = [Recipe((), subject), *(Recipe((one,), subject) for one in some)]
    assert [one for recipe in recipes for one in left_open(ROOTS[root], recipe)] == []


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("hiding", HIDING, ids=lambda one: one.name)
def test_the_next_launch_closes_what_hides(root, hiding):
    some = INNER[(list(ROOTS).index(root) + HIDING.index(hiding)) % 2 :: 2]
    recipes = [Recipe((hiding,), subject) for subject in some]
    assert [one for recipe in recipes for one in left_open(ROOTS[root], recipe)] == []


@pytest.mark.slow
@pytest.mark.parametrize("outer", SHORT, ids=lambda one: one.name)
def test_the_next_launch_closes_what_is_wrapped_twice(outer):
    found = []
    for one, subject in product((*SHORT, *HIDING), INNER):
        for wrappers in ((outer, one), (one, outer)):
            for root in ("odometer", "composition"):
                found += left_open(ROOTS[root], Recipe(wrappers, subject))
    assert found == []


# --- halting ---------------------------------------------------------------------------------

HALTS = next(one for one in WRAPPERS if one.name == "in a filter that halts")


def open_after_a_refusal(recipe):
    """What answers after a filter that halts has refused."""
    cases, talk = started(recipe)
    if talk is None:
        return
    seen, innermost = cases[0].seen, cases[0]
    if not seen.launchers or not answers(talk.ask, cases[-1].query()):
        return
    loss = of_measure(innermost.measure)
    cost = loss(1) if innermost.measure != MEASURES["pure"][0]() else 100.0
    halting = [index for index, name in enumerate(reversed(cases[-1].layers)) if "halts" in name]
    launch = seen.launchers[-halting[0]][1]
    query = running_on(innermost.space, innermost.measure, len, lambda d_in: cost)
    if answers(launch, query):
        yield f"{recipe}: a launch beyond the budget is not refused"
        return
    if answers(talk.ask, cases[-1].query()):
        yield f"{recipe}: it answers after a refusal that halts"


HALTED = [
    one
    for one in SUBJECTS
    if one.name in ("probe pure", "composition pure", "native queryable pure", "above threshold")
]


@pytest.mark.parametrize(
    "other",
    [(), *((one,) for one in SHORT if one.name != "remembering")],
    ids=lambda one: one[0].name if one else "alone",
)
def test_a_filter_that_halts_closes_all(other):
    recipes = [Recipe((*other, HALTS), one) for one in HALTED]
    assert [one for recipe in recipes for one in open_after_a_refusal(recipe)] == []


def taken_after_an_invalid_update(recipe):
    """What is fed after an update that is no item of the stream."""
    cases, talk = started(recipe)
    if talk is None:
        return
    if talk.update(5) is None:
        return
    talk.deliver(oc.handles.Update("no item"))
    taken, seen = talk.update(6), cases[0].seen
    if taken is not None:
        yield f"{recipe}: takes updates after an invalid one"
    if seen.probes and seen.arrived != [5]:
        yield f"{recipe}: {seen.arrived} arrived"


CONTINUAL = [one for one in SUBJECTS if one.kind is Kind.CONTINUAL]


@pytest.mark.parametrize(
    "wrappers", [(), *((one,) for one in SHORT)], ids=lambda one: one[0].name if one else "alone"
)
def test_an_invalid_update_halts(wrappers):
    some = CONTINUAL[SHORT.index(wrappers[0]) % 3 :: 3] if wrappers else CONTINUAL
    recipes = [Recipe(wrappers, one) for one in some]
    assert [one for recipe in recipes for one in taken_after_an_invalid_update(recipe)] == []
