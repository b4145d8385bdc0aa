"""No handle of the catalogue answers in a forked process."""

import os

import pytest

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Recipe, is_ours

FEW = [
    one
    for one in SUBJECTS
    if one.name in ("release pure", "probe pure", "composition pure", "native queryable pure")
]


def handles():
    """Those of each subject, and of each wrapper around a few, by name, with a query."""
    recipes = [Recipe((), one) for one in SUBJECTS]
    recipes += [Recipe((wrapper,), one) for wrapper in WRAPPERS for one in FEW]
    for recipe in recipes:
        cases = recipe.cases()
        if cases is None:
            continue
        try:
            talk = cases[-1].open()
        except REFUSALS:
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


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_no_handle_answers_in_a_forked_process():
    asked = list(handles())
    assert len(asked) > 200
    assert said_in_a_fork(asked) == []
