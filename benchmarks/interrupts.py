"""Interrupts at random moments, on each kind of handle: nothing dies, sticks, or is half charged.

    python benchmarks/interrupts.py [--quick] [--json] [--seed N] [--kinds odometer,filter,...]

Each kind runs in a process of its own, twice: interrupted in the main thread by a signal whose
handler raises, as Ctrl-C does, and in another thread by ``PyThreadState_SetAsyncExc``. After each
interrupt the handle is looked at: all accounts of its tree must agree on what was charged, and the
next launch must go through; another thread must not wait for a lock that nobody holds.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

os.environ["RUST_BACKTRACE"] = "0"  # with it, each error of OpenDP costs about 50 ms

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
PURE, SEQUENTIAL = dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROWS = [1, 2, 3]
HUGE = 1e15
TARGETS = {
    "aborts": ("at most", 0.0),
    "stuck": ("at most", 0.0),
    "half_charges": ("at most", 0.0),
}


class Interrupt(BaseException):
    """What is raised in another thread."""


class HalfChargedError(Exception):
    """Accounts of one tree do not agree."""


def laplace():
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)


def in_python(measure=PURE, loss=0.25):
    """A mechanism that OpenDP calls back into Python for."""
    return dp.m.make_user_measurement(*SPACE, measure, len, lambda d_in: loss * d_in)


def expect(one, other):
    if one != other:
        raise HalfChargedError(f"{one} != {other}")


class Odometer:
    """An odometer with a child odometer: each launch is charged at both."""

    def __init__(self):
        self.odometer = oc.make_concurrent_odometer(*SPACE, PURE)
        self.queries = [laplace(), in_python()]
        self.renew()

    def renew(self):
        self.root = self.odometer(ROWS)
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

    def renew(self):
        self.root = oc.make_concurrent_filter(self.odometer, 1, HUGE)(ROWS)
        self.child = self.root(self.odometer)
        self.grandchild = self.child(self.odometer)
        self.handles = [self.root, self.child, self.grandchild]
        for handle in self.handles:
            handle.privacy_loss(1)


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

    def renew(self):
        self.root = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [12.5] * 50)(ROWS)
        self.left, self.child = 49, self.root(self.inner)
        self.queries = [laplace(), in_python()]

    def work(self):
        if len(self.child.remaining()) < 2:
            if self.left <= 20:  # an interrupted launch of OpenDP's own may have used one
                self.renew()
            self.left -= 1
            self.child = self.root(self.inner)
        for query in self.queries:
            self.child(query)

    def check(self):
        used = self.child._session.account.launches
        expect(len(self.child.remaining()), 50 - used)


class OfOpenDP:
    """A compositor of OpenDP's that we have launched."""

    def __init__(self):
        self.native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.25] * 50)
        self.odometer = oc.make_concurrent_odometer(*SPACE, PURE)
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
        self.odometer = oc.make_concurrent_odometer(*SPACE, PURE)
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
    """Under approximate zCDP, where a launch closes what came before."""

    def __init__(self):
        self.odometer = oc.make_concurrent_odometer(*SPACE, SEQUENTIAL)
        self.pair = oc.make_concurrent_composition(*SPACE, SEQUENTIAL, 1, [(0.25, 0.0)] * 4)
        self.query = dp.m.make_user_measurement(*SPACE, SEQUENTIAL, len, lambda d_in: (0.25, 0.0))
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
        loss, history = self.root.privacy_loss(1)[0], account._history
        prices = [price.at(1)[0] for price in history]
        expect(loss, sum(prices))


class Context:
    """A context, with a nested one."""

    def __init__(self):
        self.renew()

    def renew(self):
        self.context = oc.concurrent_context(
            data=ROWS,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=HUGE),
            domain=SPACE[0],
        )
        self.query = self.context.query(epsilon=0.25).count().laplace().resolve()

    def work(self):
        self.context(self.query)

    def check(self):
        account = self.context.queryable._session.account
        price = self.query.map(1)
        expect(round(self.context.current_privacy_loss() / price), account.launches)


KINDS = {
    "odometer": Odometer,
    "filter": Filter,
    "compositor": Compositor,
    "child of native": BelowNative,
    "native child": OfOpenDP,
    "machine": Machine,
    "continual": Continual,
    "sequential": Sequential,
    "context": Context,
}


class Run:
    """Interrupts of one kind of handle, in the main thread or another.

    Only what is between ``armed = True`` and ``armed = False`` is interrupted.
    """

    def __init__(self, kind, count, seed):
        self.handle, self.count, self.random = KINDS[kind](), count, random.Random(seed)
        self.armed, self.sent, self.done = False, 0, 0

    def look(self):
        """What holds after an interrupt, whenever it came."""
        watched = threading.Thread(target=self.handle.check)  # which waits for what is locked
        failures = []
        hook, threading.excepthook = threading.excepthook, lambda args: failures.append(args)
        watched.start()
        watched.join(timeout=20)
        threading.excepthook = hook
        if watched.is_alive():
            return "stuck"
        if failures:
            kind = "half" if issubclass(failures[0].exc_type, HalfChargedError) else "stuck"
            return f"{kind}: {failures[0].exc_value!r}"
        try:
            self.handle.check()
            self.handle.work()
            self.handle.check()
        except HalfChargedError as error:
            return f"half: {error}"
        except Exception as error:
            return f"stuck: {error!r}"
        return None

    def once(self):
        """Work until interrupted."""
        try:
            try:
                self.armed = True
                while True:
                    self.handle.work()
            finally:
                self.armed = False
        except (KeyboardInterrupt, Interrupt):
            self.done += 1
        except BaseException as error:
            self.armed = False
            return f"stuck: {error!r}"
        return self.look()

    def in_main(self):
        def interrupt(*_):
            if self.done >= self.count:
                return
            # again, later: Python drops what is raised in a destructor
            self.again(later=5e-3 if self.armed else 0.0)
            if self.armed:
                self.sent += 1
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        while self.done < self.count:
            self.again()
            try:
                failure = self.once()
            except KeyboardInterrupt:  # between the last instructions of once()
                self.done, failure = self.done + 1, self.look()
            signal.setitimer(signal.ITIMER_REAL, 0)
            if failure:
                return failure
        return None

    def again(self, later=0.0):
        signal.setitimer(signal.ITIMER_REAL, later + 1e-5 + self.random.random() * 1.5e-3)

    def in_a_thread(self):
        found, over = [], threading.Event()
        cleared = threading.Event()

        def work():
            while self.done < self.count:
                try:
                    failure = self.once()
                except Interrupt:
                    failure = self.look()
                if failure:
                    found.append(failure)
                    break
                cleared.set()
            over.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        dropped = 0
        while not over.is_set():
            time.sleep(self.random.random() * 1.5e-3)
            if not self.armed:
                continue
            self.sent += 1
            cleared.clear()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupt)
            )
            if cleared.wait(timeout=0.5):  # else Python has dropped it, in a destructor
                dropped = 0
                continue
            dropped += 1
            if not thread.is_alive():
                return found[0] if found else "stuck: the thread has ended"
            if dropped == 60:
                return "stuck: no interrupt was raised"
        return found[0] if found else None


def run(kind, where, count, seed):
    """In this process."""
    sys.unraisablehook = lambda unraisable: None  # interrupts in destructors, which Python drops
    one = Run(kind, count, seed)
    failure = one.in_main() if where == "main" else one.in_a_thread()
    return {"interrupts": one.done, "failure": failure}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument("--count", type=int, help="interrupts for each kind and place")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument(
        "--here", action="store_true", help="all in this process, one after another"
    )
    options.add_argument("--one", nargs=2, metavar=("KIND", "WHERE"), help="in this process")
    options = options.parse_args()
    count = options.count or (300 if options.quick else 10_000)
    if options.one:
        print(json.dumps(run(*options.one, count, options.seed)))
        return
    if options.here:
        found = {
            f"{kind}, {where}": run(kind, where, count, options.seed)
            for kind in options.kinds.split(",")
            for where in ("main", "thread")
        }
        print(json.dumps(found))
        return
    print_machine()
    figures = dict.fromkeys(("interrupts", "aborts", "stuck", "half_charges"), 0.0)
    rows = []
    for kind in options.kinds.split(","):
        for where in ("main", "thread"):
            command = [sys.executable, __file__, "--count", str(count)]
            command += ["--seed", str(options.seed), "--one", kind, where]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
                lines = done.stdout.splitlines()
                found = json.loads(lines[-1]) if done.returncode == 0 and lines else None
                said = None if found else f"died ({done.returncode}): {done.stderr[-300:]}"
            except subprocess.TimeoutExpired:
                found, said = {"interrupts": 0, "failure": "stuck: no end"}, None
            if found is None:
                figures["aborts"] += 1
            else:
                figures["interrupts"] += found["interrupts"]
                said = found["failure"]
                if said:
                    figures["half_charges" if said.startswith("half") else "stuck"] += 1
            rows.append([kind, where, found["interrupts"] if found else 0, said or "fine"])
            print(*rows[-1], flush=True)
    print_table("interrupts", ["kind", "where", "interrupts", "then"], rows)
    report(figures, TARGETS, {}, options)


if __name__ == "__main__":
    main()
