"""Laws of whatever is built from the catalogue. Each gives what it found against one recipe.

A wrapper may refuse: when it is built, when it is launched before anything is charged, or when it
is asked. What it does not refuse must obey.
"""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import nan
from typing import Any

import numpy as np
import opendp.prelude as dp
from opendp.mod import Odometer, OdometerQueryable, Queryable

import opendp_concurrent as oc
from opendp_concurrent.queryables import interactive
from opendp_concurrent.queryables.child import Child
from opendp_concurrent.serving.extend import at_most, charges, same_loss

from ..build import costing
from .catalogue import (
    CANARY,
    D_IN,
    D_INS,
    MANY,
    MEASURES,
    OPENDPS,
    REFUSALS,
    Case,
    Kind,
    Recipe,
    Role,
    Talk,
    in_composition,
    in_filter,
    is_ours,
    loss_known,
    odometer_for,
    of_measure,
    orders_of,
    release_on,
    stream,
    table,
)
from .probes import Seen

Law = Callable[[Recipe], Iterator[str]]


def is_opaque(recipe: Recipe) -> bool:
    """Whether OpenDP, or a function of the user's, hides what is inside from what is around it.

    Then it is only known when it has run, and what has run was charged.
    """
    return len(recipe.wrappers) > 1 and any(one.name in OPAQUE for one in recipe.wrappers)


OPAQUE = ("native step", "in a function", "in a thread", *OPENDPS)


def is_measurement(case: Case) -> bool:
    return not case.top and not isinstance(case.what, Odometer)


def opened(case: Case) -> Talk | None:
    """Started on data of its own; None if it refuses."""
    try:
        return case.open()
    except REFUSALS:
        return None


def started(recipe: Recipe) -> tuple[list[Case], Talk | None]:
    """The cases of a recipe, and the talk with the whole; no talk if anything is refused."""
    cases = recipe.cases()
    return cases or [], None if cases is None else opened(cases[-1])


# --- a. maps ---------------------------------------------------------------------------------


def the_map_does_not_fall_below_the_inner_one(recipe: Recipe) -> Iterator[str]:
    """At each d_in; it is refused where the inner one is, and equal where nothing is added."""
    cases = recipe.cases()
    if cases is None or len(cases) < 2 or not all(map(is_measurement, cases)):
        return
    inner, whole, wrapper = cases[-2], cases[-1], recipe.wrappers[0]
    same = inner.measure == whole.measure
    for d_in in D_INS:
        try:
            outer_loss = whole.what.map(d_in)
        except REFUSALS:
            continue
        try:
            loss = inner.what.map(d_in * wrapper.stretch)
        except REFUSALS:
            yield f"a map at {d_in}, where the inner one has none"
            continue
        if not same or (wrapper.role is Role.CAST and not wrapper.same_map):
            continue  # conversions are held against exact laws, in test_catalogue_exact.py
        if not at_most(whole.measure, loss, outer_loss):
            yield f"map({d_in}) is {outer_loss}, below {loss}"
        if wrapper.same_map and not at_most(whole.measure, outer_loss, loss):
            yield f"map({d_in}) is {outer_loss}, above {loss}"


def a_launch_costs_what_the_map_says(recipe: Recipe) -> Iterator[str]:
    """As an odometer reads it at each d_in, and a filter at its own."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]):
        return
    whole = cases[-1]
    try:
        root = odometer_for(whole)(whole.data)
        root(whole.what)
    except REFUSALS:
        pass
    else:
        yield from charges(root, whole.what, D_INS)
    try:
        bound = in_filter(whole)
        root = bound(whole.data)
        root(whole.what)
    except REFUSALS:
        return
    d_in = max(d for d in D_INS if has_map(bound, d))
    if not same_loss(whole.measure, root.privacy_loss(), whole.what.map(d_in)):
        yield f"a filter charges {root.privacy_loss()}, the map is {whole.what.map(d_in)}"


def has_map(measurement: Any, d_in: int) -> bool:
    try:
        measurement.map(d_in)
    except REFUSALS:
        return False
    return True


def what_runs_inside_is_covered_by_the_map(recipe: Recipe) -> Iterator[str]:
    """Releases are launched on what is innermost until it refuses: together they cost no more."""
    if recipe.subject.kind not in (Kind.COMPOSITION, Kind.ODOMETER):
        return
    cases = recipe.cases()
    if cases is None:
        return
    innermost, whole = cases[0], cases[-1]
    if not is_measurement(whole) or whole.measure != innermost.measure:
        return
    if any(one.role is Role.CAST for one in recipe.wrappers):
        return
    talk = opened(whole)
    if talk is None:
        return
    ran = drain(talk, innermost)
    if ran == 0:
        return
    loss = of_measure(innermost.measure)(D_IN)
    together = oc.make_concurrent_composition(
        *innermost.space, innermost.measure, D_IN, [loss] * ran, **orders_of(innermost)
    ).map(D_IN)
    if not has_map(whole.what, D_IN):
        return
    if not at_most(whole.measure, together, whole.what.map(D_IN)):
        yield f"{ran} releases ran, together {together}; the map is {whole.what.map(D_IN)}"


def drain(talk: Talk, innermost: Case, most: int = 6) -> int:
    """Launch releases until one is refused; how many ran."""
    seen = Seen()
    for _ in range(most):
        release = release_on(
            innermost.space, innermost.measure, of_measure(innermost.measure), seen
        )
        try:
            talk.ask(release)
        except REFUSALS:
            break
    return len(seen.ran)


# --- b, g. updates ---------------------------------------------------------------------------

STREAMS = ([5, 5, CANARY, 5], [5, 5, None, 5])  # neighbours


def updates_reach_the_innermost_and_nobody_in_between(recipe: Recipe) -> Iterator[str]:
    """All of them; and the analyst's side sees the same on neighbouring streams."""
    if recipe.subject.kind is not Kind.CONTINUAL:
        return
    transcripts = []
    for items in STREAMS:
        for at_once in (False, True):
            cases, talk = started(recipe)
            if talk is None:
                return
            took = [talk.update_all(items)] if at_once else list(map(talk.update, items))
            seen = cases[0].seen
            shown = list(seen.spied)
            if any("Update" in one or str(CANARY) in one for one in shown):
                yield "a machine of the analyst's was shown an update"
            if None in took:
                if is_opaque(recipe):
                    return  # nobody knew that there is something to feed
                yield "it is launched, and nothing takes its updates"
                return
            if seen.probes:
                try:
                    answer = talk.answer()
                except REFUSALS as error:
                    yield f"its updates are taken, and it is not asked: {type(error).__name__}"
                    return
                transcripts.append((at_once, took, shown, answer))
                if seen.arrived != items:
                    yield f"{len(items)} updates were taken, and {seen.arrived} arrived"
    for at_once in (False, True):
        first, *others = [rest for which, *rest in transcripts if which is at_once] or [None]
        if any(other != first for other in others):
            yield "the analyst's side differs on neighbouring streams"


def a_refused_update_is_shown_to_nobody(recipe: Recipe) -> Iterator[str]:
    """Also where nothing takes updates, and where they come inside of a query."""
    if recipe.subject.data() and recipe.subject.kind is not Kind.CONTINUAL:
        return
    cases = recipe.cases()
    if cases is None:
        return
    for message in (
        (0, oc.handles.Update(CANARY)),  # first: a probe that has an item got it with this query
        oc.handles.Update(CANARY),
        oc.handles.Updates([CANARY]),
    ):
        talk = opened(cases[-1])
        if talk is None:
            return
        for door in talk.doors:
            if not is_ours(door):
                continue
            seen = cases[0].seen
            before = list(seen.spied)
            try:
                door(message)
            except REFUSALS:
                if type(message) is tuple:
                    continue  # a query that was refused
            if type(message) is tuple and not any(CANARY in one.items for one in seen.probes):
                continue  # a query, as far as anybody knows
            if any(str(CANARY) in one for one in seen.spied[len(before) :]):
                yield f"a machine of the analyst's was shown {type(message).__name__}"


def what_is_charged_on_a_stream_is_fed(recipe: Recipe) -> Iterator[str]:
    """By the updates of the stream that it is launched on; or refused before it is charged."""
    if recipe.subject.kind is not Kind.CONTINUAL:
        return
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]):
        return
    whole = cases[-1]
    try:
        composition = odometer_for(whole)
        if whole.measure == oc.tradeoff():
            composition = in_composition(whole)
        root = oc.c.make_concurrent_continual(composition, max_messages=MANY)(whole.data)
    except REFUSALS:
        return
    known = loss_known(root)
    try:
        child = root(whole.what)
    except REFUSALS:
        if loss_known(root) != known and not is_opaque(recipe):
            yield "it was refused, and charged"
        return
    try:
        talk = whole.talk(child)
    except REFUSALS:
        return
    try:
        root.update(whole.item(CANARY))
        talk.answer()
    except REFUSALS as error:
        yield f"it was charged, and cannot be fed: {type(error).__name__}"
        return
    if whole.seen.probes and whole.seen.arrived != [CANARY]:
        yield "it was charged, and not fed"
    if any(str(CANARY) in one for one in whole.seen.spied):
        yield "a machine of the analyst's was shown an update"


# --- d. refusals -----------------------------------------------------------------------------


def what_refuses_charges_nothing(recipe: Recipe) -> Iterator[str]:
    """Whatever refuses to be launched leaves the account as it was."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]):
        return
    whole = cases[-1]
    for make in (odometer_for, in_filter, in_composition):
        try:
            root = make(whole)(whole.data)
        except REFUSALS:
            continue
        before = loss_known(root)
        try:
            child = root(whole.what)
        except REFUSALS as error:
            if loss_known(root) != before and not is_opaque(recipe):
                yield f"{make.__name__}: refused by {type(error).__name__}, and charged"
            continue
        with suppress(*REFUSALS):
            whole.talk(child)
        for one, other in whole.seen.refused:
            if one != other and not is_opaque(recipe):
                yield f"{make.__name__}: a child was refused inside, and charged"


def a_bad_query_charges_nothing(recipe: Recipe) -> Iterator[str]:
    """And is refused with an error of this package's or of OpenDP's."""
    cases, talk = started(recipe)
    if talk is None:
        return
    innermost = cases[0]
    composition = innermost.kind in (Kind.COMPOSITION, Kind.ODOMETER)
    rooms = [(door, door) for door in talk.doors if counts(door) and loss_known(door)]
    alone = counts(talk.doors[-1]) and not any(root is talk.doors[-1] for root, _ in rooms)
    if composition and alone:
        rooms.append((None, talk.ask))
    for root, send in rooms:
        for name, query in bad_queries(innermost):
            before = loss_known(root)
            try:
                send(query)
            except REFUSALS:
                pass
            except BaseException as error:
                yield f"{name} raises {type(error).__name__}"
            else:
                yield f"{name} is not refused"
            if loss_known(root) != before:
                yield f"{name} was refused, and charged"
    if composition and innermost.kind is Kind.COMPOSITION and rooms:
        ran = drain(talk, innermost)
        names = {wrapper.name for wrapper in recipe.wrappers}
        expected = 1 if "remembering" in names else 2
        if "in a filter that halts" in names:  # at the first of them
            expected = 0
        if ran < expected:
            yield f"after bad queries only {ran} of {expected} launches are left"


def counts(door: Any) -> bool:
    """Whether a handle does its own accounting, which is not left to OpenDP."""
    return is_ours(door) and not isinstance(door, Child)


def bad_queries(innermost: Case) -> Iterator[tuple[str, Any]]:
    """What no combinator launches."""
    space, measure = innermost.space, innermost.measure
    elsewhere = stream() if innermost.data else table()
    nobodys = dp.user_divergence("Nobody's")
    yield "None", None
    yield "a text", "text"
    yield "another measure", costing(lambda d: 0.0, measure=nobodys, space=space)
    yield "another space", costing(of_measure(measure), measure=measure, space=elsewhere)
    if measure == dp.renyi_divergence():
        return  # a curve of nan is not looked at before it is read
    for name, map_ in (
        ("a map that is nan", lambda d: nan),
        ("a map below zero", lambda d: -1.0),
        ("a map that raises", lambda d: 1 / 0),
        ("a map of text", lambda d: "free"),
    ):
        yield name, costing(map_, measure=measure, space=space)


# --- i. queries with a name ------------------------------------------------------------------

NAMED = {"read": None, "synthetic": "synthetic"}
KEYS = (0, 1)  # of parts


def a_query_with_a_name_is_its_message(recipe: Recipe) -> Iterator[str]:
    """Through all that passes messages on; what has a protocol of its own has no names."""
    cases, talk = started(recipe)
    if talk is None:
        return
    if cases[0].continual and talk.update_all([5, None, 7]) is None and not is_opaque(recipe):
        return
    for door in filter(is_ours, talk.doors):
        for name, message in NAMED.items():
            if hasattr(door, name) and not same(getattr(door, name), partial(door, message)):
                yield f"{name}() of {type(door).__name__} is not its message"
        if hasattr(door, "__getitem__"):
            for key in KEYS:
                if not same(partial(door.__getitem__, key), partial(door, key)):
                    yield f"[{key!r}] of {type(door).__name__} is not its message"
    last = talk.doors[-1]
    if is_ours(last) and isinstance(last, Queryable | OdometerQueryable):
        found = {name for name in NAMED if hasattr(last, name)}
        if found != names_expected(recipe, cases):
            yield f"{type(last).__name__} has the names {sorted(found)}"


ASKED = "asked on a stream"


def names_expected(recipe: Recipe, cases: list[Case]) -> set[str]:
    """Names of the queries of the handle that is reached last."""
    names = set(recipe.subject.queries)
    for wrapper, inside in zip(reversed(recipe.wrappers), cases[:-1], strict=True):
        if wrapper.name == ASKED:  # what is inside begins later: only a release is known before
            known = inside.kind is not Kind.NONINTERACTIVE and interactive(inside.what)
            names = set() if known else {"read"}
        elif wrapper.protocol:
            names = set()
        elif wrapper.role is Role.COMBINATOR:
            break  # whose handle is another one
        elif wrapper.name in ("interactive", "bounded") and inside.kind is Kind.NONINTERACTIVE:
            names = {"read"}
    return names


def same(one: Callable[[], Any], other: Callable[[], Any]) -> bool:
    """Whether both answer alike, or refuse alike. A handle may be handed out in a new wrapper."""
    answers = []
    for ask in (one, other):
        try:
            answers.append(ask())
        except REFUSALS as error:
            answers.append((type(error), str(error)))
    kinds = [type(answer) for answer in answers]
    if isinstance(answers[0], Queryable | OdometerQueryable):
        return kinds[0] is kinds[1]
    return kinds[0] is kinds[1] and bool(np.all(answers[0] == answers[1]))


# --- f. handles ------------------------------------------------------------------------------


def handles_are_nobody_elses(recipe: Recipe) -> Iterator[str]:
    """Not copied, not pickled, and without data where Python lets one look."""
    cases, talk = started(recipe)
    if talk is None:
        return
    if cases[0].continual:
        talk.update(CANARY)
    for door in talk.doors:
        if not is_ours(door) or not isinstance(door, Queryable | OdometerQueryable):
            continue
        name = type(door).__name__
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            try:
                take(door)
            except TypeError:
                continue
            yield f"{name} is taken by {take.__name__}"
        if str(CANARY) in repr(door):
            yield f"the text of {name} has data"
        if str(CANARY) in str(vars(door)):
            yield f"attributes of {name} have data"
        if getattr(door, "__opendp_dict__", {}) != {}:
            yield f"OpenDP's record of {name} is not empty"
        if any(map(holds_data, reachable(door))):
            yield f"data can be reached from {name}"


def reachable(thing: Any, depth: int = 3) -> list[Any]:
    """What ``gc`` reaches from ``thing`` within a few steps, not by way of types and modules."""
    seen: dict[int, Any] = {}
    frontier = [thing]
    for _ in range(depth + 1):
        following: list[Any] = []
        for one in frontier:
            if id(one) in seen or isinstance(one, type | type(gc)):
                continue
            seen[id(one)] = one
            following += gc.get_referents(one)
        frontier = following
    return list(seen.values())


def holds_data(thing: Any) -> bool:
    return isinstance(thing, list | tuple) and any(type(x) is int and x == CANARY for x in thing)


def errors_hold_no_data(recipe: Recipe) -> Iterator[str]:
    """Neither in their text, nor in their arguments, nor in frames of this package."""
    cases = recipe.cases()
    if cases is None:
        return
    for query in (None, "text", object(), (7, None)):
        talk = opened(cases[-1])
        if talk is None:
            return
        if cases[0].continual:
            talk.update(CANARY)
        for send in (*talk.doors, talk.ask):
            if not is_ours(send) or not is_ours(talk.doors[-1]):
                continue
            try:
                send(query)
            except BaseException as error:
                yield from in_error(error)


def in_error(error: BaseException) -> Iterator[str]:
    """What an error, and those that it came from, tell of the data."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        left += [one.__cause__, one.__context__]
        if str(CANARY) in f"{one} {one.args!r} {vars(one)!r}":
            yield f"{type(one).__name__} tells data"
        trace = one.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            ours = "opendp" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename
            if ours and any(map(holds_data, frame.f_locals.values())):
                yield f"a frame of {frame.f_code.co_name} on {type(one).__name__} has data"
            trace = trace.tb_next


# --- h. parallel -----------------------------------------------------------------------------


def no_part_of_static_data_takes_updates(recipe: Recipe) -> Iterator[str]:
    """The maximum over the parts holds for data that do not change."""
    if not any(one.name.startswith("in a part by") for one in recipe.wrappers):
        return
    cases, talk = started(recipe)
    if talk is None or not cases[0].continual:
        return
    if talk.update(5) is not None:
        yield "a part of a parallel composition takes updates"
    else:
        yield "a part of a parallel composition is a continual mechanism that is not fed"


# --- e. order of nesting ---------------------------------------------------------------------


def the_order_of_nesting_does_not_matter(recipe: Recipe) -> Iterator[str]:
    """Where both are postprocessing, or change data and conversation."""
    if len(recipe.wrappers) != 2 or not all(map(commutes, recipe.wrappers)):
        return
    one, other = recipe.wrappers
    if one.name >= other.name:
        return
    said = []
    for wrappers in ((one, other), (other, one)):
        cases = Recipe(wrappers, recipe.subject).cases()
        if cases is None or recipe.subject.name not in DETERMINISTIC:
            return
        whole = cases[-1]
        talk = opened(whole)
        if talk is None:
            return
        if whole.continual:
            took = [talk.update(item) for item in STREAMS[0]]
            if None in took:
                return
            answers = [talk.ask("sum")]
        else:
            answers = [talk.answer(), talk.answer()]
        losses = []
        if is_measurement(whole):
            losses = [whole.what.map(d) for d in D_INS if has_map(whole.what, d)]
        said.append((answers, losses, whole.measure))
    (answers, losses, measure), (their_answers, their_losses, their_measure) = said
    if answers != their_answers:
        yield f"answers are {answers} and {their_answers}"
    same = measure == their_measure and len(losses) == len(their_losses)
    if not same or not all(map(partial(same_loss, measure), losses, their_losses)):
        yield f"maps are {losses} and {their_losses}"


DETERMINISTIC = frozenset(
    [f"{kind} {name}" for kind in ("release", "probe", "composition") for name in MEASURES]
    + ["native queryable pure", "probe of changes"]
)


def commutes(wrapper: Any) -> bool:
    """Whether it says nothing of its own about the conversation or the data."""
    return wrapper.same_map and wrapper.name not in ("remembering", "table to stream")


PAIR_LAWS: tuple[Law, ...] = (
    the_map_does_not_fall_below_the_inner_one,
    a_launch_costs_what_the_map_says,
    what_runs_inside_is_covered_by_the_map,
    updates_reach_the_innermost_and_nobody_in_between,
    a_refused_update_is_shown_to_nobody,
    what_is_charged_on_a_stream_is_fed,
    what_refuses_charges_nothing,
    a_bad_query_charges_nothing,
    handles_are_nobody_elses,
    errors_hold_no_data,
    no_part_of_static_data_takes_updates,
    a_query_with_a_name_is_its_message,
)


def against(law: Law, recipe: Recipe) -> list[str]:
    """What a law finds against a recipe, each finding once."""
    try:
        found = list(dict.fromkeys(law(recipe)))
    except Exception as error:
        raise AssertionError(
            f"{law.__name__}, {recipe}: {type(error).__name__}: {error}"
        ) from error
    return [f"{recipe}: {one}" for one in found]
