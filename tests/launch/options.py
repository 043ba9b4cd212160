#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes of a job with different options: an error names each option that matters, with both values.

    options.py PROGRAM

The options are those of `longhaul list`, so new ones are included automatically. One in ten is
tested, or all with LONGHAUL_TEST_DEEP set.
"""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

PORTS = pathlib.Path(__file__).resolve().parent / "ports.py"
EVERY = 1 if os.environ.get("LONGHAUL_TEST_DEEP") else 10
LIMIT_S = 60
COMMANDS = {
    "run": ["--backend", "tcp", "--schedule", "ring", "--ranks", "2", "--seq-length", "32", "--num-attention-heads", "2",
            "--kv-channels", "8"],
    "validate": ["--backend", "tcp", "--schedule", "ring", "--ranks", "2"],
    "calibrate": ["--backend", "tcp"],
    "plan": ["--model", "gpt3-125m", "--schedule", "ring"],
}
# Options that may differ between processes: output format and files, and threads.
OWN = {"--format", "--output", "--report", "--points", "--topology", "--jobs"}
# These decide how processes meet; a figure of plan is drawn by the first process only.
APART = {("*", "--bootstrap"), ("*", "--backend"), ("plan", "--figure")}
# Possible values for placeholders that do not list them.
VALUES = ["2", "3", "0.5", "3s", "50%", "0-1", "1us:2us", "1:2", "8:8", "2,2", "nic:0:0.5", "2.7", "ring", "word"]
CONFIG = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 4096 --micro-batch-size 1\n"


class Job(typing.NamedTuple):
    program: str
    folder: pathlib.Path
    ports: typing.Iterator

    def run(self, command, words, words_of_rank_1):
        port = next(self.ports)
        env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1), "WORLD_SIZE": "2",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        processes = [subprocess.Popen([self.program, command, *(words_of_rank_1 if rank == 1 else words)],
                                      cwd=self.folder, env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True) for rank in range(2)]
        try:
            told = [process.communicate(timeout=LIMIT_S)[1] for process in processes]
        except subprocess.TimeoutExpired:
            sys.exit(f"FAILED: {command} {words_of_rank_1}: rank 0 waits for rank 1")
        return [(process.returncode, err) for process, err in zip(processes, told)]


def listed(program, kind):
    text = subprocess.run([program, "list", kind, "--format", "json"], check=True, capture_output=True, text=True).stdout
    return json.loads(text)["entries"]


def options_of(program, command):
    """Names with placeholders, "--seed N"; a command's own options hide those of scenarios."""
    own = [entry["name"] for entry in listed(program, "command-options")
           if command in entry["commands"].split(", ")]
    names = {name.split()[0] for name in own}
    ours = subprocess.run([program, "help", command, "--all"], check=True, capture_output=True, text=True).stdout
    shared = [entry["name"] for kind in ("options", "schedule-options") for entry in listed(program, kind)]
    return own + [name for name in shared
                  if name.split()[0] not in names and re.search(rf"^  {name.split()[0]}(?![\w-])", ours, re.MULTILINE)]


def candidates(placeholder, folder):
    """Values to try, the most likely first."""
    if not placeholder:
        return [[]]
    if placeholder == "FILE":
        return [[str(folder / name)] for name in ("a.json", "a.svg", "a.sh")]
    words = placeholder.split("|") if re.fullmatch(r"[\w|-]+", placeholder) and "|" in placeholder else []
    return [[word] for word in reversed(words)] + [[value] for value in VALUES]


def names(told, option):
    return all(status == 2 and re.search(rf"{option} differs: rank 1 has .*, and rank 0 has ", err) for status, err in told)


def try_option(job, command, name):
    """"" if the option is compared; otherwise what is wrong."""
    option, _, placeholder = name.partition(" ")
    told = []
    for value in candidates(placeholder, job.folder):
        words = COMMANDS[command]
        at = words.index(option) if option in words else len(words)
        if words[at:at + 2] == [option, *value]:
            continue
        told = job.run(command, words, words[:at] + words[at + 2:] + [option, *value])
        if names(told, option):
            return ""
        refused = f"{option}" in told[1][1] and "differs" not in told[1][1]
        # If the value is invalid or equals the default, try another; but rank 0 must report the
        # reason.
        if refused and told[1][1].split("error: ")[1].strip() not in told[0][1]:
            return f"{command} {option} {value}: rank 0 does not say why: {told}"
        if refused:
            continue
    return f"{command} {option}: {told}"


def try_files(job):
    """Of a file the content counts, not the path: differing contents are named by their checksums."""
    model = json.dumps({"schema": "longhaul.model/1", "name": "small", "source": "a test", "num_layers": 2, "hidden_size": 16,
                        "num_attention_heads": 2, "num_query_groups": 2, "kv_channels": 8, "ffn_hidden_size": 32,
                        "gated_mlp": False, "vocab_size": 64})
    for name, text in (("here.json", model), ("there.json", model), ("other.json", model.replace("32", "64"))):
        (job.folder / name).write_text(text)
    words = COMMANDS["run"][:-4] + ["--step"]
    same = job.run("run", words + ["--model", "./here.json"], words + ["--model", "./there.json"])
    other = job.run("run", words + ["--model", "./here.json"], words + ["--model", "./other.json"])
    named = r"--model differs: rank 1 has ./other.json \(SHA-256 \w{8}\), and rank 0 has ./here.json \(SHA-256 \w{8}\)"
    wrong = [f"files that say the same: {same}"] if any("differs" in err for _, err in same) else []
    if not all(status == 2 and re.search(named, err) for status, err in other):
        wrong.append(f"files that differ: {other}")
    return wrong


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as folder, \
         subprocess.Popen([sys.executable, str(PORTS), "64"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as ports:
        folder = pathlib.Path(folder)
        (folder / "a.json").write_text("{}")
        (folder / "a.sh").write_text(CONFIG)
        job = Job(program, folder, itertools.cycle([int(ports.stdout.readline()) for _ in range(64)]))
        words = ["--backend", "tcp", "--schedule", "ring", "--ranks", "3", "--seq-length", "48"]
        told = job.run("run", words, words)
        if not all(status == 2 and "there are 2 processes for 3 ranks" in err for status, err in told):
            wrong.append(f"two processes for three ranks: {told}")
        wrong += try_files(job)
        for command in COMMANDS:
            for i, name in enumerate(options_of(program, command)):
                option = name.split()[0]
                if option in OWN or ("*", option) in APART or (command, option) in APART or i % EVERY != 0:
                    continue
                tried += 1
                wrong += [text for text in [try_option(job, command, name)] if text]
        ports.stdin.close()
    print(f"{tried} options of {len(COMMANDS)} commands, {len(wrong)} of them not compared")
    for text in wrong:
        print("FAILED: " + text)
    return 1 if wrong or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
