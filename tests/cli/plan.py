#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills plans at random and compares the results with undisturbed plans.

    plan.py PROGRAM [--kills N]

The plan is a short one unless LONGHAUL_TEST_DEEP is set. Results and files of points are byte-identical with any
number of threads and after any number of SIGKILLs; JSON follows its schema; Ctrl-C ends with the results so far and
status 130.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHORT = ["--model", "gpt3-125m", "--cluster", "dfa-2node:1", "--ranks", "4", "--seq-length", "32K",
         "--global-batch-size", "2", "--checkpoint", "selective"]
FEW = [] if os.environ.get("LONGHAUL_TEST_DEEP") else ["--schedule", "zigzag"]  # a tenth of the points
SHORT += FEW
LIMIT_S = 300  # for any command that takes a moment
# Takes long enough to be interrupted on any machine.
LONG = ["--model", "llama-7b", "--cluster", "dfa-2node:2", "--seq-length", "512K"]


def run(program, *words, check=0):
    done = subprocess.run([program, "plan", *words], capture_output=True, text=True)
    assert done.returncode == check, f"status {done.returncode}, not {check}: {words}\n{done.stderr}"
    return done.stdout


def check_threads(program, folder):
    """One thread and three: same text, document and points."""
    texts, points = [], []
    for jobs in ("1", "3"):
        path = folder / f"jobs-{jobs}.jsonl"
        texts.append(run(program, *SHORT, "--pareto", "--points", str(path), "--jobs", jobs))
        points.append(path.read_bytes())
    assert texts[0] == texts[1], "the number of threads changes the answer"
    assert points[0] == points[1], "the number of threads changes the points"
    return texts[0], points[0]


def lines_of(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(process, path, lines):
    """Waits until the file has that many lines or the process ends."""
    until = time.monotonic() + LIMIT_S
    while process.poll() is None and lines_of(path) < lines:
        assert time.monotonic() < until, f"{path} has {lines_of(path)} lines of {lines}"
        time.sleep(0.002)


def kill_after(program, words, path, lines, seconds):
    """Kills the plan shortly after it has found that many points; returns whether it was still running."""
    process = subprocess.Popen([program, "plan", *words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for_lines(process, path, lines)
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def check_kills(program, folder, whole, points, kills):
    """Killed repeatedly at random, and the file cut at a random byte: the result is the same."""
    rng = random.Random(15)
    path = folder / "killed.jsonl"
    words = [*SHORT, "--pareto", "--points", str(path)]
    all_lines = points.count(b"\n")
    killed = 0
    for kill in range(kills):
        if kill % 2 == 0:  # sometimes from the beginning
            path.unlink(missing_ok=True)
        elif path.exists():
            os.truncate(path, rng.randrange(path.stat().st_size + 1))
        lines = lines_of(path) + rng.randrange((all_lines - lines_of(path)) // 2 + 1)
        killed += kill_after(program, words, path, lines, rng.uniform(0, 0.05))
    assert killed > kills / 4, f"only {killed} of {kills} were killed in time"
    assert run(program, *words) == whole, "the answer differs after the kills"
    assert path.read_bytes() == points, "the points differ after the kills"


def check_documents(program):
    """JSON follows its schema, and CSV has the same fields."""
    try:
        import jsonschema
    except ImportError:
        jsonschema = None
    schema = json.loads(subprocess.run([program, "help", "schema", "plan"], check=True,
                                       capture_output=True, text=True).stdout)
    prices = ["--days-for", "1e12", "--cost-per-gpu-hour", "2", "--watts", "1000"]
    for words in ([*SHORT, "--pareto"], [*SHORT, *prices, "--top", "2"],
                  ["--model", "gpt3-125m", "--cluster", "dfa-2node:1", "--ranks", "2",
                   "--max-seq-length", "--checkpoint", "layer", "--shard", "fsdp", *FEW],
                  ["--model", "gpt3-13b", "--cluster", "dfa-2node", "--min-gpus", "--seq-length",
                   "16K", "--checkpoint", "layer", "--shard", "fsdp", "--cluster", "hgx-h100", *FEW]):
        document = json.loads(run(program, *words, "--format", "json"))
        if jsonschema is not None:
            jsonschema.Draft202012Validator(schema).validate(document)
        rows = list(csv.DictReader(io.StringIO(run(program, *words, "--format", "csv"))))
        best = [way for cluster in document["clusters"] for way in cluster["best"]]
        assert len(rows) == len(best) > 0
        for row, way in zip(rows, best):
            assert list(row) == list(way), "CSV and JSON differ in fields"
            assert row["schedule"] == way["schedule"]
            assert float(row["iteration_s"]) == way["iteration_s"]
        for cluster in document["clusters"]:
            times = [way["iteration_s"] for way in cluster["best"]]
            assert times == sorted(times)
            assert cluster["points"]["open"] == 0 and cluster["points"]["simulated"] >= len(times)


def check_bill(program):
    """Days, hours and prices, computed by hand."""
    words = [*SHORT, "--days-for", "2e12", "--cost-per-gpu-hour", "2.5", "--watts", "800"]
    way = json.loads(run(program, *words, "--format", "json"))["clusters"][0]["best"][0]
    hours = 2e12 / way["tokens_per_s"] / 3600
    expected = {"days": hours / 24, "gpu_hours": 4 * hours, "cost": 10 * hours,
                "cost_per_billion_tokens": 10 * hours / 2000,
                "kwh_per_billion_tokens": 4 * 0.8 * hours / 2000,
                "tokens_per_s": 2 * 32768 / way["iteration_s"]}
    for key, value in expected.items():
        assert abs(way[key] / value - 1) < 1e-9, f"{key} is {way[key]}, not {value}"


def check_interrupt(program, folder):
    """Ctrl-C after the first results: prints them, status 130."""
    path = folder / "interrupted.jsonl"
    process = subprocess.Popen([program, "plan", *LONG, "--points", str(path)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for_lines(process, path, 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, f"status {process.returncode} after Ctrl-C"
    assert "Interrupted" in out and "not evaluated" in out, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory(prefix="longhaul-plan-") as name:
        folder = pathlib.Path(name)
        whole, points = check_threads(program, folder)
        check_kills(program, folder, whole, points, arguments.kills)
        check_documents(program)
        check_bill(program)
        check_interrupt(program, folder)
    print(f"plans are identical with any number of threads and after {arguments.kills} kills")
    return 0


sys.exit(main())
