#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes allocations and thread starts fail, one after another, in every command of the transcripts.

    allocations.py PROGRAM LIBRARY [--all] [WORD...]

For each command of tests/cli/*.transcript and of COMMANDS below, it counts the calls that allocate
memory or start a thread. It then runs the command again with the n-th of these failing, or the n-th
and all later ones: n = 1, 2, 4, 8 and so on, the last, and some in between from a fixed seed; with
--all every n. WORDs select the commands that contain one. LIBRARY is built from fail_allocation.c.
The program must then either

  - exit with status 4, one line on standard error, and nothing or the whole answer on standard
    output, or
  - behave as usual, because the failed call was not essential,

and leave only its usual files, each complete or unchanged.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRANSCRIPTS = ["errors", "golden", "machine"]
FREE = re.compile(rb"free leaves [0-9.]+ [A-Za-z]+")  # current free memory
# Commands left out of the transcripts, since their output differs each time.
RUN = "longhaul run --ranks 3 --seq-length 48 --num-attention-heads 2 --kv-channels 16 --deadline 20s"
COMMANDS = [
    f"{RUN} --schedule ring",
    f"{RUN} --schedule lasp2 --format json -o run.json",
    f"{RUN} --schedule te-a2a --num-attention-heads 3 --num-query-groups 3 --timeline t.csv",
    ("echo '{\"schema\": \"longhaul.profile/1\", \"name\": \"p\", \"source\": \"s\", "
     "\"kernel_launch\": \"1us\"}' >p.json; "
     "longhaul validate --profile p.json --replay-rank slowest --ranks 3 --seq-length 48 --num-attention-heads 1 "
     "--kv-channels 64 --schedule ring --repeat 1 --format json -o v.json"),
    "longhaul doctor",
    "longhaul doctor --backend nccl --format json",
]
# Reports which other libraries work; these need memory too, so the answer may differ.
ANSWERS_DIFFER = b"doctor"
BETWEEN = 3  # per command, between powers of two
SECONDS_OF_A_COMMAND = 1  # then the command's remaining numbers are skipped
SECONDS = 120  # a longer run has hung
BROKEN = 99

# `longhaul` saves the folder's previous state, the arguments and the environment for replaying.
RECORDER = r"""
longhaul() {
    local call
    call=$RECORDS/$(printf %03d "$(ls "$RECORDS" | wc -l)")
    mkdir "$call"
    cp -r . "$call/folder"
    printf '%s\0' "$@" >"$call/arguments"
    env -0 >"$call/environment"
    "$program" "$@"
}
"""


class Call:
    """One call of the program, each time in a new folder."""

    def __init__(self, program, preload, record):
        self.folder = record / "folder"
        self.arguments = (record / "arguments").read_bytes().split(b"\0")[:-1]
        lines = (record / "environment").read_bytes().split(b"\0")[:-1]
        self.environment = dict(line.split(b"=", 1) for line in lines if not line.startswith(b"BASH_FUNC_"))
        self.program, self.preload = program, preload

    def run(self, fail="0"):
        """Status, output, errors, files by name, and number of calls."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = pathlib.Path(name) / "folder"
            calls = pathlib.Path(name) / "calls"
            shutil.copytree(self.folder, folder)
            done = subprocess.run(
                [self.program, *self.arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                env={**self.environment, b"LD_PRELOAD": os.fsencode(self.preload), b"LONGHAUL_FAIL": fail.encode(),
                     b"LONGHAUL_CALLS": os.fsencode(calls)}, timeout=SECONDS, check=False)
            files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
            count = int(calls.read_text() or 0) if calls.exists() else 0
        return done.returncode, done.stdout, FREE.sub(b"free leaves some", done.stderr), files, count


def record_calls(program, preload, command, functions, records):
    records.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["bash", "-c", RECORDER + functions + command], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            env={**os.environ, "RECORDS": str(records), "program": program, "LC_ALL": "C",
                 "LONGHAUL_DATA_DIR": str(ROOT), "LONGHAUL_SOURCE_DIR": str(ROOT)})
    return [Call(program, preload, record) for record in sorted(records.iterdir())]


def is_whole(output, usual, steady):
    """An answer with timings of this machine must have as many lines as the usual one."""
    return output == usual or (not steady and output.endswith(b"\n") and output.count(b"\n") == usual.count(b"\n"))


def is_gone_on_from(content, usual):
    """What --points wrote ends with a complete line, and the same command can continue from it."""
    return content.endswith(b"\n") and usual is not None and usual.startswith(content)


def complaint(usual, before, got, steady):
    """What is wrong with the program's behaviour after a failed call; None if nothing."""
    status, output, errors, files, _ = got
    for name, content in files.items():
        if name not in usual[3] and name not in before:
            return f"leaves the file {name}"
        if steady and content not in (usual[3].get(name), before.get(name)) and not (
                name.endswith(".jsonl") and is_gone_on_from(content, usual[3].get(name))):
            return f"leaves {name} incomplete"
    whole = not output or is_whole(output, usual[1], steady)
    said, last = errors[:-1].rpartition(b"\n")[::2]
    if (status == 4 and whole and errors.endswith(b"\n") and last.startswith(b"longhaul: ")
            and usual[2].startswith(said)):
        return None
    if status == usual[0] and errors == usual[2] and (output == usual[1] or not steady):
        return None
    return f"ends with status {status}, {len(output)} bytes of output and the message {errors.decode(errors='replace')!r}"


def numbers(count, everything, chance):
    if everything:
        return range(1, count + 1)
    powers = {1 << k for k in range(count.bit_length()) if 1 << k <= count}
    return sorted(powers | {count} | {chance.randint(1, count) for _ in range(BETWEEN)})


def check(call, everything, chance):
    """Number of runs, and the failures."""
    usual = call.run()
    before = {str(p.relative_to(call.folder)): p.read_bytes() for p in call.folder.rglob("*") if p.is_file()}
    again = call.run()
    steady = usual[:4] == again[:4] and ANSWERS_DIFFER not in call.arguments[:1]
    wrong, runs, end = [], 0, time.monotonic() + SECONDS_OF_A_COMMAND
    if usual[4] == 0:
        return 0, [f"{call.arguments}: {usual[0]}: the library counts nothing"]
    for n in numbers(usual[4], everything, chance):
        for fail in (f"{n}", f"{n}+"):
            if not everything and time.monotonic() > end:
                return runs, wrong
            runs += 1
            try:
                what = complaint(usual, before, call.run(fail), steady)
            except subprocess.TimeoutExpired:
                what = "does not end"
            if what is not None:
                wrong.append(f"{b' '.join(call.arguments).decode()}: LONGHAUL_FAIL={fail} {what}")
    return runs, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("preload", metavar="LIBRARY")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    program, preload = os.path.realpath(options.program), os.path.realpath(options.preload)
    script = (ROOT / "tests/cli/transcript.sh").read_text()
    functions = script[script.index("try() {"):script.index("export -f")].replace('"$program"', "longhaul")
    commands = list(COMMANDS)
    for name in TRANSCRIPTS:
        lines = (ROOT / f"tests/cli/{name}.transcript").read_text().splitlines()
        commands += [line[2:] for line in lines if line.startswith("$ ")]
    calls = runs = 0
    failed = False
    with tempfile.TemporaryDirectory() as records, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def check_command(i):
            if options.words and not any(word in commands[i] for word in options.words):
                return []
            chance = random.Random(i)
            records_of_it = pathlib.Path(records) / str(i)
            return [check(call, options.all, chance)
                    for call in record_calls(program, preload, commands[i], functions, records_of_it)]

        for results in pool.map(check_command, range(len(commands))):
            for count, wrong in results:
                calls, runs = calls + 1, runs + count
                for line in wrong:
                    print(line, flush=True)
                failed = failed or bool(wrong)
    print(f"{calls} commands, run {runs} times with a call failing")
    sys.exit(1 if failed or runs == 0 else 0)


if __name__ == "__main__":
    main()
