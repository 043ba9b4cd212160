#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives every option of every command twice: repeats.py PROGRAM.

The result must match its help: the option may be repeated, or the line is refused because of it.
"""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from random_lines import ROOT, SENSIBLE

# Values of options that random lines create differently.
VALUES = {"--schedule": ["ring", "zigzag"], "--dtype": ["bf16"], "--cluster": ["dgx-a100-80g"],
          "--max-work": ["1s"], "--muon-momentum": ["0.9"], "--model": ["llama-7b"], "--nic-rate": ["400G"],
          "--nvlink-rate": ["400GB/s"], "--ranks": ["2"], "--stepfactor": ["2"]}
REFUSED = ("takes one", "contradicts the ending of --output")
SEVERAL = "May be repeated"


def values_of(option):
    known = VALUES.get(option["option"], SENSIBLE.get(option["option"], option.get("choices")))
    known = known or ["1"]
    return known[0], known[-1]


def faults_of(program, command, option, environment):
    words = [word for value in values_of(option) for word in (option["option"], value)]
    # The number of programs is checked after all options are read; other lines end with a nonexistent option.
    words += ["--ranks", "2"] if option["option"] == "--schedule" else ["--nothing"]
    done = subprocess.run([program, command["name"], *words], env=environment, check=False,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    refused = any(text in done.stderr for text in REFUSED)
    if refused == option["repeatable"]:
        yield f"repeatable: {option['repeatable']}, but: {done.stderr.strip()}"
    if (SEVERAL in option["description"]) != option["repeatable"]:
        yield f"repeatable: {option['repeatable']}, but: {option['description']}"


def main():
    program = os.path.realpath(sys.argv[1])
    environment = dict(os.environ, LC_ALL="C", LONGHAUL_DATA_DIR=str(ROOT))
    listing = json.loads(subprocess.run([program, "help", "--format", "json"], check=True, text=True,
                                        capture_output=True, env=environment).stdout)
    count = bad = 0
    for command in listing["commands"]:
        for option in command["options"]:
            if option["type"] == "flag":
                continue
            count += 1
            for fault in faults_of(program, command, option, environment):
                print(f"{command['name']} {option['option']}: {fault}")
                bad += 1
    print(f"{count} options, {bad} with wrong help")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
