"""Real mechanisms with finite noise instead of OpenDP's."""

from types import SimpleNamespace

import pytest

from opendp_concurrent import verify
from opendp_concurrent.streams import counter as methods
from opendp_concurrent.streams import digits as epochs
from opendp_concurrent.streams import window


@pytest.fixture
def replayed(monkeypatch):
    """The exact law of a handle, made anew for every outcome of clamped noise."""
    current = SimpleNamespace(release=None)

    class Scripted:
        def __init__(self, scale, laplace):
            self.scale = scale

        def release(self, total):
            return current.release(total, self.scale)

        def draw(self):
            return current.release(0, self.scale)

    for module in (epochs, methods, window):
        monkeypatch.setattr(module, "NodeNoise", Scripted)

    def law(spawn, *, low=0, high=1, gaussian=False, **keywords):
        def make(release):
            current.release = release
            return spawn()

        noise = verify.clamped_noise(low, high, gaussian=gaussian)
        return verify.Replayed(make, noise, **keywords)

    return law
