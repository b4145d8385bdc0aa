"""What dp-accounting's published tests compute, beside certified bounds.

:func:`calls` runs the test files that dp-accounting installs, and records each privacy loss
distribution that they make and each question that they ask. :func:`session_of` says what a
distribution stands for, if there is a session for it.
"""

import inspect
import unittest
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import exp, inf
from typing import Any

import numpy as np

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError

T, Session = oc.TradeoffFunction, oc.fdp.Session

MODULES = (
    "pld.privacy_loss_distribution_test",
    "pld.pld_privacy_accountant_test",
    "pld.accountant_test",
    "rdp.rdp_privacy_accountant_test",
    "gaussian_mechanism_test",
)


@dataclass(frozen=True)
class Made:
    """A privacy loss distribution.

    :ivar what: the function and its arguments
    :ivar session: what it stands for; None if there is no session for it
    :ivar pessimistic: whether it is to be an upper bound, or a lower one
    """

    what: str
    session: Session | None
    pessimistic: bool
    pld: Any


@dataclass(frozen=True)
class Asked:
    """A question to an accountant, or to a function, with its answer.

    :ivar kind: "epsilon" or "delta"
    """

    what: str
    session: Session | None
    kind: str
    at: float
    answer: float


def both(function: T) -> Session:
    return Session(function, function)


def sampled(noise: str, loss: float, rate: float) -> Session:
    """Gaussian or Laplace noise of any size, where the rate is one that is read."""
    if rate == 1.0:
        return both(getattr(T, noise)(loss))
    if noise == "gaussian":
        return Session.subsampled_gaussian(1 / loss, rate)
    return Session.subsampled_laplace(loss, rate)


def session_of(name: str, given: dict[str, Any]) -> Session | None:
    """The session that a constructor's arguments describe; None if it is not known here."""
    rate, moved = given.get("sampling_prob", 1.0), given.get("sensitivity", 1)
    replaced = getattr(given.get("neighboring_relation"), "name", "") == "REPLACE_ONE"
    if name == "identity":
        return Session()
    if name == "from_laplace_mechanism":
        return sampled("laplace", moved / given["parameter"], rate)
    if name == "from_gaussian_mechanism":
        if replaced and rate != 1.0:
            return None
        moved *= 2 if replaced else 1
        return sampled("gaussian", moved / given["standard_deviation"], rate)
    if name == "from_mixture_gaussian_mechanism":
        sizes, shares = given["sensitivities"], given["sampling_probs"]
        deviation = given["standard_deviation"]
        if len(sizes) == 1 and sizes[0] > 0:
            return both(T.gaussian(sizes[0] / deviation))
        if len(sizes) == 2 and sizes[0] == 0.0:
            return sampled("gaussian", sizes[1] / deviation, shares[1])
        return None
    if name == "from_discrete_laplace_mechanism" and rate == 1.0:
        return both(T.laplace(given["parameter"] * moved, float(moved)))
    if name == "from_discrete_gaussian_mechanism" and rate == 1.0 and not given["truncation_bound"]:
        return both(T.discrete_gaussian(given["sigma"], moved))
    if name == "from_randomized_response":
        from dp_accounting import dp_event

        event = dp_event.RandomizedResponseDpEvent(given["noise_parameter"], given["num_buckets"])
        return oc.fdp.from_dp_event(event, given["neighboring_relation"])
    if name == "from_privacy_parameters":
        parameters = given["privacy_parameters"]
        return both(T.approximate(parameters.epsilon, parameters.delta))
    if name == "from_two_probability_mass_functions":
        lower, upper = (given[f"log_probability_mass_function_{one}"] for one in ("lower", "upper"))
        outcomes = [*dict.fromkeys([*lower, *upper])]
        first, second = ([exp(one.get(x, -inf)) for x in outcomes] for one in (lower, upper))
        removed = T.finite(first, second)
        return both(removed) if given["symmetric"] else Session(removed, removed.inverse())
    return None


def known(make, *arguments) -> Session | None:
    """The session, or None if its parameters are beyond what is read."""
    try:
        return make(*arguments)
    except (ConcurrentError, ZeroDivisionError):
        return None


class Recorder:
    """Stands between dp-accounting's tests and what they call."""

    def __init__(self):
        self.made: list[Made] = []
        self.asked: list[Asked] = []
        self.ran, self.failures = Counter(), []
        self._of: dict[int, Made] = {}
        self._inner = 0

    @contextmanager
    def _inside(self):
        self._inner += 1
        try:
            yield
        finally:
            self._inner -= 1

    def keep(self, made: Made) -> None:
        self._of[id(made.pld)] = made  # which keeps the object, and so its id
        self.made.append(made)

    def constructor(self, function):
        signature, name = inspect.signature(function), function.__name__

        def recorded(*args, **kwargs):
            with self._inside():
                pld = function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            if not self._inner:
                told = {key: one for key, one in given.items() if key not in PLAIN}
                text = f"{name.removeprefix('from_').removesuffix('_mechanism')}({told})"
                pessimistic = given.get("pessimistic_estimate", True)
                self.keep(Made(text, known(session_of, name, given), pessimistic, pld))
            return pld

        return recorded

    def method(self, name, function):
        def recorded(pld, *args):
            with self._inside():
                found = function(pld, *args)
            parts = [self._of.get(id(one)) for one in (pld, *args) if not isinstance(one, int)]
            if not self._inner and all(parts) and all(one.session for one in parts):
                sessions = [one.session for one in parts]
                if name == "self_compose":
                    session, text = sessions[0].power(args[0]), f"({parts[0].what})^{args[0]}"
                else:
                    session = sessions[0].compose(sessions[1])
                    text = f"({parts[0].what}) and ({parts[1].what})"
                self.keep(Made(text, session, parts[0].pessimistic, found))
            return found

        return recorded

    def question(self, kind, function):
        def recorded(accountant, *args, **kwargs):
            found = function(accountant, *args, **kwargs)
            (at,) = [*args, *kwargs.values()]
            event, related = accountant.ledger, accountant.neighboring_relation
            session = known(oc.fdp.from_dp_event, event, related)
            title = f"{type(accountant).__name__}({related.name}) {event}"
            self.asked.append(Asked(title, session, kind, float(at), float(found)))
            return found

        return recorded

    def of_gaussian(self, function):
        def recorded(sigma, delta, *args, **kwargs):
            found = function(sigma, delta, *args, **kwargs)
            what = f"get_epsilon_gaussian({sigma}, {delta})"
            session = known(lambda: both(T.gaussian(1 / sigma)))
            self.asked.append(Asked(what, session, "epsilon", float(delta), float(found)))
            return found

        return recorded

    def smallest(self, noise, function):
        """The noise that a target needs, as the claim that it is enough."""
        signature = inspect.signature(function)

        def recorded(*args, **kwargs):
            found = function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            target, count = given["privacy_parameters"], given["num_queries"]
            moved, rate = given["sensitivity"], given.get("sampling_prob", 1.0)
            if noise == "discrete":
                one = both(T.laplace(found * moved, float(moved)))
            else:
                one = sampled(noise, moved / found, rate)
            what = f"{function.__name__}({count} queries, {target}, {moved}, {rate}) = {found}"
            self.asked.append(
                Asked(what, one.power(count), "epsilon", target.delta, target.epsilon)
            )
            return found

        return recorded

    def advanced(self, function):
        def recorded(privacy_parameters, num_queries, total_delta):
            found = function(privacy_parameters, num_queries, total_delta)
            parameters, count, delta = privacy_parameters, num_queries, total_delta
            what = f"advanced_composition({parameters}, {count}, {delta})"
            whole = both(T.approximate(parameters.epsilon, parameters.delta).power(count))
            answer = inf if found is None else float(found)
            self.asked.append(Asked(what, whole, "epsilon", float(delta), answer))
            return found

        return recorded


PLAIN = ("value_discretization_interval", "use_connect_dots", "pessimistic_estimate")


def calls(monkeypatch, modules=MODULES) -> Recorder:
    """Run published tests, and return what they computed."""
    recorder = Recorder()
    pld = import_module("dp_accounting.pld.privacy_loss_distribution")
    for name, function in list(vars(pld).items()):
        if inspect.isfunction(function) and (name.startswith("from_") or name == "identity"):
            monkeypatch.setattr(pld, name, recorder.constructor(function))
    for name in ("compose", "self_compose"):
        recorded = recorder.method(name, getattr(pld.PrivacyLossDistribution, name))
        monkeypatch.setattr(pld.PrivacyLossDistribution, name, recorded)
    for path, name in (("pld", "PLDAccountant"), ("rdp", "RdpAccountant")):
        accountant = getattr(import_module(f"dp_accounting.{path}"), name)
        for kind in ("epsilon", "delta"):
            recorded = recorder.question(kind, getattr(accountant, f"get_{kind}"))
            monkeypatch.setattr(accountant, f"get_{kind}", recorded)
    gaussian = import_module("dp_accounting.gaussian_mechanism")
    recorded = recorder.of_gaussian(gaussian.get_epsilon_gaussian)
    monkeypatch.setattr(gaussian, "get_epsilon_gaussian", recorded)
    old = import_module("dp_accounting.pld.accountant")
    for name, noise in (
        ("laplace", "laplace"),
        ("discrete_laplace", "discrete"),
        ("gaussian", "gaussian"),
        ("subsampled_gaussian", "gaussian"),
    ):
        title = f"get_smallest_{name}_noise"
        monkeypatch.setattr(old, title, recorder.smallest(noise, getattr(old, title)))
    monkeypatch.setattr(old, "advanced_composition", recorder.advanced(old.advanced_composition))
    for one in modules:
        suite = unittest.defaultTestLoader.loadTestsFromModule(
            import_module(f"dp_accounting.{one}")
        )
        result = unittest.TestResult()
        with np.errstate(all="ignore"):
            suite.run(result)
        recorder.ran[one] = result.testsRun
        recorder.failures += [str(test) for test, _ in [*result.failures, *result.errors]]
    return recorder
