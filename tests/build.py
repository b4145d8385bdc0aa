"""Builders that tests share: a space, measurements with a loss, and handles on three rows."""

import itertools
from threading import Thread

import opendp.prelude as dp

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")  # measures of this package are made below
PURE, ZCDP, RENYI = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
APPROXIMATE, APPROXIMATE_ZCDP = dp.approximate(PURE), dp.approximate(ZCDP)
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
DATA = [1, 2, 3]


def costing(loss, function=len, measure=PURE, space=SPACE):
    """A measurement with so much loss per unit of d_in; a function is its privacy map."""

    def privacy_map(d_in):
        if callable(loss):
            return loss(d_in)
        return tuple(one * d_in for one in loss) if isinstance(loss, tuple) else loss * d_in

    return dp.m.make_user_measurement(*space, measure, function, privacy_map, TO="ExtrinsicObject")


def laplace(epsilon=0.25, space=SPACE):
    """OpenDP's count, with noise."""
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def asking(reached=None, measure=PURE, loss=0.25, space=SPACE):
    """Answers the number of a query and the query, adds it to ``reached``, and fails at 'bad'."""
    reached = [] if reached is None else reached

    def function(rows):
        asked = itertools.count(1)

        def transition(query):
            reached.append(query)
            number = next(asked)
            if query == "bad":
                raise ValueError("a query that the mechanism refuses")
            return number, query

        return dp.new_queryable(transition)

    return costing(lambda d_in: loss, function, measure, space)


def an_odometer(measure=PURE, space=SPACE, **options):
    return oc.make_concurrent_odometer(*space, measure, **options)


def a_filter(d_out=1.0, measure=PURE, accumulator=None, *, d_in=1, space=SPACE, **options):
    """A filter."""
    made = an_odometer(measure, space, accumulator=accumulator)
    return oc.make_concurrent_filter(made, d_in, d_out, **options)


def opened(*arguments, data=DATA, **options):
    """The handle of a filter."""
    return a_filter(*arguments, **options)(data)


def a_limit(d_out=0.5, label="alice", measure=PURE, accumulator=None, *, d_in=1, **options):
    made = an_odometer(measure, accumulator=accumulator)
    return oc.c.make_limited(made, d_in, d_out, label=label, **options)


def by_tens(d_out=1.0, measure=PURE, accumulator=None, *, keys=range(4), space=SPACE, **options):
    """A block filter; a record of each ten is in one block."""
    made = an_odometer(measure, space, accumulator=accumulator)
    options = {"d_in": 1, "blocks": oc.c.by_key(lambda record: record // 10), **options}
    return oc.c.make_block_filter(made, d_out=d_out, keys=keys, **options)


def in_threads(work, numbers):
    """Call ``work`` with each number, each in a thread, and wait for all; raise what one raised."""
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
