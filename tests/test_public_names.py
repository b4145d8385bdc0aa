"""What users may import: with an example, in pairs of make and then, and classes of handles."""

from inspect import getdoc, isclass, isfunction, ismodule, signature

import opendp.prelude as dp
import pytest
from opendp.context import constructors

import opendp_concurrent as oc
from opendp_concurrent import ledger, plot, serving, verify

from .build import DATA, PURE, SPACE, a_filter, an_odometer, by_tens, laplace, opened

EXTRAS = (oc.extend, oc.handles, ledger, plot, serving, verify)
GROUPS = (oc, oc.c, oc.m, oc.t, oc.accumulators, oc.fdp, oc.measures, oc.mechanisms, oc.streams)


def test_a_public_name_has_an_example():
    without = []
    for module in (*GROUPS, *EXTRAS):
        for name in {*module.__all__} - {"ANSWER", "QUERY"}:
            found = getattr(module, name)
            shown_by_functions = module in EXTRAS and isclass(found)  # which return it
            if not (ismodule(found) or shown_by_functions or ":example:" in getdoc(found)):
                without.append((module, name))
    assert without == []


def begins_with_a_space(constructor):
    return list(signature(constructor).parameters)[:2] == ["input_domain", "input_metric"]


@pytest.mark.parametrize("group", [oc.c, oc.m, oc.t], ids=["c", "m", "t"])
def test_each_constructor_on_a_space_has_its_then_and_no_other_has(group):
    made = {name: vars(group)[name] for name in group.__all__ if name.startswith("make_")}
    assert made
    assert all(isfunction(one) for one in made.values())
    expected = {f"then_{name[5:]}" for name, one in made.items() if begins_with_a_space(one)}
    assert {name for name in group.__all__ if name.startswith("then_")} == expected


def test_a_constructor_has_its_own_name_in_a_context():
    for group in (oc.c, oc.m, oc.t):
        for name in group.__all__:
            if name.startswith("then_"):
                made, _ = constructors[name[5:]]
                kept = [cell.cell_contents for cell in made.__closure__]
                assert vars(group)["make_" + name[5:]] in kept


# --- whoever annotates with a handle's public class is right about what is returned ---------------

STREAM = oc.integer_stream(0, 1), oc.event_presence()


def counter():
    return oc.m.make_counter(*STREAM, PURE, scale=4.0)


def native_filter():
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    return dp.c.make_privacy_filter(odometer, 1, 1.0)


def child(query):
    return an_odometer()(DATA)(query)


RETURNED = {
    "ConcurrentOdometerQueryable": lambda: an_odometer()(DATA),
    "ConcurrentFilterQueryable": opened,
    "ConcurrentCompositionQueryable": lambda: oc.make_concurrent_composition(
        *SPACE, PURE, 1, [0.5]
    )(DATA),
    "BlockFilterQueryable": lambda: by_tens()(DATA),
    "ChildQueryable": lambda: child(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])),
    "ChildOdometerQueryable": lambda: child(native_filter()),
    "WrappedOdometerQueryable": lambda: oc.c.make_bounded_interactive(an_odometer(), 9)(DATA),
    "ContinualQueryable": lambda: counter()([]),
    "StreamQueryable": lambda: oc.c.make_concurrent_continual(a_filter(space=STREAM))([]),
    "OwnStreamQueryable": lambda: oc.c.make_bounded_interactive(counter(), 9)([]),
    "SharedReleaseQueryable": lambda: child(
        SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)
    ),
    "Readable": lambda: counter()([]),
    "WithParts": lambda: oc.c.make_parallel_composition(
        *SPACE, oc.c.by_key(bool), {True: laplace(1.0)}
    )(DATA),
    "WithSynthetic": lambda: oc.m.make_private_multiplicative_weights(
        *SPACE, PURE, d_in=1, d_out=1.0, universe=4, queries=9, size=9000
    )(DATA),
}


@pytest.mark.parametrize("name", RETURNED)
def test_each_class_is_of_what_is_returned(name):
    handle = RETURNED[name]()
    assert isinstance(handle, vars(oc.handles)[name])
    assert isinstance(handle, (dp.Queryable, dp.OdometerQueryable))


def test_each_class_of_a_handle_is_tried():
    found = (vars(oc.handles)[name] for name in oc.handles.__all__)
    assert {one.__name__ for one in found if "Queryable" in one.__name__} <= set(RETURNED)
