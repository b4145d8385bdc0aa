"""Quotas for several analysts on one dataset, and the privacy loss to a coalition of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..accounts.name import named
from ..arguments import checks
from ..combinators.accounting import check_budget
from ..combinators.concurrent_composition import make_concurrent_composition
from ..combinators.concurrent_filter import make_concurrent_filter
from ..combinators.constructor import constructor
from ..combinators.guards import check_odometer, check_orders
from ..combinators.inside import check_static
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..native import opendp as _native
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer, run
from ..queryables.named_queries import PARTS, answering
from ..queryables.session import validate_d_in
from ..queryables.turn import in_turn, lock_for_turns
from ..types import Distance


class AnalystQuotas(ConcurrentMeasurement):
    """A measurement that spawns one filter for each analyst.

    :ivar quotas: each analyst's d_out, by name
    :ivar d_in: distance between neighbouring inputs; in ``transformation >> measurement``, the
        distance between the outputs of the transformation
    :ivar compositor: makes the fixed composition of some d_outs, with or without a δ

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> oc.c.make_analyst_quotas(odometer, 1, {"alice": 1.0, "bob": 0.5}).coalition(["bob"])
    0.5
    """

    _type_ = _native.MEASUREMENT  # which ctypes does not inherit
    quotas: Mapping[str, Any]
    d_in: Distance
    compositor: Callable[[Sequence[Any], float | None], ConcurrentMeasurement]

    def coalition(self, names: Collection[str], *, delta: float | None = None) -> Any:
        """Return the privacy loss of everything that a coalition of analysts learns.

        The loss is the fixed composition of their quotas. It does not depend on their queries or
        on what they tell each other. It is known before there are data. Calling changes nothing.

        :param names: the analysts of the coalition; all others must not share their answers
        :param delta: for (ε, δ)-DP: the δ of the optimal composition; the sum of their quotas if
            left out
        :return: a distance of the measure
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        members = _members(self.quotas, names)
        d_mids = [quota for name, quota in self.quotas.items() if name in members]
        return self.compositor(d_mids, delta).map(self.d_in)


@constructor
def make_analyst_quotas(
    odometer: ConcurrentOdometer,
    d_in: Distance,
    quotas: Mapping[str, Any],
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
    halt: bool = False,
) -> AnalystQuotas:
    """Give each of several analysts a separate filter on one dataset.

    The returned measurement spawns a queryable that takes an analyst's name and returns that
    analyst's :class:`.ConcurrentFilterQueryable`, the same one each time; ``analysts["alice"]`` is
    the same query as ``analysts("alice")``. Analysts launch at the same time, adaptively, and may
    share their answers. A refusal affects only the analyst whose launch is refused. The odometer's
    accumulator adds up each analyst's launches. An unspent quota cannot be passed on.

    Guarantee: that of :func:`.make_concurrent_composition` with the quotas as d_mids, for all
    analysts together. For a coalition, it is the composition of their quotas only, which the
    measurement's ``coalition(names)`` returns. A filter is one interactive mechanism, whatever it
    launches [HSTVVXZ23, Theorems 1.20, 1.21 and 4.6], and mechanisms with fixed losses compose
    concurrently. For pure DP the sum [VW21, Theorem 1.5]. For (ε, δ)-DP the sum, or with ``delta``
    the optimal composition [KOV15], [MV16]: k quotas of (ε, δ) are
    (O(sqrt(k log(1/δ')) ε), kδ + δ')-DP [LW22, Theorem 1 and Section 3]. For Rényi DP, zCDP
    and tCDP (with the least ω) the sum [LW22, Theorem 2 and Corollary 1]. For Gaussian DP the root
    of the sum of squares, for f-DP the tensor product [VZ23]. Finite communication for (ε, δ)-DP
    and f-DP. Approximate zCDP is refused: filters side by side are an open question there.

    Required features: `contrib`, `honest-but-curious`

    :param odometer: made by :func:`.make_concurrent_odometer`, possibly chained
    :param d_in: distance between neighbouring inputs, in units of the odometer's input metric
    :param quotas: each analyst's d_out, by name, in units of the odometer's measure
    :param delta: for (ε, δ)-DP: the δ of the optimal composition of all quotas; the sum if left
        out
    :param orders: for Rényi curves only: the orders at which quotas are enforced and summed
    :param halt: close an analyst's interaction at that analyst's first refusal
    :return: a measurement that spawns a queryable
    :raises UnsupportedMeasureError: if the measure is only known to compose sequentially
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> measurement = oc.c.make_analyst_quotas(odometer, 1, {"alice": 1.0, "bob": 0.5, "eve": 0.25})
    >>> measurement.map(1)
    1.75
    >>> measurement.coalition(["bob", "eve"])
    0.75

    Interleave the queries to Alice's and Bob's mechanisms:

    >>> analysts = measurement([1, 2, 3])
    >>> alice, bob = analysts["alice"], analysts["bob"]
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    >>> pair = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.25, 0.25])
    >>> hers, his = alice(pair), bob(pair)
    >>> answers = [hers(count), his(count), hers(count), his(count)]
    >>> bob(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: quota 'bob' of the quotas refuses: spent 0.5 ...
    >>> alice.remaining()
    0.5
    """
    check_odometer(odometer)
    measure, space = odometer.measure, odometer.input_space
    if measure.sequential_reason:
        raise UnsupportedMeasureError(
            f"odometer is under {measure.name}, where filters side by side are not known to "
            f"compose: {measure.reason}; share one filter, or take another measure"
        )
    check_static(space[0])
    d_in = validate_d_in(space[1], d_in)
    on_orders = check_orders(measure, orders)
    orders = None if on_orders is None else on_orders.orders  # the same for all
    filters = {
        name: make_concurrent_filter(odometer, d_in, quota, orders=orders, halt=halt)
        for name, quota in _checked(odometer, quotas).items()
    }

    def compositor(d_mids: Sequence[Any], delta: float | None) -> ConcurrentMeasurement:
        return make_concurrent_composition(
            space[0], space[1], measure.opendp(), d_in, d_mids, orders=orders, delta=delta
        )

    bounds = {name: one.map(d_in) for name, one in filters.items()}
    whole = compositor(list(bounds.values()), delta)

    def open_all(token: Sealed) -> MachineQueryable:
        with named("quotas"):
            root = run(whole, token)
        handles = {}
        for name, one in filters.items():
            with named("quota", name):
                handles[name] = root(one)
        kind = answering(MachineQueryable, PARTS)
        return kind(
            lambda name: handles[_known(handles, name)], "AnalystQuotas", interruptible=True
        )

    def spawn(token: Sealed) -> Any:
        # Filters are launched here, outside of any turn of the machine, so that each has its own
        # lock. Only one thread at a time may use a native parent, so below it filters take turns.
        if _native.inside_native_call():
            return in_turn(lock_for_turns(), open_all, token)
        return open_all(token)

    measurement: Any = make_measurement(
        space,
        measure.opendp(),
        spawn,
        whole.privacy_map,
        f"AnalystQuotas({measure.name}, {odometer.accumulator}, d_in={d_in}, {dict(bounds)})",
        composes=True,
    )
    measurement.__class__ = AnalystQuotas
    measurement.quotas, measurement.d_in = MappingProxyType(bounds), d_in
    measurement.compositor = compositor
    quotas_measurement: AnalystQuotas = measurement
    return quotas_measurement


def _checked(odometer: ConcurrentOdometer, quotas: Any) -> dict[str, Any]:
    given = checks.mapping("names to d_outs", quotas=quotas)
    if not given:
        raise InvalidValueError("quotas must have at least one analyst")
    checked = {}
    for name, quota in given.items():
        if not isinstance(name, str):
            raise InvalidTypeError(f"quotas has the name {checks.shown(name)}, which must be a str")
        name = str.__str__(name)
        argument = f"quotas[{name!r}]"
        checked[name] = odometer.measure.validate_budget(argument, quota)
        try:
            check_budget(odometer.accumulator, checked[name])
        except InvalidValueError as error:
            raise InvalidValueError(f"{argument}: {error}") from None
    return checked


def _members(quotas: Mapping[str, Any], names: Any) -> set[str]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Collection):
        raise InvalidTypeError(
            f"names must be a collection of analysts' names, found {type(names).__name__}"
        )
    members = checks.read("analysts' names", names=names)
    if not members:
        raise InvalidValueError("names must have at least one analyst")
    return {_known(quotas, name, "names: ") for name in members}


def _known(quotas: Mapping[str, Any], name: Any, where: str = "") -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(
            f"{where}the analyst's name must be a str, found {type(name).__name__}"
        )
    own = str.__str__(name)
    if own not in quotas:
        raise InvalidValueError(
            f"{where}no analyst is called {checks.shown(own)}; known are: {', '.join(quotas)}"
        )
    return own
