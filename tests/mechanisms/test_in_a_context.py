"""The interactive mechanisms in OpenDP's Context API, with the scale left to be found."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

ROWS = [3] * 9000 + [5] * 1000


def context(loss, **keywords):
    return oc.concurrent_context(
        data=ROWS,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=loss,
        split_evenly_over=2,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
        **keywords,
    )


def equal(value):
    return lambda rows: rows.count(value)


@pytest.mark.parametrize(
    ("loss", "measure", "share"),
    [
        (dp.loss_of(epsilon=1.0), dp.max_divergence, 0.5),
        (dp.loss_of(rho=1.0), dp.zero_concentrated_divergence, 0.5),
    ],
)
def test_the_scale_of_a_sparse_vector_is_found(loss, measure, share):
    made = context(loss)
    query = made.query().sparse_vector(measure(), 1, threshold=4000, max_hits=2)
    scale = query.param()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    assert oc.m.make_sparse_vector(*space, measure(), 1, scale, 4000, 2).map(1) <= share
    assert oc.m.make_sparse_vector(*space, measure(), 1, scale * 0.999, 4000, 2).map(1) > share
    queryable = query.release()
    assert queryable(equal(3))
    assert not queryable(equal(5))
