"""Measures and accumulators of other packages change no answer about those of this package.

Each hostile class is registered, or refused. Either way, every answer about the built-in measures
is the same before and after.
"""

import json
import subprocess
import sys

import pytest

PROGRAM = r"""
import json, math, sys, warnings
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent import measures
from opendp_concurrent.combinators.cast import conversion
from opendp_concurrent.combinators.loss_of import guarded
from opendp_concurrent.accounts.charge import Terms

from opendp_concurrent.ledger.records import measures as written_measures
from opendp_concurrent.ledger.records.terms import read_terms, write_terms
from opendp_concurrent.measures.heights import height, name
dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
KEYWORDS = [
    dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-6), dict(rho=0.5), dict(rho=0.5, delta=1e-6),
    dict(epsilon=1.0, alpha=8.0), dict(rho=0.5, omega=20.0), dict(mu=0.5),
    dict(tradeoff=oc.TradeoffFunction.laplace(0.5)), dict(epsilon=-1.0), dict(kappa=3.0), {},
    dict(epsilon=1.0, mu=2.0),
]
MEASURES = {
    "pure": (dp.max_divergence(), 0.5),
    "approximate": (dp.approximate(dp.max_divergence()), (0.5, 1e-9)),
    "zcdp": (dp.zero_concentrated_divergence(), 0.125),
    "approximate zcdp": (dp.approximate(dp.zero_concentrated_divergence()), (0.125, 1e-9)),
    "renyi": (dp.renyi_divergence(), lambda alpha: 0.125 * alpha),
    "fixed": (oc.fixed_renyi_divergence(4.0), 0.5),
    "tcdp": (oc.truncated_concentrated_divergence(20.0), oc.TruncatedConcentrated(0.125, 20.0)),
    "gdp": (oc.gaussian_tradeoff(), 0.5),
    "fdp": (oc.tradeoff(), oc.TradeoffFunction.laplace(0.5)),
    "profile": (dp.smoothed_max_divergence(), None),
    "unknown": (dp.user_divergence("nobody", "nobody"), None),
}

def told(function, *arguments, **options):
    try:
        return shown(function(*arguments, **options))
    except Exception as error:
        # which measures there are is said in errors, and may change
        return type(error).__name__

def shown(found):
    if isinstance(found, tuple | list):
        return [shown(one) for one in found]
    if hasattr(found, "delta"):
        return shown([float(found.delta(1.0)) if callable(found.delta) else found.delta])
    if callable(found):
        return [float(found(order)) for order in (2.0, 8.0)]
    return repr(found)

def answers():
    found = {}
    for given in KEYWORDS:
        found[f"loss_of {given}"] = told(oc.loss_of, **given)
        found[f"guarded {given}"] = told(guarded, **given)
    for key, (output, loss) in MEASURES.items():
        known = told(measures.composition_measure, output)
        found[f"{key}: measure"] = known[:40]
        for other, (target, _) in MEASURES.items():
            for options in ({}, {"delta": 1e-6}):
                found[f"{key} to {other} {options}"] = told(
                    lambda: conversion(output, target, **options)(loss))
        if loss is not None:
            found[f"{key}: height"] = told(height, loss, 4.0)
            found[f"{key}: name"] = told(name, loss, 4.0)
        found[f"{key}: height of a number"] = told(height, 0.5)
        try:
            known = measures.composition_measure(output)
        except Exception as error:
            found[f"{key}: refused"] = type(error).__name__
            continue
        found[f"{key}: class"] = f"{type(known).__module__}.{type(known).__qualname__}"
        found[f"{key}: tag"] = json.dumps(written_measures.written(known.name))
        found[f"{key}: by tag"] = told(measures.by_tag, known.name)[:40]
        found[f"{key}: read"] = told(written_measures.read, written_measures.written(known.name))
        found[f"{key}: zero"] = told(written_measures.zero, known.name)
        found[f"{key}: join"] = told(known.join, [[loss], [loss]], [2])
        found[f"{key}: group"] = told(known.group_loss, loss, 2)
        found[f"{key}: at most"] = told(known.check, loss, loss)
        found[f"{key}: sum"] = told(lambda: known.sum().start(known).after(loss, 3).loss)
        found[f"{key}: terms"] = told(lambda: read_terms(write_terms(
            Terms(known.name, known.sum(), "m", 1, known.validate_budget("d_out", loss)))))
        odometer = told(oc.make_concurrent_odometer, *SPACE, output)
        found[f"{key}: odometer"] = odometer[:40]
        def launched():
            made = oc.make_concurrent_odometer(*SPACE, output)
            root = oc.make_concurrent_filter(made, 1, loss)(3)
            root(dp.m.make_user_measurement(*SPACE, output, lambda _: 1, lambda _: loss))
            return root.privacy_loss(1), root.remaining()
        found[f"{key}: launched"] = told(launched)
        made = lambda: oc.m.make_certified_gaussian(*SPACE, 4.0, output)
        found[f"{key}: gaussian"] = told(lambda: made().map(1))
        other = lambda: oc.m.make_certified_laplace(*SPACE, 4.0, output)
        found[f"{key}: laplace"] = told(lambda: other().map(1))
        found[f"{key}: message"] = told(lambda: oc.serialize(made()))
        found[f"{key}: read message"] = told(lambda: oc.deserialize(oc.serialize(made())).map(1))
    return found

before = answers()
class Base(measures.NumberMeasure):
    kind = "evil.Base"
    reason = "none"
    distance_form = "evil"
    @property
    def name(self):
        return type(self).kind
    def opendp(self):
        return dp.user_divergence(type(self).kind, type(self).kind)

def seven(**given):
    return 7.0

def small(distance, ends):
    return 1e-9

def fails(*_, **__):
    raise RuntimeError("raised by the measure itself")

def changed():
    after = answers()
    both = {key: [before.get(key), after.get(key)] for key in before.keys() | after.keys()}
    return {key: two for key, two in both.items() if two[0] != two[1]}

known, found = dict(measures._KNOWN), []
for several in json.loads(sys.stdin.read()):
    outcomes = dict.fromkeys(several, "registered")
    for label, code in several.items():
        try:
            exec(code)
        except Exception as error:
            outcomes[label] = f"{type(error).__name__}: {error}"
    found.append({"outcomes": outcomes, "changed": changed()})
    measures._KNOWN.clear()  # as it was
    measures._KNOWN.update(known)
print(json.dumps({"answers": len(before), "found": found}))
"""

KINDS = (
    "MaxDivergence",
    "Approximate(MaxDivergence)",
    "ZeroConcentratedDivergence",
    "RenyiDivergence",
    "GaussianTradeoff",
    "Tradeoff",
    "SmoothedMaxDivergence",
)
TAGS = ("pure", "approximate", "zcdp", "renyi", "gdp", "fdp")

REFUSED = {
    "keyword of pure DP": "measures.register(type('E', (Base,), {'keywords': {'epsilon': seven}}))",
    "keywords of (epsilon, delta)": (
        "measures.register(type('E', (Base,), {'keywords': {'delta': seven, 'epsilon': seven}}))"
    ),
    "keyword that is no name": (
        "measures.register(type('E', (Base,), {'keywords': {'a b': seven}}))"
    ),
    "keywords that are no mapping": "measures.register(type('E', (Base,), {'keywords': None}))",
    "guard that is no function": "measures.register(type('E', (Base,), {'keywords': {'x': 3}}))",
    "composability as a text": (
        "measures.register(type('E', (Base,), {'composability': 'sequential'}))"
    ),
    "flag that is a number": "measures.register(type('E', (Base,), {'adaptive_updates': 1}))",
    "conversions that are functions": (
        "measures.register(type('E', (Base,), {'conversions_to': {'MaxDivergence': small}}))"
    ),
    "reads a text": "measures.register(type('E', (Base,), {'read_from': 'GaussianTradeoff'}))",
    "tag without a package": "measures.register(type('E', (Base,), {'tag': 'doubled'}))",
    "kind that equals what it likes": """
class Evil(str):
    __hash__ = lambda self: hash("MaxDivergence")
    __eq__ = lambda self, other: True
measures.register(type("E", (Base,), {"kind": Evil("evil")}))
""",
    "class that equals what it likes": """
from abc import ABCMeta
class Meta(ABCMeta):
    __hash__ = lambda self: hash(measures.MaxDivergence)
    __eq__ = lambda self, other: True
measures.register(Meta("E", (Base,), {}))
""",
    **{
        f"kind {kind}": f"measures.register(type('E', (Base,), {{'kind': {kind!r}}}))"
        for kind in KINDS
    },
    **{f"tag {tag}": f"measures.register(type('E', (Base,), {{'tag': {tag!r}}}))" for tag in TAGS},
    "measure of OpenDP": (
        "measures.register(type('E', (Base,), {'opendp': lambda self: dp.max_divergence()}))"
    ),
}

REGISTERED = {
    "one that is well-behaved": "measures.register(Base)",
    "keywords that share a word": (
        "measures.register(type('E', (Base,), {'keywords': {'epsilon': seven, 'extra': seven}}))"
    ),
    "keywords that change later": """
E = type("E", (Base,), {"keywords": {"extra": seven}})
measures.register(E)
E.keywords = {"epsilon": seven}
""",
    "tag and kind that change later": """
E = type("E", (Base,), {})
measures.register(E)
E.tag, E.kind = "pure", "MaxDivergence"
""",
    "conversions that are too good": f"ends = dict.fromkeys({KINDS}, measures.Conversion(small))"
    """
measures.register(type("E", (Base,), {"conversions_to": ends, "conversions_from": ends}))
""",
    "finds every measure": """
measures.register(type("E", (Base,), {"find": classmethod(lambda cls, one: cls())}))
""",
    "finds nothing but errors": """
measures.register(type("E", (Base,), {name: classmethod(fails) for name in
    ("find", "from_tag", "is_loss", "height", "symbol", "loss_of", "of_parameters")}))
""",
    "finds every measure, and fails then": """
E = type("E", (Base,), {})
measures.register(E)
E.find = E.from_tag = classmethod(lambda cls, one: cls())
E.opendp, E.name = fails, property(fails)
""",
    "reads every tag": """
measures.register(type("E", (Base,), {"from_tag": classmethod(lambda cls, tag: cls())}))
""",
    "has the name of pure DP": """
measures.register(type("E", (Base,), {"name": "MaxDivergence"}))
""",
    "takes every value for a loss": """
measures.register(type("E", (Base,), {"is_loss": classmethod(lambda cls, one: True),
    "height": classmethod(lambda cls, *_: 7.0), "symbol": classmethod(lambda cls, *_: "evil")}))
""",
    "equals every measure": """
measures.register(type("E", (Base,), {"__eq__": lambda self, other: True,
    "__hash__": lambda self: hash(measures.composition_measure(dp.max_divergence()))}))
""",
    "descriptor below one of ours": """
from opendp_concurrent.tradeoffs.gaussian_tradeoff import Gaussian
class Other(Gaussian):
    __eq__ = lambda self, other: isinstance(other, Gaussian)
    __hash__ = Gaussian.__hash__
measures.register(type("E", (Base,), {"opendp": lambda self: dp.user_divergence("o", Other())}))
""",
    "many at once": """
for number in range(50):
    measures.register(type(f"E{number}", (Base,), {"kind": f"evil.E{number}"}))
""",
}


BUILT_IN = {"built-in": "measures.MaxDivergence.keywords = {'epsilon': seven}"}


@pytest.fixture(scope="module")
def found():
    """What was changed by all that is refused, by each other class, and by a changed built-in one.

    In a process that ends with them.
    """
    one_by_one = [{label: code} for label, code in REGISTERED.items()]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([REFUSED, *one_by_one, BUILT_IN]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = json.loads(ran.stdout)
    assert told["answers"] > 300
    return told["found"]


@pytest.mark.parametrize("label", REFUSED)
def test_a_measure_that_would_speak_for_others_is_refused(label, found):
    outcome = found[0]["outcomes"][label]
    assert outcome.startswith(("InvalidTypeError: meas", "InvalidValueError: meas"))


def test_measures_that_are_refused_change_no_answer(found):
    assert found[0]["changed"] == {}


@pytest.mark.parametrize("label", REGISTERED)
def test_a_registered_measure_changes_no_other_answer(label, found):
    (one,) = [one for one in found if label in one["outcomes"]]
    assert one == {"outcomes": {label: "registered"}, "changed": {}}


def test_the_answers_depend_on_the_measures_of_this_package(found):
    """A changed built-in measure is seen: what is compared is what the classes answer."""
    assert found[-1]["changed"]
