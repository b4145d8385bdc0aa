"""What annotations do not say: refusals of values that fit badly together, each by its argument.

Types and ranges that a signature states are asked by ``tests/contracts`` for every constructor.
"""

from fractions import Fraction
from math import inf, nan

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition import check_measurement_on
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

from .build import PURE, RENYI, SPACE, ZCDP, an_odometer, costing

F, RULES = oc.TradeoffFunction, oc.accumulators
VALUE, TYPE, losses = InvalidValueError, InvalidTypeError, F.from_loss_distribution
LONG = np.array([1 + np.finfo(np.longdouble).eps])
SMALL, TEXTS = F.pure(0.1), dp.vector_domain(dp.atom_domain(T=str))
METRIC, MARGIN = SPACE[1], dp.polars.Margin(by=["b"])
LOSS, MENU = dp.loss_of(epsilon=1.0), oc.verify.response_menu(0.1)
WITHIN, EVENTS = oc.verify.Within(1.0), (oc.integer_stream(0, 1), oc.event_presence())
FRAME = dp.lazyframe_domain([dp.series_domain("a", dp.atom_domain(T="i64"))]), METRIC


def scanned(unit):
    frame = pl.DataFrame({"unit": [1, 1, 2], "a": [1, 2, 3]})
    return oc.tables.scan(frame, {"unit": int, "a": int}, unit)


TABLES, VISITS = oc.t, scanned("unit")
BOUNDED = VISITS.space >> TABLES.then_truncate(1)


def steps(sigma):
    return oc.fdp.Session.subsampled_gaussian(sigma, rate=0.01)


REFUSED = {
    # trade-off functions
    "no constructor": (lambda: F(), TYPE, "TradeoffFunction"),
    "half a step": (lambda: F.laplace(0.1, steps=1.5), VALUE, "steps"),
    "worse than guessing": (lambda: F.randomized_response(0.1, 2), VALUE, "prob"),
    "other outcomes": (lambda: F.finite([0.5, 0.5], [1.0]), VALUE, "second"),
    "no probability": (lambda: F.finite([1.5, -0.5], [0.5, 0.5]), VALUE, "first"),
    "a sum of 0.9": (lambda: F.finite([0.5, 0.4], [0.5, 0.5]), VALUE, "first"),
    "too much noise": (lambda: F.subsampled_gaussian(1e7, 0.1, unit="added"), VALUE, "sigma"),
    "too small an epsilon": (lambda: F.subsampled_laplace(1e-7, 0.1, unit="added"), VALUE, "eps"),
    "one delta": (lambda: F.from_profile([0.1, 0.2], [0.1]), VALUE, "deltas"),
    "delta above 1": (lambda: F.from_profile([0.1], [1.5]), VALUE, "deltas"),
    "a rising delta": (lambda: F.from_profile([0.1, 0.2], [0.1, 0.2]), VALUE, "deltas"),
    "epsilon of 700": (lambda: F.from_profile([700.0], [0.1]), VALUE, "epsilons"),
    "infinite numbers": (lambda: losses([inf], [1.0]), VALUE, "losses"),
    "one probability": (lambda: losses([0.1, 0.2], [1.0]), VALUE, "probabilities"),
    "below 0": (lambda: losses([0.1, 0.2], [1.5, -0.5]), VALUE, "probabilities"),
    "not all of them": (lambda: losses([0.1, 0.2], [0.5, 0.4]), VALUE, "probabilities"),
    "impossible losses": (lambda: losses([-1.0], [1.0]), VALUE, "losses"),
    "one function": (lambda: F.mixture([1.0, 1.0], [SMALL]), VALUE, "functions"),
    "no residual": (lambda: SMALL.residual(SMALL), VALUE, "Gaussian"),
    "the identity counts": (lambda: SMALL.units(F.identity()), VALUE, "unit"),
    "a masked array": (lambda: SMALL.delta(np.ma.array([0.1], mask=[True])), TYPE, "epsilon"),
    "no exact double": (lambda: SMALL.delta(LONG), VALUE, "epsilon"),
    "bounds reversed": (
        lambda: oc.fdp.smallest_sigma(steps, epsilon=1.0, delta=1e-5, bounds=(2.0, 1.0)),
        VALUE,
        "bounds",
    ),
    "too exact": (
        lambda: oc.fdp.smallest_sigma(steps, epsilon=1.0, delta=1e-5, tolerance=1e-9),
        VALUE,
        "tolerance",
    ),
    # accumulators
    "planned for nothing": (lambda: RULES.any_time(1e-6, 1e-9), VALUE, "planned"),
    "no slack": (lambda: RULES.any_time(0.0, 1.0), VALUE, "delta_slack"),
    "no typical loss": (lambda: RULES.best_rule((1.0, 1e-6), typical=[(0.0, 0.1)]), VALUE, "typ"),
    "a rung of nothing": (lambda: RULES.ladder(F.identity()), VALUE, "unit"),
    "a large residue": (lambda: RULES.residue(mu=1e4), VALUE, "mu"),
    # mechanisms
    "values without a hash": (lambda: weights([[1], [2]]), TYPE, "universe"),
    "values twice": (lambda: weights([1, 1]), VALUE, "universe"),
    "a value of NaN": (lambda: weights([nan]), VALUE, "universe"),
    "a count of texts": (lambda: weights(3, domain=TEXTS), TYPE, "universe"),
    "immense data": (lambda: weights(size=2**32), VALUE, "size"),
    "data of an unknown size": (lambda: weights(size=None), TYPE, "size"),
    "a scale below its bound": (
        lambda: oc.handles.NoisySum(lambda rows: rows, bound=1.0, scale=0.0),
        VALUE,
        "scale",
    ),
    "many launches": (
        lambda: oc.mechanisms.individual_scale(PURE, 1.0, bound=1, launches=2**41),
        VALUE,
        "launches",
    ),
    "nothing to spend": (
        lambda: oc.mechanisms.individual_scale(PURE, 0.0, bound=1, launches=1),
        VALUE,
        "d_out",
    ),
    "marginals of frames": (lambda: marginals(*FRAME), TYPE, "input_domain"),
    "marginals of nobody": (lambda: marginals(d_in=0), VALUE, "d_in"),
    "marginals under a curve": (lambda: marginals(measure=RENYI), UnsupportedMeasureError, "meas"),
    # composition and contexts
    "no group": (lambda: blocks(["b"]), VALUE, "keys"),
    "another metric": (
        lambda: check_measurement_on("inner", costing(0.1), SPACE[0], dp.hamming_distance()),
        SpaceMismatchError,
        "inner.input_metric",
    ),
    "two splits": (lambda: context(evenly=2, weights=[1.0]), VALUE, "split_by_weights"),
    "a limit below a split": (lambda: context(evenly=2).limited("a", LOSS), TYPE, "split"),
    "margins of another column": (lambda: context(margins=[MARGIN]), TYPE, "margins"),
    "margins as a mapping": (lambda: context(margins={("b",): MARGIN}), VALUE, "margins"),
    # conversions and noise
    "a cast without delta": (
        lambda: oc.c.cast(costing(0.1, measure=ZCDP), dp.approximate(PURE)),
        TYPE,
        "delta",
    ),
    "samples beyond omega": (
        lambda: oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 2.0), 1, 100),
        VALUE,
        "omega",
    ),
    "a large sensitivity": (
        lambda: oc.m.make_sparse_vector(
            *SPACE, PURE, d_in=1, scale=1.0, threshold=1, max_hits=1, sensitivity=2**60
        ),
        VALUE,
        "sensitivity",
    ),
    "users by halves": (lambda: by_users().map(0.5), dp.OpenDPException, "d_in"),
    "losses of other items": (
        lambda: oc.verify.worst_loss(MENU, None, WITHIN, losses=[]),
        VALUE,
        "losses",
    ),
    "a loss below 0": (
        lambda: oc.verify.worst_loss(MENU, None, WITHIN, losses=[Fraction(-1)]),
        VALUE,
        "losses",
    ),
    "an order below 1": (
        lambda: oc.verify.worst_renyi(MENU, None, WITHIN, order=0.5),
        VALUE,
        "order",
    ),
    # tables
    "tables of another domain": (lambda: TABLES.make_table_count(*SPACE), TYPE, "input_domain"),
    "tables of another metric": (
        lambda: TABLES.make_table_count(VISITS.space[0], METRIC),
        TYPE,
        "input_metric",
    ),
    "a last row of no order": (
        lambda: VISITS.space >> TABLES.then_truncate(1, descending=True),
        VALUE,
        "order_by",
    ),
    "units of one row": (
        lambda: scanned(oc.tables.ROW).space >> TABLES.then_per_unit({"n": oc.tables.count()}),
        VALUE,
        "input_domain",
    ),
    "bounds of a count": (
        lambda: BOUNDED >> TABLES.then_table_answers([oc.tables.Answer("count", "a", (0, 1))]),
        TYPE,
        "count",
    ),
    "refused of a list": (lambda: oc.plot.plot_session({"a": [0.1]}, refused=[0]), TYPE, "refused"),
    # data and streams
    "no columns": (lambda: oc.c.by_column(), TYPE, "names"),
    "a column twice": (lambda: oc.c.by_column("a", "a"), VALUE, "names"),
    "no groups": (lambda: oc.c.by_values({}), VALUE, "groups"),
    "a group of text": (lambda: oc.c.by_values({"a": "text"}), TYPE, "groups"),
    "groups that overlap": (lambda: oc.c.by_values({"a": [1], "b": [1]}), VALUE, "groups"),
    "columns of lists": (lambda: parallel(oc.c.by_column("a")), TYPE, "partition"),
    "entries of lists": (lambda: parallel(oc.c.by_entry()), TYPE, "partition"),
    "records of frames": (lambda: parallel(oc.c.by_key(len), *FRAME), TYPE, "partition"),
    "a counter of large noise": (
        lambda: oc.m.make_counter(*EVENTS, PURE, scale=2.0**51),
        VALUE,
        "scale",
    ),
    "a counter of rows": (
        lambda: oc.m.make_counter(EVENTS[0], METRIC, PURE, scale=1.0),
        TYPE,
        "input_metric",
    ),
    "a large item": (lambda: oc.integer_stream(0, 2**40), VALUE, "upper"),
    "an empty range": (lambda: oc.integer_stream(1, 0), VALUE, "lower"),
    "a name twice": (lambda: oc.category_stream(["a", "a"]), VALUE, "categories"),
    "names of numbers": (lambda: oc.category_stream([1, 2]), TYPE, "categories"),
    "no stream": (lambda: oc.c.make_on_stream(*SPACE, costing(0.1)), TYPE, "input_domain"),
}


def weights(universe=3, size=9, domain=SPACE[0]):
    return oc.m.make_private_multiplicative_weights(
        domain, METRIC, PURE, d_in=1, d_out=1.0, universe=universe, size=size, queries=10, beta=0.05
    )


def marginals(domain=SPACE[0], metric=METRIC, measure=ZCDP, d_in=1):
    return oc.m.make_marginals(domain, metric, measure, d_in=d_in, d_out=0.5, columns=2)


def parallel(partition, domain=SPACE[0], metric=METRIC):
    return oc.c.make_parallel_composition(
        domain, metric, partition, {1: costing(0.1, space=(domain, metric))}
    )


def blocks(keys):
    weeks = oc.c.by_values({"a": [1]})
    return oc.c.make_block_filter(an_odometer(), 1, 1.0, blocks=weeks)([]).add_blocks(keys)


def context(evenly=None, weights=None, **options):
    data = pl.LazyFrame({"a": [1]}) if options else [1]
    unit = dp.unit_of(contributions=1)
    return oc.concurrent_context(data, unit, LOSS, evenly, weights, **options)


def by_users():
    items = oc.integer_stream(0, 1)
    return oc.t.make_bounded_contributions(items, oc.user_presence(), items, 2)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_its_argument(name):
    call, kind, argument = REFUSED[name]
    with pytest.raises(kind, match=argument):
        call()
