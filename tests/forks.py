"""Programs that run in a fork of a process that has imported the package, which takes a second."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

BEGIN = """
import opendp.prelude as dp
import opendp_concurrent as oc
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
"""
RUN = """
import gc, json, os, sys
gc.collect()
gc.freeze()  # else each fork copies what its collector looks at
told = []
sys.stdout.flush()
for case in json.loads(sys.argv[1]):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(reading)
        code = 1
        try:
            run(*case)
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with open(reading, errors="replace") as said:
        text = said.read()
    told.append((case, os.waitpid(child, 0)[1], text))
print(json.dumps(told))
"""


def ran_in_forks(program, cases):
    """Run ``run(*case)`` of a program for each case; its status and what it printed, by case."""
    done = run_program(program + RUN, json.dumps(cases))
    assert done.returncode == 0, done.stderr[-2000:]
    return {tuple(case): (status, said) for case, status, said in json.loads(done.stdout)}


SERVER = """
import json, os, signal, sys, traceback
import opendp.prelude, opendp_concurrent, opendp_concurrent.ledger, opendp_concurrent.ledger.command
for line in sys.stdin:
    program, arguments, folder, environment, cwd = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(300)
        os.chdir(cwd)
        for name, to in (("out", 1), ("err", 2)):
            os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT), to)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[1:] = arguments
        code = 0
        try:
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        except SystemExit as leaving:
            code = leaving.code or 0
            if isinstance(code, str):
                print(code, file=sys.stderr)
                code = 1
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _server():
    """A process that has imported the package, and has made and opened nothing."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def end():
        server.stdin.close()
        server.stdout.close()
        server.wait()

    atexit.register(end)
    return server


def run_program(program, *arguments):
    """As ``python -c program arguments``, for one that need not be the first to import anything.

    It has the names of ``BEGIN``.
    """
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        asked = (
            BEGIN + program,
            [str(one) for one in arguments],
            folder,
            dict(os.environ),
            os.getcwd(),
        )
        server.stdin.write(f"{json.dumps(asked)}\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        out, err = ((Path(folder) / name).read_text(errors="replace") for name in ("out", "err"))
    return subprocess.CompletedProcess(program, status, out, err)
