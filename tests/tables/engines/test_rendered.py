"""The rendering is imported when a table is scanned, in one piece, and at no launch."""

import subprocess
import sys

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

CASE = """
import signal, sys
import duckdb
import opendp.prelude as dp
import opendp_concurrent as oc
dp.enable_features("contrib", "honest-but-curious")

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("sqlglot", "opendp_concurrent.tables.render")):
            found.append(name)
            signal.raise_signal(signal.SIGINT)

found = []
sys.meta_path.insert(0, Interrupting())
connection = duckdb.connect()
connection.execute("CREATE TABLE v AS SELECT i % 40 AS person, i % 60 AS week FROM range(90) t(i)")

def scan():
    return oc.tables.scan(connection, "v", {"person": int, "week": int}, unit="person")

assert not found and "sqlglot" not in sys.modules
table = None
while table is None:
    try:
        table = scan()
    except KeyboardInterrupt:
        print("interrupted")
assert "sqlglot" in found
found.clear()
pipeline = table.space >> oc.t.then_truncate(per_unit=3)
root = oc.make_concurrent_filter(
    oc.make_concurrent_odometer(*table.space, dp.max_divergence()), 1, 1e6
)(table)
root(pipeline >> oc.t.then_table_count() >> dp.m.then_laplace(scale=6.0))
root(pipeline >> oc.t.then_table_count("week", [1, 2]) >> dp.m.then_laplace(scale=6.0))
print("then", found)
"""


def test_an_interrupt_leaves_nothing_imported_in_part_and_no_launch_imports():
    done = subprocess.run([sys.executable, "-c", CASE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.splitlines()) == {"interrupted", "then []"}
