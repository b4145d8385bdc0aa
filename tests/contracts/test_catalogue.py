"""The catalogue is whole, and its laws hold of each wrapper around each subject."""

import os
import random
from contextlib import suppress

import opendp.prelude as dp
import pytest
from opendp.mod import Odometer, OdometerQueryable, Queryable

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger
from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement, interactive

from .catalogue import (
    DOORS,
    PLAIN,
    PUBLIC,
    REFUSALS,
    SUBJECTS,
    TAKES_ODOMETERS,
    WRAPPERS,
    Kind,
    Recipe,
    is_ours,
    names_covered,
    odometer_for,
)
from .laws import (
    DETERMINISTIC,
    PAIR_LAWS,
    a_query_with_a_name_is_its_message,
    against,
    bad_queries,
    commutes,
    has_map,
    is_measurement,
    names_expected,
    opened,
    same_loss,
    started,
    the_order_of_nesting_does_not_matter,
)


def named(*names):
    return [one for one in SUBJECTS if one.name in names]


def alone_and_wrapped(subject):
    return [Recipe((), subject), *(Recipe((wrapper,), subject) for wrapper in WRAPPERS)]


each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
each_wrapper = pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
each_law = pytest.mark.parametrize("law", PAIR_LAWS, ids=lambda one: one.__name__)


# --- nothing is missing, and nothing is refused by everything ------------------------------------


def test_each_public_name_is_in_the_catalogue_once():
    assert sorted({*names_covered(), *PLAIN}) == sorted({*PUBLIC, "ANSWER", "QUERY"})
    assert not names_covered() & set(PLAIN)


def test_what_makes_or_chains_is_a_subject_or_a_wrapper():
    """A name is not explained away: only what builds no mechanism is plain."""
    makers = {name for name in PUBLIC if name.startswith(("make_", "then_"))}
    assert makers <= names_covered()
    assert all(kind.isalpha() for kind in PLAIN.values())


def test_one_public_name_is_one_thing():
    for group in DOORS:
        for name in group.__all__:
            if name in PUBLIC:
                assert getattr(group, name) is PUBLIC[name], name


def test_names_in_the_catalogue_are_unique():
    for things in (SUBJECTS, WRAPPERS):
        names = [one.name for one in things]
        assert len(set(names)) == len(names)
    assert {one.name for one in WRAPPERS} >= TAKES_ODOMETERS


@each_subject
def test_a_subject_answers_its_own_query(subject):
    case = subject.build()
    talk = case.open()
    if case.continual:
        assert talk.update(3) == 0
    talk.answer()
    assert isinstance(case.what, Odometer) == (case.kind is Kind.ODOMETER)


def opens(recipe):
    return started(recipe)[1] is not None


def test_each_wrapper_takes_some_subjects():
    """Else the laws would say nothing of it."""
    taken = {one.name: any(opens(Recipe((one,), inner)) for inner in SUBJECTS) for one in WRAPPERS}
    assert all(taken.values()), taken


# --- each wrapper around each subject ------------------------------------------------------------

# one of each kind, and both ways to compose; the others are slow
FEW = named(
    *("release pure", "probe pure", "probe approximate zCDP", "composition pure"),
    *("composition approximate zCDP", "native queryable pure", "above threshold", "odometer"),
)


def found(law, wrappers, subjects):
    return [one for subject in subjects for one in against(law, Recipe(wrappers, subject))]


@each_law
def test_subjects(law):
    assert found(law, (), SUBJECTS) == []


@each_law
@each_wrapper
def test_pairs(law, wrapper):
    """Each wrapper meets each subject, and each law each of both, but not all three together."""
    first = (PAIR_LAWS.index(law) + WRAPPERS.index(wrapper)) % 4
    assert found(law, (wrapper,), FEW[first::4]) == []


@pytest.mark.slow
@each_law
@each_wrapper
def test_all_pairs(law, wrapper):
    assert found(law, (wrapper,), SUBJECTS) == []


# --- wrappers around wrappers --------------------------------------------------------------------

DRAWN = {2: 150, 3: 250}


def drawn(subject, depth):
    """Recipes of so many wrappers that can be built."""
    generator = random.Random(f"{subject.name} {depth}")
    recipes = {}
    for _ in range(20 * DRAWN[depth]):
        if len(recipes) == DRAWN[depth]:
            break
        wrappers = tuple(generator.choices(WRAPPERS, k=depth))
        recipe = Recipe(wrappers, subject)
        if str(recipe) not in recipes and recipe.cases() is not None:
            recipes[str(recipe)] = recipe
    return recipes.values()


@pytest.mark.slow
@pytest.mark.parametrize("depth", DRAWN)
@pytest.mark.parametrize("subject", FEW, ids=lambda one: one.name)
def test_wrappers_of_wrappers(subject, depth):
    recipes = drawn(subject, depth)
    assert len(recipes) > 20
    assert [one for recipe in recipes for law in PAIR_LAWS for one in against(law, recipe)] == []


# --- two orders of nesting give the same answers and the same loss, where theory says so ---------

NESTED = [one for one in WRAPPERS if commutes(one)]
INNER = [one for one in SUBJECTS if one.name in DETERMINISTIC]
(ON_STREAM,) = named("probe pure")
ON_ROWS = [one for one in INNER if one.name.endswith(" pure") and one is not ON_STREAM]


def found_of_two(wrapper, subjects_of):
    return [
        one
        for other in NESTED
        for subject in subjects_of(other)
        for one in against(the_order_of_nesting_does_not_matter, Recipe((wrapper, other), subject))
    ]


@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter(wrapper):
    """Around what is on a stream, and one of the others in turn."""

    def subjects(other):
        turn = NESTED.index(wrapper) + NESTED.index(other)
        return ON_STREAM, ON_ROWS[turn % len(ON_ROWS)]

    assert found_of_two(wrapper, subjects) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter_around_any(wrapper):
    assert found_of_two(wrapper, lambda other: INNER) == []


# --- queries that have a name --------------------------------------------------------------------

WITH_QUERIES = [one for one in SUBJECTS if one.queries]


@each_wrapper
def test_named_queries(wrapper):
    some = WITH_QUERIES[WRAPPERS.index(wrapper) % 3 :: 3]
    assert found(a_query_with_a_name_is_its_message, (wrapper,), some) == []


def test_wrappers_that_pass_messages_on_pass_on_the_names():
    """The law is no empty one: so many handles must have a name."""
    passed, none = set(), set()
    for wrapper in WRAPPERS:
        for recipe in (Recipe((wrapper,), subject) for subject in WITH_QUERIES):
            if opens(recipe):
                names = names_expected(recipe, recipe.cases())
                (passed if names else none).add(wrapper.name)
                break
    assert len(passed) > 30
    assert none == {one.name for one in WRAPPERS if one.protocol}


# --- what is said of a launch before it happens is what happens ----------------------------------


def described_against(recipe):
    """Where the description differs from what is launched."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or not has_map(cases[-1].what, 1):
        return
    whole = cases[-1]
    try:
        root = odometer_for(whole)(whole.data)
        found = root.describe(whole.what, 1)
    except REFUSALS:
        return
    if not same_loss(whole.measure, found.loss, whole.what.map(1)):
        yield f"{recipe}: described at {found.loss}, the map is {whole.what.map(1)}"
    if found.interactive is not interactive(whole.what):
        yield f"{recipe}: described as {found.interactive}"
    if repr(root.privacy_loss(1)) != repr(odometer_for(whole)(whole.data).privacy_loss(1)):
        yield f"{recipe}: charged for a description"
    if opened(whole) is None:
        return
    try:
        answer = root(whole.what)
    except REFUSALS:
        return
    queryable = isinstance(answer, Queryable | OdometerQueryable)
    if found.interactive not in (None, queryable):
        yield f"{recipe}: described as {found.interactive}, returned {type(answer).__name__}"


@each_subject
def test_a_description_of_a_subject_is_true(subject):
    assert list(described_against(Recipe((), subject))) == []
    what = subject.build().what  # of what this package makes, it is known whether it is interactive
    assert not isinstance(what, ConcurrentMeasurement) or interactive(what) is not None


@pytest.mark.parametrize("name", ["composition pure", "above threshold", "native laplace"])
def test_a_description_of_what_is_wrapped_is_true(name):
    recipes = alone_and_wrapped(*named(name))
    assert [one for recipe in recipes for one in described_against(recipe)] == []


# --- no handle answers in a forked process -------------------------------------------------------


def handles(recipes):
    """Those that can be opened, by name, with a query."""
    for recipe in recipes:
        _, talk = started(recipe)
        if talk is None:
            continue
        for index, door in enumerate(talk.doors):
            if is_ours(door):
                yield f"{recipe}, handle {index}", door
        if is_ours(talk.doors[-1]):
            yield f"{recipe}, innermost", lambda _, talk=talk: talk.answer()


def said_in_a_fork(asked):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for name, door in asked:
            try:
                door(None)
            except BaseException as error:
                if type(error).__name__ != "ForkedError":
                    said.append(f"{name}: {type(error).__name__}")
            else:
                said.append(f"{name}: answered")
        with os.fdopen(writing, "w") as pipe:
            pipe.write("\n".join(said))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text.split("\n") if text else []


# one of each kind, but for odometers, which have no price
OF_EACH_KIND = named("release pure", "probe pure", "composition pure", "native queryable pure")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_no_handle_answers_in_a_forked_process():
    wrapped = [recipe for one in OF_EACH_KIND for recipe in alone_and_wrapped(one)[1:]]
    asked = list(handles([Recipe((), one) for one in SUBJECTS] + wrapped))
    assert len(asked) > 200
    assert said_in_a_fork(asked) == []


# --- a ledger has one entry for what was launched, at what its map says, and none for a refusal --


def ledger_against(recipe, path):
    """Where the ledger differs from what was launched."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or not has_map(cases[-1].what, 1):
        return
    whole = cases[-1]
    if whole.measure != dp.max_divergence():
        return
    with create_ledger(path, dataset=str(recipe)) as ledger:
        root = oc.make_concurrent_filter(odometer_for(whole), 1, 1000.0, ledger=ledger)(whole.data)
        for name, query in bad_queries(whole):
            with suppress(*REFUSALS):
                root(query)
                yield f"{recipe}: {name} is not refused"
        if ledger.entries():
            yield f"{recipe}: a bad query is in the ledger"
        try:
            child, entries = root(whole.what), 1
        except REFUSALS:
            entries = 0
        else:
            with suppress(*REFUSALS):
                whole.talk(child)
        losses = [one.d_mid for one in ledger.entries()]
        if len(losses) != entries:
            yield f"{recipe}: {losses} in the ledger for {entries} launches"
        if losses and not same_loss(whole.measure, losses[0], whole.what.map(1)):
            yield f"{recipe}: {losses[0]} in the ledger, the map is {whole.what.map(1)}"


@pytest.mark.parametrize("subject", OF_EACH_KIND, ids=lambda one: one.name)
def test_a_ledger_has_what_was_launched(subject, tmp_path):
    found = []
    for index, recipe in enumerate(alone_and_wrapped(subject)):
        found += ledger_against(recipe, tmp_path / f"{index}.db")
    assert found == []
