#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages of `longhaul report` and of --report: report.py PROGRAM.

Compared with `compare --format json` of the same case. A page must be well-formed, run no scripts, load nothing, show
text of files as text, and be the same every time.
"""

import base64
import contextlib
import csv
import hashlib
import html.parser
import json
import os
import pathlib
import pty
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from random import Random

sys.dont_write_bytecode = True
from tool import ROOT, Tool

CASE = ["dfa-2node", "--seq-length", "32K"]
LARGE = ["--cluster", "hgx-h100:8", "--model", "llama-3-8b", "--seq-length", "512K",
         "--schedule", "te-a2a-p2p", "--schedule", "zigzag", "--schedule", "dfa-balanced"]
LARGE_BYTES_MAX = 2 << 20
OPENINGS = 3
OPENING_S_MAX = 5  # beyond an empty page; it takes 0.3 s to 1.5 s on two cores
DAMAGES = 50
STEP = ["--step", "--schedule", "lasp", "--schedule", "ulysses", "--cluster", "lasp-dgx:1", "--model",
        "tnl-1b", "--seq-length", "16K", "--framework", "fairscale"]
PIPELINE = ["--step", "--schedule", "ring", "--cluster", "dfa-2node:2", "--model", "gpt3-125m", "--seq-length",
            "8K", "--framework", "megatron-lm", "--pipeline-model-parallel-size", "4", "--num-micro-batches", "4"]
NAME = "<script>alert(1)</script>&\"'\n\x1b"
DEEP = bool(os.environ.get("LONGHAUL_TEST_DEEP"))
VOID = {"meta", "link", "img", "br", "input"}
URLS = {"src", "href", "srcset", "action", "data", "poster", "content"}


class Page(html.parser.HTMLParser):
    """A page with its tables and pictures."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.headings, self.tables, self.pictures = [], [], [], []
        self.strips = []  # timelines: rows and columns, named ranks, and paths by row
        self.policy = self.style = ""
        self.words = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        assert tag != "script" and not any(name.startswith("on") or name == "style"
                                           for name in values), (tag, attrs)
        for name in URLS & values.keys():
            assert "//" not in values[name] and not values[name].startswith(("http", "/")), attrs
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        if tag == "img":
            assert values["alt"]
            self.pictures.append(values["src"])
        if tag == "table":
            self.tables.append(("", []))
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in ("td", "th"):
            self.tables[-1][1][-1].append("")
        self.handle_strips(tag, values)
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_strips(self, tag, values):
        if tag == "figure" and values.get("class") == "strips":
            self.strips.append({"names": [], "rows": {}})
        if tag == "svg" and "viewbox" in values:
            _, _, columns, height = values["viewbox"].split()
            self.strips[-1] |= {"columns": int(columns), "height": int(height)}
        if tag == "g" and "transform" in values:
            row = int(re.fullmatch(r"translate\(0 (\d+)\)", values["transform"])[1])
            self.strips[-1]["rows"][row // 10] = self.strips[-1][values["id"]] = []
        if tag == "use":
            like = self.strips[-1][values["href"].removeprefix("#")]
            rows = self.strips[-1]["rows"]
            [first] = [row for row, paths in rows.items() if paths is like][:1]
            rows[first + int(values["y"]) // 10] = like
        if tag == "path" and "l" in values["class"][2:]:
            [*self.strips[-1]["rows"].values()][-1].append((values["class"], values["d"]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        if where == "style":
            self.style += data
        elif where == "caption":
            self.tables[-1] = (self.tables[-1][0] + data, self.tables[-1][1])
        elif where in ("td", "th") or where == "small" and self.open[-2] == "th":
            self.tables[-1][1][-1][-1] += data
        elif where in ("h1", "h2"):
            self.headings[-1] += data
        elif where == "text" and data.startswith(("rank ", "stage ")):
            self.strips[-1]["names"].append(data)
        else:
            self.words.append(data)

    def table(self, caption):
        [rows] = [rows for name, rows in self.tables if name == caption]
        return rows


def page_of(tool, *words, status=0):
    tool.call("report", *words, "--output", "page.html", status=status)
    text = (tool.folder / "page.html").read_text()
    page = Page(text)
    hold_page(page)
    return text, page


def hold_page(page):
    """Checks every page: its policy allows its own style and pictures and nothing else."""
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert page.policy == (f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
                           "base-uri 'none'; form-action 'none'")
    assert "@import" not in page.style and "url(" not in page.style
    for strips in page.strips:
        assert sorted(strips["rows"]) == list(range(strips["height"] // 10))
    for picture in page.pictures:
        kind, data = picture.split(",", 1)
        assert kind == "data:image/svg+xml;base64"
        assert xml.etree.ElementTree.fromstring(base64.b64decode(data)).tag.endswith("}svg")
    for caption, rows in page.tables:
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1, caption
        assert any(any(row) for row in rows[1:]), caption


def number(text):
    return float(text.replace(",", ""))


def tables_of(tool, *words, status=0):
    """Rows of the tables that a command prints as Markdown."""
    tool.call(*words, "--format", "md", "-o", "t.md", status=status)
    parts = re.findall(r"^(?:\|.*\n)+", (tool.folder / "t.md").read_text(), re.M)
    return [[[cell.strip().replace("\\|", "|") for cell in line.strip("|").split(" | ")]
             for line in part.splitlines()[2:]] for part in parts]


def hold_same(tool, page, case):
    """The page has the same digits as compare and sim."""
    [compared] = tables_of(tool, "compare", *case)
    rows = [[cell.strip() for cell in row] for row in page.table("All schedules, the fastest first")[1:]]
    assert [row[:-1] for row in rows] == [row[:-1] for row in compared] or rows == compared, (rows, compared)
    shown = [[[cell.strip() for cell in row] for row in rows[1:]] for _, rows in page.tables]
    played = tables_of(tool, "sim", *case, *([] if "--schedule" in case else ["--schedule", compared[0][0]]))
    assert len(played) >= 4
    for table in played:
        assert [[cell.strip() for cell in row] for row in table] in shown, table


def hold_comparison(tool):
    """The table has the times of compare, and the parts of a time add up to it."""
    _, page = page_of(tool, *CASE)
    tool.call("compare", *CASE, "--format", "json", "-o", "c.json")
    results = [r for r in json.loads((tool.folder / "c.json").read_text())["results"]
               if r["state"] == "ok"]
    rows = page.table("All schedules, the fastest first")
    heading, rows = rows[0], rows[1:]
    assert heading[0] == "schedule" and heading[1].split() == ["time", "ms"]
    ran = [row for row in rows if re.fullmatch(r"[0-9.,]+", row[1])]
    assert [row[0] for row in ran] == [r["schedule"] for r in results] and len(ran) > 10
    for row, result in zip(ran, results):
        assert abs(number(row[1]) - result["makespan_s"] * 1e3) <= 0.0501, row
        parts = [number(cell) for cell, name in zip(row, heading)
                 if name.split()[0] in ("compute", "imbalance", "exposed", "host")]
        assert len(parts) >= 4 and abs(sum(parts) - number(row[1])) < 1e-6, row
    first, second = results[0]["schedule"], results[1]["schedule"]
    assert page.headings[0] == "Which schedule is fastest?"
    assert {f"The fastest: {first}", f"The runner-up: {second}", "Comparison",
            f"Critical path of {first}", "Constants and their provenance",
            "How to reproduce it"} <= set(page.headings)
    assert len(page.pictures) == 3 and len(page.strips) == 2
    hold_strips(tool, first, page.strips[0])
    hold_same(tool, page, CASE)
    hold_links(page, results[:2])
    path = page.table("The critical path, by resource")
    assert path[-1][0] in ("makespan", "in all") or len(path) > 2, path
    hold_repeat(tool, page)


def hold_links(page, results):
    """The busiest link is that of the JSON; the others are no busier."""
    tables = [rows[1:] for caption, rows in page.tables if caption == "The busiest links"]
    kinds = [rows[1:] for caption, rows in page.tables if caption.startswith("Link utilization")]
    assert len(tables) == len(kinds) == 2
    for rows, by_kind, result in zip(tables, kinds, results):
        uses = [number(row[1]) for row in rows]
        assert rows[0][0] == result["busiest_link"] and uses == sorted(uses, reverse=True)
        assert abs(uses[0] - 100 * result["busiest_link_utilisation"]) < 0.051
        assert len(rows) == len({row[0] for row in rows}) <= 10
        assert max(number(row[3]) for row in by_kind) == uses[0]
        assert all(0 <= number(row[2]) <= number(row[3]) <= 100 for row in by_kind), by_kind


def taken(paths, lane):
    """The inked columns of a lane."""
    ink = 0
    for name, drawn in paths:
        _, level = name.split()
        lengths = [int(length) for length in re.findall(r"h(\d+)", drawn)]
        if level[1] == str(lane):
            ink += sum(lengths) * int(level[2]) / 4
    return ink


def hold_strips(tool, schedule, strips):
    """A timeline has as much ink as the kernels' time in sim's timeline, at the same positions."""
    tool.call("sim", *CASE, "--schedule", schedule, "--timeline", "t.csv")
    rows = list(csv.DictReader((tool.folder / "t.csv").open(encoding="utf-8")))
    end = max(float(row["end_s"]) for row in rows)
    for rank in range(16):
        ops = [(float(row["start_s"]) / end, float(row["end_s"]) / end) for row in rows
               if row["rank"] == str(rank) and row["kind"] == "compute"]
        drawn = taken(strips["rows"][rank], 0) / strips["columns"]
        assert abs(drawn - sum(to - start for start, to in ops)) < 0.01, (rank, drawn)
        first = min(int(re.match(r"M(\d+)", path)[1]) for name, path in strips["rows"][rank]
                    if name.split()[1][1] == "0") / strips["columns"]
        assert abs(first - min(start for start, _ in ops)) < 0.001, (rank, first)


def hold_repeat(tool, page):
    """The command shown on the page writes the same page."""
    [command] = [words for words in page.words if words.startswith("longhaul report ")]
    before = (tool.folder / "page.html").read_bytes()
    (tool.folder / "page.html").unlink()
    tool.call(*command.split()[1:])
    assert (tool.folder / "page.html").read_bytes() == before
    for path, digest in page.table("Input files")[1:]:
        found = path if os.path.isabs(path) else ROOT / path
        assert hashlib.sha256(pathlib.Path(found).read_bytes()).hexdigest() == digest, path


def hold_hostile(tool):
    """Names from files are shown as text and never interpreted."""
    model = json.loads((ROOT / "models" / "llama-7b.json").read_text())
    model["name"] = model["description"] = NAME
    (tool.folder / "<i>&'model.json").write_text(json.dumps(model))
    text, page = page_of(tool, "--ranks", "4", "--schedule", "ring", "--schedule", "zigzag", "--model",
                           "<i>&'model.json")
    assert "<script" not in text and "<i>" not in text and "\x1b" not in text
    shown = NAME.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert any(shown in words for words in page.words), page.words[:5]


def hold_others(tool):
    text, page = page_of(tool, *LARGE)
    assert len(text) < LARGE_BYTES_MAX, len(text)
    assert all(len(strips["rows"]) == 64 for strips in page.strips)
    _, page = page_of(tool, *LARGE[:6], "--schedule", "zigzag", "--ranks-shown", "3,60-63")
    assert not any(heading.startswith("The runner-up") for heading in page.headings)
    assert [name.split(",")[0] for name in page.strips[0]["names"]][:2] == ["rank 3", "rank 60"]
    case = ["--ranks", "4", "--schedule", "ulysses", "--seq-length", "4K", "--ranks-shown", "3"]
    _, page = page_of(tool, *case)
    assert page.strips[0]["names"] == ["rank 3, ends last"]  # all end at the same time
    _, page = page_of(tool, *STEP)
    by_category = [rows for caption, rows in page.tables if "by category" in caption]
    assert len(by_category) == 2 and all(len(rows) > 4 for rows in by_category)
    assert sum(caption == "The training step" for caption, _ in page.tables) == 2
    hold_stages(tool)
    _, page = page_of(tool, "--ranks", "7", "--schedule", "megatron-tp-sp", status=1)
    assert not page.pictures and any("None of the schedules can run" in w for w in page.words)
    page_of(tool, "--ranks", "4", "--schedule", "ring", "--cost", "unit")
    return len(text)


def svg_text(picture):
    """The text of a picture of a page."""
    tree = xml.etree.ElementTree.fromstring(base64.b64decode(picture.split(",", 1)[1]))
    return ["".join(element.itertext()).strip() for element in tree.iter()
            if element.tag.endswith("}text")]


def hold_stages(tool):
    """A pipeline's page has timelines of ranks of all stages; waiting for another stage is dashed, and titles name the
    step and all ranks."""
    text, page = page_of(tool, *PIPELINE)
    hold_same(tool, page, PIPELINE)
    names = [f"stage {rank // 4}, rank {rank}" for rank in range(16)]
    assert [name.removesuffix(", ends last") for name in page.strips[0]["names"]] == names
    assert sum(name.endswith(", ends last") for name in page.strips[0]["names"]) == 1
    assert "stroke-dasharray" in text and "waiting for others" in "".join(page.words)
    bars, memory = map(svg_text, page.pictures)
    assert "Where the time goes in a training step of gpt3-125m on dfa-2node" in bars, bars
    assert "8,192 tokens on 16 ranks; mean over the ranks" in bars, bars
    assert "ring: training step of gpt3-125m, 8,192 tokens on 16 ranks" in memory, memory
    _, page = page_of(tool, *PIPELINE, "--ranks-shown", "5,14-15")
    shown = [name.removesuffix(", ends last") for name in page.strips[0]["names"]]
    assert {names[5], names[14], names[15]} <= set(shown) and len(shown) <= 4, shown


def opened(page):
    """The DOM as a browser writes it after loading a page; None without a browser."""
    browser = shutil.which("chromium")
    if browser is None:
        return None
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--window-size=390,2000", "--dump-dom", page.as_uri()]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, HOME=str(page.parent)))
    assert done.returncode == 0 and "<html" in done.stdout, done.stderr
    return done.stderr


def complaints(page):
    """A browser's console output for a page; None without a browser."""
    said = opened(page)
    return None if said is None else [line for line in said.splitlines() if "CONSOLE" in line]


def seconds_to_open(page):
    started = time.monotonic()
    opened(page)
    return time.monotonic() - started


def hold_opening(tool):
    """Load time of the page of 64 ranks beyond that of an empty page (the browser's own): median of pairs."""
    if shutil.which("chromium") is None:
        return ""
    page_of(tool, *LARGE)
    empty = tool.folder / "empty.html"
    empty.write_text('<!DOCTYPE html><html lang="en"><title>empty</title></html>\n')
    more = statistics.median(seconds_to_open(tool.folder / "page.html") - seconds_to_open(empty)
                             for _ in range(OPENINGS))
    assert more < OPENING_S_MAX, more
    return f", and loads it in {more:.2f} s more than an empty one"


def hold_browser(tool):
    """A browser reports no violation of the page's policy; it does report a deliberate one."""
    text, _ = page_of(tool, *CASE)
    page = tool.folder / "page.html"
    said = complaints(page)
    if said is None:
        return "no browser here"
    assert not said, said
    page.write_text(text.replace("<h1>", "<h1 style=\"color:red\">"))
    assert complaints(page)
    return "a browser has no complaints"


PLAN = ["plan", "--model", "llama-7b", "--cluster", "dfa-2node:1", "--seq-length", "8K", "--top", "2", "--pareto"]
# A tenth of the points.
FEW = [] if DEEP else ["--schedule", "zigzag", "--schedule", "ulysses", "--shard", "fsdp", "--ranks", "4"]
PLAN += FEW
SWEEP = {"schema": "longhaul.scenario/1", "model": "llama-7b", "schedule": ["ring", "te-a2a"],
         "sweep": {"cluster": ["dfa-2node:1", "dfa-2node:2"], "seq_length": ["8K", "32K"]}}


def report_of(tool, *words, status=0):
    tool.call(*words, "--report", "page.html", status=status)
    page = Page((tool.folder / "page.html").read_text())
    hold_page(page)
    return page


def hold_plan_paths(page, cluster):
    """The parts of the times of the fastest configuration and of the runner-up add up; no saving exceeds its part of
    the path."""
    assert [heading for heading in page.headings if heading.startswith("Critical path of")] == [
        "Critical path of the fastest configuration", "Critical path of the runner-up"]
    paths = [rows[1:] for caption, rows in page.tables if caption == "The critical path, by resource"]
    phases = [rows[1:] for caption, rows in page.tables if caption == "The critical path, by phase"]
    faster = [rows[1:] for caption, rows in page.tables if caption == "Savings of faster ops"]
    assert len(paths) == len(phases) == len(faster) == 2
    for rows, by_phase, ops, way in zip(paths, phases, faster, cluster["best"]):
        assert rows[-1][0] == "makespan" and abs(number(rows[-1][1]) - way["iteration_s"] * 1e3) <= 0.051
        assert abs(sum(number(row[1]) for row in rows[:-1]) - number(rows[-1][1])) < 0.051 * len(rows)
        assert abs(sum(number(row[1]) for row in by_phase) - number(rows[-1][1])) < 0.051 * len(by_phase)
        assert len(ops) == 10 and all(number(row[2]) < number(row[1]) for row in ops), ops


def hold_plan(tool):
    """The page has the configurations of the plan's JSON, and the critical path of the fastest."""
    page = report_of(tool, *PLAN, "--format", "json", "-o", "plan.json")
    found = json.loads((tool.folder / "plan.json").read_text())
    [cluster] = found["clusters"]
    for caption, key in (("The fastest configurations", "best"),
                         ("Configurations not beaten in both time and memory", "front")):
        rows = page.table(caption)
        heading = [text.split()[0] for text in rows[0]]
        assert len(rows) - 1 == len(cluster[key]) > 0
        for row, way in zip(rows[1:], cluster[key]):
            assert abs(number(row[0]) / way["iteration_s"] - 1) < 1e-3, row
            sizes = [int(row[heading.index(name)]) for name in ("tp", "cp", "dp")]
            assert sizes == [way[name] for name in ("tensor_model_parallel_size", "context_parallel_size",
                                             "data_parallel_size")], row
    step = {row[0]: row[2] for row in page.table("The training step")[1:]}
    assert abs(number(step["time per step"]) / cluster["best"][0]["iteration_s"] - 1) < 1e-3
    assert page.headings[0] == "How to train llama-7b" and len(page.strips) == 1 and len(page.pictures) == 2
    hold_plan_paths(page, cluster)
    [command] = [words for words in page.words if words.startswith("longhaul plan ")]
    before = (tool.folder / "page.html").read_bytes()
    tool.call(*command.split()[1:])
    assert (tool.folder / "page.html").read_bytes() == before
    page = report_of(tool, *PLAN[:4], "dfa-2node:1", "--seq-length", "64M", *FEW, status=1)
    assert not page.strips and any("None of them can run here" in words for words in page.words)


def hold_sweep(tool):
    """The page has a row for each point, and counts how often each schedule is fastest."""
    (tool.folder / "s.json").write_text(json.dumps(SWEEP))
    page = report_of(tool, "sweep", "s.json", "--format", "csv", "-o", "s.csv")
    rows = list(csv.DictReader((tool.folder / "s.csv").open(encoding="utf-8")))
    fastest = [row["schedule"] for row in rows if row["vs_best"] in ("1", "1.0")]
    table = page.table("The fastest schedule at each point")
    assert [row[2] for row in table[1:]] == fastest and len(fastest) == 4, fastest
    words = " ".join(page.words)
    for name in set(fastest):
        assert f"{name} at {fastest.count(name)}" in words or f"{name} is the fastest at all" in words
    assert page.headings[0] == "The fastest schedule by point" and len(page.pictures) == 1


def calibrate_in_rounds(tool):
    """Writes here.json. Progress of calibrate on a terminal names all kernels in each round, in the same order."""
    terminal, end = pty.openpty()
    with subprocess.Popen([tool.program, "calibrate", "--quick", "--repeat", "2", "-o", "here.json"],
                          env=tool.environment, cwd=tool.folder, stdout=subprocess.DEVNULL, stderr=end) as process:
        os.close(end)
        told = b""
        with contextlib.suppress(OSError):  # at the end, when the other side is closed
            while part := os.read(terminal, 4096):
                told += part
    os.close(terminal)
    assert process.returncode == 0, told
    rounds = re.findall(r"measuring ([^\r]+) \(round (\d) of 2\)", told.decode())
    kernels = [kernel for kernel, number in rounds if number == "1"]
    assert rounds == [(kernel, number) for number in "12" for kernel in kernels] and len(kernels) > 40, rounds


def hold_validation(tool):
    """The page has the measured makespans, whether or not they are within the tolerance."""
    if DEEP:
        calibrate_in_rounds(tool)
    else:  # sanitizers slow kernels so much that measuring all of them would dominate the test
        (tool.folder / "here.json").write_text(json.dumps({"schema": "longhaul.profile/1", "name": "here",
                                                           "source": "made", "kernel_launch": "1us"}))
    ranks = len(os.sched_getaffinity(0)) + 1
    done = subprocess.run([tool.program, "validate", "--profile", "here.json", "--schedule", "ring",
                           "--ranks", str(ranks), "--seq-length", str(256 * ranks), "--num-attention-heads", "2",
                           "--kv-channels", "64", "--repeat", "1", "--report", "page.html", "--format", "json",
                           "-o", "v.json"], env=tool.environment, cwd=tool.folder, check=False, capture_output=True,
                          text=True)
    assert done.returncode in (0, 1), done.stderr
    page = Page((tool.folder / "page.html").read_text())
    hold_page(page)
    [row] = page.table("Makespans of schedules")[1:]
    assert row[0] == "ring" and row[-1] == ("yes" if done.returncode == 0 else "NO")
    assert len(page.pictures) == 1 and page.headings[0] == "Accuracy of predictions"
    assert any(f"{ranks} ranks share {ranks - 1} cores" in words for words in page.words)
    assert any(words.startswith("All within" if done.returncode == 0 else "Not all within") for words in page.words)
    hold_saved_validation(tool)
    hold_rank_alone(tool)


def hold_rank_alone(tool):
    """Single-rank replay of each schedule: table, document and page name the rank. Ranks are those of the cluster,
    which need not contain this machine, and collectives are of any kind."""
    cluster = json.loads((pathlib.Path(os.environ["LONGHAUL_SOURCE_DIR"]) / "topologies/this-machine.json").read_text())
    cluster |= {"name": "far", "max_nodes": 4}
    nics = {"count": 1, **{key: value for key, value in cluster["node"]["scale_up"].items() if key != "kind"}}
    cluster["node"] |= {"gpus": 2, "nics": nics}
    (tool.folder / "far.json").write_text(json.dumps(cluster))
    words = ["--profile", "here.json", "--cluster", "./far.json:4", "--schedule", "ring", "--schedule", "megatron-tp-sp",
             "--seq-length", "512", "--num-attention-heads", "8", "--kv-channels", "64", "--repeat", "1"]
    for rank in ("slowest", "median", "5"):
        for collectives in ("ring", "tree"):
            done = subprocess.run([tool.program, "validate", *words, "--replay-rank", rank, "--collectives", collectives,
                                   "--report", "page.html", "--format", "json", "-o", "v.json"], env=tool.environment,
                                  cwd=tool.folder, check=False, capture_output=True, text=True)
            assert done.returncode in (0, 1), done.stderr
            document = json.loads((tool.folder / "v.json").read_text())
            rows = document["schedules"]
            assert all(row["rank"] == 5 if rank == "5" else 0 <= row["rank"] < 8 for row in rows), rows
            assert document["prediction"]["lines"][0].endswith(f" rank {rows[0]['rank']}")
            assert rows[0]["measured_s"] > 0 and "explanation" not in document, rows
        written = (tool.folder / "page.html").read_bytes()
        page = Page(written.decode())
        assert [row[1] for row in page.table("Makespans of schedules")[1:]] == [str(row["rank"]) for row in rows]
        assert any("runs alone" in text for text in page.words)
        tool.call("report", "--from", "v.json", "--output", "page.html")
        assert (tool.folder / "page.html").read_bytes() == written
    for change, says in (({"rank": 8}, "a predicted schedule must have a rank below 8"), ({}, "must have a rank")):
        changed = json.loads((tool.folder / "v.json").read_text())
        del changed["schedules"][0]["rank"]
        changed["schedules"][0] |= change
        refused(tool, changed, status=3, says=says)
    changed = json.loads((tool.folder / "v.json").read_text())
    last = changed["schedules"][-1]  # as if the budget had excluded it
    changed["schedules"][-1] = {"schedule": last["schedule"], "refused": "not run: the budget was spent",
                                "rank": last["rank"], "predicted_s": last["predicted_s"]}
    (tool.folder / "changed.json").write_text(json.dumps(changed))
    tool.call("report", "--from", "changed.json", "--output", "page.html")
    assert "the budget was spent" in (tool.folder / "page.html").read_text()
    changed["argv"] = [word for word in changed["argv"] if word not in ("--replay-rank", "5")]
    refused(tool, changed, status=3, says="far is not this machine")
    for rank, status, says in (("8", 2, "rank 8 has no ops; 8 ranks have some"), ("last", 2, 'found "last"')):
        done = tool.call("validate", *words, "--replay-rank", rank, status=status)
        assert says in done.stderr and not done.stdout, done.stderr
    done = tool.call("validate", *words, "--replay-rank", "1", "--backend", "tcp", status=2)
    assert "needs backend cpu or cuda, not tcp" in done.stderr, done.stderr
    tool.call("validate", *words, status=3)  # this machine is another one


def hold_saved_validation(tool):
    """The page of a saved validation equals the original one; there is none for a changed document or an unreadable
    one."""
    page, document = tool.folder / "page.html", tool.folder / "v.json"
    written, text = page.read_bytes(), document.read_text()
    page.unlink()
    fewer = {min(os.sched_getaffinity(0))}  # fewer cores than the validated machine
    subprocess.run([tool.program, "report", "--from", "v.json", "--output", "page.html"], env=tool.environment,
                   cwd=tool.folder, check=True, preexec_fn=lambda: os.sched_setaffinity(0, fewer))
    assert page.read_bytes() == written
    saved = json.loads(text)
    [row] = saved["schedules"]
    refused(tool, saved | {"schedules": [row | {"within": not row["within"]}]}, status=3, says="schedules[0].within")
    refused(tool, saved | {"summary": saved["summary"] | {"runs": 0}}, status=3, says="nothing has been measured yet")
    for change in ({"measured_s": 0}, {"measured_s": 1e-300}):
        refused(tool, saved | {"schedules": [row | change]}, status=3, says="a schedule that ran took at least 1e-12")
    refused(tool, saved | {"schedules": [row | {"start_s": row["measured_s"]}]}, status=3, says="longer than its start")
    refused(tool, saved | {"schedules": [row | {"spread": 1e300}]}, status=3, says="schedules[0].spread")
    refused(tool, saved | {"[share": 1}, status=3, says="[share")
    refused(tool, saved | {"hosts": [{"host": "a", "node": 1, "measured_s": 1, "predicted_s": 1, "slow": False}]},
            status=3, says="numbered from 0")
    hosts = [{"host": name, "node": node, "measured_s": measured, "predicted_s": 1.0, "slow": measured > 1.5}
             for name, node, measured in (("a", 0, 1.0), ("b", 1, 2.5), ("c", 2, 1.25))]
    hosts += [{"host": "a", "node": 0, "peer_host": "c", "peer": 2, "measured_s": 0.5, "predicted_s": 0.25, "slow": True},
              {"host": "b", "node": 1, "peer_host": "c", "peer": 2, "measured_s": 0.5, "predicted_s": 0.5, "slow": False}]
    document.write_text(json.dumps(saved | {"hosts": hosts}))
    tool.call("report", "--from", "v.json", "--output", "page.html")
    hosts[3]["slow"] = False
    refused(tool, saved | {"hosts": hosts}, status=3, says="hosts[3].slow: the saved result has false")
    random = Random(0)
    for _ in range(DAMAGES):
        at, count = random.randrange(len(text)), random.choice([0, 1, 1, 40])
        document.write_text(text[:at] + random.choice(["", "1", "[", "}", '"', "null", "1e999", "-1"]) + text[at + count:])
        done = subprocess.run([tool.program, "report", "--from", "v.json", "--output", "none.html"], check=False,
                              env=tool.environment, cwd=tool.folder, capture_output=True, text=True)
        assert done.returncode in (0, 2, 3) and bool(done.stderr) == (done.returncode != 0), (at, done)
    document.write_text(text)
    (tool.folder / "none.html").unlink(missing_ok=True)


def refused(tool, document, *words, status, says):
    """Checks an error: its message, and that no page is written."""
    (tool.folder / "changed.json").write_text(json.dumps(document))
    page = tool.folder / "none.html"
    said = tool.call("report", "--from", "changed.json", *words, "--output", page.name, status=status).stderr
    assert says in said and not page.exists(), said


def hold_saved(tool):
    """The page of a saved result equals the one of its command; files beside the original page are not rewritten, and
    a result that is not reproduced is not shown."""
    folder = tool.folder
    (folder / "sweep.json").write_text(json.dumps(SWEEP))
    lines = {
        "compare": ["compare", *CASE, "--ranks", "4", "--schedule", "ring", "--schedule", "zigzag", "--within", "3x",
                    "--synth", "--budget", "2" if DEEP else "1", "--figure", "bars.svg"],
        "plan": [*PLAN, "--points", "points.jsonl", "--jobs", "2"],
        "sweep": ["sweep", "./sweep.json", "--figure", "sweep.svg"],
    }
    for name, words in lines.items():
        page = folder / "page.html"
        report_of(tool, *words, "--format", "json", "-o", "saved.json")
        written, before = page.read_bytes(), set(folder.iterdir())
        for path in before - {folder / "saved.json", folder / "sweep.json"}:
            path.unlink()
        tool.call("report", "--from", "saved.json", "--output", "page.html", "--jobs", "1")
        assert page.read_bytes() == written, name
        assert set(folder.iterdir()) == {folder / "saved.json", folder / "sweep.json", page}, name
        saved = json.loads((folder / "saved.json").read_text())
        refused(tool, saved | {"seed": "1"}, "--seed", "1", status=2, says="remove the scenario")
        refused(tool, saved | {"argv": saved["argv"][:1]}, status=3, says="without a command")
        refused(tool, saved | {"argv": ["longhaul", "run", "--schedule", "ring"]}, status=3,
                says="result of longhaul run; allowed: results of compare, plan, sweep, validate")
        refused(tool, saved | {"argv": [*saved["argv"], "--help"]}, status=3, says="it is a call for help")
        refused(tool, saved | {"argv": [*saved["argv"], "--no-such"]}, status=3, says="--no-such")
        refused(tool, saved | {"argv": "longhaul"}, status=3, says="argv")
        if name == "plan":  # whose differences are found in the same way
            continue
        refused(tool, saved | {"seed": "1"}, status=3, says="seed: the saved result has")
        refused(tool, {key: value for key, value in saved.items() if key != "seed"}, status=3, says="so it cannot be shown")
        refused(tool, saved | {"inputs": saved["inputs"][:-1]}, status=3, says=f"inputs[{len(saved['inputs']) - 1}]")
        refused(tool, saved | {"inputs": saved["inputs"] * 2}, status=3, says=f"inputs[{len(saved['inputs'])}]")
        inputs = [one | {"sha256": "0" * 64} for one in saved["inputs"][-1:]]
        refused(tool, saved | {"inputs": saved["inputs"][:-1] + inputs}, status=3,
                says="SHA-256 of " + inputs[0]["path"])
    tool.call("report", "--from", "saved.json", "--output", "saved.json", status=2)
    tool.call("report", "--from", "saved.json", "--ranks-shown", "1", "--output", "page.html", status=2)


def hold_pdf_of_browser(tool):
    """A browser is preferred; its input and output are in a folder that is removed afterwards."""
    browser = tool.folder / "chromium"
    browser.write_text("""#!/bin/sh
for word; do
    case $word in
    --print-to-pdf=*) to=${word#*=} ;;
    file://*) from=${word#file://} ;;
    esac
done
read -r line < "$from"
echo "%PDF-1.7 by $line" > "$to"
echo "$from" > from.txt
""")
    browser.chmod(0o755)
    tool.call("report", *CASE, "--schedule", "ring", "--output", "page.pdf")
    assert (tool.folder / "page.pdf").read_text() == "%PDF-1.7 by <!DOCTYPE html>\n"
    page = pathlib.Path((tool.folder / "from.txt").read_text().strip())
    assert page.name == "page.html" and not page.parent.exists(), page
    (tool.folder / "page.pdf").unlink()
    for body, says in (("exit 0", "chromium did not write a PDF"), ("exit 3", "cannot print page.pdf")):
        browser.write_text(f"#!/bin/sh\n{body}\n")
        done = tool.call("report", *CASE, "--schedule", "ring", "--output", "page.pdf", status=4)
        assert says in done.stderr and not (tool.folder / "page.pdf").exists(), done.stderr


def hold_pdf(tool):
    """PDF is written with a browser; without one the error says what is missing, before any work."""
    if shutil.which("chromium") is not None:
        own = tool.folder / "temporary"  # other tests have files in the shared one
        own.mkdir()
        tool.environment["TMPDIR"] = str(own)
        tool.call("report", *CASE, "--schedule", "ring", "--output", "page.pdf")
        assert (tool.folder / "page.pdf").read_bytes().startswith(b"%PDF-")
        left = [path.name for path in own.glob("longhaul-*")]
        assert left == [], left
        del tool.environment["TMPDIR"]
        shutil.rmtree(own)
        (tool.folder / "page.pdf").unlink()
    path, tool.environment["PATH"] = tool.environment["PATH"], str(tool.folder)
    done = tool.call("report", *CASE, "--output", "page.pdf", status=4)
    assert "neither chromium nor weasyprint is installed" in done.stderr
    (tool.folder / "weasyprint").write_text("#!/bin/sh\necho no PDF\n")
    (tool.folder / "weasyprint").chmod(0o755)
    (tool.folder / "gnuplot").symlink_to(shutil.which("gnuplot", path=path))
    done = tool.call("report", *CASE, "--schedule", "ring", "--output", "page.pdf", status=4)
    assert "weasyprint did not write a PDF" in done.stderr and not (tool.folder / "page.pdf").exists()
    (tool.folder / "weasyprint").write_text("#!/bin/sh\nread -r line\necho \"%PDF-1.7 $line\"\n")
    tool.call("report", *CASE, "--schedule", "ring", "--output", "page.pdf")
    assert (tool.folder / "page.pdf").read_text() == "%PDF-1.7 <!DOCTYPE html>\n"
    hold_pdf_of_browser(tool)
    tool.environment["PATH"] = path


def hold_without_gnuplot(tool):
    """Without gnuplot there is no page, and the error says so."""
    path, tool.environment["PATH"] = tool.environment["PATH"], str(tool.folder)
    done = tool.call("report", *CASE, "--output", "page.html", status=4)
    assert "gnuplot" in done.stderr and not os.listdir(tool.folder), done.stderr
    tool.environment["PATH"] = path


def main():
    program = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, pathlib.Path(folder))
        hold_without_gnuplot(tool)
        if shutil.which("gnuplot") is None:
            print("skipped: gnuplot is not installed")
            return 77
        hold_comparison(tool)
        hold_hostile(tool)
        hold_plan(tool)
        hold_sweep(tool)
        hold_validation(tool)
        hold_saved(tool)
        hold_pdf(tool)
        size = hold_others(tool)
        browser = hold_browser(tool) + hold_opening(tool) if DEEP else "no browser was asked"
    print(f"pages are complete, run nothing and load nothing; 64 ranks: {size} bytes; {browser}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
