"""The cells of a message are counted before its calls; the space and the measure come first."""

import json

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, SpaceMismatchError
from opendp_concurrent.serving import values as calls

from ..build import APPROXIMATE, PURE, SPACE, ZCDP, a_filter

OTHER = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()


@pytest.fixture(autouse=True)
def _dp_deserialize_knows_this_package():
    oc.install()
    yield
    oc.uninstall()


def composition(count, **options):
    losses = [(0.01 + index * 1e-6, 0.0) for index in range(count)]
    return oc.make_concurrent_composition(*SPACE, APPROXIMATE, 1, losses, **options)


def many(count):
    """A message with an optimal composition of distinct losses, which is not built here."""
    tree = json.loads(oc.serialize(composition(2, delta=1e-6)))
    losses = [{"__tuple__": [0.01 + index * 1e-6, 0.0]} for index in range(count)]
    tree["__kwargs__"]["d_mids"] = losses
    return json.dumps(tree)


def test_cells_add_up_over_a_message():
    one = json.loads(many(33))  # 64 losses are allowed
    assert oc.deserialize(json.dumps(one)) is not None
    with pytest.raises(InvalidValueError, match="too many cells"):
        oc.deserialize(json.dumps([one, one]))


def test_trusted_messages_are_not_limited():
    text = many(66)
    with pytest.raises(InvalidValueError, match="too many cells"):
        oc.deserialize(text)
    assert dp.deserialize(text).map(1)[1] == 1e-6


# --- what is expected -----------------------------------------------------------------------------


def count(space=SPACE, scale=4.0):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


MESSAGES = {
    "chain": lambda space: count(space),
    "cast": lambda space: oc.c.cast(count(space), PURE),
    "compositor": lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.5]),
    "filter": lambda space: a_filter(space=space),
    "list": lambda space: dp.c.make_composition([count(space), count(space)]),
    "sparse vector": lambda space: oc.m.make_sparse_vector(*space, PURE, 1, 8.0, 5, 3),
    "odometer": lambda space: oc.make_concurrent_odometer(*space, PURE),
    "selection": lambda space: oc.c.make_interactive(count(space)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_another_space_or_measure_is_refused(name):
    right, wrong = (oc.serialize(MESSAGES[name](space)) for space in (SPACE, OTHER))
    made = oc.deserialize(right, space=SPACE, output_measure=PURE)
    assert (made.input_domain, made.input_metric, made.output_measure) == (*SPACE, PURE)
    with pytest.raises(SpaceMismatchError, match="^input_domain does not match"):
        oc.deserialize(wrong, space=SPACE, output_measure=PURE)
    with pytest.raises(SpaceMismatchError, match="^input_metric does not match"):
        oc.deserialize(right, space=(SPACE[0], dp.change_one_distance()))
    with pytest.raises(SpaceMismatchError, match="^output_measure does not match"):
        oc.deserialize(right, output_measure=ZCDP)


@pytest.mark.parametrize(
    ("made", "measure"),
    [
        (lambda: dp.c.make_pureDP_to_zCDP(count()), ZCDP),
        (lambda: oc.c.cast(count(), ZCDP), ZCDP),
        (lambda: dp.c.make_approximate(count()), APPROXIMATE),
        (lambda: oc.c.make_private_selection(oc.c.cast(count(), ZCDP), mean_runs=4), None),
    ],
)
def test_the_measure_after_a_cast_is_compared(made, measure):
    measure = made().output_measure if measure is None else measure
    text = oc.serialize(made())
    assert oc.deserialize(text, space=SPACE, output_measure=measure).output_measure == measure
    with pytest.raises(SpaceMismatchError, match="^output_measure"):
        oc.deserialize(text, output_measure=oc.gaussian_tradeoff())


def test_the_space_is_compared_before_anything_else_is_built(monkeypatch):
    seen = []
    key = (calls.MODULE, "make_concurrent_composition")
    table = {**calls.table(), key: lambda **given: seen.append(given)}
    monkeypatch.setattr(calls, "table", lambda: table)
    text = many(2)
    with pytest.raises(SpaceMismatchError):
        oc.deserialize(text, space=OTHER)
    with pytest.raises(SpaceMismatchError):
        oc.deserialize(text, output_measure=PURE)
    assert not seen
    oc_made = oc.deserialize
    with pytest.raises(SpaceMismatchError):
        oc_made(text, space=SPACE, output_measure=APPROXIMATE)  # what was made is compared, too
    assert len(seen) == 1
