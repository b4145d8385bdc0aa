"""The accountant of docs/dp-accounting.rst, in a stand-in for the interface of Opacus."""

import abc
import doctest
from pathlib import Path
from types import SimpleNamespace

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant

import opendp_concurrent as oc

PAGE = Path(__file__).parents[2] / "docs" / "dp-accounting.rst"


class IAccountant(abc.ABC):
    """What opacus.accountants.IAccountant asks for, and what it adds."""

    def __init__(self):
        self.history = []

    @abc.abstractmethod
    def step(self, *, noise_multiplier, sample_rate): ...
    @abc.abstractmethod
    def get_epsilon(self, delta, *args, **kwargs): ...
    @abc.abstractmethod
    def __len__(self): ...
    @classmethod
    @abc.abstractmethod
    def mechanism(cls): ...

    def get_optimizer_hook_fn(self, sample_rate):
        return lambda optimizer: self.step(
            noise_multiplier=optimizer.noise_multiplier,
            sample_rate=sample_rate * optimizer.accumulated_iterations,
        )

    def state_dict(self):
        return {"history": self.history, "mechanism": self.__class__.mechanism}

    def load_state_dict(self, state):
        assert self.__class__.mechanism == state["mechanism"]
        self.history = state["history"]


@pytest.fixture
def made():
    """A new accountant by its name, as the engine of Opacus makes one."""
    examples = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    (source,) = [one.source for one in examples if one.source.startswith("class Certified")]
    names = {"oc": oc, "IAccountant": IAccountant}
    names |= {one.__name__: one for one in (GaussianDpEvent, PoissonSampledDpEvent)}
    exec(source.replace("CertifiedAccountant:", "CertifiedAccountant(IAccountant):"), names)
    registry = {names["CertifiedAccountant"].mechanism(): names["CertifiedAccountant"]}
    return registry["certified"]


def test_the_accountant_of_the_page_counts_steps_of_an_optimizer(made):
    accountant = made()
    hook = accountant.get_optimizer_hook_fn(sample_rate=0.005)
    for noise in (1.0, 1.0, 0.8):
        for _ in range(100):
            hook(SimpleNamespace(noise_multiplier=noise, accumulated_iterations=2))
    assert len(accountant) == 300
    assert accountant.history == [(1.0, 0.01, 200), (0.8, 0.01, 100)]
    theirs = PLDAccountant()
    for noise, rate, steps in accountant.history:
        theirs.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps)
    epsilon = accountant.get_epsilon(1e-6, eps_error=0.01)  # an argument of another accountant
    assert 1.0 <= epsilon / theirs.get_epsilon(1e-6) <= 1.01
    resumed = made()
    resumed.load_state_dict(accountant.state_dict())
    assert resumed.get_epsilon(1e-6) == epsilon
