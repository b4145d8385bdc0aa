"""Refusals for public reasons came out as failed mechanisms, and one with advice of no use."""

import logging

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, MechanismError

from ..build import PURE, SPACE, opened

COUNT = SPACE >> dp.t.then_count()


def root():
    return opened(1e3, opaque_errors=True)


def sensitive():
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    return dp.t.make_user_transformation(*SPACE, *space, len, lambda d_in: 5 * d_in)


REFUSED = {
    "sensitivity": (sensitive, "the sensitivity of the query"),
    "a vector answer": (lambda: SPACE >> dp.t.then_clamp((0, 1)), "must have one number"),
    "no query": (lambda: 7, "must be a transformation"),
    "a tuple": (lambda: (1, 2, 3), "found a tuple of length 3"),
    "a threshold": (lambda: (COUNT, "five"), "^threshold must be a number"),
}
SPARSE = oc.m.make_sparse_vector(*SPACE, PURE, 1, scale=2.0, threshold=1e6, max_hits=2)


def twice(measurement):
    return oc.c.make_bounded_interactive(oc.c.make_interactive(measurement), 100)


@pytest.mark.parametrize("wrap", [lambda of: of, oc.c.make_interactive, twice])
@pytest.mark.parametrize("name", REFUSED)
def test_a_query_of_a_sparse_vector_is_refused_in_its_own_words(caplog, name, wrap):
    make, said = REFUSED[name]
    account = root()
    queryable = account(wrap(SPARSE))
    spent = account.privacy_loss()
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(ConcurrentError, match=said) as refusal,
    ):
        queryable(make())
    assert type(refusal.value) is not MechanismError
    assert caplog.text == ""  # nothing has failed
    assert account.privacy_loss() == spent
    assert queryable(COUNT).outcome is oc.handles.Outcome.BELOW


def test_what_depends_on_the_data_stays_hidden():
    queryable = root()(oc.c.make_interactive(SPARSE))
    for query in (lambda data: str(data), lambda data: 1 / 0, lambda data: data[10**6]):
        with pytest.raises(MechanismError):
            queryable(query)


def test_a_guess_and_an_individual_price_are_refused_likewise():
    checker = oc.m.make_guess_and_check(
        *SPACE, PURE, 1, scale=4.0, tolerance=2.0, max_hits=2, answer_scale=8.0
    )
    for query in (7, (sensitive(), 3.0)):
        with pytest.raises(ConcurrentError, match="message must be a pair|sensitivity"):
            root()(checker)(query)
    filtered = oc.m.make_individual_filter(*SPACE, PURE, d_out=1.0)
    queryable = root()(filtered)
    with pytest.raises(ConcurrentError, match="^scale .* must be at least"):
        queryable(oc.handles.NoisySum(lambda rows: rows, bound=10.0, scale=1.0))
    with pytest.raises(ConcurrentError, match="must be a NoisySum"):
        queryable(7)
    with pytest.raises(MechanismError):
        queryable(oc.handles.NoisySum(lambda rows: np.ones(1), bound=1.0, scale=10.0))


def test_a_key_of_no_part_is_refused_likewise():
    part = COUNT >> dp.m.then_laplace(scale=4.0)
    parallel = oc.c.make_parallel_composition(*SPACE, oc.c.by_values({"a": [1]}), {"a": part})
    with pytest.raises(ConcurrentError, match="must be a key of measurements"):
        root()(parallel)["b"]
