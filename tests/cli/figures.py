#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds figures against what they are of: figures.py PROGRAM [--count N] [--seed S] [--only I].

A figure's script has its data, so nothing is drawn for this. Of random cases (modules and steps, with
and without pipelines, experts, several kinds of layers, data parallelism, on several nodes, in and
out of memory), what --figure of sim and compare and --memory-timeline draw has the numbers of the
result's JSON, of the timeline and of the memory timeline; axes contain what is drawn, time begins at
0 or where it was asked to; the ranks are those asked for and the last one to finish, and rows say
their stages; titles say what it is, of how many tokens, on how many ranks; units are named; what only
waits is hatched, as much of it as the timeline says, and no more is shown as a transfer than moves. What --figure
of show draws of a schedule covers the mask once, and of a step every GPU in one group of each kind.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import Tool

PIXELS = 1500  # of a time axis: narrower boxes are joined, and wide ones end with a gap of one
LANES = {"compute": 0.52, "transfer": 0.28}  # heights
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

MODULES = ["ring", "zigzag", "striped", "ulysses", "te-a2a", "allgather-kv", "dfa-balanced", "usp",
           "double-ring", "tokenring", "megatron-tp-sp", "attention2d-no"]
LINEAR = ["lasp", "lasp2", "zeco"]
STEPS = ["ring", "zigzag", "ulysses", "te-p2p", "allgather-kv"]
CLUSTERS = ["hgx-h100:1", "hgx-h100:2", "dfa-2node:2", "azure-nc96-a100:4", "dgx-a100-80g:1"]
GPUS = {"hgx-h100:1": 8, "hgx-h100:2": 16, "dfa-2node:2": 16, "azure-nc96-a100:4": 16, "dgx-a100-80g:1": 8}


# --- cases ---------------------------------------------------------------------------------------

def module(pick):
    """A module of attention, on a part of a cluster or all of it."""
    schedules = pick.choice([MODULES, MODULES, LINEAR])
    cluster = pick.choice(CLUSTERS)
    words = ["--cluster", cluster, "--seq-length", pick.choice(["4K", "16K", "64K"]), "--num-attention-heads", "16",
             "--num-query-groups", "16", "--kv-channels", "64"]
    if pick.random() < 0.2:
        words += ["--data-parallel-size", "2"]
    if pick.random() < 0.2:
        words += ["--jitter", "0.2", "--seed", str(pick.randrange(9))]
    if pick.random() < 0.15:
        words += ["--straggler", "1:3"]
    if pick.random() < 0.15 and schedules is MODULES:
        words += ["--cost", pick.choice(["unit", "flops"])]
    return words, pick.sample(schedules, 2), GPUS[cluster], 1


def step(pick):
    """A step, perhaps as a pipeline, of few layers or many; some do not fit."""
    model, schedules = pick.choice([("gpt3-125m", STEPS), ("gpt3-125m", STEPS), ("gpt3-350m", STEPS), ("tnl-385m", LINEAR),
                                    ("mixtral-8x7b", ["ulysses", "te-p2p"]), ("llama-3-8b", STEPS)])
    cluster, stages = pick.choice(CLUSTERS), pick.choice([1, 2, 4, 8])
    words = ["--step", "--model", model, "--cluster", cluster, "--seq-length", pick.choice(["4K", "16K"]),
             "--framework", "megatron-lm"]
    if stages > 1:
        words += ["--pipeline-model-parallel-size", str(stages), "--num-micro-batches",
                  str(pick.choice([1, 2]) * stages)]
        words += ["--pipeline-schedule", "gpipe"] if pick.random() < 0.2 else []
    if stages < 8 and pick.random() < 0.3:
        words += ["--tensor-model-parallel-size", "2"]
    if stages < 4 and pick.random() < 0.3:
        words += ["--context-parallel-size", "2"]
    return words, pick.sample(schedules, min(len(schedules), 2)), GPUS[cluster], stages


# --- scripts -------------------------------------------------------------------------------------

class Script:
    """What a script of gnuplot says."""

    def __init__(self, path):
        self.text = path.read_text()
        block, self.rest = re.search(r"^\$data << END\n(.*?)^END\n(.*)", self.text, re.S | re.M).groups()
        self.sets, self.points = {}, []  # by title; all of them
        for part in block.split("\n\n\n"):
            lines = [line for line in part.split("\n") if line]
            self.points.append([tuple(map(float, line.split())) for line in lines if not line.startswith("#")])
            if lines:
                name = lines[0].removeprefix("# ").split(":")[0] if lines[0].startswith("#") else ""
                self.sets[name] = [tuple(map(float, line.split())) for line in lines if not line.startswith("#")]
        self.title = [self.unquoted(text) for text in
                      re.search(r"^set title ('.*?')\.\"\\n\"\.('.*?') font", self.rest, re.M).groups()]

    @staticmethod
    def unquoted(text):
        return text.strip("'").replace("''", "'")

    def range(self, axis):
        return tuple(map(float, re.search(rf"^set {axis}range \[([-0-9.e+]+):([-0-9.e+]+)\]", self.rest, re.M).groups()))

    def rows(self):
        [marks] = re.findall(r"^set ytics scale 0 \((.*)\)$", self.rest, re.M)
        found = re.findall(r"'((?:[^']|'')*)' (\d+)", marks)
        assert [int(index) for _, index in found] == list(range(len(found)))
        return [self.unquoted(name) for name, _ in found]

    def unit(self, axis):
        return re.search(rf"^set {axis}label '.*\((.+)\)'", self.rest, re.M)[1]

    def keys(self):
        return re.findall(r"boxxyerror .* title '(.*?)'", self.rest)


def close(a, b, share=1e-7, least=1e-12):
    return math.isclose(a, b, rel_tol=share, abs_tol=least)


def says(script, words, ranks, result, name):
    """The title: what it is, of what, on how much."""
    line, below = script.title
    what = "training step" if "--step" in words else "attention"
    tokens = f"{result['case']['seq_length']:,}"
    assert line.startswith(f"{name}: {what}") and f", {tokens} tokens on " in line, (line, tokens)
    groups = result["case"]["data_parallel_size"] if "--step" not in words else 1
    on = f"{groups} groups of {ranks // groups} ranks (data parallel)" if groups > 1 else f"{ranks} ranks"
    assert line.endswith(" on " + on), (line, on)
    return below


# --- Gantt charts --------------------------------------------------------------------------------

def drawn(script, low, high, rows):
    """The ink of each row by what it means, in the axis' unit; all of it is inside."""
    ink = collections.defaultdict(float)
    boxes = collections.Counter()
    for name, found in script.sets.items():
        held = name.endswith("transfer") or name == "waiting for others"
        for x, y, x_low, x_high, y_low, y_high in found:
            assert low - 1e-6 <= x_low <= x <= x_high <= high * (1 + 1e-9), (name, x_low, x_high, low, high)
            assert 0 <= y < rows and y - 0.5 < y_low <= y_high < y + 0.5
            kind = "waits" if name == "waiting for others" else "moves" if held else "kernels"
            if name != "not computing":
                ink[int(y), kind] += (x_high - x_low) * (y_high - y_low) / LANES["transfer" if held else "compute"]
                boxes[int(y), kind] += 1
    return ink, boxes


def told(timeline, rank, low, high):
    """The same of the timeline, where the window has an op whole."""
    sums = collections.defaultdict(float)
    for op in timeline[rank]:
        start, end = max(float(op["start_s"]), low), min(float(op["end_s"]), high)
        if end <= start or op["kind"] not in ("compute", "exchange", "collective"):
            continue
        if op["kind"] == "compute":
            sums["kernels"] += end - start
            continue
        assert 0 <= float(op["waits_s"]) <= (float(op["end_s"]) - float(op["start_s"])) * (1 + 1e-9), op
        sums["waits"] += float(op["waits_s"])
        sums["moves"] += end - start - float(op["waits_s"])
    return sums


def hold_gantt(tool, case, name, asked, window):
    """Rows, times and ink. The window is a share of the run, from 0 on; with it, ink is not held."""
    words, _, gpus, stages = case
    options = (["--ranks-shown", asked] if asked else []) + (["--time-window", f":{window}"] if window else [])
    result = tool.json("sim.json")
    row = result["results"][0]
    tool.draw("sim", *words, "--schedule", name, "--figure", "g.svg", "--timeline", "t.csv", *options)
    script = Script(tool.folder / "g.gp")
    below = says(script, words, gpus, result, name)
    unit = UNITS[script.unit("x")]
    low, high = script.range("x")
    end = float(row["makespan_s"])
    assert low == 0 and (window or close(high * unit, end, 1e-8)) and high * unit <= end * (1 + 1e-8)
    bubble = 100 * float(row["bubble_fraction"])
    assert f", {bubble:.{1 if bubble < 10 else 0}f} % of it not computing" in below, (below, bubble)
    shown = hold_rows(script, row, asked, gpus, stages)
    assert (f"; {len(shown)} of the ranks" in below) == (len(shown) < gpus), below
    ink, boxes = drawn(script, low, high, len(shown))
    keys = script.keys()
    assert keys == list(script.sets) and len(set(keys)) == len(keys), keys
    if not window:
        hold_ink(tool, shown, ink, boxes, unit, end)
    return script


def hold_rows(script, row, asked, gpus, stages):
    """The ranks, of which one ends last. By default, there are some of each stage."""
    names = [name.removesuffix(", ends last") for name in script.rows()]
    shown = [int(name.split()[-1]) for name in names]
    assert shown == sorted(set(shown))
    prefix = [f"stage {rank // (gpus // stages)}, " if stages > 1 else "" for rank in shown]
    assert names == [f"{stage}rank {rank}" for stage, rank in zip(prefix, shown)], names
    [last] = [rank for rank, name in zip(shown, script.rows()) if name.endswith(", ends last")]
    finish = [float(second) for second in row["per_rank"]["finish_s"]]
    assert finish[last] == max(finish), last
    if asked:
        wanted = {int(rank) for rank in asked.split(",")}
        assert wanted <= set(shown) <= wanted | {last}, (asked, shown)
    else:
        assert len({rank // (gpus // stages) for rank in shown}) == stages and len(shown) >= min(gpus, 16)
    lines = len(re.findall(r"^set arrow from graph 0, first", script.rest, re.M))
    assert lines == len({rank // (gpus // stages) for rank in shown}) - 1
    return shown


def hold_ink(tool, shown, ink, boxes, unit, end):
    timeline = collections.defaultdict(list)
    with (tool.folder / "t.csv").open(encoding="utf-8") as file:
        for op in csv.DictReader(file):
            timeline[int(op["rank"])].append(op)
    for index, rank in enumerate(shown):
        sums = told(timeline, rank, 0, end)
        for kind in ("kernels", "waits", "moves"):
            slack = boxes[index, kind] * end / PIXELS + 1e-9
            found = ink[index, kind] * unit
            # Streams overlap, and what is narrow is joined: there may be less than the sum, never more.
            assert found <= sums[kind] + 1e-12 + boxes[index, kind] * end * 1e-8, (rank, kind, found, sums[kind])
            assert found >= sums[kind] * 0.7 - slack, (rank, kind, found, sums[kind])


# --- memory --------------------------------------------------------------------------------------

def hold_memory(tool, case, name):
    words, _, gpus, _ = case
    result = tool.json("sim.json")
    row = result["results"][0]
    tool.draw("sim", *words, "--schedule", name, "--memory-timeline", "m.svg")
    script = Script(tool.folder / "m.gp")
    below = says(script, words, gpus, result, name)
    assert below.startswith(f"rank {row['peak_rank']} has the highest peak: "), below
    unit, size = UNITS[script.unit("x")], BYTES[script.unit("y")]
    [edges] = script.sets.values()
    low, high = script.range("x")
    bottom, top = script.range("y")
    assert low == bottom == 0 and close(high * unit, float(row["makespan_s"]), 1e-6)
    for edge in edges:
        assert 0 <= edge[0] <= high * (1 + 1e-7) and 0 <= min(edge[1:]) <= max(edge[1:]) <= top, (edge, high, top)
    most = max(edge[-1] for edge in edges) * size
    assert close(most, int(row["peak_bytes_max"]), 1e-7), (most, row["peak_bytes_max"])


# --- bars ----------------------------------------------------------------------------------------

PARTS = {"compute": "compute_sum_s", "imbalance": "imbalance_sum_s", "host": "host_sum_s"}


def part_key(name):
    if name in PARTS:
        return PARTS[name]
    kind = name.removeprefix("exposed ").lower()
    return f"exposed_{kind if kind in ('nvlink', 'pcie', 'nic') else 'fabric'}_sum_s"


def hold_bars(tool, case):
    words, schedules, gpus, _ = case
    options = [word for name in schedules for word in ("--schedule", name)]
    tool.draw("compare", *words, *options, "--figure", "b.svg", "--format", "json", "-o", "b.json")
    result, script = tool.json("b.json"), Script(tool.folder / "b.gp")
    what = "a training step" if "--step" in words else "attention"
    assert script.title[0].startswith(f"Where the time goes in {what}"), script.title
    assert f"{result['case']['seq_length']:,} tokens on " in script.title[1], script.title
    groups = result["case"]["data_parallel_size"] if "--step" not in words else 1
    assert f"of {gpus // groups} ranks" in script.title[1] or f"on {gpus} ranks" in script.title[1]
    rows = result["results"]
    assert script.rows() == [row["schedule"] for row in rows]
    ran = [row["state"] == "ok" for row in rows]
    labels = re.findall(r"^set label '((?:[^']|'')*)'", script.rest, re.M)
    assert len(labels) == len(rows)
    if not any(ran):
        return
    unit = UNITS[script.unit("x")]
    low, high = script.range("x")
    assert low == 0
    for index, row in enumerate(rows):
        if not ran[index]:
            assert labels[index].startswith(("out of memory: ", "refused: ", "failed: ")), labels[index]
            continue
        bars = {name: box for name, found in script.sets.items() for box in found if box[1] == index}
        makespan = float(row["makespan_s"])
        for name, box in bars.items():
            assert close((box[3] - box[2]) * unit, float(row[part_key(name)]) / gpus, 1e-5, 1e-9 * makespan), (name, row)
        end = max(box[3] for box in bars.values())
        assert abs(end * unit - makespan) < 0.004 * makespan and end <= high, (end, makespan)
        digits = len(labels[index].partition(".")[2])
        assert abs(float(labels[index]) - makespan / unit) < 0.501 / 10 ** digits, (labels[index], makespan)


# --- curves --------------------------------------------------------------------------------------

def hold_curves(tool, pick):
    """A point for each time of the sweep, between the ends of its axes, which have several marks."""
    scenario = {"schema": "longhaul.scenario/1", "schedule": pick.sample(STEPS, 2), "cluster": pick.choice(CLUSTERS),
                "sweep": {"seq_length": pick.sample(["8K", "16K", "32K", "64K", "4M"], 3)}}
    if pick.random() < 0.5:
        scenario |= {"step": True, "model": "gpt3-125m", "framework": "megatron-lm"}
    (tool.folder / "s.json").write_text(json.dumps(scenario))
    tool.draw("sweep", "s.json", "--figure", "s.svg", "--format", "csv", "-o", "s.csv")
    script = Script(tool.folder / "s.gp")
    with (tool.folder / "s.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                if row["state"] == "ok"]
    assert script.title[0].startswith("Time: training steps" if "step" in scenario else "Time: one attention module")
    assert script.title[1] == f"on {scenario['cluster'].split(':')[0]}, {GPUS[scenario['cluster']]} GPUs", script.title
    unit = UNITS[script.unit("y")]
    points = sorted(point for part in script.points for point in part)
    wanted = sorted((float(row["seq_length"]), float(row["makespan_s"]) / unit) for row in rows)
    assert len(points) == len(wanted) > 0
    assert all(close(a[0], b[0]) and close(a[1], b[1], 1e-6) for a, b in zip(points, wanted)), (points, wanted)
    for axis, values in (("x", [x for x, _ in points]), ("y", [y for _, y in points])):
        low, high = script.range(axis)
        assert low < min(values) <= max(values) < high, (axis, low, high, values)
    low, high = script.range("y")
    found = re.search(r"^set ytics \((.*)\)$", script.rest, re.M)
    marks = [10.0 ** k for k in range(-9, 10)] if found is None else [float(mark) for mark in found[1].split(",")]
    assert sum(low <= mark <= high for mark in marks) >= 2, (marks, low, high)


# --- all of it -----------------------------------------------------------------------------------

class Drawer(Tool):
    """Draws nothing: scripts are there without gnuplot, too, which is not found."""

    def draw(self, *words):
        path, self.environment["PATH"] = self.environment["PATH"], str(self.folder)
        done = self.run(*words)
        self.environment["PATH"] = path
        assert done.returncode == 4 and "gnuplot is not installed" in done.stderr, (words, done.stderr)

    def run(self, *words):
        return subprocess.run([self.program, *words], env=self.environment, check=False, text=True, capture_output=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL)


# --- maps of schedules and groups ------------------------------------------------------------------

def squares(script, word):
    """By panel, which are beside each other and below each other: the owner of each unit square, each square once."""
    owners, strips = {}, {}
    for name, found in script.sets.items():
        if not name.startswith(word + " "):
            continue
        for _, _, x_low, x_high, y_low, y_high in found:
            whole = close(x_high - x_low, 1, 1e-5) and close(y_high - y_low, 1, 1e-5)
            place = (round(x_low, 3), round(y_low, 3))
            into = owners if whole else strips
            assert place not in into, (name, place)
            into[place] = int(name.split()[1])
    return owners, strips


def hold_blocks(tool, pick):
    """Under a causal mask each square on and below the diagonal is some rank's, in every panel; without one, all are.
    Each rank has squares, and is the home of as many tokens as any other."""
    schedule, ranks = pick.choice(MODULES), pick.choice([2, 4, 8])
    causal = schedule == "dfa-balanced" or pick.random() < 0.7  # which has nothing to balance under a full mask
    tool.draw("show", schedule, "--ranks", str(ranks), "--num-attention-heads", "8", "--num-query-groups", "8",
              "--figure", "b.svg", *([] if causal else ["--mask", "full"]))
    script = Script(tool.folder / "b.gp")
    owners, strips = squares(script, "rank")
    panels = collections.defaultdict(list)
    lefts = sorted({x for x, _ in owners if (x, 0.0) in owners and (round(x - 1, 3), 0.0) not in owners})
    tops = sorted({y for x, y in owners if x == 0 and (x, round(y - 1, 3)) not in owners})
    for (x, y), rank in owners.items():
        left, top = max(a for a in lefts if a <= x + 1e-6), max(a for a in tops if a <= y + 1e-6)
        panels[left, top].append((round(x - left), round(y - top), rank))
    edge = 1 + max(x for x, _, _ in panels[0.0, 0.0])
    for cells in panels.values():
        wanted = {(x, y) for x in range(edge) for y in range(edge) if x <= y or not causal}
        assert {(x, y) for x, y, _ in cells} == wanted and len(cells) == len(wanted), (schedule, ranks, edge)
    assert set(owners.values()) == set(range(ranks)), (schedule, ranks)
    homes = collections.Counter(strips.values())
    assert len(set(homes.values())) <= 1 and (not homes or set(homes) == set(range(ranks))), (schedule, homes)


def hold_groups(tool, pick):
    """Each panel has every GPU once; equal numbers are a group, of the ranks that Megatron's order of ranks gives it."""
    tensor, pipeline, data = pick.choice([1, 2, 4]), pick.choice([1, 2]), pick.choice([1, 2])
    tool.draw("show", "zigzag", "--step", "--cluster", "hgx-h100:4", "--model", "gpt3-125m", "--seq-length", "64K",
              "--ranks", "32", "--tensor-model-parallel-size", str(tensor), "--pipeline-model-parallel-size",
              str(pipeline), "--data-parallel-size", str(data), "--framework", "megatron-lm", "--figure", "b.svg")
    script = Script(tool.folder / "b.gp")
    context = 32 // tensor // pipeline // data
    kinds = [(tensor, 1), (context, tensor), (data, tensor * context), (pipeline, tensor * context * data)]
    kinds = [(size, stride) for size, stride in kinds if size > 1]  # rank = t + T (c + C (d + D p))
    assert [int(size) for size in re.findall(r"parallel, (\d+) ranks a group", script.rest)] == [s for s, _ in kinds]
    assert len(squares(script, "colour")[0]) == 32 * len(kinds)
    labels = script.sets["labels"]
    for panel, (size, stride) in enumerate(kinds):
        groups = collections.defaultdict(set)
        for rank, (_, _, number) in enumerate(labels[32 * panel:32 * panel + 32]):
            groups[number].add(rank)
        wanted = [set(range(first, first + size * stride, stride)) for first in range(32) if first // stride % size == 0]
        assert sorted(map(sorted, groups.values())) == sorted(map(sorted, wanted)), (groups, size, stride)


def hold(tool, number, seed):
    """False if the first schedule refuses the case."""
    pick = random.Random(f"{seed} {number}")
    case = (step if number % 2 else module)(pick)
    words, schedules, gpus, _ = case
    done = tool.run("sim", *words, "--schedule", schedules[0], "--format", "json", "-o", "sim.json")
    assert done.returncode in (0, 1), (words, done.stderr)
    row = tool.json("sim.json")["results"][0]
    if row["state"] not in ("ok", "out-of-memory"):
        return False
    asked = ",".join(map(str, sorted(pick.sample(range(gpus), 3)))) if pick.random() < 0.4 else None
    window = f"{max(int(float(row['makespan_s']) * 4e11), 1)}ps" if pick.random() < 0.2 else None
    hold_gantt(tool, case, schedules[0], asked, window)
    hold_memory(tool, case, schedules[0])
    hold_bars(tool, case)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    held = curves = 0
    with tempfile.TemporaryDirectory() as folder:
        tool = Drawer(options.program, pathlib.Path(folder))
        for number in range(options.count) if options.only is None else [options.only]:
            try:
                held += hold(tool, number, options.seed)
                hold_blocks(tool, random.Random(f"{options.seed} {number} blocks"))
                hold_groups(tool, random.Random(f"{options.seed} {number} groups"))
                if number % 5 == 0:
                    hold_curves(tool, random.Random(f"{options.seed} {number} curves"))
                    curves += 1
            except AssertionError:
                print(f"case {number} of seed {options.seed}", file=sys.stderr)
                raise
    assert held > options.count / 2 or options.only is not None, held
    print(f"figures of {held} random cases and {curves} sweeps are of what they say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
