"""A forked process answers nothing: it would spend the same budget, with the same noise."""

import os
import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

PURE = dp.max_divergence()


def in_a_fork(*queries):
    """Names of what each query raises in a forked process, or its answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for query in queries:
            try:
                said.append(f"answered {query()}")
            except BaseException as error:
                said.append(type(error).__name__)
        os.write(writing, "\n".join(said).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as stream:
        return stream.read().split("\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_has_not(space):
    """A thread that asks holds a lock at the fork; in the forked process nobody lets it go."""
    started, go_on = threading.Event(), threading.Event()

    def slow(rows):
        started.set()
        go_on.wait(60)
        return len(rows)

    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 5.0)([1, 2, 3])
    native = root(dp.c.make_adaptive_composition(*space, PURE, 1, [0.5]))
    search = root(oc.m.make_above_threshold(*space, PURE, 1, scale=4.0, threshold=1e6))
    noisy = dp.m.make_user_measurement(*space, PURE, slow, lambda d_in: 0.25)
    for child, query in ((native, noisy), (search, slow)):
        started.clear(), go_on.clear()
        thread = threading.Thread(target=child, args=(query,))
        thread.start()
        assert started.wait(60)
        try:
            assert in_a_fork(lambda child=child, it=query: child(it)) == ["ForkedError"]
        finally:
            go_on.set()
            thread.join()
