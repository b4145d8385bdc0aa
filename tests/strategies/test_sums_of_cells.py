"""Strategies of cells and sums: trees by hand, and the descent of p-identity."""

import numpy as np
import pytest

from opendp_concurrent.strategies.sums_of_cells import p_identity, tree


def mean_square(strategy, work):
    return (
        np.abs(strategy).sum(axis=0).max() ** 2
        * np.square(work @ np.linalg.pinv(strategy)).sum()
        / len(work)
    )


def test_a_tree_by_hand():
    assert tree(5, 2).tolist() == [
        *np.eye(5, dtype=int).tolist(),
        [1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 1],
        [1, 1, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert tree(3, 3).tolist() == np.eye(3, dtype=int).tolist()


def test_errors_of_trees_for_prefixes():
    """64 prefixes in blocks of 8: 6.18 at ε = 1 without the sum of all, as computed elsewhere."""
    found = np.sqrt(2 * mean_square(tree(64, 8), np.tri(64)))
    assert found == pytest.approx(6.1824, abs=1e-3)


@pytest.mark.parametrize(("cells", "most"), [(64, 5.33), (128, 6.4)])
def test_a_descent_is_better_than_trees(cells, most):
    work = np.tri(cells)
    found = p_identity(work.T @ work)
    assert np.abs(found).sum(axis=0) == pytest.approx(1.0)
    assert found.min() >= 0.0
    assert np.linalg.matrix_rank(found) == cells
    assert np.sqrt(2 * mean_square(found, work)) <= most
    assert (p_identity(work.T @ work) == found).all()


def test_a_descent_is_never_worse_than_cells():
    for work in (np.eye(5), np.ones((2, 4)), np.random.default_rng(0).random((3, 6))):
        assert mean_square(p_identity(work.T @ work), work) <= 1.001 * mean_square(
            np.eye(work.shape[1]), work
        )
