"""One program for many cases: each runs in a fork of a process that has imported the package."""

import json
import subprocess
import sys

RUN = """
import gc, json, os, sys
gc.collect()
gc.freeze()  # else each fork copies what its collector looks at
told = []
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
    done = subprocess.run(
        [sys.executable, "-c", program + RUN, json.dumps(cases)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {tuple(case): (status, said) for case, status, said in json.loads(done.stdout)}
