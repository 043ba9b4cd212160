#!/usr/bin/env python3
"""Reads the pages of longhaul report: report.py PROGRAM.

Held against `compare --format json` of the same case; and a page must be well-formed, run nothing,
load nothing, show text of files as text, and be the same every time.
"""

import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from tool import ROOT, Tool

CASE = ["dfa-2node", "--seq-length", "32K"]
LARGE = ["--cluster", "hgx-h100:8", "--model", "llama-3-8b", "--seq-length", "512K",
         "--schedule", "te-a2a-p2p", "--schedule", "zigzag", "--schedule", "dfa-balanced"]
LARGE_BYTES_MAX = 2 << 20
STEP = ["--step", "--schedule", "lasp", "--schedule", "ulysses", "--cluster", "lasp-dgx:1", "--model",
        "tnl-1b", "--seq-length", "16K", "--framework", "fairscale"]
NAME = "<script>alert(1)</script>&\"'\n\x1b"
VOID = {"meta", "link", "img", "br"}
URLS = {"src", "href", "srcset", "action", "data", "poster", "content"}


class Page(html.parser.HTMLParser):
    """A page, with its tables and pictures."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.headings, self.tables, self.pictures = [], [], [], []
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
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

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
    """What is so of every page: it allows its own style and its own pictures, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert page.policy == (f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
                           "base-uri 'none'; form-action 'none'")
    assert "@import" not in page.style and "url(" not in page.style
    for picture in page.pictures:
        kind, data = picture.split(",", 1)
        assert kind == "data:image/svg+xml;base64"
        assert xml.etree.ElementTree.fromstring(base64.b64decode(data)).tag.endswith("}svg")
    for caption, rows in page.tables:
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1, caption
        assert any(any(row) for row in rows[1:]), caption


def number(text):
    return float(text.replace(",", ""))


def hold_comparison(tool):
    """The table has the times of compare, and parts of a time add up to it."""
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
            f"What made the time of {first}", "Where the constants come from",
            "How to repeat it"} <= set(page.headings)
    assert len(page.pictures) == 5
    path = page.table("The critical path, by what it waits for")
    assert path[-1][0] in ("makespan", "in all") or len(path) > 2, path
    hold_repeat(tool, page)


def hold_repeat(tool, page):
    """The command that the page names writes the page."""
    [command] = [words for words in page.words if words.startswith("longhaul report ")]
    before = (tool.folder / "page.html").read_bytes()
    (tool.folder / "page.html").unlink()
    tool.call(*command.split()[1:])
    assert (tool.folder / "page.html").read_bytes() == before
    for path, digest in page.table("What was read")[1:]:
        found = path if os.path.isabs(path) else ROOT / path
        assert hashlib.sha256(pathlib.Path(found).read_bytes()).hexdigest() == digest, path


def hold_hostile(tool):
    """A name from a file is text, and nothing of it is obeyed."""
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
    _, page = page_of(tool, *LARGE[:6], "--schedule", "zigzag", "--ranks-shown", "3,60-63")
    assert not any(heading.startswith("The runner-up") for heading in page.headings)
    case = ["--ranks", "4", "--schedule", "ulysses", "--seq-length", "4K", "--ranks-shown", "3"]
    _, page = page_of(tool, *case)
    assert b"rank 0" not in base64.b64decode(page.pictures[1].split(",")[1])  # all finish together
    _, page = page_of(tool, *STEP)
    by_category = [rows for caption, rows in page.tables if "by category" in caption]
    assert len(by_category) == 2 and all(len(rows) > 4 for rows in by_category)
    assert sum(caption == "The training step" for caption, _ in page.tables) == 2
    _, page = page_of(tool, "--ranks", "7", "--schedule", "megatron-tp-sp", status=1)
    assert not page.pictures and any("None of the schedules can run" in w for w in page.words)
    page_of(tool, "--ranks", "4", "--schedule", "ring", "--cost", "unit")
    return len(text)


def complaints(page):
    """What a browser says of a page; None without a browser."""
    browser = shutil.which("chromium")
    if browser is None:
        return None
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--window-size=390,2000", "--dump-dom", page.as_uri()]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, HOME=str(page.parent)))
    assert done.returncode == 0 and "<html" in done.stdout, done.stderr
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def hold_browser(tool):
    """A browser finds nothing that the page's policy forbids, and would say so."""
    text, _ = page_of(tool, *CASE)
    page = tool.folder / "page.html"
    said = complaints(page)
    if said is None:
        return "no browser here"
    assert not said, said
    page.write_text(text.replace("<h1>", "<h1 style=\"color:red\">"))
    assert complaints(page)
    return "a browser has no complaints"


def hold_without_gnuplot(tool):
    """There is no page without figures, and the reason is said."""
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
            return 77
        hold_comparison(tool)
        hold_hostile(tool)
        size = hold_others(tool)
        browser = hold_browser(tool)
    print(f"pages are whole, run nothing and load nothing; of 64 ranks {size} bytes; {browser}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
