"""A measurement is charged what its map says when it is launched, in whatever it is wrapped.

A user's own may change between two launches. What ran is written down by the mechanism itself, and
held against what was charged.
"""

from contextlib import suppress
from fractions import Fraction

import pytest

import opendp_concurrent as oc

from ..build import PURE, costing
from .catalogue import (
    D_IN,
    MANY,
    REFUSALS,
    WRAPPERS,
    Case,
    Kind,
    Recipe,
    Role,
    Subject,
    answering,
    is_ours,
    odometer_for,
    stream,
    table,
)
from .laws import is_measurement
from .probes import PONG, native_queryable

LOW, HIGH = 0.125, 8.0
WHOLE_BUDGET = 1000.0


class Dial:
    """A loss that its owner may change at any time."""

    at = LOW


class Noted:
    """A subject whose loss changes, and the losses at which it ran."""

    def __init__(self, name, make, space=table, kind=Kind.NONINTERACTIVE):
        self.name, self.make, self.space, self.kind = name, make, space, kind

    def build(self):
        """The case, and where the loss can be changed and what ran is seen."""
        dial, ran = Dial(), []
        data = list if self.space is stream else Subject.data
        made = Subject(self.name, self.kind, (), lambda seen: self.make(dial, ran), data=data)
        return made, dial, ran


def changing(dial, ran, answer=len):
    """A release whose loss is read from a dial, by its function and by its map."""

    def function(rows):
        ran.append(dial.at)
        return answer(rows)

    return costing(lambda d_in: d_in * dial.at, function)


def changing_interactive(dial, ran):
    """The same for one that takes queries."""
    return changing(dial, ran, lambda rows: native_queryable(lambda query: PONG))


class Machine:
    """A continual mechanism that says nothing; it ran if it was asked, at the loss it started."""

    def __init__(self, at, ran):
        self._at, self._ran = at, ran

    def update(self, item):
        """Nothing happens."""

    def update_all(self, items):
        """Nothing happens."""

    def ask(self, query):
        if self._at is not None:
            self._ran.append(self._at)
            self._at = None
        return PONG


def changing_continual(dial, ran):
    return oc.m.make_continual(
        *stream(), PURE, lambda: Machine(dial.at, ran), lambda d_in: d_in * dial.at
    )


SUBJECTS = (
    Noted("a release that changes", changing),
    Noted("a mechanism that changes", changing_interactive, kind=Kind.INTERACTIVE),
    Noted("a continual mechanism that changes", changing_continual, stream, Kind.CONTINUAL),
)
PASSING = [
    one
    for one in WRAPPERS
    # in units of the subject; and OpenDP's filter runs what it then refuses
    if (one.role is not Role.CAST or one.same_map) and one.name != "in OpenDP's filter"
]


def spent(root, d_in=1):
    """What a handle says was spent at a d_in, exactly."""
    return Fraction(root.privacy_loss(d_in))


def launch_twice(recipe, dial, ran, root_of):
    """What is charged when it is launched, and when it has changed and is launched again."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or cases[-1].measure != PURE:
        return
    whole: Case = cases[-1]
    try:
        root = root_of(whole)
    except REFUSALS:
        return
    del ran[:]  # building may have looked at it
    for at in (LOW, HIGH, LOW, HIGH):
        dial.at = at
        with suppress(*REFUSALS):
            whole.talk(root(whole.what)).ask("anything")
    dial.at = LOW  # what was launched stays launched
    paid, cost = spent(root), sum(map(Fraction, ran))
    if paid < cost:
        yield f"{recipe}: {float(paid)} was charged for {ran}"


def filter_of(case):
    return oc.make_concurrent_filter(odometer_for(case), 1, WHOLE_BUDGET)(case.data)


def child_odometer_of(case):
    return odometer_for(case)(case.data)(odometer_for(case))


class InContext:
    """A context, which tells what it spent in another way."""

    def __init__(self, case):
        self._context = oc.concurrent_context(
            case.data, (case.space[1], 1), (PURE, WHOLE_BUDGET), domain=case.space[0]
        )

    def __call__(self, query):
        return self._context(query)

    def privacy_loss(self, d_in):
        return self._context.queryable.privacy_loss(d_in)


def stream_of(case):
    return oc.c.make_concurrent_continual(odometer_for(case), max_messages=MANY)(case.data)


ROOTS = {
    "filter": filter_of,
    "child odometer": lambda case: asked(child_odometer_of(case)),
    "context": InContext,
    "stream": lambda case: asked(stream_of(case)),
    "filter that was asked": lambda case: asked(filter_of(case)),
    "odometer": lambda case: odometer_for(case)(case.data),
    "odometer that was asked": lambda case: asked(odometer_for(case)(case.data)),
}


def asked(root):
    """With the loss at several d_in kept up to date."""
    for d_in in (1, 2, D_IN):
        root.privacy_loss(d_in)
    return root


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("noted", SUBJECTS, ids=lambda one: one.name)
def test_what_changes_is_charged_as_it_is_at_the_launch(noted, root):
    found = []
    some = PASSING[(list(ROOTS).index(root) + SUBJECTS.index(noted)) % 3 :: 3]
    for wrappers in ((), *((one,) for one in some)):
        subject, dial, ran = noted.build()
        found += launch_twice(Recipe(wrappers, subject), dial, ran, ROOTS[root])
    assert found == []


@pytest.mark.parametrize(
    "wrapper", [one for one in PASSING if one.role is Role.COMBINATOR], ids=lambda one: one.name
)
@pytest.mark.parametrize("noted", SUBJECTS, ids=lambda one: one.name)
def test_what_changes_inside_of_a_combinator_is_bounded_by_it(noted, wrapper):
    """Launched again and again below: all that ran is at most what the whole was charged."""
    subject, dial, ran = noted.build()
    dial.at = HIGH  # what the combinator has room for, once
    cases = Recipe((wrapper,), subject).cases()
    if cases is None or not is_measurement(cases[-1]) or cases[-1].measure != PURE:
        return
    inner, whole = cases[0], cases[-1]
    root = odometer_for(whole)(whole.data)
    del ran[:]
    dial.at = LOW
    try:
        talk = whole.talk(root(whole.what))
        talk.ask("anything")
    except REFUSALS:
        return
    for at in (HIGH, LOW, 2 * HIGH, HIGH):
        dial.at = at
        for door in talk.doors:
            if not is_ours(door):
                continue
            with suppress(*REFUSALS):
                answering(door(inner.what))("anything")
    dial.at = LOW
    assert spent(root) >= sum(map(Fraction, ran)), ran


def test_the_dial_turns():
    """The laws above would see it."""
    subject, dial, ran = SUBJECTS[0].build()
    case = subject.build()
    assert case.what.map(2) == 2 * LOW
    dial.at = HIGH
    assert case.what.map(2) == 2 * HIGH
    case.open()
    assert ran == [HIGH]
