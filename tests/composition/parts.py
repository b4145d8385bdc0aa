"""Measurements for parts, and their parallel composition."""

import opendp.prelude as dp

from opendp_concurrent.composition.parallel import make_parallel_composition
from opendp_concurrent.data.partition import by_key

PURE = dp.max_divergence()


def user(space, privacy_map, function=len, measure=None):
    return dp.m.make_user_measurement(
        *space, measure or PURE, function, privacy_map, TO="ExtrinsicObject"
    )


def parallel(space, measurements, partition=None):
    if not isinstance(measurements, dict):
        measurements = dict(enumerate(measurements))
    return make_parallel_composition(
        *space, partition or by_key(lambda row: row % 10), measurements
    )


def laplace(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)
