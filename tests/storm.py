"""Interrupts at random moments, on each kind of handle: nothing dies, sticks, or is half charged.

    python tests/storm.py [--count N] [--seed N] [KIND[=LEDGER] ...]

Another process sends SIGINT, as Ctrl-C does, every 0.2 to 2 ms. Every exception is kept, as
consoles and notebooks keep the last one. After each interrupt the handle is looked at: all accounts
of its tree must agree on what was charged, the next launch must go through, and another thread must
not wait for a lock that nobody holds.

The kinds of handles on a ledger are the scenarios of ``ledger/kills.py``, and a store of answers. A
second process launches on the same ledger meanwhile. It must never be locked out, and every answer
of both must be charged.
"""

import argparse
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

os.environ["RUST_BACKTRACE"] = "0"  # with it, each error of OpenDP costs about 50 ms
# first, since threads inherit it: a thread without it would get what the main thread blocks
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent._opendp.interrupts import uninterruptible
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.serving import AnswerStore

sys.path.insert(0, str(Path(__file__).parent / "ledger"))
from build import APPROXIMATE_ZCDP, PURE, SPACE, a_filter, an_odometer, by_tens, costing, laplace
from build import DATA as ROWS
from kills import SCENARIOS

sys.path.pop(0)

HUGE = 1e15
LAST = 5  # launches of the second process when the storm is over
DATASET = "interrupts"
FORKING = multiprocessing.get_context("fork")
KILLER = """
import os, random, sys, time
pid, chosen = int(sys.argv[1]), random.Random(int(sys.argv[2]))
while os.getppid() == pid:
    time.sleep(chosen.uniform(2e-4, 2e-3))
    os.kill(pid, 2)
"""


class HalfChargedError(Exception):
    """Accounts of one tree do not agree."""


def expect(one, other):
    if one != other:
        raise HalfChargedError(f"{one} != {other}")


class Odometer:
    """An odometer with a child odometer: each launch is charged at both."""

    bounded = staticmethod(an_odometer)

    def __init__(self):
        self.odometer = an_odometer()
        self.queries = [laplace(), costing(0.25)]
        self.renew()

    def renew(self):
        self.root = self.bounded()(ROWS)
        self.child = self.root(self.odometer)
        self.grandchild = self.child(self.odometer)
        self.handles = [self.root, self.child, self.grandchild]
        for handle in self.handles:
            handle.privacy_loss(1)

    def work(self):
        for query in self.queries:
            self.grandchild(query)

    def check(self):
        losses = [handle.privacy_loss(1) for handle in self.handles]
        counts = [handle._session.account.launches for handle in self.handles]
        expect(losses, losses[:1] * 3)
        expect(counts, counts[:1] * 3)
        expect(losses[0], counts[0] * 0.25)


class Filter(Odometer):
    """The same below a filter."""

    bounded = staticmethod(partial(a_filter, HUGE))


class Compositor:
    """A compositor, and one inside it."""

    def __init__(self):
        self.query = laplace()
        self.inner = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25] * 50)
        self.outer = oc.make_concurrent_composition(*SPACE, PURE, 1, [12.5] * 50)
        self.renew()

    def renew(self):
        self.root = self.outer(ROWS)
        self.child = self.root(self.inner)

    def work(self):
        if not self.child.remaining():
            if not self.root.remaining():
                self.root = self.outer(ROWS)
            self.child = self.root(self.inner)
        self.child(self.query)

    def check(self):
        for handle, share in ((self.root, 12.5), (self.child, 0.25)):
            used = handle._session.account.launches
            expect(len(handle.remaining()), 50 - used)
            expect(handle.privacy_loss(1), used * share)


class BelowNative(Compositor):
    """A compositor below one of OpenDP's: all goes through Python callbacks."""

    @uninterruptible  # a call of OpenDP's own that calls Python, which an interrupt may crash
    def renew(self):
        self.root = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [12.5] * 50)(ROWS)
        self.left, self.child = 49, self.root(self.inner)
        self.queries = [laplace(), costing(0.25)]

    @uninterruptible
    def again(self):
        self.left -= 1
        self.child = self.root(self.inner)

    def work(self):
        if len(self.child.remaining()) < 2:
            self.again() if self.left else self.renew()
        for query in self.queries:
            self.child(query)

    def check(self):
        used = self.child._session.account.launches
        expect(len(self.child.remaining()), 50 - used)


class OfOpenDP:
    """A compositor of OpenDP's that we have launched."""

    def __init__(self):
        self.native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.25] * 50)
        self.odometer = an_odometer()
        self.query = laplace()
        self.renew()

    def renew(self):
        self.root = self.odometer(ROWS)
        self.left, self.child = 0, None

    def work(self):
        if self.left == 0:
            self.child = self.root(self.native)
            self.left = 40
        self.left -= 1
        self.child(self.query)

    def check(self):
        expect(self.root.privacy_loss(1), self.root._session.account.launches * 12.5)


class Machine:
    """A sparse vector: a state machine with queries in Python."""

    def __init__(self):
        self.measurement = oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 50, 1000)
        self.odometer = an_odometer()
        self.price = self.measurement.map(1)
        self.renew()

    def renew(self):
        self.root = self.odometer(ROWS)
        self.handle = self.root(self.measurement)

    def work(self):
        try:
            self.handle(len)
        except (oc.errors.InterruptedHandleError, oc.errors.MessageLimitError):
            self.handle = self.root(self.measurement)

    def check(self):
        count = self.root._session.account.launches
        if abs(self.root.privacy_loss(1) - count * self.price) > 1e-6 * count * self.price:
            raise HalfChargedError


class Continual:
    """A counter on a stream: updates and queries."""

    def __init__(self):
        space = oc.integer_stream(0, 1), oc.event_presence()
        self.measurement = oc.m.make_counter(*space, PURE, scale=1.0)
        self.renew()

    def renew(self):
        self.handle = self.measurement([])

    def work(self):
        try:
            self.handle.update(1)
            self.handle(None)
        except oc.errors.InterruptedHandleError:
            self.renew()

    def check(self):
        """Usable or closed: that is what work() sees."""


class Sequential:
    """Under approximate zCDP, where a launch closes what is approximate as a whole only."""

    def __init__(self):
        self.odometer = an_odometer(APPROXIMATE_ZCDP)
        self.pair = dp.c.make_adaptive_composition(
            *SPACE, APPROXIMATE_ZCDP, d_in=1, d_mids=[(0.25, 1e-9)] * 4
        )
        self.query = costing((0.25, 0.0), measure=APPROXIMATE_ZCDP)
        self.renew()

    def renew(self):
        self.root = self.odometer(ROWS)
        self.root.privacy_loss(1)

    def work(self):
        older = self.root(self.pair)
        older(self.query)
        self.root(self.query)
        try:
            older(self.query)
        except oc.errors.ClosedChildError:
            return
        raise HalfChargedError("an older child has answered")

    def check(self):
        account = self.root._session.account
        loss, history = self.root.privacy_loss(1)[0], account.store.prices
        prices = [price.at(1)[0] for price, _ in history]
        expect(loss, sum(prices))


class Blocks:
    """A filter on blocks: each launch is charged at two of them."""

    def __init__(self):
        self.root, self.query, self.turn = by_tens(HUGE, keys=range(9))(ROWS), laplace(), 0

    def work(self):
        self.turn += 1
        self.root([self.turn % 9, (self.turn + 1) % 9], self.query)

    def check(self):
        losses = sum(self.root.privacy_loss(key) for key in range(9))
        expect(losses, 2 * 0.25 * self.root._session.account.launches)


class Shared:
    """A shared release: each finer level is paid, and the others are free."""

    def __init__(self):
        self.odometer = an_odometer()
        self.release = SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)
        self.renew()

    @uninterruptible
    def renew(self):
        self.root = self.odometer(ROWS)
        self.handle, self.answers = self.root(self.release), {}

    def work(self):
        self.handle(self.handle.finest + 2.0**-10)
        for level in (2.0**-10, self.handle.finest):
            expect(self.answers.setdefault(level, self.handle(level)), self.handle(level))
        if self.handle.finest > 0.1:
            self.renew()

    def check(self):
        paid = self.root.privacy_loss(1)
        expect(paid, self.handle.privacy_loss(1))
        expect(paid, self.root._session.account.launches * 2.0**-10)
        if self.handle.finest > paid:
            raise HalfChargedError(f"level {self.handle.finest} for {paid}")


class Constructors:
    """Measurements and transformations with functions in Python, which are made, used and freed."""

    def __init__(self):
        self.stream = oc.integer_stream(0, 1), oc.event_presence()
        self.turn = 0

    def work(self):
        self.turn += 1
        if self.turn % 3 == 0:
            made = oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 50, 3)
        elif self.turn % 3 == 1:
            made = a_filter(0.5)
        else:
            made = oc.m.make_counter(*self.stream, PURE, scale=2.0, horizon=9)
        if not made.map(1) > 0:
            raise HalfChargedError

    def check(self):
        self.work()


class InLedger:
    """A scenario of ``ledger/kills.py``, while a second process launches on the same ledger."""

    def __init__(self, scenario, name):
        self.scenario, self.name, self.answers = SCENARIOS[scenario], name, 0
        # forked before this process has opened the ledger, which the second one may not have then
        self.pipe, other = FORKING.Pipe()
        self.second = FORKING.Process(target=second, args=(scenario, name, other, self.pipe))
        self.second.start()
        other.close()
        self.ledger = create_ledger(name, DATASET, wait=20.0)
        self.launch = self.scenario.start(self.ledger)
        self.pipe.send("created")
        self.pipe.recv()

    def work(self):
        self.launch()
        self.answers += 1

    def check(self):
        if not self.second.is_alive():
            raise RuntimeError("the second process has ended")

    def close(self, interrupts):
        self.pipe.send("over")
        if not self.pipe.poll(120):
            raise RuntimeError("the second process says nothing")
        others = self.pipe.recv()
        self.second.join()
        if others["failure"]:
            raise RuntimeError(f"second process: {others['failure']}")
        if others["answers"] < LAST + min(5, interrupts // 100):
            raise RuntimeError("the second process was locked out")
        with open_ledger(self.name, DATASET) as ledger:
            charged = self.scenario.charged(ledger)
        answers = self.answers + others["answers"]
        if charged < answers:
            raise HalfChargedError(f"{answers} answers, but {charged} charges")
        if charged > answers + interrupts * self.scenario.at_risk:
            raise HalfChargedError(f"{charged} charges, but {answers} answers")
        self.ledger.close()


class Answers(InLedger):
    """The same behind a store of answers, by keys: each key is launched and charged once."""

    def __init__(self, scenario, name):
        super().__init__(scenario, name)
        self.folder = tempfile.TemporaryDirectory()
        self.store = AnswerStore(self.folder.name + "/answers.db")
        self.key, self.known = 0, {}

    def work(self):
        label = f"key {self.key}"

        def run():
            with oc.labelled(label):
                return self.launch()

        found = self.store.once(
            label,
            "count",
            run,
            charged=lambda: bool(self.ledger.entries(label=label)),
            lost="lost",
        )
        if self.known.setdefault(label, found) != found:
            raise HalfChargedError("another answer for one key")
        self.answers += found != "lost"
        self.key += 1

    def close(self, interrupts):
        labels = [one.label for one in self.ledger.entries() if one.label]
        expect(len(labels), len(set(labels)))
        if not {key for key, one in self.known.items() if one != "lost"} <= set(labels):
            raise HalfChargedError("an answer without a charge")
        super().close(interrupts)


KINDS = {
    "odometer": Odometer,
    "filter": Filter,
    "compositor": Compositor,
    "child of native": BelowNative,
    "native child": OfOpenDP,
    "machine": Machine,
    "continual": Continual,
    "sequential": Sequential,
    "blocks": Blocks,
    "shared release": Shared,
    "constructors": Constructors,
}


class Run:
    """Interrupts of one kind of handle. SIGINT is blocked while the handle is looked at."""

    def __init__(self, handle, count):
        self.handle, self.count = handle, count
        self.kept, self.failure = [], None

    def look(self):
        """What holds after an interrupt, whenever it came."""
        failures = []

        def check():  # in a thread, which waits for what is locked
            try:
                self.handle.check()
            except BaseException as error:
                failures.append(error)

        watched = threading.Thread(target=check, daemon=True)
        watched.start()
        watched.join(timeout=30)
        if watched.is_alive():
            return "stuck"
        if failures:
            kind = "half" if isinstance(failures[0], HalfChargedError) else "stuck"
            return f"{kind}: {failures[0]!r}"
        try:
            self.handle.work()
            self.handle.check()
        except HalfChargedError as error:
            return f"half: {error}"
        except Exception as error:
            return f"stuck: {error!r}"
        return None

    def once(self):
        """Work until interrupted, then look."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            while True:
                self.handle.work()
        except KeyboardInterrupt as error:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            self.kept.append(error)
        except BaseException as error:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            kind = "half" if isinstance(error, HalfChargedError) else "stuck"
            self.failure = f"{kind}: {error!r}"
            return
        self.failure = self.look()

    def storm(self):
        """Look after each of many interrupts."""
        while len(self.kept) < self.count and self.failure is None:
            try:
                self.once()
            except KeyboardInterrupt as error:  # it met the lines of once()
                self.kept.append(error)

    def run(self, seed):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        killer = subprocess.Popen([sys.executable, "-c", KILLER, str(os.getpid()), str(seed)])
        try:
            while len(self.kept) < self.count and self.failure is None:
                try:
                    self.storm()
                except KeyboardInterrupt as error:
                    self.kept.append(error)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            killer.kill()
            killer.wait()
            # what has arrived is dropped
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            signal.signal(signal.SIGINT, before)
        if self.failure is None and hasattr(self.handle, "close"):
            try:
                self.handle.close(len(self.kept))
            except Exception as error:
                kind = "half" if isinstance(error, HalfChargedError) else "stuck"
                self.failure = f"{kind}: {error!r}"


def made(kind, name):
    """Return a handle; ``name`` is that of a ledger, or empty."""
    if not name:
        return KINDS[kind]()
    return Answers("single", name) if kind == "answers" else InLedger(kind, name)


def run(kind, name, count, seed):
    """In this process."""
    sys.unraisablehook = lambda unraisable: None  # interrupts in destructors, which Python drops
    one = Run(made(kind, name), count)
    one.run(seed)
    return {"interrupts": len(one.kept), "failure": one.failure}


def second(scenario, name, pipe, other):
    """Launch on a ledger until the first process says so or ends, and then some more times."""
    other.close()
    pipe.recv()
    answers, failure, left = 0, None, LAST
    with open_ledger(name, DATASET, wait=20.0) as ledger:
        launch = SCENARIOS[scenario].start(ledger)
        pipe.send("begun")
        while left:
            left -= pipe.poll()
            try:
                launch()
            except Exception as error:
                failure = repr(error)
                break
            answers += 1
            time.sleep(1e-3)
    pipe.send({"answers": answers, "failure": failure})


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument("--count", type=int, default=20, help="interrupts for each kind")
    options.add_argument("kinds", nargs="*", help="all that are on no ledger, if none is given")
    given = options.parse_args()
    found = {}
    for each in given.kinds or KINDS:
        kind, _, name = each.partition("=")
        found[kind, bool(name)] = run(kind, name, given.count, given.seed)
        gc.collect()
    print(json.dumps([[kind, *one.values()] for (kind, _), one in found.items()]))


if __name__ == "__main__":
    main()
