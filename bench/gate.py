#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if longhaul needs more instructions than gate.list allows: gate.py LONGHAUL BENCH BARE [OPTIONS]

LONGHAUL is the program, BENCH the folder of bench_engine, BARE the program bare_ring. Valgrind counts
the instructions of each case, and of the bare program on one pattern, built by the same compiler. The
ratio of the two is compared with the table. It does not depend on other load of the machine. It does
depend on the compiler: the table has rows for each. Slowdowns without more instructions, such as
cache misses, are not detected.

Exit status 77, which Meson treats as a skip, with the reason, if the build cannot be compared.
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
# Default of new rows: a case 15 % slower fails even though the unchanged program start counts, too.
ALLOWED_PERCENT = 12
# Arguments of the bare program, equal to the case engine-ring.
PATTERN = ["128", "ring", "10000", "30", str(64 << 20)]
ENGINE = ["bench_engine", "--ranks", "128", "--mode", "jit", "--rounds", "1", "--pattern"]
VERIFY = ["longhaul", "verify", "--schedule", "zigzag", "--pass", "both", "--mask", "causal"]

# Commands by case.
CASES = {
    "engine-ring": [*ENGINE, "ring"],
    "engine-bal": [*ENGINE, "bal"],
    # Little more than for 128 micro-batches: set-up and simulation skip what repeats.
    "pipeline": ["longhaul", "sim", "--step", "--schedule", "ring", "--model", "gpt3-1.3b",
                 "--cluster", "hgx-h100:1", "--ranks", "4", "--seq-length", "4K",
                 "--context-parallel-size", "1", "--pipeline-model-parallel-size", "4",
                 "--num-micro-batches", "512"],
    "planner": ["longhaul", "plan", "--model", "llama-7b", "--cluster", "dfa-2node:1",
                "--seq-length", "8K", "--schedule", "zigzag", "--top", "1", "--jobs", "1"],
    "verifier": ["longhaul", "verify", "--schedule", "ring", "--schedule", "zigzag",
                 "--ranks", "4"],
    "path-schedule": ["longhaul", "sim", "--schedule", "zigzag", "--cluster", "hgx-h100:4",
                      "--seq-length", "256K", "--critical-path"],
    "path-step": ["longhaul", "sim", "--step", "--model", "gpt3-125m", "--cluster", "hgx-h100:1",
                  "--seq-length", "4K", "--tensor-model-parallel-size", "4",
                  "--pipeline-model-parallel-size", "2", "--num-micro-batches", "4",
                  "--schedule", "ring", "--critical-path"],
    # The cost per op must not grow with the ranks: ops are ranks squared.
    "verifier-64": [*VERIFY, "--ranks", "64"],
    "verifier-128": [*VERIFY, "--ranks", "128"],
    # Twice the ranks: four times the ops. Its backward pass leaves a stream idle.
    "idle-stream-128": ["longhaul", "sim", "--schedule", "te-p2p", "--cluster", "hgx-h100:16",
                        "--seq-length", "256K", "--model", "llama-3-8b"],
    "idle-stream-256": ["longhaul", "sim", "--schedule", "te-p2p", "--cluster", "hgx-h100:32",
                        "--seq-length", "512K", "--model", "llama-3-8b"],
    # Kernels with the keys of all ranks.
    "gathered-keys": ["longhaul", "sim", "--schedule", "te-allgather", "--cluster",
                      "hgx-h100:64", "--seq-length", "1M", "--model", "llama-3-8b"],
    "start-help": ["longhaul", "help"],
    "start-list": ["longhaul", "list", "schedules"],
}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


class Counter:
    """Counts the instructions of the commands in CASES and PATTERN."""

    def __init__(self, arguments):
        self.programs = {"longhaul": arguments.longhaul, "bare_ring": arguments.bare}
        self.bench = pathlib.Path(arguments.bench)
        # A minimal environment, since programs search all of it, which costs instructions.
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
    """Returns (ratio, allowed per cent) by (compiler, case)."""
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
    """Prints a case; returns whether it is within the limit of its row."""
    recorded, allowed = row
    change = (ratio / recorded - 1) * 100
    good = change <= allowed
    verdict = "" if good else "  TOO MANY"
    if change < -allowed:
        verdict = "  fewer: record them with --update"
    print(f"{name:<26} {ratio:>9.4f} {recorded:>9.4f} {change:>+8.1f} % {allowed:>6g} %{verdict}",
          flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("longhaul")
    parser.add_argument("bench")
    parser.add_argument("bare")
    parser.add_argument("--compiler", required=True, help="such as gcc-12")
    parser.add_argument("--incomparable", default="", help="why this build cannot be compared")
    parser.add_argument("--update", action="store_true", help="write the counts to gate.list")
    parser.add_argument("--case", action="append", choices=list(CASES), help="run only this case")
    arguments = parser.parse_args()
    compiler = f"{arguments.compiler}-{platform.machine()}"
    rows = read_table()
    if arguments.incomparable:
        skip(arguments.incomparable)
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed, which counts instructions")
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
