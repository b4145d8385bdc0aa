"""Wrong arguments are refused with an error that names them, and are never charged.

What an annotation says is tried of every public callable that has one. Values that nobody may take
are tried for each argument of what the catalogue calls and of ``CALLS``, and sent to each handle.
"""

import inspect
import json
import math
import re
from copy import copy
from decimal import Decimal
from fractions import Fraction
from functools import cache, wraps
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import dp_event

import opendp_concurrent as oc
from opendp_concurrent import ledger, plot, serving, verify
from opendp_concurrent._checks import Guard, kind_of, refused_by
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE

from .. import build
from . import catalogue, tables
from .catalogue import (
    DOORS,
    PUBLIC,
    REFUSALS,
    SUBJECTS,
    WRAPPERS,
    Kind,
    Recipe,
    is_ours,
    loss_known,
)
from .laws import started

AGREED = Path(__file__).parent / "guards.json"
MODULES = {
    "ledger": ledger,
    "plot": plot,
    "serving": serving,
    "extend": oc.extend,
    "verify": verify,
    "tables": oc.tables,
}


# --- what annotations say --------------------------------------------------------------------


def all_guarded():
    """The public functions and methods that have guards, by name."""
    found = {}
    for prefix, module in (*(("", door) for door in DOORS), *MODULES.items()):
        for name in module.__all__:
            one = vars(module)[name]
            inside = vars(one) if inspect.isclass(one) else {}
            for path, made in ((name, one), *((f"{name}.{key}", inside[key]) for key in inside)):
                if hasattr(made, "__guards__"):
                    found[f"{prefix}.{path}".lstrip(".")] = made
    return found


GUARDED = dict(sorted(all_guarded().items()))


def kinds():
    return {
        name: {argument: kind_of(one) for argument, one in made.__guards__.items()}
        for name, made in GUARDED.items()
    }


def test_what_is_checked_of_each_argument_is_what_was_agreed():
    """``python -m tests.contracts.test_arguments`` writes them anew: see what became looser."""
    assert kinds() == json.loads(AGREED.read_text())


VALID = {  # by what a guard says; what is checked first must be right
    "callable": len,
    "count": 3,
    "domain": build.SPACE[0],
    "finite": 1.0,
    "integer": 1,
    "list of count": [1],
    "list of hashable": [1],
    "list of positive": [1.0],
    "measure": build.PURE,
    "measurement": build.laplace(),
    "measurement or odometer": build.laplace(),
    "metric": build.SPACE[1],
    "path": "path",
    "positive": 1.0,
    "probability": 0.5,
    "sequence": [1],
    "text": "text",
    "whole": 1,
}
NAMED = {  # the same by an argument's name, where a guard does not say what it takes
    "accumulator": oc.accumulators.basic().start(MAX_DIVERGENCE),
    "answers": {"tree": [0.0]},
    "blocks": oc.c.by_key(len),
    "categories": [0, 1],
    "d_in": 1,
    "d_out": 1.0,
    "dataset": "survey",
    "launches": [1],
    "ledger": object.__new__(ledger.SqlLedger),
    "mechanism": verify.random_interactive(7),
    "mechanisms": [verify.Replayed(len, verify.clamped_noise(0, 2))],
    "menu": verify.response_menu(0.5, 1.0),
    "privacy_loss": (build.PURE, 1.0),
    "privacy_unit": (build.SPACE[1], 1),
    "rule": Within(1.0),
    "tape": verify.Tape(),
    "tolerance": 1.0,
}


@pytest.mark.parametrize("name", GUARDED)
def test_each_call_is_refused_what_its_guard_says(name):
    made = GUARDED[name]
    guards = {argument: guard for argument, guard in made.__guards__.items() if refused_by(guard)}
    needed = [
        one
        for one, parameter in inspect.signature(made).parameters.items()
        if parameter.default is parameter.empty
    ]
    given = {one: kind_of(guards[one]) for one in needed if one in guards}
    valid = {one: NAMED.get(one) or VALID.get(given.get(one)) for one in needed}
    for argument, guard in guards.items():
        for value in refused_by(guard):
            if not (value is None and kind_of(guard).startswith("None")):
                with pytest.raises(ConcurrentError, match=argument):
                    made(**valid | {argument: copy(value)})


BASES = {
    "bool": {"flag"},
    "int": {"count", "integer", "whole"},
    "str": {"text", "nothing hostile"},
    "float": {"finite", "non_negative", "order", "positive", "probability", "real"},
}


@pytest.mark.parametrize("name", GUARDED)
def test_annotations_and_guards_agree(name):
    for argument, guard in GUARDED[name].__guards__.items():
        given = inspect.signature(GUARDED[name]).parameters[argument].annotation
        kinds = BASES.get(given.removesuffix(" | None"))
        kind = kind_of(guard).removeprefix("None or ")
        assert kinds is None or not isinstance(guard, Guard) or kind in kinds, argument
        assert given.endswith("| None") == kind_of(guard).startswith("None"), argument


# --- what nobody takes -----------------------------------------------------------------------


@cache
def made_by_the_catalogue():
    """A call of each function that the catalogue calls: the first."""
    found = {}

    def noted(name, made):
        @wraps(made)
        def call(*args, **kwargs):
            result = made(*args, **kwargs)
            given = inspect.signature(made).bind(*args, **kwargs)
            given.apply_defaults()
            found.setdefault(name, (made, given.arguments))
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for door in DOORS:
            for name in {*door.__all__} & PUBLIC.keys():
                if inspect.isfunction(PUBLIC[name]) and not name.startswith("then_"):
                    made = noted(name, vars(door)[name])
                    patch.setattr(door, name, made)
                    patch.setitem(PUBLIC, name, made)
        catalogue.multiplicative_weights.cache_clear()
        for one in SUBJECTS:
            one.build()
        for wrapper in WRAPPERS:
            next(filter(None, (Recipe((wrapper,), one).cases() for one in SUBJECTS)))
    return found


A, T = oc.accumulators, oc.TradeoffFunction
F, SESSION = T.laplace(0.5), oc.fdp.Session.subsampled_gaussian(1.0, 0.1)
NOISE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
LOSS, SHARE = oc.TruncatedConcentrated(0.1, 64.0), {"epsilon": 0.5, "rate": 0.1}
EVENT = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
EPSILON, DELTA, WIDTH, UNIT = {"epsilon": 0.5}, {"delta": 1e-3}, {"width": 1e-3}, T.pure(0.01)
TWO, ONE = verify.randomized_response(1.0), verify.random_interactive(seed=7)
PAIR = [verify.random_interactive(seed) for seed in (1, 2)]
PROFILE = {
    "delta": EPSILON,
    "delta_bounds": EPSILON | WIDTH,
    "epsilon": DELTA,
    "epsilon_bounds": DELTA | WIDTH,
}
CURVE = {
    "beta": {"alpha": 0.1},
    "beta_bounds": {"alpha": 0.1},
    "power": {"count": 1},
    "group": {"size": 3},
    "root": {"part": Fraction(1, 2)},
    "units": {"unit": F},
    "admits": {"unit": UNIT},
}
CALLS = [
    (A.advanced, {"delta_slack": 1e-6}),
    (A.zcdp, {"delta_slack": 1e-6}),
    (A.any_time, {"delta_slack": 1e-6, "planned": 1.0}),
    (A.renyi, {"order": 8.0, "delta_slack": 1e-6}),
    (A.residue, {"mu": 1.0}),
    (A.ladder, {"unit": UNIT, "delta_slack": 1e-6}),
    (A.best_rule, {"d_out": (1.0, 1e-6), "typical": [(0.01, 0.0)], "alike": True}),
    (
        A.launches_admitted,
        {"accumulator": A.zcdp(1e-7), "d_out": (1.0, 1e-6), "typical": [(0.01, 0.0)]},
    ),
    (oc.fdp.optimal_composition, {"d_mids": [0.5, (0.3, 1e-9)], "counts": [1, 2]}),
    (oc.c.largest_share, {"privacy_loss": (build.PURE, 1.0), "launches": 4}),
    (
        oc.c.smallest_scale,
        {
            "make_measurement": lambda scale: oc.m.make_certified_laplace(
                *NOISE, scale, build.PURE
            ),
            "d_in": 1.0,
            "d_out": 1.0,
        },
    ),
    (oc.loss_of, {"epsilon": 1.0, "delta": 1e-6}),
    (oc.loss_of, {"epsilon": 1.0, "alpha": 8.0}),
    (oc.loss_of, {"rho": 1.0, "omega": 8.0}),
    (oc.loss_of, {"mu": 1.0}),
    (oc.loss_of, {"tradeoff": F}),
    (oc.TruncatedConcentrated, {"rho": 0.1, "omega": 8.0}),
    (oc.measures.risk, {"output_measure": build.PURE, "d_out": 1.0, "prior": 0.5}),
    (oc.measures.group_tcdp, {"loss": LOSS, "size": 4}),
    (oc.measures.subsampled_tcdp, {"loss": LOSS, "sample_size": 1000, "population": 10**6}),
    (oc.handles.NoisySum, {"per_row": len, "bound": 1.0, "scale": 1.0}),
    (T.pure, EPSILON),
    (T.approximate, EPSILON | DELTA),
    (T.gaussian, {"mu": 1.0}),
    (T.laplace, {"epsilon": 0.5, "steps": 8.0}),
    (T.discrete_laplace, {"scale": 1.0, "sensitivity": 1}),
    (T.discrete_gaussian, {"scale": 1.0, "sensitivity": 1}),
    (T.randomized_response, {"prob": 0.75, "categories": 3}),
    (T.finite, {"first": [0.75, 0.25], "second": [0.25, 0.75]}),
    (T.subsampled_gaussian, {"sigma": 1.0, "rate": 0.1, "unit": "removed"}),
    (T.subsampled_laplace, SHARE | {"unit": "added"}),
    (T.from_profile, {"epsilons": [0.0, 1.0], "deltas": [0.5, 0.1], "other_deltas": [0.5, 0.1]}),
    (
        T.from_loss_distribution,
        {
            "losses": [0.5, -0.5],
            "probabilities": [0.6224593312018546, 0.3775406687981454],
            "infinite": 0.0,
        },
    ),
    (T.mixture, {"weights": [0.5, 0.5], "functions": [F, UNIT]}),
    (oc.fdp.Session, {"removed": F, "added": F}),
    (oc.fdp.Session.subsampled_gaussian, {"sigma": 1.0, "rate": 0.1}),
    (oc.fdp.Session.subsampled_laplace, SHARE),
    (lambda others: SESSION.compose(others), {"others": SESSION}),
    (lambda others: F.compose(others), {"others": F}),
    (SESSION.power, {"count": 2}),
    *(
        (getattr(function, name), given)
        for function in (F, F.compose(T.gaussian(0.5)), T.worst(), SESSION)
        for name, given in (PROFILE if function is SESSION else PROFILE | CURVE).items()
    ),
    (T.gaussian(1.0).residual, {"child": UNIT}),
    (F.one_way, {"unit": "removed"}),
    (
        oc.fdp.smallest_sigma,
        {
            "loss": lambda sigma: T.gaussian(1 / sigma),
            "epsilon": 2.0,
            "delta": 1e-3,
            "bounds": (1.0, 4.0),
            "tolerance": 0.5,
        },
    ),
    (oc.fdp.from_dp_event, {"event": EVENT}),
    (oc.fdp.to_dp_event, {"loss": SESSION}),
    (oc.fdp.Accountant().compose, {"event": EVENT, "count": 2}),
    (oc.fdp.Accountant().get_epsilon, {"target_delta": 1e-3}),
    (oc.fdp.Accountant().get_delta, {"target_epsilon": 0.5}),
    (
        oc.mechanisms.individual_scale,
        {"output_measure": build.PURE, "d_out": 1.0, "bound": 3.0, "launches": 2},
    ),
    (oc.tables.unit_of, {"units": 1}),
    (oc.tables.col, {"name": "zone"}),
    (oc.tables.col("zone").starts_with, {"prefix": "a"}),
    (oc.tables.when, {"condition": oc.tables.col("hours") > 1.0}),
    (oc.tables.Decimal, {"scale": 2}),
    (verify.FiniteMechanism, {"first": (0.5, 0.5), "second": (0.25, 0.75)}),
    *((one.delta, EPSILON) for one in (ONE, TWO)),
    *((one.epsilon, DELTA) for one in (ONE, TWO)),
    *((one.renyi, {"order": 2.0}) for one in (ONE, TWO)),
    *((one.tradeoff, {"alpha": 0.1}) for one in (ONE, TWO)),
    (verify.randomized_response, {"epsilon": 1.0, "delta": 0.0}),
    (lambda epsilons: verify.response_menu(epsilons), {"epsilons": 1.0}),
    (verify.concurrent_delta, {"mechanisms": PAIR, "epsilon": 0.5}),
    (verify.concurrent_renyi, {"mechanisms": PAIR, "order": 2.0}),
    (
        verify.worst_renyi,
        {
            "menu": verify.response_menu(0.5),
            "accumulator": A.basic().start(MAX_DIVERGENCE),
            "rule": Within(1.0),
            "order": 2.0,
        },
    ),
    (verify.worst_stopping, {"readings": [0.5, 1.0], "epsilon": 0.5}),
    (serving.HandleStore, {"seconds": 600.0, "most": 9}),
    (plot.plot_session, {"losses": [0.5, 0.75], "d_out": 1.0}),
    (plot.plot_tradeoff, {"functions": [F, UNIT], "labels": ["a", "b"]}),
    (
        oc.concurrent_context,
        {
            "data": build.DATA,
            "privacy_unit": dp.unit_of(contributions=1),
            "privacy_loss": dp.loss_of(epsilon=1.0),
            "split_by_weights": [1.0, 2.0],
        },
    ),
    (oc.deserialize, {"message": dp.serialize(build.SPACE[0]), "allow": []}),
    (
        oc.tables.scan,
        {
            "connection": tables.connection(),
            "table": "people",
            "schema": {"person": int},
            "unit": "person",
        },
    ),
    (
        oc.tables.Csv,
        {"separator": ";", "decimal": ",", "header": ["a"], "nulls": ["NA"], "encoding": "utf-8"},
    ),
    (oc.extend.composition_measure, {"output_measure": build.PURE}),
]
ALWAYS = [object(), 1j, b"bytes"]
NUMBERS = [math.nan, "text", np.array([math.nan]), Decimal("NaN")]
SIGNED = {"lower", "part", "threshold", "tolerance"}


def faulty(name, argument, valid):
    """Values that are no valid ones of an argument, by what a valid one is."""
    if argument in ("data", "initial_state"):  # anything
        return
    yield from ALWAYS
    if isinstance(valid, int | float | Fraction) and not isinstance(valid, bool):
        yield from NUMBERS
        if argument not in SIGNED and not (argument == "epsilon" and "delta" in name):
            yield from (-1, -5e-324)
    elif isinstance(valid, list | tuple):
        yield from ([{}], [math.nan], 3)
    elif valid is not None:
        yield from (3, math.nan)


def taken(name, made, valid):
    """What happens to faulty values that should not."""
    for argument, value in valid.items():
        for bad in faulty(name, argument, value):
            try:
                made(**valid | {argument: bad})
            except REFUSALS as error:
                if not re.search(rf"\b{argument}\b", str(error)):
                    yield f"{name}: {argument} = {bad!r:.30} is not named: {error}"
            except Exception as error:
                yield f"{name}: {argument} = {bad!r:.30} raises {type(error).__name__}: {error}"
            else:
                yield f"{name}: {argument} = {bad!r:.30} is taken"


def test_what_is_no_value_of_an_argument_is_refused_by_its_name():
    calls = [(name, *one) for name, one in made_by_the_catalogue().items()]
    calls += [(made.__qualname__, made, given) for made, given in CALLS]
    assert [one for call in calls for one in taken(*call)] == []


ASKED = [*ALWAYS, math.nan, -1, "text", None, (), [object()], [math.nan], {}, (0, object())]
LAUNCHES = ("__call__", "admits", "describe")  # of a block filter, these take the blocks first
METHODS = ("privacy_loss", *LAUNCHES[1:], "loss_after", "__call__", "update", "update_all")
FEW = [one for one in SUBJECTS if one.name in ("composition pure", "probe pure", "release pure")]


def sent(door, bad):
    """What happens to something that is no query, or no argument of a method."""
    for name in METHODS:
        if hasattr(door, name):
            before, on_blocks = loss_known(door), isinstance(door, oc.handles.BlockFilterQueryable)
            try:
                getattr(door, name)(*[bad] * (2 if on_blocks and name in LAUNCHES else 1))
            except REFUSALS:
                if loss_known(door) != before:
                    yield f"{name}({bad!r:.30}) is refused, and charged"
            except Exception as error:
                yield f"{name}({bad!r:.30}) raises {type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "recipes",
    [
        *([Recipe((), one)] for one in SUBJECTS if one.kind is not Kind.NONINTERACTIVE),
        *([Recipe((wrapper,), one) for one in FEW] for wrapper in WRAPPERS),
    ],
    ids=lambda recipes: str(recipes[0]),
)
def test_what_is_no_query_is_refused_and_not_charged(recipes):
    found = []
    for recipe in recipes:
        for bad in ASKED:
            _, talk = started(recipe)
            if talk is not None:
                found += [one for door in filter(is_ours, talk.doors) for one in sent(door, bad)]
    assert found == []


if __name__ == "__main__":
    AGREED.write_text(json.dumps(kinds(), indent=1) + "\n")
