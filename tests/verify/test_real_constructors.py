"""The exact worst analyst against compositions of real constructors, beside their privacy maps.

What is launched at the end is randomised response that draws from a tape; what composes is real.
"""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import BudgetExceededError, ConcurrentError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.conversion import pure_to_renyi, pure_to_zcdp
from opendp_concurrent.measures.gaussian import pure_to_gaussian

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROXIMATE = dp.approximate(PURE)
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROUNDING = 1e-12
REFUSALS = (ConcurrentError, dp.OpenDPException)
DELTA = Fraction(1, 32)


def epsilon(odds):
    """The loss of a response with these odds of the truth, rounded up."""
    return math.nextafter(math.log(odds), math.inf)


class Lab:
    """A tape, and finite measurements that draw from it."""

    def __init__(self):
        self.tape = verify.Tape()

    def chances(self, data, odds, failure=0):
        """Outcomes of randomised response on whether there are records; two more tell all."""
        truth, lie = Fraction(odds, odds + 1), Fraction(1, odds + 1)
        kept = [(1 - failure) * one for one in (truth, lie)]
        table = [*kept, failure, 0]
        return table if len(data) else [table[1], table[0], 0, failure]

    def response(self, odds, measure=PURE, d_mid=None, failure=0):
        """A release; declares ``d_mid`` at distance 1, and ε by default."""
        loss = epsilon(odds) if d_mid is None else d_mid
        scale = (lambda d_in: loss) if d_mid is not None else (lambda d_in: d_in * loss)
        return dp.m.make_user_measurement(
            *SPACE, measure, lambda data: self.tape.draw(self.chances(data, odds, failure)), scale
        )

    def interviewed(self, odds, asks=2):
        """An interactive mechanism: ``asks`` queries, each answered by a response."""

        def spawn(data):
            left = [asks]

            def answer(query):
                if left[0] == 0:
                    return "over"
                left[0] -= 1
                return self.tape.draw(self.chances(data, odds))

            return dp.new_queryable(answer)

        return dp.m.make_user_measurement(
            *SPACE, PURE, spawn, lambda d_in: d_in * asks * epsilon(odds), TO="ExtrinsicObject"
        )

    def played(self, measurement, moves, datasets=((1,), ())):
        """All sessions with a measurement: a list of handles, of which the first is its own."""

        def begin(side):
            return [measurement(list(datasets[side]))]

        return verify.Played(self.tape, begin, moves, refusals=REFUSALS)


@pytest.fixture
def lab():
    return Lab()


def launch(name, measurement, handle=0):
    """Launch a release at a handle."""
    return verify.Move(name, lambda handles: handles[handle](measurement))


def spawn(name, measurement, handle=0):
    """Launch what gives a handle, which gets the next number."""

    def play(handles):
        handles.append(handles[handle](measurement))
        return f"handle {len(handles) - 1}"

    return verify.Move(name, play)


def ask(name, handle, query="?"):
    return verify.Move(name, lambda handles: handles[handle](query))


def after_spawning(first, onward):
    """Handles first; then any of the moves."""
    count = len(first)
    return lambda history: [first[len(history)]] if len(history) < count else onward


def odometer(measure=PURE, accumulator=None):
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


def budget(d_out, measure=PURE, accumulator=None):
    return oc.make_concurrent_filter(odometer(measure, accumulator), d_in=1, d_out=d_out)


def within(reached, bound):
    return reached.loss <= bound * (1 + 1e-15)


def test_a_compositor_reaches_its_shares_and_no_more(lab):
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [epsilon(3), epsilon(2)])
    moves = [launch(f"odds {odds}", lab.response(odds)) for odds in (2, 3)]
    law = lab.played(compositor, moves)
    found = law.worst_loss(3)
    assert found.ratio == 6
    assert within(found, compositor.map(1))
    assert [name for name, _ in found.history if "refused" not in str(_)] == ["odds 3", "odds 2"]
    assert law.delta(compositor.map(1), 3) <= ROUNDING


def test_children_of_a_compositor_are_interleaved(lab):
    shares = [2 * epsilon(2), epsilon(2)]
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, shares)
    children = [spawn("first", lab.interviewed(2)), spawn("second", lab.interviewed(2, asks=1))]
    law = lab.played(compositor, after_spawning(children, [ask("1", 1), ask("2", 2)]))
    found = law.worst_loss(5)
    assert found.ratio == 2**3
    assert within(found, compositor.map(1))


def test_a_rule_that_undercharges_is_noticed(lab):
    """The tool can fail: a rule of one's own, which counts half, under a real filter."""

    class Half:
        start = 0.0

        def after(self, state, d_mid):
            return state + d_mid / 2

        def continues(self, state, d_out):
            return state <= d_out

    wrong = budget(epsilon(3), accumulator=oc.accumulators.from_rule(Half()))
    law = lab.played(wrong, [launch("odds 3", lab.response(3))])
    assert law.worst_loss(2).ratio == 9
    assert not within(law.worst_loss(2), wrong.map(1))
    assert law.delta(wrong.map(1), 2) > 0.1


class Sum:
    """The rule of the sum."""

    start = Fraction(0)

    def after(self, state, d_mid):
        return state + Fraction(d_mid)

    def continues(self, state, d_out):
        return state <= d_out


@pytest.mark.parametrize(
    "accumulator",
    [oc.accumulators.basic(), oc.accumulators.from_rule(Sum())],
    ids=["basic", "from_rule"],
)
def test_a_filter_of_pure_privacy(lab, accumulator):
    bound = 2 * epsilon(3)
    law = lab.played(
        budget(bound, accumulator=accumulator),
        [launch(f"odds {odds}", lab.response(odds)) for odds in (2, 3)],
    )
    found = law.worst_loss(3)
    assert found.ratio == 9
    assert within(found, bound)


ACCOUNTINGS = {
    "basic": oc.accumulators.basic(),
    "advanced": oc.accumulators.advanced(1e-2),
    "zcdp": oc.accumulators.zcdp(1e-2),
    "renyi": oc.accumulators.renyi(4.0, 1e-2),
    "either": oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.zcdp(1e-2)),
    "best_rule": oc.accumulators.best_rule((1.0, 1e-2), [(epsilon(3), 0.0)]),
}


@pytest.mark.parametrize("name", ACCOUNTINGS)
def test_a_filter_of_approximate_privacy(lab, name):
    start = ACCOUNTINGS[name].start(APPROXIMATE_MAX_DIVERGENCE)
    bound = start.after((epsilon(3), float(DELTA))).after((epsilon(2), 0.0)).loss
    failing = lab.response(3, APPROXIMATE, (epsilon(3), float(DELTA)), DELTA)
    moves = [
        launch("odds 2", lab.response(2, APPROXIMATE, (epsilon(2), 0.0))),
        launch("odds 3", lab.response(3, APPROXIMATE, (epsilon(3), 0.0))),
        launch("failing", failing),
    ]
    law = lab.played(budget(bound, APPROXIMATE, ACCOUNTINGS[name]), moves)
    found = law.delta(bound[0], 3)
    assert float(DELTA) * 0.9 <= found <= bound[1] + ROUNDING
    if name == "basic":
        assert found == pytest.approx(float(DELTA), abs=1e-12)


def test_a_filter_of_zcdp(lab):
    bound = pure_to_zcdp(epsilon(3)) + pure_to_zcdp(epsilon(2))
    moves = [
        launch(f"odds {odds}", lab.response(odds, ZCDP, pure_to_zcdp(epsilon(odds))))
        for odds in (2, 3)
    ]
    law = lab.played(budget(bound, ZCDP), moves)
    for order in (1.01, 2.0, 8.0):
        assert law.renyi(order, 3) <= order * bound + ROUNDING
    assert law.renyi(1.01, 3) >= 1.01 * bound * 0.99


def test_filters_of_other_divergences(lab):
    order = 4.0
    fixed, truncated = oc.fixed_renyi_divergence(order), oc.truncated_concentrated_divergence(8.0)
    divergences = [pure_to_renyi(epsilon(odds), order) for odds in (2, 3)]
    concentrated = [pure_to_zcdp(epsilon(odds)) for odds in (2, 3)]
    for measure, d_mids, bound, allowed in (
        (fixed, divergences, sum(divergences), sum(divergences)),
        (truncated, concentrated, sum(concentrated), order * sum(concentrated)),
    ):
        moves = [
            launch(f"odds {odds}", lab.response(odds, measure, d_mid))
            for odds, d_mid in zip((2, 3), d_mids, strict=True)
        ]
        found = lab.played(budget(bound, measure), moves).renyi(order, 3)
        assert 0.5 * allowed <= found <= allowed + ROUNDING


@pytest.mark.parametrize("name", ["gaussian", "ladder", "residue"])
def test_filters_of_tradeoff_functions(lab, name):
    pure = oc.TradeoffFunction.pure
    mu = math.nextafter(math.hypot(*(pure_to_gaussian(epsilon(odds)) for odds in (2, 3))), 9)
    gaussian = oc.TradeoffFunction.gaussian(mu)
    measure, accumulator, declare, bound, curve = {
        "gaussian": (
            oc.gaussian_tradeoff(),
            None,
            lambda one: pure_to_gaussian(one),
            mu,
            gaussian,
        ),
        "ladder": (
            oc.tradeoff(),
            oc.accumulators.ladder(pure(epsilon(2))),
            pure,
            pure(epsilon(2)).power(3),
            pure(epsilon(2)).power(3),
        ),
        "residue": (oc.tradeoff(), oc.accumulators.residue(mu), pure, gaussian, gaussian),
    }[name]
    moves = [
        launch(f"odds {odds}", lab.response(odds, measure, declare(epsilon(odds))))
        for odds in (2, 3)
    ]
    law = lab.played(budget(bound, measure, accumulator), moves)
    for one in (0.0, 0.5, 1.0):
        assert 0.0 < law.delta(one, 3) <= curve.delta(one) + ROUNDING


def test_a_filter_of_a_filter(lab):
    bound, small = epsilon(3) + epsilon(2), epsilon(2)
    filters = [spawn("filter", budget(small))]
    moves = [
        launch("root 2", lab.response(2)),
        launch("root 3", lab.response(3)),
        launch("below 2", lab.response(2), 1),
        launch("below 3", lab.response(3), 1),
    ]
    law = lab.played(budget(bound), after_spawning(filters, moves))
    assert law.worst_loss(4).ratio == 6
    assert within(law.worst_loss(4), bound)


def test_odometers_nested_in_a_filter(lab):
    """Every launch is charged at each ancestor, wherever it is made."""
    bound = 2 * epsilon(3) + epsilon(2)  # two fit, wherever they are launched
    handles = [spawn("outer", odometer()), spawn("inner", odometer(), 1)]
    moves = [launch(f"at {at}", lab.response(3), at) for at in (0, 1, 2)]
    law = lab.played(budget(bound), after_spawning(handles, moves))
    found = law.worst_loss(5)
    assert found.ratio == 9
    assert within(found, bound)


def test_what_an_odometer_tells_is_never_less_than_what_is_lost(lab):
    """Asked after every session, with launches at the root and below; and it tells nothing."""
    handles = [spawn("inner", odometer()), spawn("interview", lab.interviewed(2), 1)]
    lost = verify.Move("what is lost?", lambda handles: handles[0].privacy_loss(1))
    below = verify.Move("what is lost below?", lambda handles: handles[1].privacy_loss(1))
    moves = [launch("odds 3", lab.response(3)), ask("ask", 2)]
    law = lab.played(odometer(), after_spawning(handles, [*moves, lost, below]))
    asked = tight = 0
    for reached in law.sessions(5):
        names = [name for name, _ in reached.history]
        for move in (lost, below):
            if names[-1:] == [move.name] and not (move is below and "odds 3" in names):
                bound = reached.history[-1][1]
                assert within(reached, bound), reached.history
                asked += 1
                tight += reached.loss >= bound * (1 - 1e-12)
    assert asked > 50
    assert tight > 3
    bare = lab.played(odometer(), after_spawning(handles, moves))
    assert bare.worst_loss(5).ratio == law.worst_loss(5).ratio == 27


def test_casts_of_a_compositor_and_of_a_filter(lab):
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [epsilon(3), epsilon(2)])
    moves = [launch(f"odds {odds}", lab.response(odds)) for odds in (2, 3)]
    to_zcdp = oc.c.cast(compositor, ZCDP)
    law, rho = lab.played(to_zcdp, moves), to_zcdp.map(1)
    for order in (1.01, 2.0, 8.0):
        assert 0.0 < law.renyi(order, 2) <= order * rho + ROUNDING
    to_curve = oc.c.cast(compositor, oc.tradeoff())
    law = lab.played(to_curve, moves)
    for one in (0.0, 0.7, 1.5):
        assert 0.0 < law.delta(one, 2) <= to_curve.map(1).delta(one) + ROUNDING
    zcdp = budget(pure_to_zcdp(epsilon(3)) + pure_to_zcdp(epsilon(2)), ZCDP)
    cast = oc.c.cast(zcdp, APPROXIMATE, delta=0.05)
    declared = [
        launch(f"odds {odds}", lab.response(odds, ZCDP, pure_to_zcdp(epsilon(odds))))
        for odds in (2, 3)
    ]
    bound = cast.map(1)
    assert lab.played(cast, declared).delta(bound[0], 3) <= bound[1] + ROUNDING


def test_a_cast_below_a_filter(lab):
    """Children under zCDP, cast to approximate DP, under a filter of approximate DP."""
    child = oc.c.cast(lab.response(3, ZCDP, pure_to_zcdp(epsilon(3))), APPROXIMATE, delta=0.03)
    bound = tuple(2 * one for one in child.map(1))
    law = lab.played(budget(bound, APPROXIMATE), [launch("cast", child)])
    assert law.worst_loss(3).ratio == 9
    assert law.delta(bound[0], 3) <= bound[1] + ROUNDING


PARTS = {"low": (0, 1), "high": (2, 3)}


@pytest.mark.parametrize(
    ("datasets", "d_in", "ratio"), [(((0,), ()), 1, 3), (((0,), (2,)), 2, 9), (((9,), ()), 1, 1)]
)
def test_parallel_parts(lab, datasets, d_in, ratio):
    partition = oc.c.by_values({name: list(values) for name, values in PARTS.items()})
    share = [d_in * epsilon(3)]
    parts = {name: oc.make_concurrent_composition(*SPACE, PURE, d_in, share) for name in PARTS}
    parallel = oc.c.make_parallel_composition(*SPACE, partition, parts)

    def part(name):
        return verify.Move(name, lambda handles: handles.append(handles[0](name)) or "a part")

    moves = [launch(f"in {at}", lab.response(3), at) for at in (1, 2)]
    law = lab.played(parallel, after_spawning([part("low"), part("high")], moves), datasets)
    found = law.worst_loss(5)
    assert found.ratio == ratio
    assert within(found, parallel.map(d_in))


def test_indexed_composition(lab):
    measurements = [lab.interviewed(2), lab.response(3)]
    indexed = oc.c.make_indexed_composition(*SPACE, PURE, 1, measurements)
    moves = [
        verify.Move(f"ask {index}", lambda handles, index=index: handles[0]((index, "?")))
        for index in range(2)
    ]
    law = lab.played(indexed, moves)
    assert law.worst_loss(4).ratio == 2 * 2 * 3
    assert within(law.worst_loss(4), indexed.map(1))


def test_postprocessing_of_several_queries(lab):
    def twice(first, tag, message):
        if tag is oc.c.QUERY:
            return None, oc.c.QUERY, message
        if first is None:
            return message, oc.c.QUERY, "again"
        return None, oc.c.ANSWER, (first, message)

    asked = oc.c.make_interactive_postprocessing(lab.interviewed(2), twice)
    law = lab.played(asked, [ask("twice", 0)])
    assert law.worst_loss(2).ratio == 4
    assert within(law.worst_loss(2), asked.map(1))
    bounded = oc.c.make_bounded_interactive(lab.interviewed(2), 1)
    assert lab.played(bounded, [ask("once", 0)]).worst_loss(2).ratio == 2


class Answering:
    """A continual mechanism: two answers, each a response on whether anything has arrived."""

    def __init__(self, lab):
        self.lab, self.items, self.left = lab, [], 2

    def update(self, item):
        self.items += [] if item is None else [item]

    def update_all(self, items):
        for item in items:
            self.update(item)

    def ask(self, query):
        if self.left == 0:
            return "over"
        self.left -= 1
        return self.lab.tape.draw(self.lab.chances(self.items, 2))


def stream(lab):
    return oc.m.make_continual(
        oc.integer_stream(0, 1),
        oc.event_presence(),
        PURE,
        lambda: Answering(lab),
        lambda d_in: d_in * 2 * epsilon(2),
    )


def updates(history):
    """Queries always; updates as long as the two streams are neighbours."""
    differ = verify.Move(
        "update 1 or nothing",
        lambda handles: handles[0](oc.m.Update(1)),
        lambda handles: handles[0](oc.m.Update(None)),
    )
    same = verify.Move("update nothing", lambda handles: handles[0](oc.m.Update(None)))
    used = any(name == differ.name for name, _ in history)
    return [ask("how many?", 0), same, *([] if used else [differ])]


def test_a_stream(lab):
    law = lab.played(stream(lab), updates, datasets=((), ()))
    assert law.worst_loss(3).ratio == 4
    assert within(law.worst_loss(3), stream(lab).map(1))


def test_all_that_passes_around_a_stream_is_postprocessing(lab):
    """A postprocessor that tells all that it saw: updates are not for its eyes."""

    def telltale(seen, tag, message):
        seen = (*seen, repr(message))
        return seen, tag, message if tag is oc.c.QUERY else (message, seen)

    around = oc.c.make_interactive_postprocessing(stream(lab), telltale, initial_state=())
    law = lab.played(around, updates, datasets=((), ()))
    assert law.worst_loss(3).ratio == 4
    assert within(law.worst_loss(3), around.map(1))


def test_refusals_tell_nothing_and_other_errors_are_raised(lab):
    moves = [launch("odds 3", lab.response(3))]
    law = lab.played(budget(epsilon(3)), moves)
    answers = [answer for _, answer in law.worst_loss(2).history]
    assert len(answers) == 1  # the second one is refused on both datasets, and tells nothing
    wrong = verify.Move("wrong", lambda handles: handles[7])
    with pytest.raises(IndexError):
        lab.played(budget(epsilon(3)), [wrong]).worst_loss(1)
    assert issubclass(BudgetExceededError, REFUSALS)
