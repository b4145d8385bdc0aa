"""Run all benchmarks one after another, and write their results for the docs.

    python benchmarks/run_all.py [--quick] [NAME ...]

Each writes ``results/NAME.json`` when it ends. One that fails keeps its older file, and is named at
the end. Run nothing else on the machine meanwhile: the files say the load average.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
NO_RESULTS = {"design_buffers", "lomas", "run_all"}
OTHERS = {"counters_jax_privacy": FOLDER.parent / ".venv-jax" / "bin" / "python"}  # where it is
NAMES = sorted(one.stem for one in FOLDER.glob("[a-z]*.py") if one.stem not in NO_RESULTS)


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--quick", action="store_true", help="under a minute for most")
    made.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = made.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        made.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    failed = []
    for name in options.names or NAMES:
        print(f"\n=== {name}", flush=True)
        begin = time.monotonic()
        other = OTHERS.get(name)
        python = str(other) if other is not None and other.exists() else sys.executable
        command = [python, str(FOLDER / f"{name}.py"), "--save"]
        done = subprocess.run([*command, "--quick"] if options.quick else command, check=False)
        print(f"=== {name}: {time.monotonic() - begin:.0f} s", flush=True)
        if done.returncode:
            failed.append(name)
    print(f"\nfailed: {', '.join(failed) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
