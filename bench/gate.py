#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if longhaul needs more instructions than gate.list allows: gate.py LONGHAUL BENCH BARE [OPTIONS]

LONGHAUL is the program, BENCH the folder of bench_engine, BARE the program bare_ring. Valgrind counts
the instructions of each case, and of the bare program on one pattern, which the same compiler built;
the ratio of the two is held against the table. It does not depend on what else the machine does. It
does depend on the compiler: the table has rows for each. What is as many instructions but more time,
such as caches that miss, is not seen here.

Exit status 77, which Meson calls a skip, and the reason, where nothing can be judged.
"""

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = pathlib.Path(__file__).resolve().parent / "gate.list"
# Of a new row. What is 15 % slower fails, although the start of the program, which is not, counts, too.
ALLOWED_PERCENT = 12
# What the bare program plays; engine-ring is the same.
PATTERN = ["128", "ring", "10000", "30", str(64 << 20)]
ENGINE = ["bench_engine", "--ranks", "128", "--mode", "jit", "--rounds", "1", "--pattern"]

# Name of a case, and its command.
CASES = {
    "engine-ring": [*ENGINE, "ring"],
    "engine-bal": [*ENGINE, "bal"],
    "planner": ["longhaul", "plan", "--model", "llama-7b", "--cluster", "dfa-2node:1",
                "--seq-length", "8K", "--schedule", "zigzag", "--top", "1", "--jobs", "1"],
    "verifier": ["longhaul", "verify", "--schedule", "ring", "--schedule", "zigzag",
                 "--ranks", "4"],
    "start-help": ["longhaul", "help"],
    "start-list": ["longhaul", "list", "schedules"],
}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


class Counter:
    """Counts the instructions of what CASES and PATTERN name."""

    def __init__(self, arguments):
        self.programs = {"longhaul": arguments.longhaul, "bare_ring": arguments.bare}
        self.bench = pathlib.Path(arguments.bench)
        # Nothing else of the environment, which programs search for what they know.
        self.environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH")
                            if name in os.environ}
        self.environment.update(LC_ALL="C", LONGHAUL_DATA_DIR=str(ROOT))

    def count(self, command):
        program = self.programs.get(command[0], self.bench / command[0])
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
             *command[1:]],
            env=self.environment, check=False, text=True, capture_output=True,
            stdin=subprocess.DEVNULL)
        collected = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode != 0 or collected is None:
            sys.exit(f"gate: {' '.join(command)} ended with status {done.returncode}:\n{done.stderr}")
        return int(collected[1])


def read_table():
    """Ratio and allowed per cent, by compiler and case."""
    rows = {}
    for line in TABLE.read_text().split("\n"):
        if line and not line.startswith("#"):
            compiler, name, ratio, allowed = line.split()
            rows[compiler, name] = float(ratio), float(allowed)
    return rows


def write_table(rows):
    head = [line for line in TABLE.read_text().split("\n") if line.startswith("#")]
    body = [f"{compiler:<18} {name:<26} {ratio:>9.4f} {allowed:>8g}"
            for (compiler, name), (ratio, allowed) in sorted(rows.items())]
    TABLE.write_text("\n".join(head + body) + "\n")


def measure(counter, names):
    bare = counter.count(["bare_ring", *PATTERN])
    for name in names:
        yield name, counter.count(CASES[name]) / bare


def judge(name, ratio, row):
    """Prints a case, and whether it is within what its row allows."""
    recorded, allowed = row
    change = (ratio / recorded - 1) * 100
    good = change <= allowed
    verdict = "" if good else "  TOO MANY"
    if change < -allowed:
        verdict = "  fewer: --update writes that down"
    print(f"{name:<26} {ratio:>9.4f} {recorded:>9.4f} {change:>+8.1f} % {allowed:>6g} %{verdict}",
          flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("longhaul")
    parser.add_argument("bench")
    parser.add_argument("bare")
    parser.add_argument("--compiler", required=True, help="such as gcc-12")
    parser.add_argument("--incomparable", default="", help="why this build cannot be judged")
    parser.add_argument("--update", action="store_true", help="write what is counted into gate.list")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one")
    arguments = parser.parse_args()
    compiler = f"{arguments.compiler}-{platform.machine()}"
    rows = read_table()
    if arguments.incomparable:
        skip(arguments.incomparable)
    if shutil.which("valgrind") is None:
        skip("there is no valgrind, which counts instructions")
    if not arguments.update and not any(row[0] == compiler for row in rows):
        skip(f"gate.list has no rows for {compiler}; --update adds them (bench/README.md)")
    good = True
    print(f"{'case':<26} {'ratio':>9} {'recorded':>9} {'change':>10} {'allowed':>8}")
    for name, ratio in measure(Counter(arguments), arguments.case or CASES):
        allowed = rows.get((compiler, name), (0, ALLOWED_PERCENT))[1]
        if arguments.update:
            rows[compiler, name] = ratio, allowed
            write_table(rows)
        elif (compiler, name) not in rows:
            print(f"{name:<26} {ratio:>9.4f}  has no row in gate.list")
            good = False
            continue
        good = judge(name, ratio, rows[compiler, name]) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
