"""The door of the room: what other rooms use, and no more."""

import re
from pathlib import Path

from opendp_concurrent import _opendp as door

PACKAGE = Path(door.__file__).parents[1]


def test_each_name_is_used_by_another_room():
    used = set()
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "native" not in path.parents:
            used.update(re.findall(r"\b_native\.(\w+)", path.read_text()))
            used.update(re.findall(r"native\.opendp import (\w+)", path.read_text()))
    offered = {name for name in vars(door) if not name.startswith("_")}
    modules = {path.stem for path in (PACKAGE / "native").glob("*.py")}
    assert offered - modules - {"set_once", "guard"} == used - modules
