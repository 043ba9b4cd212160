#!/usr/bin/env python3
"""Holds sweeps against the commands that do one case each, and kills them at random.

    sweep.py PROGRAM [--kills N]

Every row is what `compare` prints for its case, and its time what `sim` finds; results and files of
points are the same bytes with any number of threads and after any number of SIGKILLs; JSON keeps to its
schema and has what CSV has.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SWEEP = {"schema": "longhaul.scenario/1", "model": "gpt3-125m", "cluster": "dfa-2node:2",
         "schedule": ["zigzag", "ulysses", "te-p2p", "usp"],
         "sweep": {"seq_length": ["16K", "32K", "100"], "ranks": [4, 8, 16], "dtype": ["bf16"]}}
STEPS = {"schema": "longhaul.scenario/1", "model": "gpt3-125m", "cluster": "dfa-2node:1", "step": True,
         "schedule": ["ulysses", "te-p2p"], "seq_length": "16K",
         "sweep": {"tensor_model_parallel_size": ["1", "2"], "checkpoint": ["none", "layer"],
                   "context_parallel_size": [2, 4, 3]}}


def run(program, *words, check=0):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == check, f"status {done.returncode}, not {check}: {words}\n{done.stderr}"
    return done.stdout


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def points_of(sweep):
    """Options of each point, the last field in the order of the options changing first."""
    order = ["cluster", "ranks", "seq_length", "dtype", "tensor_model_parallel_size",
             "context_parallel_size", "checkpoint"]
    points = [[]]
    for name in order:
        if name in sweep["sweep"]:
            points = [point + ["--" + name.replace("_", "-"), str(value)]
                      for point in points for value in sweep["sweep"][name]]
    return points


def check_rows(program, folder, sweep, name):
    """Each point against `compare` of its case, each row that ran against `sim`."""
    path, plain = folder / f"{name}.json", folder / f"{name}-plain.json"
    path.write_text(json.dumps(sweep))
    plain.write_text(json.dumps({key: value for key, value in sweep.items() if key != "sweep"}))
    rows = rows_of(run(program, "sweep", str(path), "--format", "csv"))
    points = points_of(sweep)
    assert {int(row["point"]) for row in rows} == set(range(len(points)))
    ran = 0
    for index, point in enumerate(points):
        mine = [row for row in rows if int(row["point"]) == index]
        done = subprocess.run([program, "compare", str(plain), *point, "--format", "csv"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1) or not done.stdout:
            assert [row["state"] for row in mine] == ["refused"], point
            assert mine[0]["reason"].lstrip("'") in done.stderr.replace("longhaul: error: ", ""), done.stderr
            continue
        expected = rows_of(done.stdout)
        assert len(mine) == len(expected), point
        for row, one in zip(mine, expected):
            assert {key: row[key] for key in one} == one, f"{point}: {row}\nnot\n{one}"
            if one["makespan_s"]:
                ran += 1
                alone = run(program, "sim", str(plain), *point, "--schedule", one["schedule"],
                            "--format", "json", check=0 if one["state"] == "ok" else 1)
                found = json.loads(alone)["results"][0]
                assert found["makespan_s"] == float(row["makespan_s"]), point
                assert found["peak_bytes_max"] == int(row["peak_bytes_max"]), point
    assert ran > len(points) / 2
    return path


def check_document(program, path):
    """JSON by its schema, with what CSV has."""
    document = json.loads(run(program, "sweep", str(path), "--format", "json"))
    rows = rows_of(run(program, "sweep", str(path), "--format", "csv"))
    try:
        import jsonschema
        schema = json.loads((ROOT / "schemas/sweep.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)
    except ImportError:
        pass
    assert len(rows) == len(document["rows"]) > 0
    for row, item in zip(rows, document["rows"]):
        assert list(row) == list(item), "CSV and JSON have other fields"
        for key, value in item.items():
            text = row[key].removeprefix("'")  # that keeps spreadsheets from computing it
            same = float(text) == value if isinstance(value, (int, float)) else text == (value or "")
            assert same, f"{key}: {row[key]} in CSV, {value} in JSON"


def check_kills(program, folder, path, kills):
    """One thread and three, killed again and again and cut at a random byte on top: the same."""
    rng = random.Random(15)
    points = folder / "points.jsonl"
    words = ["sweep", str(path), "--points", str(points), "--format", "csv"]
    started = time.monotonic()
    whole = run(program, *words, "--jobs", "1")
    seconds = time.monotonic() - started
    lines = points.read_bytes()
    for kill in range(kills):
        os.truncate(points, rng.randrange(points.stat().st_size + 1))
        process = subprocess.Popen([program, *words, "--jobs", str(1 + kill % 3)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert run(program, *words, "--jobs", "3") == whole, "the answer differs after the kills"
    assert points.read_bytes() == lines, "the points differ after the kills"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=12)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory(prefix="longhaul-sweep-") as name:
        folder = pathlib.Path(name)
        path = check_rows(program, folder, SWEEP, "modules")
        check_document(program, path)
        check_document(program, check_rows(program, folder, STEPS, "steps"))
        check_kills(program, folder, path, arguments.kills)
    print(f"sweeps are what compare and sim say, also after {arguments.kills} kills")
    return 0


sys.exit(main())
