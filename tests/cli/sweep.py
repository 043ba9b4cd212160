#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares sweeps with the commands that run single cases, and kills them at random.

    sweep.py PROGRAM [--kills N]

Every row equals `compare` of its case, and the time of a third of them (all with LONGHAUL_TEST_DEEP) equals that of
`sim`. Results and files of points are byte-identical with any number of threads and after any number of SIGKILLs; JSON
follows its schema and has the values of CSV.
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
DEEP = bool(os.environ.get("LONGHAUL_TEST_DEEP"))
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
    """Options of each point; the last field in the order of options changes fastest."""
    order = ["cluster", "ranks", "seq_length", "dtype", "tensor_model_parallel_size",
             "context_parallel_size", "checkpoint"]
    points = [[]]
    for name in order:
        if name in sweep["sweep"]:
            points = [point + ["--" + name.replace("_", "-"), str(value)]
                      for point in points for value in sweep["sweep"][name]]
    return points


def check_rows(program, folder, sweep, name):
    """Compares each point with `compare` of its case, and each row that ran with `sim`."""
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
                if not DEEP and ran % 3 != 1:
                    continue
                alone = run(program, "sim", str(plain), *point, "--schedule", one["schedule"],
                            "--format", "json", check=0 if one["state"] == "ok" else 1)
                found = json.loads(alone)["results"][0]
                assert found["makespan_s"] == float(row["makespan_s"]), point
                assert found["peak_bytes_max"] == int(row["peak_bytes_max"]), point
    assert ran > len(points) / 2
    return path


def check_document(program, path):
    """JSON follows its schema and has the values of CSV."""
    document = json.loads(run(program, "sweep", str(path), "--format", "json"))
    rows = rows_of(run(program, "sweep", str(path), "--format", "csv"))
    try:
        import jsonschema
        schema = json.loads(run(program, "help", "schema", "sweep"))
        jsonschema.Draft202012Validator(schema).validate(document)
    except ImportError:
        pass
    assert len(rows) == len(document["rows"]) > 0
    for row, item in zip(rows, document["rows"]):
        assert list(row) == list(item), "CSV and JSON differ in fields"
        for key, value in item.items():
            text = row[key].removeprefix("'")  # keeps spreadsheets from evaluating it
            same = float(text) == value if isinstance(value, (int, float)) else text == (value or "")
            assert same, f"{key}: {row[key]} in CSV, {value} in JSON"


def check_kills(program, folder, path, kills):
    """One thread and three, killed repeatedly and cut at a random byte: the result is the same."""
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


def check_shards(program, folder, path):
    """Three shards as concurrent processes, one of them killed and one never started: both are named, and the merged
    bytes are the same; a task of a job array is the shard given by Slurm."""
    whole, cut = folder / "whole.jsonl", folder / "cut.jsonl"
    words = ["sweep", str(path), "--format", "csv"]
    expected = run(program, *words, "--points", str(whole))
    shards = [subprocess.Popen([program, "sweep", str(path), "--points", str(cut), "--shard-of", f"{k}/4"],
                               stdout=subprocess.PIPE, text=True) for k in (1, 2, 3)]
    for k, shard in enumerate(shards, 1):
        assert shard.communicate()[0] == f"shard {k} of 4: {2 if k != 1 else 3} of 9 points are in {cut}.{k}-of-4\n"
        assert shard.returncode == 0
    first, second = pathlib.Path(f"{cut}.1-of-4"), pathlib.Path(f"{cut}.2-of-4")
    lines = second.read_bytes()
    os.truncate(second, lines.rindex(b"\n", 0, -1) + 20)  # killed within its last line

    def merge():
        done = subprocess.run([program, *words, "--points", str(cut), "--shards", "4"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected and cut.read_bytes() == whole.read_bytes(), "shards differ from the sweep"
        return done.stderr

    said = merge()
    assert "shard 2 of 4 did not finish: cut.jsonl.2-of-4 has 1 of its 2 points" in said, said
    assert "shard 4 of 4 is missing: there is no cut.jsonl.4-of-4; its 2 points" in said, said
    assert "shard 1" not in said and "shard 3" not in said, said
    # The lost shards again: one continues where it was killed; the other is task 13 of 10, 11, 12, 13.
    run(program, "sweep", str(path), "--points", str(cut), "--shard-of", "2/4")
    assert second.read_bytes() == lines
    task = {"SLURM_ARRAY_TASK_ID": "13", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_MAX": "13",
            "SLURM_ARRAY_TASK_COUNT": "4"}
    subprocess.run([program, "sweep", str(path), "--points", str(cut), "--shard-of", "auto"], check=True,
                   capture_output=True, env={**os.environ, **task})
    cut.unlink()
    assert merge() == "", "no shard is missing"
    # A file of another shard is rejected.
    pathlib.Path(f"{cut}.4-of-4").write_bytes(first.read_bytes())
    cut.unlink()
    done = subprocess.run([program, *words, "--points", str(cut), "--shards", "4"], capture_output=True, text=True)
    assert done.returncode == 3 and "4-of-4" in done.stderr, done.stderr


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
        check_shards(program, folder, path)
    print(f"sweeps equal compare and sim, also after {arguments.kills} kills")
    return 0


sys.exit(main())
