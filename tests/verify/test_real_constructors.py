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
from opendp_concurrent.measures.tradeoffs import pure_to_gaussian

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROUNDING = 1e-12
REFUSALS = (ConcurrentError, dp.OpenDPException)


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


def test_refusals_tell_nothing_and_other_errors_are_raised(lab):
    moves = [launch("odds 3", lab.response(3))]
    law = lab.played(budget(epsilon(3)), moves)
    answers = [answer for _, answer in law.worst_loss(2).history]
    assert len(answers) == 1  # the second one is refused on both datasets, and tells nothing
    wrong = verify.Move("wrong", lambda handles: handles[7])
    with pytest.raises(IndexError):
        lab.played(budget(epsilon(3)), [wrong]).worst_loss(1)
    assert issubclass(BudgetExceededError, REFUSALS)
