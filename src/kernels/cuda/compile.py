#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles for a GPU and keeps what ptxas says of every kernel: compile.py LOG COMMAND...

The log holds ptxas's lines of COMMAND, which is called with -Xptxas -v; tools/check-registers.py
reads them. Everything else that COMMAND prints passes through.
"""

import subprocess
import sys


def main():
    log, *command = sys.argv[1:]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    # A line of a kernel's stack and spills has no mark of its own.
    said = [line.startswith("ptxas info") or "bytes stack frame" in line
            for line in done.stderr.splitlines()]
    lines = done.stderr.splitlines()
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line, is_info in zip(lines, said) if is_info)
    sys.stderr.writelines(line + "\n" for line, is_info in zip(lines, said) if not is_info)
    return done.returncode


sys.exit(main())
