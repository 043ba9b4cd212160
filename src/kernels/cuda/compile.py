#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles for a GPU and logs what ptxas reports of every kernel: compile.py LOG COMMAND...

COMMAND is called with -Xptxas -v. The log holds ptxas's lines, for tools/check-registers.py; all
other output of COMMAND passes through.
"""

import subprocess
import sys


def main():
    log, *command = sys.argv[1:]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    # Lines about a kernel's stack and spills have no prefix.
    said = [line.startswith("ptxas info") or "bytes stack frame" in line
            for line in done.stderr.splitlines()]
    lines = done.stderr.splitlines()
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line, is_info in zip(lines, said) if is_info)
    sys.stderr.writelines(line + "\n" for line, is_info in zip(lines, said) if not is_info)
    return done.returncode


sys.exit(main())
