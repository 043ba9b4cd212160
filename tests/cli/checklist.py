#!/usr/bin/env python3
"""Runs what lists of papers' statements tell readers to type: checklist.py PROGRAM.

Every command of scenarios/checklists that is no `longhaul reproduce`, which is run for the docs, ends
with status 0 and prints something.
"""

import json
import pathlib
import shlex
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import ROOT, Tool


def commands():
    for path in sorted((ROOT / "scenarios" / "checklists").glob("*.json")):
        for line in json.loads(path.read_text())["lines"]:
            if "command" in line and not line["command"].startswith("longhaul reproduce "):
                yield line["command"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], pathlib.Path(folder))
        every = sorted(set(commands()))
        assert len(every) > 10, every
        for command in every:
            program, *words = shlex.split(command)
            assert program == "longhaul", command
            assert tool.call(*words).stdout, command


main()
