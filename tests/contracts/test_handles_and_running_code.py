"""What runs on data may use no handle but its own: all classes of handles, all of their methods."""

import gc
import sys
from inspect import getattr_static
from types import FunctionType

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_concurrent as oc
from opendp_concurrent.contexts.named import NamedContexts
from opendp_concurrent.errors import ReentrantLaunchError
from opendp_concurrent.queryables.data import SealedHandle
from opendp_concurrent.queryables.stream_handles import FedQueryable

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
BITS = oc.integer_stream(0, 1), oc.event_presence()
ODOMETER = oc.make_concurrent_odometer(*SPACE, PURE)
COUNT = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
UNTOUCHED = {"__init__", "__new__", "__init_subclass__", "__reduce__", "__repr__", "__str__"}


def root():
    return oc.make_concurrent_filter(ODOMETER, d_in=1, d_out=1e6)([1, 2, 3])


def streams():
    odometer = oc.make_concurrent_odometer(*BITS, PURE)
    counter = oc.m.make_counter(*BITS, PURE, scale=4.0)
    outer, stream = (
        oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, d_out))
        for d_out in (3.0, 1.0)
    )
    own = outer([])
    inner, read = own(stream), own(counter)
    fed = [one for one in gc.get_objects() if isinstance(one, FedQueryable)]
    return [own, inner, read, *fed, counter([]), oc.c.make_interactive(counter)([])]


def handles():
    """Handles of every class."""
    weeks = oc.c.by_key(lambda record: record // 100)
    blocks = oc.c.make_block_filter(ODOMETER, 1, 1e6, blocks=weeks, keys=[0])
    parallel = oc.c.make_parallel_composition(*SPACE, oc.c.by_values({"a": [1]}), {"a": COUNT})
    native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5, 0.5])
    bounded = dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*SPACE, PURE), 1, 0.75)
    context = oc.concurrent_context(
        pl.LazyFrame({"age": [1, 2]}), dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    )
    parts = parallel([1, 2, 3])
    return [
        ODOMETER([1, 2, 3]),
        root(),
        oc.make_concurrent_composition(*SPACE, PURE, 1, [1.0])([1, 2, 3]),
        blocks([1, 2, 3]),
        parts,
        NamedContexts(parts, lambda key, queryable: key),
        oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 5.0, 2)([1, 2, 3]),
        oc.c.make_interactive(COUNT)([1, 2, 3]),
        root()(SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)),
        root()(native),
        root()(bounded),
        context.query(epsilon=0.25).select(dp.len(signed=True)).release(),
        *streams(),
        oc.c.Checkpoint(),
    ]


def classes(kind=SealedHandle):
    for one in kind.__subclasses__():
        if one.__module__.startswith("opendp_concurrent"):  # not those of other tests
            yield one
            yield from classes(one)


def uses(handle):
    """Yield the name of each public method and property, with a call that uses it."""
    kind = type(handle)
    for name in dir(kind):
        special = name.startswith("__") and name.endswith("__")
        if name in UNTOUCHED or (name.startswith("_") and not special):
            continue
        member = getattr_static(kind, name)
        if isinstance(member, property) and not special:
            yield name, lambda name=name: getattr(handle, name)
        elif isinstance(member, FunctionType):
            yield name, lambda name=name: getattr(kind, name)(handle)


def outcomes(handle):
    found = {}
    for name, use in uses(handle):
        try:
            use()
        except ReentrantLaunchError:
            continue
        except Exception as error:
            found[name] = repr(error)
        else:
            found[name] = "was used"
    return found


def in_a_mechanism(code):
    user = dp.m.make_user_measurement(*SPACE, PURE, code, lambda d_in: 0.1)
    root()(user)


def in_a_measurement_of_the_owner(code):
    user = dp.m.make_user_measurement(*SPACE, PURE, code, lambda d_in: 0.1)
    oc.c.make_interactive(user)([1])


def transformation(code):
    def function(rows):
        code(rows)
        return rows

    return dp.t.make_user_transformation(*SPACE, *SPACE, function, lambda d_in: d_in)


def in_the_transformation_of_a_root(code):
    (transformation(code) >> ODOMETER)([1])


def in_the_transformation_of_a_filter(code):
    (transformation(code) >> oc.make_concurrent_filter(ODOMETER, 1, 1.0))([1])


def in_the_transformation_of_a_child(code):
    root()(transformation(code) >> ODOMETER)(COUNT)


def in_a_partition(code):
    def split(record):
        code(record)
        return 0

    oc.c.make_parallel_composition(*SPACE, oc.c.by_key(split), {0: COUNT})([1])(0)


def in_the_partition_of_blocks(code):
    def split(record):
        code(record)
        return 0

    made = oc.c.make_block_filter(ODOMETER, 1, 1.0, blocks=oc.c.by_key(split), keys=[0])
    made([1])([0], COUNT)


def in_a_query(code):
    def count(rows):
        code(rows)
        return len(rows)

    oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 5.0, 2)([1])(count)


def in_a_childs_transition(code):
    def function(rows):
        return dp.new_queryable(lambda query, _: int(code(query)), Q="i32", A="i32")

    user = dp.m.make_user_measurement(
        *SPACE, PURE, function, lambda d_in: 0.1, TO="ExtrinsicObject"
    )
    root()(user)(3)


def in_a_postprocessor_that_runs_on_data(code):
    def middle(state, tag, message):
        code(message)
        return state, tag, message

    def function(rows):
        inner = oc.c.make_interactive_postprocessing(oc.c.make_interactive(COUNT), middle)
        return inner(rows)(None)

    root()(dp.m.make_user_measurement(*SPACE, PURE, function, lambda d_in: 0.1))


RUNNING = [
    in_a_mechanism,
    in_a_measurement_of_the_owner,
    in_the_transformation_of_a_root,
    in_the_transformation_of_a_filter,
    in_the_transformation_of_a_child,
    in_a_partition,
    in_the_partition_of_blocks,
    in_a_query,
    in_a_childs_transition,
    in_a_postprocessor_that_runs_on_data,
]


def test_every_class_of_handles_is_here():
    made = {kind for handle in handles() for kind in type(handle).__mro__}
    # those that are made on the way, of one of these, have its methods
    named = {
        one for one in classes() if getattr(sys.modules[one.__module__], one.__name__, 0) is one
    }
    assert named <= made
    assert len(named) > 10


def test_every_method_is_here():
    names = {name for handle in handles() for name, _ in uses(handle)}
    assert {"__call__", "__exit__", "close", "add_blocks"} <= names
    assert {"collect", "update", "receive", "privacy_loss", "unspent", "read", "save"} <= names


@pytest.mark.parametrize("running", RUNNING)
def test_running_code_uses_no_handle_of_others(running):
    found, ran = {}, []
    others = handles()

    def code(_):
        ran.append(True)
        for handle in others:
            for name, outcome in outcomes(handle).items():
                found[type(handle).__name__, name] = outcome
        return 1.0

    running(code)
    assert ran
    assert found == {}


def test_running_code_uses_its_own_handles():
    """A mechanism that composes others, and a handle that it keeps between two queries."""

    def function(rows):
        inner = oc.make_concurrent_filter(ODOMETER, 1, 3.0)(rows)
        vector = inner(oc.m.make_sparse_vector(*SPACE, PURE, 1, 4.0, 5.0, 2))
        inner(COUNT)

        def transition(query, _):
            vector(lambda data: len(data))
            return inner.privacy_loss()

        return dp.new_queryable(transition, Q="i32", A="f64")

    user = dp.m.make_user_measurement(
        *SPACE, PURE, function, lambda d_in: 1.0, TO="ExtrinsicObject"
    )
    child = root()(user)
    assert child(1) == child(2) > 0.25
