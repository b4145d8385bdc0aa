"""The examples in CONTRIBUTING.md run, and do what the page says."""

import itertools
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from .forks import ran_in_forks

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"

# A heading of the page, and what a reader does with the module of its code.
USES = {
    "Add a mechanism": """
from example import make_quantiles
ages = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
quantiles = make_quantiles(*ages, 0, 128, 1e-9, 20)
assert quantiles.map(1) >= 20e9
child = quantiles(list(range(1, 101)))
assert child(0.5) == (49, 50), child(0.5)
assert len(child(None)) == 8
assert make_quantiles(*ages, 0, 128, 10.0, 1)([1, 2])(0.5) == (0, 128)  # no count is left
ratio = quantiles.map(2) / quantiles.map(1)
assert 1.99 < ratio < 2.01
""",
    "Add an accumulator": """
from example import Eighths
odometer = oc.make_concurrent_odometer(*space, dp.max_divergence(), accumulator=Eighths())
root = oc.make_concurrent_filter(odometer, 1, 0.3)([1, 2, 3])
count = space >> dp.t.then_count() >> dp.m.then_laplace(10.0)
root(count)
assert (root.privacy_loss(), root.remaining()) == (0.125, 0.125)
from opendp_concurrent.ledger import create_ledger
with create_ledger("budget.db", dataset="example") as ledger:
    oc.make_concurrent_filter(odometer, 1, 0.3, ledger=ledger)([1, 2, 3])(count)
""",
    "Add a measure": """
from example import expected_loss
count = space >> dp.t.then_count() >> dp.m.then_laplace(2.0)
child = oc.c.cast(count, expected_loss())
assert child.map(1) == 0.5
root = oc.make_concurrent_composition(*space, expected_loss(), 1, [0.5, 0.5])([1, 2, 3])
first, second = (root(oc.c.make_interactive(child)) for _ in range(2))
assert all(type(one(None)) is int for one in (second, first))
assert oc.loss_of(kappa=0.25) == (expected_loss(), 0.25)
""",
    "Add a kind of data": """
from example import BAGS
from collections import Counter
space = BAGS, dp.symmetric_distance()
total = dp.m.make_user_measurement(
    *space, dp.max_divergence(), lambda bag: sum(bag.values()), lambda d_in: d_in / 8, TO=int
)
odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
tens = oc.c.by_key(lambda value: value // 10)
root = oc.c.make_block_filter(odometer, 1, 0.25, blocks=tens, keys=[0, 1])([1, 1, 11, 30])
root.add_blocks([2], [25])
assert [root([0, 2], total), root([1], total)] == [3, 1]
assert (root.remaining(0), root.privacy_loss(1)) == (0.125, 0.125)
parts = oc.c.make_parallel_composition(*space, tens, {0: total, 1: total})
opened = parts(Counter({1: 2, 11: 1, 12: 4, 30: 9}))
assert (parts.map(1), opened(0), opened(1)) == (0.125, 2, 5)
context = oc.concurrent_context(
    Counter([1, 1, 2]), dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
)
assert context.accountant.input_domain == BAGS
""",
}
PREPARED = """
def run(folder, use):
    import os, sys
    os.chdir(folder)
    sys.path.insert(0, folder)
    exec(use, globals())
"""


def python_by_section():
    """Return the Python blocks of the page under each heading of the second level."""
    found, heading = {}, ""
    tokens = MarkdownIt().parse(PAGE.read_text())
    for token, after in itertools.pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            heading = after.content
        elif token.type == "fence" and token.info == "python":
            found.setdefault(heading, []).append(token.content)
    return found


def test_each_block_of_python_is_used():
    assert {
        heading: len(blocks) for heading, blocks in python_by_section().items()
    } == dict.fromkeys(USES, 1)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Each in a process of its own: an example registers a class under a tag of a test."""
    blocks, cases = python_by_section(), []
    for heading, use in USES.items():
        folder = tmp_path_factory.mktemp("example")
        (folder / "example.py").write_text("".join(blocks[heading]))
        cases.append((str(folder), use))
    told = ran_in_forks(PREPARED, cases)
    return {heading: told[case] for heading, case in zip(USES, cases, strict=True)}


@pytest.mark.parametrize("heading", USES)
def test_an_example_runs(heading, ran):
    status, said = ran[heading]
    assert status == 0, said
