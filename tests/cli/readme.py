#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tasks of the README as written: readme.py PROGRAM.

Every line "    $ longhaul ..." of README.md is run by a shell, in their order, in one empty folder in which `tests` is
the tree's. Each ends with 0; `validate` may end with 1, since a busy machine is not as fast as its profile says. Where
its output stands below a command, the command prints those lines, numbers aside.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASKS_MIN = 5


def commands(text):
    """Each command, and the lines below it that it prints."""
    found = []
    for block in re.findall(r"(?:^    .*\n|^\n)+", text, re.M):
        for line in block.split("\n"):
            if line.startswith("    $ longhaul "):
                found.append((line.removeprefix("    $ "), []))
            elif found and block.lstrip("\n").startswith("    $ "):
                found[-1][1].append(line.removeprefix("    "))
    return found


def masked(line):
    return re.sub(r"[-+]?\d[\d.,]*(e[-+]\d+)?", "#", " ".join(line.split()))


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    tasks = commands((ROOT / "README.md").read_text())
    headings = re.findall(r"^### \d+\. ", (ROOT / "README.md").read_text(), re.M)
    assert len(headings) == TASKS_MIN <= len(tasks), tasks
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tests").symlink_to(ROOT / "tests")
        pathlib.Path(folder, "longhaul").symlink_to(program)
        environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LC_ALL="C")
        environment.setdefault("LONGHAUL_DATA_DIR", str(ROOT))
        for command, printed in tasks:
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                                  check=False)
            answers = (0, 1) if command.startswith("longhaul validate ") else (0,)
            assert done.returncode in answers, (command, done.returncode, done.stdout, done.stderr)
            lines = [masked(line) for line in done.stdout.split("\n")]
            for line in printed:
                assert not line or masked(line) in lines, (command, line, done.stdout)
    print(f"{len(tasks)} commands of the README run as written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
