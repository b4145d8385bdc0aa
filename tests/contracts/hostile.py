"""Values that nobody should pass, by label. Each is made anew, since some can be used up once."""

import array
import collections
import ctypes
import decimal
import functools
import itertools
import math
import threading
import types
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import opendp.prelude as dp

import opendp_concurrent as oc


class HostileError(Exception):
    """What a hostile value raises of its own."""


def _raise(*_: Any, **__: Any) -> Any:
    raise HostileError("raised by the value itself")


class LongSequence(Sequence):
    def __len__(self):
        return 10**12

    def __getitem__(self, index):
        return 0.5


def _deep(depth: int) -> list:
    deep: list = []
    for _ in range(depth):
        deep = [deep]
    return deep


def _cycle() -> list:
    cycle: list = []
    cycle.append(cycle)
    return cycle


NUMBERS: dict[str, Callable[[], Any]] = {
    repr(value): lambda value=value: value
    for value in (
        math.nan, math.inf, -math.inf, -0.0, -1.0, -1, -0.5, 0, 0.0, 1, 2, 0.5, 1.5, 5e-324,
        -5e-324,
        1e-300, 1e-17, 1e17, 1e308, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1,
        2**63, -(2**63), 2**64, 10**6, 10**9, 10**12, 10**18, True, False, 1j, complex(math.nan, 0),
    )
}  # fmt: skip
NUMBERS |= {
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "Decimal('0.1')": lambda: decimal.Decimal("0.1"),
    "Decimal('NaN')": lambda: decimal.Decimal("NaN"),
    "Decimal('sNaN')": lambda: decimal.Decimal("sNaN"),
    "Decimal('Infinity')": lambda: decimal.Decimal("Infinity"),
    "Decimal('1e999999')": lambda: decimal.Decimal("1e999999"),
    "Fraction(1, 3)": lambda: Fraction(1, 3),
    "Fraction(10**400)": lambda: Fraction(10**400),
}
NUMPY: dict[str, Callable[[], Any]] = {
    "np.float64(nan)": lambda: np.float64(math.nan),
    "np.float64(0.5)": lambda: np.float64(0.5),
    "np.float32(0.1)": lambda: np.float32(0.1),
    "np.float16(inf)": lambda: np.float16(math.inf),
    "np.longdouble(1e4000)": lambda: np.longdouble("1e4000"),
    "np.int64(3)": lambda: np.int64(3),
    "np.int64(-3)": lambda: np.int64(-3),
    "np.uint8(255)": lambda: np.uint8(255),
    "np.bool_(True)": lambda: np.bool_(True),
    "np.complex128": lambda: np.complex128(1j),
    "np.datetime64('NaT')": lambda: np.datetime64("NaT"),
    "np.timedelta64(1)": lambda: np.timedelta64(1),
    "np.str_": lambda: np.str_("a"),
    "np.bytes_": lambda: np.bytes_(b"a"),
    "np.void": lambda: np.void(b"abcd"),
    "array 0-d": lambda: np.array(1.0),
    "array 0-d object": lambda: np.array(None, dtype=object),
    "array empty": lambda: np.array([]),
    "array [nan]": lambda: np.array([math.nan]),
    "array [0.5]": lambda: np.array([0.5]),
    "array [0.5, 0.5]": lambda: np.array([0.5, 0.5]),
    "array (2, 3)": lambda: np.zeros((2, 3)),
    "array (0, 3)": lambda: np.zeros((0, 3)),
    "array of text": lambda: np.array(["a"]),
    "array of objects": lambda: np.array([None, 1], dtype=object),
    "array complex": lambda: np.array([1 + 2j]),
    "array structured": lambda: np.zeros(2, dtype=[("a", float), ("b", "i4")]),
    "array bool": lambda: np.array([True]),
    "array datetime": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "array float16": lambda: np.array([0.5], dtype=np.float16),
    "array longdouble": lambda: np.array([0.5], dtype=np.longdouble),
    "array big-endian": lambda: np.array([0.5], dtype=">f8"),
    "array uint64": lambda: np.array([2**64 - 1], dtype=np.uint64),
    "array of 10**10, stride 0": lambda: np.broadcast_to(np.float64(0.5), (10**10,)),
    "masked": lambda: np.ma.masked,
    "masked array": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "matrix": lambda: np.ones((2, 2)).view(np.matrix),
    "read-only array": lambda: np.frombuffer(b"\0" * 8),
}
CONTAINERS: dict[str, Callable[[], Any]] = {
    repr(value): lambda value=value: type(value)(value)
    for value in (
        [], (), {}, set(), frozenset(), [math.nan], [None], ["a"], [[]], [[1]], [1.0], [0.5, 0.5],
        [-1.0, 2.0], [True], [1, "a"], (1.0,), (1.0, 1e-6), (math.nan, math.nan), (-1.0, 1e-6),
        (1.0, 2.0), (1.0, -1e-6), ("a", "b"), (1.0, 1e-6, 3), (math.inf, 0.0), {1: 2}, {"a": None},
        {"a": math.nan}, {math.nan: 1.0}, {None: None}, {1.0, 2.0}, [(1.0, 1e-6)], [10**400],
        [b"a"],
    )
}  # fmt: skip
CONTAINERS |= {
    "nested 100": lambda: _deep(100),
    "nested 100000": lambda: _deep(100_000),
    "list in itself": _cycle,
    "range(0)": lambda: range(0),
    "range(3)": lambda: range(3),
    "range(10**12)": lambda: range(10**12),
    "range(10**30)": lambda: range(10**30),
    "memoryview": lambda: memoryview(b"abc"),
    "bytearray": lambda: bytearray(b"abc"),
    "array.array": lambda: array.array("d", [0.5]),
    "deque": lambda: collections.deque([0.5]),
    "iterator": lambda: iter([0.5]),
    "endless": lambda: itertools.count(),
    "endless halves": lambda: itertools.repeat(0.5),
    "generator": lambda: (one for one in [0.5]),
    "generator that raises": lambda: (_raise() for _ in [0.5]),
    "UserList": lambda: collections.UserList([0.5]),
    "MappingProxy": lambda: types.MappingProxyType({"a": 1.0}),
    "ChainMap": lambda: collections.ChainMap({"a": 1.0}),
    "LongSequence": LongSequence,
    "dict views": lambda: {"a": 1}.keys(),
    "slice": lambda: slice(None),
}
TEXTS: dict[str, Callable[[], Any]] = {
    repr(value): lambda value=value: value
    for value in (
        "", "text", "1.0", "nan", "a\0b", "\ud800", "é", "a folder/x", "sqlite:///", "sqlite://",
        "postgresql://a\0b", "postgresql+psycopg://nobody@127.0.0.1:1/none", "mysql://x", "{}",
        "%s",
        b"", b"bytes", b"\xff\0",
    )
}  # fmt: skip
TEXTS |= {"a million letters": lambda: "a" * 10**6}
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "lambda: None": lambda: lambda: None,
    "lambda x: None": lambda: lambda x: None,
    "lambda x: x": lambda: lambda x: x,
    "lambda *_: nan": lambda: lambda *_: math.nan,
    "lambda *_: -1.0": lambda: lambda *_: -1.0,
    "lambda *_: 'text'": lambda: lambda *_: "text",
    "lambda *_: 10**400": lambda: lambda *_: 10**400,
    "lambda *_: array": lambda: lambda *_: np.zeros(3),
    "lambda *_: endless": lambda: lambda *_: itertools.count(),
    "lambda *_: callable": lambda: lambda *_: _raise,
    "lambda three": lambda: lambda a, b, c: 0.0,
    "raises": lambda: _raise,
    "partial": lambda: functools.partial(_raise, 1),
    "len": lambda: len,
    "print": lambda: lambda *_: None,
    "type": lambda: type,
    "object": lambda: object,
    "int": lambda: int,
    "float": lambda: float,
    "np.float64": lambda: np.float64,
    "HostileError": lambda: HostileError,
    "staticmethod": lambda: staticmethod(len),
}
OBJECTS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "NotImplemented": lambda: NotImplemented,
    "Ellipsis": lambda: ...,
    "object()": object,
    "an exception": lambda: HostileError("a value"),
    "a module": lambda: math,
    "a lock": threading.Lock,
    "MagicMock": MagicMock,
    "ctypes null": lambda: ctypes.POINTER(ctypes.c_int)(),
    "ctypes c_double": lambda: ctypes.c_double(0.5),
}


def _measured() -> Any:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)


def _space() -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def _odometer() -> Any:
    return oc.make_concurrent_odometer(*_space(), dp.max_divergence())


NATIVE: dict[str, Callable[[], Any]] = {
    "domain of bool": lambda: dp.atom_domain(T=bool),
    "domain of text": lambda: dp.vector_domain(dp.atom_domain(T=str)),
    "domain of maps": lambda: dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)),
    "user domain": lambda: dp.user_domain("mine", lambda x: True),
    "metric": dp.symmetric_distance,
    "l2 metric": lambda: dp.l2_distance(T=float),
    "discrete metric": dp.discrete_distance,
    "user metric": lambda: dp.user_distance("mine"),
    "measure": dp.max_divergence,
    "smoothed measure": dp.smoothed_max_divergence,
    "zCDP": dp.zero_concentrated_divergence,
    "approximate zCDP": lambda: dp.approximate(dp.zero_concentrated_divergence()),
    "Rényi": dp.renyi_divergence,
    "user measure": lambda: dp.user_divergence("mine"),
    "transformation": lambda: dp.t.make_count(*_space()),
    "measurement": _measured,
    "measurement on a bool": lambda: dp.m.make_randomized_response_bool(0.75),
    "native odometer": lambda: dp.c.make_fully_adaptive_composition(*_space(), dp.max_divergence()),
    "native queryable": lambda: dp.c.make_adaptive_composition(
        *_space(), dp.max_divergence(), 1, [1.0]
    )([1]),
    "partial constructor": lambda: dp.t.then_count(),
    "class Measurement": lambda: dp.Measurement,
    "space": _space,
}
OURS: dict[str, Callable[[], Any]] = {
    "odometer": _odometer,
    "filter": lambda: oc.make_concurrent_filter(_odometer(), 1, 1.0),
    "compositor": lambda: oc.make_concurrent_composition(*_space(), dp.max_divergence(), 1, [1.0]),
    "odometer's handle": lambda: _odometer()([1]),
    "filter's handle": lambda: oc.make_concurrent_filter(_odometer(), 1, 1.0)([1]),
    "machine": lambda: oc.c.make_interactive(_measured())([1]),
    "counter": lambda: oc.m.make_counter(
        oc.integer_stream(0, 1), oc.event_presence(), dp.max_divergence(), 2.0
    ),
    "counter's handle": lambda: oc.m.make_counter(
        oc.integer_stream(0, 1), oc.event_presence(), dp.max_divergence(), 2.0
    )([]),
    "then_counter": lambda: oc.m.then_counter(dp.max_divergence(), 2.0),
    "stream": lambda: oc.integer_stream(0, 1),
    "stream of records": lambda: oc.record_stream("any", lambda record: True),
    "tCDP": lambda: oc.truncated_concentrated_divergence(8.0),
    "GDP": oc.gaussian_tradeoff,
    "f-DP": oc.tradeoff,
    "TradeoffFunction": lambda: oc.TradeoffFunction.gaussian(1.0),
    "worst TradeoffFunction": oc.TradeoffFunction.worst,
    "class TradeoffFunction": lambda: oc.TradeoffFunction,
    "TruncatedConcentrated": lambda: oc.TruncatedConcentrated(0.1, 8.0),
    "zcdp()": lambda: oc.accumulators.zcdp(1e-7),
    "ladder()": lambda: oc.accumulators.ladder(oc.TradeoffFunction.pure(0.1)),
    "partition": lambda: oc.c.by_key(lambda record: record),
    "NoisySum": lambda: oc.handles.NoisySum(len, 1.0, 1.0),
    "Update": lambda: oc.handles.Update(1),
    "Update of nonsense": lambda: oc.handles.Update([math.nan], "step"),
    "Updates": lambda: oc.handles.Updates([1]),
    "Updates of nothing": lambda: oc.handles.Updates(None),
    "Deviation": lambda: oc.handles.Deviation(None, math.nan),
    "ANSWER": lambda: oc.c.ANSWER,
}
HOSTILE = {
    **NUMBERS, **NUMPY, **CONTAINERS, **TEXTS, **FUNCTIONS, **OBJECTS, **NATIVE, **OURS,
}  # fmt: skip
