"""Launches and interactive children of several kinds."""

import opendp.prelude as dp

import opendp_concurrent as oc

PURE = dp.max_divergence()


def laplace(space, epsilon):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def gaussian(space, scale=100.0):
    return dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=scale))


def filter_(space, d_out=100.0, measure=None, **keywords):
    odometer = oc.make_concurrent_odometer(*space, measure or PURE)
    return oc.make_concurrent_filter(odometer, 1, d_out, **keywords)


def native_compositor(space, measure=None, d_mid=0.25, k=3):
    return dp.c.make_adaptive_composition(*space, measure or PURE, d_in=1, d_mids=[d_mid] * k)


def python_queryable(space, measure=None, d_mid=0.25):
    def function(rows):
        asked = []

        def transition(query):
            asked.append(query)
            return len(asked), query

        return dp.new_queryable(transition)

    return dp.m.make_user_measurement(
        *space, measure or PURE, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )
