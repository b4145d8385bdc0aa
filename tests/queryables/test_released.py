"""Frames that were released: collected once, with errors that show no row."""

import copy
import logging
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import opendp.prelude as dp
import pytest
from opendp.extras.polars import OnceFrame
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    CollectedError,
    ForkedError,
    MechanismError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures import Composability, composition_measure
from opendp_concurrent.queryables.data import ReleasedFrame
from opendp_concurrent.queryables.root import check_ledger

pl = pytest.importorskip("polars")

UNIT = dp.unit_of(contributions=1)
LOSSES = {
    "pure": (dp.loss_of(epsilon=1.0), {"epsilon": 0.25}),
    "sequential": (dp.loss_of(rho=1.0, delta=1e-6), {"rho": 0.25, "delta": 0.0}),
}


def release(context, **loss):
    return context.query(**loss).select(dp.len(signed=True)).release()


@pytest.mark.parametrize("loss", LOSSES)
def test_an_error_of_polars_shows_no_row_and_the_launch_stays_charged(tmp_path, caplog, loss):
    path = tmp_path / "visits.csv"
    rows = "who,age\n" + "1,2\n" * 500  # more than Polars reads to infer the types
    path.write_text(rows)
    budget, share = LOSSES[loss]
    context = oc.concurrent_context(oc.uncollected(pl.scan_csv(path)), UNIT, budget)
    path.write_text(f"{rows}3,SECRET\n")
    frame = context.query(**share).filter(pl.col("age") > 1).select(dp.len(signed=True)).release()
    spent = context.current_privacy_loss()
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(MechanismError) as refusal,
    ):
        frame.collect()
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
    assert "SECRET" in caplog.text  # the owner's log
    assert context.current_privacy_loss() == spent == pytest.approx(loss_in(share))


def loss_in(share):
    return tuple(share.values()) if len(share) > 1 else next(iter(share.values()))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_frame_is_collected_once(loss):
    budget, share = LOSSES[loss]
    context = oc.concurrent_context(pl.LazyFrame({"a": [1, 2]}), UNIT, budget)
    frame = release(context, **share)
    assert isinstance(frame, OnceFrame)
    assert type(frame) is ReleasedFrame
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            action(frame)
    assert frame.collect().shape == (1, 1)
    for again in (frame.collect, frame.lazy):
        with pytest.raises(OpenDPException, match="exhausted"):
            again()


def test_an_older_frame_can_be_collected_after_a_launch_under_a_sequential_measure():
    """A release is one answer that was fixed by its charge; nobody can ask it anything."""
    budget, share = LOSSES["sequential"]
    context = oc.concurrent_context(pl.LazyFrame({"a": [1, 2]}), UNIT, budget)
    older, newer = release(context, **share), release(context, **share)
    assert older.collect().shape == newer.collect().shape == (1, 1)


def test_a_frame_of_a_plan_with_several_is_released_in_a_list():
    frame = pl.LazyFrame({"a": [1, 2]})
    space = dp.domain_of(frame, infer=True), dp.symmetric_distance()
    plan = pl.LazyFrame(schema={"a": pl.Int64}).select(dp.len(signed=True))
    count = dp.m.make_private_lazyframe(*space, dp.max_divergence(), plan, global_scale=1.0)
    found = oc.make_concurrent_odometer(*space, dp.max_divergence())(frame)(
        dp.c.make_composition([count, count])
    )
    assert [type(one) for one in found] == [ReleasedFrame] * 2


def test_one_of_several_threads_collects_a_frame():
    context = oc.concurrent_context(pl.LazyFrame({"a": [1]}), UNIT, dp.loss_of(epsilon=4.0))
    for _ in range(5):
        frame = release(context, epsilon=0.5)

        def collected(_, frame=frame):
            with suppress(OpenDPException):  # exhausted
                return len(frame.collect())
            return 0

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(collected, range(8))) == 1


# --- one charge, one answer ------------------------------------------------------------------


def noisy_frame(scale=100.0):
    context = oc.concurrent_context(pl.LazyFrame({"a": [1, 2]}), UNIT, dp.loss_of(epsilon=1.0))
    return context.query().select(dp.len(scale=scale, signed=True)).release()


def test_a_lazy_frame_has_the_collected_answer():
    frame = noisy_frame()
    lazy = frame.lazy()
    assert type(lazy) is pl.LazyFrame
    answers = {lazy.collect().item() for _ in range(2_000)}
    assert len(answers) == 1
    for again in (frame.lazy, frame.collect):
        with pytest.raises(CollectedError):
            again()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_collects_no_second_answer():
    frame = noisy_frame()
    child = os.fork()
    if not child:
        signal.alarm(30)  # Polars may wait for its threads, which the child lacks
        code = 1
        try:
            frame.collect()
        except ForkedError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert frame.collect().shape == (1, 1)


def test_an_error_that_looks_like_an_exhausted_frame_is_hidden(monkeypatch):
    frame = noisy_frame()

    def fails(_):
        raise ValueError("OnceFrame has been exhausted: row 918273645")

    monkeypatch.setattr(OnceFrame, "collect", fails)
    with pytest.raises(MechanismError):
        frame.collect()


class Remembering:
    """A ledger that writes down under which terms it was opened."""

    def book(self, terms):
        self.terms = terms
        return self

    def read(self):
        return "all charges so far"


def test_a_ledger_keeps_concurrent_measures_and_no_sequential_one(monkeypatch):
    zcdp = dp.zero_concentrated_divergence()
    for measure in (dp.max_divergence(), zcdp, dp.approximate(zcdp), oc.tradeoff()):
        check_ledger(Remembering(), composition_measure(measure))
    sequential = composition_measure(dp.max_divergence())
    monkeypatch.setattr(type(sequential), "composability", Composability.SEQUENTIAL)
    with pytest.raises(UnsupportedMeasureError, match="cannot close the children in another"):
        check_ledger(Remembering(), sequential)
