"""What an import of the package changes in OpenDP: ``python tests/changes.py`` prints it.

It keeps what each module, class, function and collection of OpenDP holds before the import, and
compares by identity. A native function that is called for the first time gets its ``argtypes``, as
in any program; if it had some before, the same ones are expected.
"""

import importlib
import json
import pkgutil
import sys
from contextlib import suppress
from types import FunctionType, ModuleType

import opendp.prelude as dp
from opendp import __path__ as folders
from opendp._lib import lib

NATIVE = {lib._FuncPtr: "opendp._lib.lib._FuncPtr"}  # the class of all native functions
ADDED_TO = (dict, set)  # collections in which a new entry changes no other


def name_of(owner):
    return NATIVE.get(owner) or f"{owner.__module__}.{owner.__qualname__}"


def is_theirs(owner):
    return owner in NATIVE or str(owner.__module__).partition(".")[0] == "opendp"


def parts(one):
    """Return what an object of OpenDP holds, by names; None if it holds nothing."""
    if isinstance(one, FunctionType):
        held = {name: getattr(one, name) for name in ("__code__", "__defaults__", "__kwdefaults__")}
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            with suppress(ValueError):  # an empty cell
                held[f"<{name}>"] = cell.cell_contents
        return held | vars(one) if is_theirs(one) else None
    if isinstance(one, type):
        return dict(vars(one)) if is_theirs(one) else None
    if isinstance(one, lib._FuncPtr):
        return {name: getattr(one, name) for name in ("argtypes", "restype", "errcheck")}
    if type(one) is dict:
        return dict(one)
    if type(one) in (list, tuple):
        return dict(enumerate(one))
    if type(one) in (set, frozenset):
        return {id(member): member for member in one}
    if isinstance(one, property):
        return {name: getattr(one, name) for name in ("fget", "fset", "fdel")}
    if isinstance(one, classmethod | staticmethod):
        return {"__func__": one.__func__}
    return dict(vars(one)) if is_theirs(type(one)) and hasattr(one, "__dict__") else None


def walk():
    """Return the name, the object and the parts of each object that OpenDP's modules reach."""
    modules = [one for one in sys.modules if one.partition(".")[0] == "opendp"]
    modules.sort(key=lambda name: (name == "opendp", name.count("."), name))
    found = {}
    waiting = [(name, sys.modules[name], dict(vars(sys.modules[name]))) for name in modules]
    waiting += [(name, one, parts(one)) for one, name in NATIVE.items()]
    waiting += [(f"lib.{name}", one, parts(one)) for name, one in [*vars(lib).items()]]
    for name, one, held in waiting:
        if held is None or id(one) in found:
            continue
        found[id(one)] = name, one, held
        for key, value in held.items():
            if not isinstance(value, ModuleType):
                below = name_of(value) if isinstance(value, type) else f"{name}.{key}"
                waiting.append((below, value, parts(value)))
    return list(found.values())


def same(then, now):
    return then is now or (type(then) is list and type(now) is list and then == now)


def changes(before):
    """Return the names of what differs now."""
    found = set()
    for name, one, held in before:
        now = dict(vars(one)) if isinstance(one, ModuleType) else parts(one)
        if isinstance(one, lib._FuncPtr) and held["argtypes"] is None:
            continue  # it was not called before
        for key in held.keys() | now.keys():
            if key not in held and type(one) in ADDED_TO:
                found.add(name)
            elif isinstance(one, ModuleType) and isinstance(now.get(key), ModuleType):
                continue  # a module of OpenDP, imported
            elif not (key in held and key in now and same(held[key], now[key])):
                found.add(f"{name}.{key}")
    return sorted(found)


def use():
    """Call OpenDP, whose native functions get their ``argtypes`` when they are called."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    one = dp.m.make_user_measurement(*space, dp.max_divergence(), len, lambda d_in: 0.25)
    root = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())([1, 2, 3])
    for mechanism in (one, space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)):
        assert mechanism.map(1) == 0.25
        root(mechanism)
    assert root.privacy_loss(1) == 0.5
    assert dp.deserialize(dp.serialize(space[0])) == space[0]


def main():
    for one in pkgutil.walk_packages(folders, "opendp."):
        with suppress(ImportError):  # an extra that is not installed
            importlib.import_module(one.name)
    use()
    before = walk()
    said = {"objects": len(before), "nothing": changes(before)}
    oc = importlib.import_module("opendp_concurrent")
    use()
    said["import"] = changes(before)
    said["told"] = oc.install()
    said["install"] = changes(before)
    oc.install()
    oc.uninstall()
    said["uninstall"] = changes(before)
    print(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()
