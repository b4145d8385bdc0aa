"""Maps of the catalogue against the exact loss of small adaptive sessions on two neighbours."""

from itertools import product
from math import log

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from .catalogue import REFUSALS, UNIFORM, WRAPPERS, Kind, Recipe, Subject, budget_of, stream, table
from .exact import NoisyBits, Tape, above, answering, law, pair_of, response, zcdp_of
from .laws import has_map, is_measurement

TAPE = Tape()
EPSILON = 0.75
ROWS = [7, 1, 2, 3], [7, 1, 3]  # one is even, and is missing
STREAMS = [1, 1, None], [1, None, None]
PURE = dp.max_divergence
ON = {
    "pure": (PURE, lambda epsilon: epsilon),
    UNIFORM: (
        lambda: dp.approximate(dp.zero_concentrated_divergence()),
        lambda epsilon: (zcdp_of(epsilon), 0.0),
    ),
}


def respond(measure, epsilon=EPSILON):
    make, loss = ON[measure]
    return response(TAPE, table(), make(), loss(epsilon), epsilon)


def answer_twice(measure):
    make, loss = ON[measure]
    return answering(TAPE, table(), make(), loss(EPSILON), EPSILON)


def compose(measure):
    make, loss = ON[measure]
    return oc.make_concurrent_composition(*table(), make(), 3, [loss(EPSILON), loss(EPSILON / 2)])


def bits(measure):
    assert measure == "pure"
    return oc.m.make_continual(
        *stream(), PURE(), lambda: NoisyBits(TAPE, EPSILON), lambda d_in: EPSILON * d_in
    )


SUBJECTS = (
    *(
        Subject(
            f"{name} {measure}", kind, (), lambda seen, make=make, measure=measure: make(measure)
        )
        for (name, kind, make), measure in product(
            (
                ("response", Kind.NONINTERACTIVE, respond),
                ("two answers", Kind.INTERACTIVE, answer_twice),
                ("composition", Kind.COMPOSITION, compose),
            ),
            ON,
        )
    ),
    Subject("noisy bits pure", Kind.CONTINUAL, (), lambda seen: bits("pure"), data=list),
)


def ask_adaptively(talk, measure, composes, view, times):
    """What the analyst sees: each query depends on the answers before, and is another one."""
    for _ in range(times):
        last = view[-1] if view else None
        query = f"query {len(view)} after {last}"
        if composes:
            query = respond(measure, EPSILON if last in (None, True) else EPSILON / 2)
        try:
            view.append(talk.ask(query))
        except REFUSALS as error:
            view.append(type(error).__name__)


def session(case, data, measure):
    """One run on a dataset, or on a stream; and what it says that it cost."""
    view = []
    try:
        talk = case.open(None if case.continual else data)
    except REFUSALS as error:
        return (type(error).__name__,), None
    if case.continual:
        for item in data:
            if talk.update(item) is None:
                view.append("refused")
            ask_adaptively(talk, measure, False, view, 1)
    else:
        ask_adaptively(talk, measure, case.innermost is Kind.COMPOSITION, view, 3)
    told = getattr(talk.doors[0], "privacy_loss", None)
    return tuple(view), None if told is None or is_measurement(case) else told(1)


def promised(cases, told):
    """What was promised for neighbours at distance 1, and under which measure; None if nothing."""
    whole = cases[-1]
    if whole.top:
        return cases[-2].measure, budget_of(cases[-2])[1]
    if is_measurement(whole):
        return (whole.measure, whole.what.map(1)) if has_map(whole.what, 1) else None
    losses = [one for one in told if one is not None]
    return (whole.measure, max(losses)) if losses else None


def broken(recipe):
    """Where the exact loss of the session is above what was promised."""
    cases = recipe.cases()
    if cases is None:
        return
    whole, measure = cases[-1], recipe.subject.name.rsplit(" ", 1)[-1]
    if UNIFORM in recipe.subject.name:
        measure = UNIFORM
    told, laws = [], []
    for data in STREAMS if whole.continual else ROWS:

        def play(data=data):
            view, loss = session(whole, data, measure)
            told.append(loss)
            return view

        laws.append(law(TAPE, play))
    promise = promised(cases, told)
    if promise is not None:
        yield from (f"{recipe}: {one}" for one in above(*promise, pair_of(*laws)))


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_no_session_tells_more_than_is_promised(wrapper):
    recipes = [Recipe((wrapper,), one) for one in SUBJECTS]
    assert [one for recipe in recipes for one in broken(recipe)] == []


@pytest.mark.slow
@pytest.mark.parametrize("outer", WRAPPERS, ids=lambda one: one.name)
def test_no_session_with_two_wrappers_tells_more_than_is_promised(outer):
    few = [one for one in SUBJECTS if one.name.endswith("pure")]
    recipes = [Recipe((outer, inner), one) for inner in WRAPPERS for one in few]
    assert [one for recipe in recipes for one in broken(recipe)] == []


def test_a_promise_that_is_too_small_is_found():
    """By one part in a thousand."""
    whole = next(one for one in SUBJECTS if one.name == "composition pure").build()
    laws = [law(TAPE, lambda rows=rows: session(whole, rows, "pure")[0]) for rows in ROWS]
    exact = whole.what.map(1)
    assert list(above(PURE(), exact, pair_of(*laws))) == []
    assert list(above(PURE(), exact * 0.999, pair_of(*laws))) != []


# --- children side by side -------------------------------------------------------------------


def on_filter(children):
    odometer = oc.make_concurrent_odometer(*table(), PURE())
    return oc.make_concurrent_filter(odometer, 1, EPSILON * len(children))


def launching(made, children):
    return made, lambda root: [ask(root(one)) for one in children]


def ask(child):
    return child if callable(child) else lambda _: child


def in_filter(children):
    return launching(on_filter(children), children)


def in_composition(children):
    shares = [EPSILON] * len(children)
    return launching(oc.make_concurrent_composition(*table(), PURE(), 1, shares), children)


def indexed(children):
    made = oc.c.make_indexed_composition(*table(), PURE(), 1, children)
    return made, lambda root: [
        lambda query, index=index: root((index, query)) for index in range(len(children))
    ]


def parallel(children):
    whole = oc.c.by_split(lambda rows, keys: {key: rows if key == 0 else [] for key in keys})
    made = oc.c.make_parallel_composition(*table(), whole, dict(enumerate(children)))
    return made, lambda root: [ask(root(index)) for index in range(len(children))]


def natively(children):
    made = dp.c.make_adaptive_composition(*table(), PURE(), 1, [EPSILON] * len(children))
    return launching(made, children)


def nested(children):
    """Each in a compositor of its own, all in one filter."""
    made = on_filter(children)

    def launch(root):
        asked = []
        for one in children:
            pair = oc.make_concurrent_composition(*table(), PURE(), 1, [EPSILON])
            asked.append(ask(root(pair)(one)))
        return asked

    return made, launch


SIDE_BY_SIDE = (
    in_filter,
    in_composition,
    indexed,
    parallel,
    natively,
    nested,
)


@pytest.mark.parametrize("side_by_side", SIDE_BY_SIDE, ids=lambda one: one.__name__)
def test_children_side_by_side_tell_no_more_than_is_promised(side_by_side):
    """Which child is asked next depends on the last answer."""
    made, launch = side_by_side([answer_twice("pure"), respond("pure"), answer_twice("pure")])

    def play(rows):
        children = launch(made(list(rows)))
        view, place = [], 0
        for _ in range(4):
            view.append(children[place]("next"))
            place = (place + (1 if view[-1] is True else 2)) % len(children)
        return tuple(view)

    laws = [law(TAPE, lambda rows=rows: play(rows)) for rows in ROWS]
    pair = pair_of(*laws)
    assert list(above(PURE(), made.map(1), pair)) == []
    assert pair.epsilon(0.0) > 0.3  # something was told


def test_an_odometers_loss_covers_each_view():
    """The loss that it tells depends on the launches, and covers what they told."""
    losses = {}

    def play(rows):
        root = oc.make_concurrent_odometer(*table(), PURE())(list(rows))
        view = []
        for _ in range(3):
            view.append(root(respond("pure", EPSILON / (1 + sum(view)))))
        losses[tuple(view)] = root.privacy_loss(1)
        return tuple(view)

    first, second = (law(TAPE, lambda rows=rows: play(rows)) for rows in ROWS)
    for view, loss in losses.items():
        assert abs(log(first[view] / second[view])) <= loss + 1e-12
