"""Real mechanisms with finite noise instead of OpenDP's."""

import math

import pytest

from opendp_concurrent import verify
from opendp_concurrent.streams import counter as methods
from opendp_concurrent.streams import digits as epochs
from opendp_concurrent.streams import window

MODULUS = 5


def around(total, scale):
    """Laplace noise modulo a number: a postprocessing of noise on all integers, of any signs."""
    decay = math.exp(-1 / scale)
    mass = [decay**one + decay ** (MODULUS - one) for one in range(MODULUS)]
    return [((total + one) % MODULUS, chance / sum(mass)) for one, chance in enumerate(mass)]


@pytest.fixture
def modular(monkeypatch):
    """The exact law of a handle whose answers are taken modulo a number."""
    releases = []

    class Scripted:
        def __init__(self, scale, laplace):
            self.scale = scale

        def release(self, total):
            return releases[-1](total, self.scale)

        def draw(self):
            return self.release(0)

    for module in (epochs, methods, window):
        monkeypatch.setattr(module, "NodeNoise", Scripted)

    def law(spawn, ask=lambda handle, query: handle(query) % MODULUS, **keywords):
        def make(release):  # anew for every outcome
            releases.append(release)
            return spawn()

        return verify.Replayed(make, around, ask=ask, **keywords)

    return law
