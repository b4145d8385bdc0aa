"""Streams of bits, and real mechanisms with finite noise instead of OpenDP's."""

from types import SimpleNamespace

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.counters import prefix, window


@pytest.fixture
def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


@pytest.fixture
def make_stream():
    """One stream under a filter of pure DP that feeds all children, at a bound."""

    def make(space, d_out=1e9, measure=None, **keywords):
        measure = measure or dp.max_divergence()
        odometer = oc.make_concurrent_odometer(*space, measure)
        budget = oc.make_concurrent_filter(odometer, 1, d_out)
        return oc.c.make_concurrent_continual(budget, **keywords)

    return make


@pytest.fixture
def replayed(monkeypatch):
    """The exact law of a handle, made anew for every outcome of clamped noise."""
    current = SimpleNamespace(release=None)

    class Scripted:
        def __init__(self, scale, laplace):
            self.scale = scale

        def release(self, total):
            return current.release(total, self.scale)

    for module in (prefix, window):
        monkeypatch.setattr(module, "NodeNoise", Scripted)

    def law(spawn, *, low=0, high=1, gaussian=False, **keywords):
        def make(release):
            current.release = release
            return spawn()

        noise = verify.clamped_noise(low, high, gaussian=gaussian)
        return verify.Replayed(make, noise, **keywords)

    return law
