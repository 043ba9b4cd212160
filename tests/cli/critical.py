#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of run --critical-path: critical.py PROGRAM [LAUNCHER ...].

For runs of threads, and of processes started by LAUNCHER (mpirun -n 4): the steps are contiguous, belong to ops of the
timeline, and add up to the makespan by resource, phase and rank.
"""

import csv
import decimal
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import Tool

CASE = ["--ranks", "4", "--seq-length", "128", "--num-attention-heads", "4", "--kv-channels", "32"]
LONGEST = 10  # ops listed; a path has more: each of 2 x 4 rounds has a message and a kernel
EXACT = decimal.Context(prec=60)


def total(values):
    done = decimal.Decimal(0)
    for value in values:
        done = EXACT.add(done, value)
    return done


def hold_steps(path, ops):
    """A step of a kernel or message ends with the op; a message's step begins at one of its ends."""
    at = decimal.Decimal(0)
    for step in path["steps"]:
        assert step["from_s"] == at < step["to_s"], step
        at = step["to_s"]
        if step["of"] == "host":
            continue
        op = ops[step["rank"], step["op"]]
        assert step["of"] == "compute" if op["kind"] == "compute" else step["of"] != "compute", (step, op)
        assert decimal.Decimal(op["end_s"]) == step["to_s"], (step, op)
        if step["of"] == "compute" or step["peer"] == step["rank"]:
            assert decimal.Decimal(op["start_s"]) == step["from_s"], (step, op)
    assert at == path["makespan_s"]


def hold(tool, result, timeline):
    path = tool.json(result)["critical_path"]
    with (tool.folder / timeline).open(encoding="utf-8") as rows:
        ops = {(int(row["rank"]), int(row["op"])): row for row in csv.DictReader(rows)}
    assert path["makespan_s"] == tool.json(result)["makespans_s"][-1]
    for parts in (part["path_s"] for part in path["resources"]), (part["path_s"] for part in path["phases"]), \
            path["ranks_s"]:
        assert total(parts) == path["makespan_s"]
    assert sum(calls["calls"] for calls in path["calls"]) == len(ops)
    assert all("saved_s" not in what for what in path["calls_10_percent_faster"])
    hold_steps(path, ops)


def hold_words(tool):
    said = tool.call("run", "--schedule", "ring", *CASE, "--critical-path").stdout
    for title in ("critical path, by resource", "by phase", "by rank", "calls and their slack",
                  "ops with most time on the path"):
        assert title in said, title
    longest = said[said.index("ops with most time on the path"):].splitlines()[2:]
    assert len(longest) == LONGEST, longest
    said = tool.call("run", "--schedule", "ring", *CASE, "--critical-path", "--format", "csv").stdout
    rows = list(csv.DictReader(said.splitlines()))
    assert {row["part"] for row in rows} == {"resource", "phase", "rank", "calls", "op"}
    assert sum(row["part"] == "op" for row in rows) == LONGEST
    shares = total(decimal.Decimal(row["path_s"]) for row in rows if row["part"] == "resource")
    assert shares == total(decimal.Decimal(row["path_s"]) for row in rows if row["part"] == "phase")
    assert "critical_path" not in tool.call("run", "--schedule", "ring", *CASE, "--format", "json").stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], pathlib.Path(folder))
        launcher = sys.argv[2:]
        for schedule in ("zigzag", "ulysses", "te-allgather"):
            words = ["run", "--schedule", schedule, *CASE, "--critical-path", "--timeline", "t.csv",
                     "--format", "json", "-o", "r.json"]
            if launcher:
                subprocess.run([*launcher, tool.program, *words, "--backend", "mpi"], check=True,
                               cwd=folder, env=tool.environment)
            else:
                tool.call(*words, "--repeat", "2")
            hold(tool, "r.json", "t.csv")
        if not launcher:
            hold_words(tool)


if __name__ == "__main__":
    main()
