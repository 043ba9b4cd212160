#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checklists of papers' statements on the command line: checklist.py PROGRAM.

Every command in the lists of scenarios/checklists ends with status 0; `longhaul reproduce` is excluded, since it runs
for the docs. For a list of the user's own, on the user's own table, all formats agree, also with --cross-fit.
"""

import csv
import io
import json
import pathlib
import shlex
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import ROOT, Tool

TABLE = {
    "schema": "longhaul.paper/1", "name": "t", "description": "d", "source": "s",
    "base": ["cluster=dfa-2node:1", "schedule=ring", "ranks=8", "model=llama-7b", "mask=causal"],
    "columns": [{"column": "n", "values": [{"value": "*", "set": ["seq_length=*"]}]}],
    "metrics": [{"name": "time", "column": "s", "metric": "attention_s", "tolerance": {"mean": 0.2}},
                {"name": "least", "column": "least", "metric": "attention_s", "at_least": True,
                 "tolerance": {"worst": 0.01}}],
    "fitted_on": [{"where": ["n=16K"]}], "constants": ["attention_slowdown"],
}
LINES = [
    {"paper": "p", "what": "all", "rows": [{"table": "./t.json", "metrics": ["time"]}]},
    {"paper": "p", "what": "one", "rows": [{"table": "./t.json", "where": ["n=64K"], "columns": ["s"]}]},
    {"paper": "p", "what": "bound", "rows": [{"table": "./t.json", "metrics": ["least"]}],
     "command": "longhaul version", "held": ["test_a", "test_b"]},
    {"paper": "q", "what": "none", "reason": "because"},
]


def commands():
    for path in sorted((ROOT / "scenarios" / "checklists").glob("*.json")):
        for line in json.loads(path.read_text())["lines"]:
            if "command" in line and not line["command"].startswith("longhaul reproduce "):
                yield line["command"]


def hold_commands(tool):
    every = sorted(set(commands()))
    assert len(every) > 10, every
    for command in every:
        program, *words = shlex.split(command)
        assert program == "longhaul", command
        assert tool.call(*words).stdout, command


def module_s(tool, length):
    words = ["sim", "--cluster", "dfa-2node:1", "--schedule", "ring", "--ranks", "8", "--model", "llama-7b",
             "--mask", "causal", "--seq-length", length, "--format", "json"]
    return float(json.loads(tool.call(*words).stdout)["results"][0]["makespan_s"])


def write_files(tool, times):
    rows = "".join(f"{n},{1.1 * s:.17g},{0.5 * s:.17g}\n" for n, s in times.items())
    (tool.folder / "t.json").write_text(json.dumps(TABLE))
    (tool.folder / "t.csv").write_text("n,s,least\n" + rows)
    (tool.folder / "l.json").write_text(json.dumps({"schema": "longhaul.checklist/1", "description": "d",
                                                    "lines": LINES}))


def hold_lists(tool):
    words = ["reproduce", "--checklist", "./l.json", "--format"]
    shown = json.loads(tool.call(*words, "json").stdout)["checklist"]
    rows = list(csv.DictReader(io.StringIO(tool.call(*words, "csv").stdout)))
    assert len(shown) == len(rows) == len(LINES)
    for line, row, wanted in zip(shown, rows, LINES):
        assert line["what"] == row["what"] == wanted["what"]
        assert int(row["numbers"] or 0) == line["numbers"]
        for key in ("mean_abs_error", "worst_abs_error", "published", "predicted"):
            assert (line[key] is None) == (row[key] == ""), (key, line, row)
            assert line[key] is None or float(row[key]) == line[key], (key, line, row)
    assert [line["numbers"] for line in shown] == [3, 1, 3, 0]
    assert [line["fitted"] for line in shown] == [1, 0, 1, 0]
    assert [line["command"] for line in shown] == ["longhaul reproduce ./t.json"] * 2 + ["longhaul version", None]
    assert shown[1]["published"] > shown[1]["predicted"] > 0
    assert (shown[2]["bounds"], shown[2]["bounds_held"], shown[2]["held_by"]) == (2, 2, ["test_a", "test_b"])
    assert rows[2]["bounds_held"] == "2 of 2" and shown[3]["reason"] == "because"
    text = tool.call(*words, "table").stdout
    assert text.splitlines()[0].startswith("paper") and "longhaul version" in text and "because" in text


def hold_fits(tool):
    table, = json.loads(tool.call("reproduce", "./t.json", "--cross-fit", "--format", "json").stdout)["tables"]
    fit = table["cross_fit"]
    constant, = fit["constants"]
    assert constant["constant"] == "attention_slowdown" and constant["fitted"] > constant["value"]
    assert fit["judged"] == 1 and fit["mean_abs_error"] < fit["own_mean_abs_error"] < 0.1
    text = tool.call("reproduce", "./t.json", "--cross-fit").stdout
    assert "Fitted to the judged rows: attention_slowdown" in text, text


def hold_refusals(tool):
    assert "a checklist names its own tables" in tool.call("reproduce", "t", "--checklist", "./l.json", status=2).stderr
    assert "available: headlines, papers" in tool.call("reproduce", "--checklist", "paper", status=3).stderr
    assert "headlines" in tool.call("list", "checklists").stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], pathlib.Path(folder))
        hold_commands(tool)
        write_files(tool, {n: module_s(tool, n) for n in ("16K", "32K", "64K")})
        hold_lists(tool)
        hold_fits(tool)
        hold_refusals(tool)


if __name__ == "__main__":
    main()
