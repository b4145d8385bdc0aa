"""What a reader must know to trust a sum stays small: see ``tests/reach.py``."""

import importlib.util
import re
from pathlib import Path

import pytest

from opendp_concurrent import types

spec = importlib.util.spec_from_file_location("reach", Path(__file__).parent / "reach.py")
assert spec
assert spec.loader
reach = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reach)


@pytest.mark.parametrize("part", reach.LAWS)
def test_a_part_reaches_few_lines(part):
    parts, most = reach.LAWS[part]
    found = reach.size(reach.reached(parts))
    assert most * 0.8 < found <= most, f"{part} reaches {found} lines; run python tests/reach.py"


@pytest.mark.parametrize("part", reach.APART)
def test_a_part_does_not_reach_rooms_that_it_need_not_know(part):
    parts, apart = reach.APART[part]
    rooms = {reach.room(module) for module in reach.reached(parts)}
    assert not rooms & set(apart)


def test_a_reader_of_f_dp_reaches_f_dp():
    assert {reach.room(one) for one in reach.reached(("tradeoffs",))} >= {"fdp", "measures"}


def test_few_parameters_may_be_anything():
    loose = [one for one in reach.parameters() if one in ("Any", "object")]
    assert len(loose) <= reach.LOOSE * len(reach.parameters())


def test_few_places_read_what_is_private():
    assert len(reach.private_reads()) <= reach.PRIVATE, reach.private_reads()


def test_each_name_for_a_type_is_used():
    names = re.findall(
        r"^(\w+): TypeAlias = Any  # \w", (reach.PACKAGE / "types.py").read_text(), re.M
    )
    used = set().union(*(reach.annotated(one) for one in reach.graph().modules))
    assert {one for one in vars(types) if one[0].isupper()} == {"Any", "TypeAlias", *names}
    assert set(names) <= used
