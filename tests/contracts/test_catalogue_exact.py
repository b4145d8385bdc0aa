"""Maps of the catalogue against the exact loss of small adaptive sessions on two neighbours.

Randomness is read from a tape, and every tape is played.
"""

from functools import partial
from itertools import product
from math import exp, log
from operator import mul

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.verify import FiniteMechanism

from ..build import costing
from .catalogue import REFUSALS, UNIFORM, WRAPPERS, Kind, Recipe, Subject, budget_of, stream, table
from .laws import has_map, is_measurement

TOLERANCE = 1e-9
ALPHAS = (1.001, 1.5, 2.0, 4.0, 16.0)
EPSILON = 0.75
ROWS = [7, 1, 2, 3], [7, 1, 3]  # one is even, and is missing
STREAMS = [1, 1, None], [1, None, None]
PURE = dp.max_divergence


class Tape:
    """Choices of a run: those that are given, and then the likely one each time."""

    def rewind(self, given):
        """Start a run with these choices."""
        self.given, self.taken, self.probability = given, [], 1.0

    def truth(self, epsilon):
        """Whether randomized response tells the truth."""
        place = len(self.taken)
        choice = self.given[place] if place < len(self.given) else True
        self.taken.append(choice)
        self.probability *= 1 / (1 + exp(-epsilon if choice else epsilon))
        return choice


TAPE = Tape()


def law(play):
    """The distribution of what ``play`` returns."""
    found, left = {}, [()]
    while left:
        given = left.pop()
        TAPE.rewind(given)
        view = play()
        found[view] = found.get(view, 0.0) + TAPE.probability
        taken = tuple(TAPE.taken)
        left += [(*taken[:place], not taken[place]) for place in range(len(given), len(taken))]
    assert abs(sum(found.values()) - 1.0) < TOLERANCE
    return found


def pair_of(first, second):
    """Both laws as one finite mechanism."""
    views = {**first, **second}
    return FiniteMechanism(*(tuple(law.get(one, 0.0) for one in views) for law in (first, second)))


def above(measure, loss, pair):
    """Where the exact loss of a pair is above what was promised."""
    orders, bound = ALPHAS, None
    if measure == dp.max_divergence():
        if not pair.epsilon(0.0) <= loss + TOLERANCE:
            yield f"ε is {pair.epsilon(0.0)}, promised {loss}"
    elif measure == dp.approximate(dp.max_divergence()):
        epsilon, delta = loss
        if not pair.delta(epsilon) <= delta + TOLERANCE:
            yield f"δ({epsilon}) is {pair.delta(epsilon)}, promised {delta}"
    elif measure in (oc.gaussian_tradeoff(), oc.tradeoff()):
        function = loss if measure == oc.tradeoff() else oc.TradeoffFunction.gaussian(loss)
        for epsilon in (0.0, 0.1, 0.3, 0.7, 1.5, 3.0):
            if not pair.delta(epsilon) <= float(function.delta(epsilon)) + TOLERANCE:
                yield f"δ({epsilon}) is {pair.delta(epsilon)}, not {float(function.delta(epsilon))}"
    elif measure == dp.approximate(dp.zero_concentrated_divergence()):
        rho, delta = loss
        assert delta == 0.0
        bound = partial(mul, rho)
    elif measure == dp.zero_concentrated_divergence():
        bound = partial(mul, loss)
    elif measure == dp.renyi_divergence():
        bound = loss
    elif isinstance(loss, oc.TruncatedConcentrated):
        orders = [alpha for alpha in ALPHAS if alpha < loss.omega]
        bound = partial(mul, loss.rho)
    else:
        orders, bound = [measure.descriptor.parameters[0]], lambda alpha: loss
    for alpha in orders if bound else ():
        if not pair.renyi(alpha) <= bound(alpha) * (1 + TOLERANCE) + TOLERANCE:
            yield f"the divergence of order {alpha} is {pair.renyi(alpha)}, not {bound(alpha)}"


# --- mechanisms, wrapped ---------------------------------------------------------------------


def zcdp_of(epsilon):
    """ρ of randomized response: ε tanh(ε/2) [Ste24]."""
    return epsilon * (exp(epsilon) - 1) / (exp(epsilon) + 1) * (1 + 1e-12)


ON = {
    "pure": (PURE(), lambda epsilon: epsilon),
    UNIFORM: (
        dp.approximate(dp.zero_concentrated_divergence()),
        lambda epsilon: (zcdp_of(epsilon), 0.0),
    ),
}


def respond(measure, epsilon=EPSILON):
    """Whether the number of rows is odd, by randomized response."""
    made, loss = ON[measure]
    return costing(
        lambda d_in: loss(epsilon), lambda rows: (len(rows) % 2 == 1) == TAPE.truth(epsilon), made
    )


def answer_twice(measure):
    """A mechanism that answers two queries so, of half the loss each."""
    made, loss = ON[measure]

    def function(rows):
        bit, answered = len(rows) % 2 == 1, []

        def answer(query):
            if len(answered) == 2:
                return "no more"
            answered.append(query)
            return bit == TAPE.truth(EPSILON / 2)

        return dp.new_queryable(answer, Q="ExtrinsicObject", A="ExtrinsicObject")

    return costing(lambda d_in: loss(EPSILON), function, made)


class NoisyBits:
    """A continual mechanism: each step is counted by randomized response."""

    count = 0

    def update(self, item):
        self.count += (item is not None) == TAPE.truth(EPSILON)

    def update_all(self, items):
        for one in items:
            self.update(one)

    def ask(self, query):
        return self.count


def compose(measure):
    made, loss = ON[measure]
    return oc.make_concurrent_composition(*table(), made, 3, [loss(EPSILON), loss(EPSILON / 2)])


def bits(seen):
    return oc.m.make_continual(*stream(), PURE(), NoisyBits, lambda d_in: EPSILON * d_in)


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
    Subject("noisy bits pure", Kind.CONTINUAL, (), bits, data=list),
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

        laws.append(law(play))
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
    laws = [law(lambda rows=rows: session(whole, rows, "pure")[0]) for rows in ROWS]
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


SIDE_BY_SIDE = (in_filter, in_composition, indexed, parallel, natively, nested)


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

    laws = [law(lambda rows=rows: play(rows)) for rows in ROWS]
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

    first, second = (law(lambda rows=rows: play(rows)) for rows in ROWS)
    for view, loss in losses.items():
        assert abs(log(first[view] / second[view])) <= loss + 1e-12
