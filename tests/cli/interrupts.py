#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interrupts commands at random moments: interrupts.py PROGRAM [--moments N] [--seed S].

plan, sweep, compare, synth and validate get SIGINT or SIGTERM at N moments each, half of them with the result in a
file and half on standard output. Then

    the exit status is 130, or that of the complete result, which is then there; or it is the signal's if there was no
    output yet;
    partial results equal those of the complete result, and the rest is reported as undecided;
    files are complete or absent, and there are no others;
    plan and sweep with --points continue to the bytes of an uninterrupted result;
    diff reports the result as partial, no gate passes on it, and report refuses it;
    a second signal ends the program at once, and leaves no files either.
"""

import argparse
import csv
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from tool import Tool

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130
END_S = 60  # for a process to end after a signal, on a busy machine

SWEEP = {"schema": "longhaul.scenario/1", "model": "llama-7b", "cluster": "hgx-h100:8",
         "schedule": ["zigzag", "ulysses", "te-p2p", "usp", "te-a2a-p2p"],
         "sweep": {"seq_length": ["128K", "256K", "512K", "1M", "100"], "ranks": [16, 32, 64], "pass": ["fwd", "both"]}}
CASES = {
    "plan": ["plan", "--model", "gpt3-13b", "--seq-length", "16K", "--cluster", "single-gpu", "--cluster", "dfa-2node:1",
             "--cluster", "dfa-2node:2", "--cluster", "hgx-h100:1", "--shard", "fsdp", "--micro-batch-size", "1",
             "--schedule", "zigzag", "--schedule", "ulysses", "--top", "2"],
    "sweep": ["sweep", "sweep.json"],
    "compare": ["compare", "--cluster", "hgx-h100:8", "--seq-length", "256K"],
    "synth": ["synth", "--cluster", "dfa-2node", "--ranks", "4", "--seq-length", "4K", "--pass", "fwd", "--budget", "8"],
    "validate": ["validate", "--schedule", "ring", "--schedule", "zigzag", "--seq-length", "512",
                 "--num-attention-heads", "2", "--kv-channels", "32", "--repeat", "60", "--tolerance", "100%"],
}
# Sentences about the complete result, which a partial one must not contain.
OF_ALL = ("nothing fits or runs", "None of them can run here", "None of the schedules can run here",
          "No published schedule runs", "the best published one.", "None of the candidates is faster", "\nAll within",
          "wins in both.\n")


class Wrong(Exception):
    pass


def check(true, text, *values):
    if not true:
        raise Wrong(text + ": " + ", ".join(str(value)[:1500] for value in values))


# --- what the whole answer is ----------------------------------------------------------------------


class Whole:
    """A command line and its uninterrupted result."""

    def __init__(self, tool, name):
        self.tool, self.name, self.words = tool, name, CASES[name]
        self.documents = name != "synth"  # has no --format
        self.of_itself = name == "validate"  # measured times differ between runs
        self.seconds = END_S
        for _ in range(2):
            begun = time.monotonic()
            self.text, self.status = self.ask(self.to_text())
            self.seconds = min(self.seconds, time.monotonic() - begun)
        self.lines = {" ".join(line.split()) for line in self.text.splitlines()}
        if self.documents:
            self.ask(self.to_json("whole.json"))
            self.bytes = (tool.folder / "whole.json").read_bytes()
            self.json = json.loads(self.bytes)

    def ask(self, words):
        done = self.tool.run(*words)
        check(done.returncode in (0, 1), "failed without an interrupt", words, done.returncode, done.stderr)
        return done.stdout, done.returncode

    def to_text(self):
        return self.words + (["--output", "program.json"] if self.name == "synth" else [])

    def to_json(self, name):
        return self.words + ["--format", "json", "--output", name]


def key_of(row):
    return {key: row.get(key) for key in ("schedule", "state", "makespan_s", "peak_bytes_max", "iteration_s")}


def check_same(part, whole, what):
    check(part == whole, f"{what} differs from the complete result", part, whole)


def check_plan(part, whole):
    for one, other in zip(part["clusters"], whole["clusters"]):
        check(one["cluster"] == other["cluster"], "different order of clusters", one["cluster"])
        if not one["interrupted"]:
            for key in ("points", "best", "refused", "nearest_misses"):
                check_same(one[key], other[key], f"{key} of {one['cluster']}")
        else:
            check(all(way["decided"] == "no" for way in one["best"]), "a result of an undecided cluster", one["best"])
    check(part["interrupted"] or part == dict(whole, argv=part["argv"]), "not marked as partial", part)


def check_sweep(part, whole):
    points = {}
    for row in whole["rows"]:
        points.setdefault(row["point"], []).append(row)
    check({row["point"] for row in part["rows"]} == set(points), "points are missing")
    for point, rows in points.items():
        found = [row for row in part["rows"] if row["point"] == point]
        if found[0]["state"] == "interrupted":
            check(len(found) == 1 and found[0]["makespan_s"] is None, "numbers of an unevaluated point", found)
        else:
            check_same(found, rows, f"point {point}")


def check_compare(part, whole):
    rows = {row["schedule"]: row for row in whole["results"]}
    check({row["schedule"] for row in part["results"]} == set(rows), "schedules are missing")
    for row in part["results"]:
        if row["state"] == "interrupted":
            check(row["makespan_s"] is None, "a time of a schedule that was not simulated", row)
        else:
            check_same(key_of(row), key_of(rows[row["schedule"]]), row["schedule"])


def check_validate(part, whole):
    check_same(part["prediction"], whole["prediction"], "the prediction")
    check(len(part["schedules"]) == len(whole["schedules"]), "schedules are missing")


OF_DOCUMENT = {"plan": check_plan, "sweep": check_sweep, "compare": check_compare, "validate": check_validate}


def check_text(whole, text):
    """Checks the text: sentences about everything are only those of the complete result."""
    for claim in OF_ALL:
        for line in text.splitlines(keepends=True):
            if claim in line or claim.strip("\n") == line.strip():
                check(" ".join(line.split()) in whole.lines, "claims about unevaluated points", line, text)
    check("nterrupted" in text, "does not report the interrupt", text)


# --- one moment ------------------------------------------------------------------------------------


def interrupt(tool, words, moment, number, twice=False):
    """Sends the signal after the delay; returns status, output, errors, and the time until the end."""
    process = subprocess.Popen([tool.program, *words], cwd=tool.folder, env=tool.environment, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        if twice:
            process.send_signal(number)
    try:
        out, errors = process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Wrong(f"did not end within {END_S} s of its signal") from None
    return process.returncode, out, errors


def check_folder(tool, before, allowed):
    left = {path.name for path in tool.folder.iterdir()} - before - set(allowed)
    check(not left, "files left behind", sorted(left))


def check_status(whole, status, number, told, errors):
    """Whether there is a partial result to check."""
    if status == -number:
        check(not told and not errors, "ended by its signal after output", told, errors)
        return False
    if status == INTERRUPTED and not told:
        check("nothing is decided" in errors or "nothing was run" in errors or "nothing was compared" in errors,
              "ended without a message", errors)
        return False
    check(status in (INTERRUPTED, whole.status) or (whole.of_itself and status == 1), "wrong status", status, errors)
    return status == INTERRUPTED


def check_report(tool, status):
    """The document a.json is marked as partial, and other commands report that."""
    if status == INTERRUPTED and json.loads((tool.folder / "a.json").read_text())["schema"].startswith(
            ("longhaul.result", "longhaul.plan")):
        tool.call("diff", "whole.json", "a.json", "--tolerance", "90%", status=3)
        check("B is partial" in tool.run("diff", "whole.json", "a.json").stdout, "diff does not report it as partial")
    done = tool.run("report", "--from", "a.json", "--output", "page.html")
    check(done.returncode == 3 and "interrupted" in done.stderr, "report shows a partial result", done.returncode, done.stderr)


def try_document(tool, whole, moment, number):
    before = {path.name for path in tool.folder.iterdir()}
    points = ["--points", "points.jsonl"] if whole.name in ("plan", "sweep") else []
    status, out, errors = interrupt(tool, whole.to_json("a.json") + points, moment, number)
    check_folder(tool, before, ["a.json", "points.jsonl"])
    path = tool.folder / "a.json"
    told = path.read_text() if path.exists() else ""
    check(not out, "printed what belongs in a file", out)
    if whole.name == "validate" and told and status in (INTERRUPTED, -number):  # printed before the run
        check_validate(json.loads(told), whole.json)
        told = told if status == INTERRUPTED and json.loads(told)["interrupted"] else ""
        errors = errors or "nothing was run" if not told else errors
        errors = "" if status == -number else errors
    if check_status(whole, status, number, told, errors):
        part = json.loads(told)
        check(part["interrupted"], "does not report the interrupt")
        OF_DOCUMENT[whole.name](part, whole.json)
        check_report(tool, status)
    if points:
        go_on(tool, whole, points)
    for name in ("a.json", "points.jsonl"):
        (tool.folder / name).unlink(missing_ok=True)
    return status


def go_on(tool, whole, points):
    done = tool.run(*whole.to_json("whole-again.json"), *points)
    check(done.returncode == whole.status, "does not continue", done.returncode, done.stderr)
    again = json.loads((tool.folder / "whole-again.json").read_text())
    again["argv"] = whole.json["argv"]
    check(json.dumps(again) == json.dumps(whole.json), "continues to a different result")
    (tool.folder / "whole-again.json").unlink()


def try_text(tool, whole, moment, number):
    before = {path.name for path in tool.folder.iterdir()} - {"program.json"}
    (tool.folder / "program.json").unlink(missing_ok=True)
    status, out, errors = interrupt(tool, whole.to_text(), moment, number)
    check_folder(tool, before, ["program.json"])
    if check_status(whole, status, number, out, errors):
        check_text(whole, out)
        if whole.name == "synth":
            json.loads((tool.folder / "program.json").read_text())
    elif status == whole.status and not whole.of_itself:
        check(out == whole.text, "ended as if complete, and is not")
    return status


def try_csv(tool, whole, moment, number):
    """Checks CSV like documents, as far as lines allow."""
    status, out, errors = interrupt(tool, whole.words + ["--format", "csv"], moment, number)
    if not check_status(whole, status, number, out, errors) or whole.name == "validate":
        return status
    rows = list(csv.DictReader(io.StringIO(out)))
    says = {"plan": ("decided", "no")}.get(whole.name, ("state", "interrupted"))
    check(whole.name == "compare" or any(row[says[0]] == says[1] for row in rows) or whole.name == "plan",
          "no line is marked as partial", out)
    return status


def try_twice(tool, whole, moment, number):
    before = {path.name for path in tool.folder.iterdir()}
    begun = time.monotonic()
    status, _, errors = interrupt(tool, whole.to_json("a.json") if whole.documents else whole.to_text(), moment, number, True)
    took = time.monotonic() - begun - moment
    check_folder(tool, before, ["a.json", "program.json"])
    check(status in (-number, INTERRUPTED, whole.status) or (whole.of_itself and status == 1), "wrong status", status, errors)
    check(took < END_S / 2, "a second signal does not end it at once", took)
    path = tool.folder / "a.json"
    if path.exists():
        json.loads(path.read_text())
        path.unlink()
    return status


def try_all(tool, name, moments, rng):
    whole = Whole(tool, name)
    ways = [try_document, try_text, try_csv, try_twice] if whole.documents else [try_text, try_twice]
    ended = {}
    for index in range(moments):
        moment, number = rng.uniform(0, whole.seconds), SIGNALS[index % 2]
        way = ways[index // 2 % len(ways)]
        try:
            status = way(tool, whole, moment, number)
        except (Wrong, AssertionError, ValueError) as wrong:
            print(f"{name}, {way.__name__}, {signal.Signals(number).name} after {moment:.4f} s of {whole.seconds:.2f}: {wrong}")
            return False
        ended[status] = ended.get(status, 0) + 1
    print(f"{name}: {moments} moments of {whole.seconds:.2f} s; statuses {dict(sorted(ended.items()))}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=38)
    parser.add_argument("--only", choices=list(CASES))
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    good = True
    for name in [arguments.only] if arguments.only else CASES:
        with tempfile.TemporaryDirectory() as folder:
            tool = Tool(arguments.program, pathlib.Path(folder))
            (tool.folder / "sweep.json").write_text(json.dumps(SWEEP))
            if name == "validate":
                tool.call("calibrate", "--quick", "--output", "profile.json")
                CASES[name] = CASES[name] + ["--profile", "profile.json"]
            good = try_all(tool, name, arguments.moments, rng) and good
    return not good


sys.exit(main())
