#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random command lines on random files and checks documented behaviour.

    random_lines.py PROGRAM [--count N] [--seed S] [--jobs J] [--only I]

The options are those of `longhaul help --format json`, so new ones are tried without a change here. Line I of seed S
is the same on every machine; --only I runs it alone and prints everything.

For every line:
    the exit status is a documented one, and no signal ended the program;
    a status other than 0 has a cause: one message, or for status 1 a result that says no;
    status 2 and 3 write no result and no file;
    output is complete: JSON parses, rows of CSV have equal length, text ends with a newline;
    nothing else in the folder changes, and no temporary file is left.

Status 1 if a line breaks one of these rules.
"""

import argparse
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from protobuf import fields

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS_MAX = 300  # per line, on a busy machine, in a sanitized build
MEMORY_BYTES_MAX = 4 << 30  # per process; not in builds with an address sanitizer

# Weights of the commands.
WEIGHTS = {"compare": 20, "sim": 28, "report": 6, "verify": 8, "run": 10, "show": 14, "list": 8, "help": 5,
           "version": 2, "validate": 3, "calibrate": 2, "reproduce": 4, "plan": 6, "sweep": 5}

# Meaningful values that are fast to compute. Other options get values of their type.
SENSIBLE = {
    "--check-tokens": ["2", "5"],
    "--ranks": ["1", "2", "3", "4", "6", "8", "16"],
    "--seq-length": ["64", "96", "240", "1K", "4k", "65536", "1000000", "1m", "4096"],
    "--num-attention-heads": ["1", "2", "4", "8", "12"],
    "--num-query-groups": ["1", "2", "4"],
    "--kv-channels": ["16", "64", "128"],
    "--micro-batch-size": ["1", "2"],
    "--window-size": ["0", "1", "16", "1K"],
    "--data-parallel-size": ["1", "2", "3"],
    "--grid": ["1x1", "2x2", "2x4", "4x1", "3x2"],
    "--hierarchical-context-parallel-sizes": ["2,2", "4,2", "1,4", "8,1"],
    "--inner-ring": ["1", "2", "4"],
    "--gather-groups": ["1", "2"],
    "--scan-blocks": ["1", "2", "8"],
    "--straggler": ["0:2", "1:1.5", "0:1"],
    "--nics": ["1", "4", "8"],
    "--nic-rate": ["200G", "400Gb/s", "12.5GB/s"],
    "--nvlink-rate": ["200GB/s", "450GB/s"],
    "--oversubscription": ["1", "3"],
    "--link-fault": ["nic:0:0.5", "nvlink:0:0.25", "nic:0:0", "pcie:0:1", "fabric:0:0.5"],
    "--jitter": ["0", "0.05", "0.9"],
    "--linear-decay": ["0.5", "1", "0.999"],
    "--cluster": ["dgx-a100-80g", "dgx-a100-80g:2", "hgx-h100:1", "single-gpu", "this-machine",
                  "dfa-2node:2"],
    "--model": ["llama-7b", "llama-3-8b", "tnl-1b"],
    "--inject": ["drop-pair", "mask-shift", "stale-buffer", "delay:1", "delay:2", "local-lse",
                 "duplicate-pair", "wrong-kv-head"],
    "--bootstrap": ["auto", "single"],
    "--deadline": ["5", "20s", "10000ms"],
    "--repeat": ["1", "2"],
    "--tolerance": ["10%", "0.5", "100%"],
    "--threads": ["1", "2"],
    "--kernels": ["cpu", "reference"],
    "--seed": ["0", "1", "18446744073709551615"],
    "--tensor-model-parallel-size": ["1", "2", "all"],
    "--global-batch-size": ["1", "2", "3"],
    "--top": ["1", "3"],
    "--days-for": ["1e12", "1000"],
    "--cost-per-gpu-hour": ["2", "0.5"],
    "--watts": ["700"],
}
SENSIBLE_OF = {("verify", "--ranks"): ["1-3", "2", "4", "1,2,5"],
               ("run", "--ranks"): ["1", "2", "3", "4"],
               ("run", "--seq-length"): ["32", "48", "96"],
               ("plan", "--ranks"): ["1", "2", "3"],
               ("plan", "--model"): ["gpt3-125m", "tnl-385m"],
               ("plan", "--schedule"): ["ring", "usp", "te-p2p", "lasp2"],
               ("synth", "--ranks"): ["2", "3", "4"],
               ("synth", "--budget"): ["1", "2"],
               ("compare", "--budget"): ["1", "2"],
               ("synth", "--seq-length"): ["96", "240", "1K"],
               ("synth", "--memory-limit"): ["1MiB", "1GiB", "64"],
               ("validate", "--ranks"): ["1", "2"],
               ("validate", "--seq-length"): ["32", "64"]}

NONSENSE = ["", "0", "-1", "+1", "1e3", "nan", "inf", "1.5", "0x10", "9" * 25, "18446744073709551616",
            "a b", "%s%n", "'", '"', "\\", "\n", "\t1", "1KB", "1x", "x1", "2x2x2", "1,2,3",
            ":", "1:", ":1", "0:0", "--", "-", "=", "ringg", "Ring", "\u0661", "\u20ac" * 30,
            b"\xff\xfe", "a" * 5000, "../..", "/", ".", "true", "null", "1-", "5-1", "nic:0",
            "nic:0:2", "65537", "4294967297"]

FORBIDDEN = re.compile(r"\(null\)|: Success$|Unknown error|error: *$|CRITICAL|WARNING|AddressSanitizer"
                       r"|LeakSanitizer|runtime error:|assertion|Assertion|core dumped", re.M)
MESSAGE = re.compile(r"\berror: \S")
SAYS_NO = re.compile(r"NOT |,NO\b|WRONG|None of|refused|does not fit|out of memory|not proven|FAILED"
                     r"|Worse: |\"worse\": \[\n|,worse$|\"best_cluster\": null|^cluster,gpus,.*\n\Z|\"proven\": false|\"ok\": false|\"within\": false|fits?\": false|state|,note$", re.I | re.M)


class Tables:
    """The program's description of itself."""

    def __init__(self, program, environment):
        def ask(*arguments):
            return subprocess.run([program, *arguments], check=True, capture_output=True, text=True,
                                  env=environment).stdout

        listing = json.loads(ask("help", "--format", "json"))
        self.commands = {command["name"]: command for command in listing["commands"]}
        self.statuses = range(len(listing["exit_statuses"]))
        self.names = {kind: ask("list", kind, "--format", "names").split() for kind in
                      ("schedules", "models", "topologies", "scenarios", "commands", "kinds")}
        self.program_text = ask("show", "ring", "--ranks", "2", "--pass", "fwd", "--format", "json",
                                "--seq-length", "64", "--num-attention-heads", "2",
                                "--kv-channels", "16")


# --- files ---------------------------------------------------------------------------------------

PROFILE = {"schema": "longhaul.profile/1", "name": "p", "source": "s", "kernel_launch": "2us",
           "elementwise": [{"kernel": "merge", "bandwidth": "1GB/s", "provenance": "measured",
                            "source": "s"}]}
SCENARIO = {"schema": "longhaul.scenario/1", "ranks": 4, "schedule": ["ring"], "seq_length": "1K",
            "straggler": [{"rank": 1, "factor": 2}], "no_overlap": True}
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 128, "vocab_size": 100, "num_key_value_heads": 2}


def base_text(rng, kind, tables):
    """A valid file of a kind."""
    if kind == "program":
        return tables.program_text
    if kind == "documents":
        return rng.choice(["16 16\n", "# two\n1K 1K\n", "512\n", "1 2 3 4 86\n"])
    if kind == "profile":
        return json.dumps(PROFILE, indent=1)
    folder = {"scenario": "scenarios", "topology": "topologies", "model": "models"}[kind]
    if rng.random() < 0.5 and kind != "topology":
        return json.dumps({"scenario": SCENARIO, "model": CONFIG}[kind], indent=1)
    return rng.choice(sorted((ROOT / folder).glob("*.json"))).read_text()


def mutate(rng, text):
    """The text with random mistakes, as bytes."""
    data = text.encode()
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        lines = data.split(b"\n")
        line = rng.randrange(len(lines))
        place = rng.randrange(len(data) + 1)
        way = rng.randrange(9)
        if way == 0:
            data = data[:place]
        elif way == 1:
            data = b"\n".join(lines[:line] + lines[line + 1:])
        elif way == 2:
            data = b"\n".join(lines[:line] + [lines[line]] + lines[line:])
        elif way == 3:
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1:]
        elif way == 4:
            data = data[:place] + rng.choice([b"{", b"}", b"[", b"]", b",", b'"', b":", b"\0",
                                              b"\xff", b"\\u0000", b"1e999", b"-"]) + data[place:]
        else:
            tokens = list(re.finditer(rb'-?\d+(\.\d+)?|"[^"]*"|true|false', data))
            if not tokens:
                continue
            token = rng.choice(tokens)
            new = rng.choice([b"0", b"-1", b"1e400", b"99999999999999999999", b"1.5", b"null", b"[]",
                              b"{}", b'""', b'"x"', b"true", b'"1GB"', b'"9999999999999GB/s"',
                              b"4294967296", b"2", b"1", b"[1, 2]", b'"\\ud800"'])
            data = data[:token.start()] + new + data[token.end():]
    return data


def make_file(rng, folder, kind, tables):
    """Writes a file of a kind, valid or not; returns its name."""
    name = rng.choice([f"{kind}.json", f"./{kind}.json", f"sub/{kind}.json", f"a {kind}'s.json"])
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    text = base_text(rng, kind, tables)
    path.write_bytes(text.encode() if rng.random() < 0.6 else mutate(rng, text))
    return name


KIND_OF = {"--schedule-file": "program", "--cluster": "topology", "--model": "model",
           "--document-lengths": "documents", "--profile": "profile"}
OUTPUTS = {"--output": [".txt", ".json", ".csv", ".html"], "--report": [".html"], "--points": [".jsonl"], "--figure": [".svg"], "--timeline": [".csv", ".json"],
           "--trace": [".pftrace", ".json"],
           "--memory-timeline": [".csv", ".json", ".svg"]}


# --- command lines -------------------------------------------------------------------------------

class Line:
    """A command line with the files that it may read and write."""

    def __init__(self, rng, folder, tables):
        self.rng, self.folder, self.tables = rng, folder, tables
        self.outputs = []
        self.bad = rng.random() < 0.5  # whether to make deliberate mistakes
        commands = [name for name in tables.commands]
        weights = [WEIGHTS.get(name, 5) for name in commands]
        self.command = rng.choices(commands, weights)[0]
        self.words = self.make()

    def output(self, option):
        """A random output path."""
        rng = self.rng
        name = "out" + rng.choice(OUTPUTS[option])
        way = rng.randrange(12) if self.bad else 0
        if way == 1:
            (self.folder / name).write_text("what was there before\n")
        elif way == 2:
            name = rng.choice(["/dev/full", "/dev/null", "no/such/folder/" + name, ".", "sub",
                               "out.pdf", "out", "n" * 300 + ".svg", "a\nb.csv"])
        elif way == 3:
            name = "made/" + name
            (self.folder / "made").mkdir(exist_ok=True)
        self.outputs.append(name)
        return name

    def value(self, option):
        rng, name = self.rng, option["option"]
        if self.bad and rng.random() < 0.15:
            word = rng.choice(NONSENSE)
            if name in OUTPUTS:
                self.outputs.append(os.fsdecode(word))
            return word
        if name in OUTPUTS:
            return self.output(name)
        if name in KIND_OF and rng.random() < (0.9 if option.get("names") == "files" else 0.3):
            if self.bad and rng.random() < 0.2:
                return rng.choice(["missing.json", "sub/", "/dev/null", ".", "/"])
            return make_file(rng, self.folder, KIND_OF[name], self.tables)
        if "choices" in option:
            return rng.choice(option["choices"])
        if option.get("names") == "schedules" and self.command != "plan":
            return rng.choice(self.tables.names["schedules"])
        known = SENSIBLE_OF.get((self.command, name), SENSIBLE.get(name))
        return rng.choice(known if known else ["1", "2", "x"])

    def spelt(self, option):
        """The option with a value, as words."""
        rng, name = self.rng, option["option"]
        if option["type"] == "flag":
            return [name + "=1"] if self.bad and rng.random() < 0.05 else [name]
        value = self.value(option)
        if option.get("short") and rng.random() < 0.5:
            return [option["short"], value]
        if isinstance(value, str) and rng.random() < 0.3:
            return [name + "=" + value]
        if self.bad and rng.random() < 0.03:
            return [name]
        return [name, value]

    def needed(self):
        """Options without which a command usually fails at once, or runs for long."""
        options = {option["option"]: option for option in self.tables.commands[self.command]["options"]}
        wanted = {"compare": ["--ranks"], "sim": ["--ranks", "--schedule"],
                  "report": ["--ranks", "--output"],
                  "verify": ["--ranks", "--schedule"],
                  "run": ["--ranks", "--schedule", "--seq-length", "--num-attention-heads",
                          "--kv-channels", "--deadline"],
                  "validate": ["--profile", "--schedule", "--ranks", "--seq-length", "--repeat",
                               "--num-attention-heads", "--kv-channels"],
                  "plan": ["--model", "--ranks", "--schedule", "--seq-length", "--checkpoint"],
                  "synth": ["--ranks", "--output", "--budget", "--pass", "--seq-length"],
                  "show": ["--schedule", "--ranks"]}.get(self.command, [])
        return [options[name] for name in wanted if name in options]

    def fits(self, option):
        """Whether a line intended to be valid has the option: most options contradict others."""
        often = {"--schedule-file": 0.1, "--document-lengths": 0.2, "--attention": 0.3,
                 "--synth": 0.1,
                 "--linear-decay": 0.05, "--link-fault": 0.3, "--nics": 0.1,
                 "--nic-rate": 0.1, "--nvlink-rate": 0.1,
                 "--oversubscription": 0.02, "--window-size": 0.5}
        share = 0.1 if "some schedules" in option["section"] else often.get(option["option"], 1)
        return self.rng.random() < share

    def sweep(self):
        """Writes a scenario with lists of values."""
        rng = self.rng
        lists = {"ranks": [1, 2, "4", 8, 3], "seq_length": ["64", 96, "1K", "4k"],
                 "dtype": ["bf16", "fp32"], "no_overlap": [True, False], "mask": ["causal", "full"],
                 "cluster": ["dgx-a100-80g:1", "dfa-2node:1", "nowhere"], "jitter": [0, 0.1]}
        chosen = {name: rng.sample(lists[name], rng.randint(1, 2))
                  for name in rng.sample(sorted(lists), rng.randint(1, 3))}
        if self.bad and rng.random() < 0.3:
            name = rng.choice(sorted(chosen))
            chosen[name] = rng.choice([[], [None], 1, {}, chosen[name] * 2, [[]], ["x", -1]])
        path = self.folder / "sweep.json"
        path.write_text(json.dumps({"schema": "longhaul.scenario/1", "model": "gpt3-125m",
                                    "schedule": rng.sample(["ring", "zigzag", "ulysses"], 2),
                                    "sweep": chosen}))
        return path.name

    def arguments(self):
        rng, names = self.rng, self.tables.names
        if self.command == "list":
            return [rng.choice(names["kinds"] + ["", "x"])] if rng.random() < 0.9 else []
        if self.command == "help":
            return rng.choice([[], [rng.choice(names["commands"])], ["completion"],
                               ["completion", rng.choice(["bash", "zsh", "fish", "csh"])]])
        if self.command == "reproduce":  # all tables take half a minute
            return [rng.choice(["ring_flash_attention", "ring_flash_attention_threads", "x"])]
        if self.command == "sweep" and rng.random() < 0.9:
            return [self.sweep()]
        if self.tables.commands[self.command]["scenario"] and rng.random() < 0.25:
            if self.command in ("verify", "run", "validate") or rng.random() < 0.5:
                return [make_file(rng, self.folder, rng.choice(["scenario", "program"]), self.tables)]
            return [rng.choice(names["scenarios"] if self.command == "show" else ["balance-only"])]
        return []

    def make(self):
        rng = self.rng
        (self.folder / "sub").mkdir()
        options = self.tables.commands[self.command]["options"]
        count = rng.choice([0, 1, 1, 2, 2, 3, 4, 6])
        # Cases of minutes are left to other tests: scenarios of whole clusters, calibration.
        chosen = [] if self.command == "version" else self.needed()
        for option in rng.choices(options, k=count) if options else []:
            if self.bad or (option not in chosen and self.fits(option)):
                chosen.append(option)
        if self.command == "run":
            chosen = [option for option in chosen if option["option"] != "--backend"]
        groups = [self.spelt(option) for option in chosen] + [[word] for word in self.arguments()]
        if self.command == "calibrate":
            groups.append([rng.choice(["--repeat=0", "--threads=0", "--dtype=x", "x", "--nothing"])])
        if self.bad and rng.random() < 0.1:
            groups.append([rng.choice(["--nothing", "-x", "--", "--help", "-h", "--=", "-", "extra",
                                       "--seq", "--Ranks=2", b"--\xff", "-oo"])])
        rng.shuffle(groups)
        words = [word for group in groups for word in group]
        # An option with a forgotten value takes the next word.
        writing = {word for option in options if option["option"] in OUTPUTS
                   for word in (option["option"], option.get("short"))}
        self.outputs += [os.fsdecode(value) for word, value in zip(words, words[1:]) if word in writing]
        if self.bad and rng.random() < 0.02:
            return words
        return [self.command, *words]


# --- running -------------------------------------------------------------------------------------

def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


def is_trace(data):
    """Whether the bytes are complete packets."""
    try:
        packets = fields(data)
        return packets.keys() <= {1} and all(map(fields, packets[1]))
    except (AssertionError, IndexError):
        return False


def is_whole(name, data):
    """Why an output file is incomplete, or None."""
    if data.startswith(b"%PDF"):
        return None if data.rstrip().endswith(b"%%EOF") else "is no whole PDF"
    if name.endswith(".pftrace"):
        return None if is_trace(data) else "is no whole trace"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "is no UTF-8"
    if not text.endswith("\n"):
        return "does not end with a line"
    if text.startswith("{"):
        try:
            for document in text.splitlines() if name.endswith(".jsonl") else [text]:
                json.loads(document)
        except ValueError as error:
            return f"is no JSON: {error}"
    elif name.endswith(".csv"):
        if len({len(row) for row in csv.reader(io.StringIO(text))}) != 1:
            return "has rows of different lengths"
    elif name.endswith(".svg") and not text.rstrip().endswith("</svg>"):
        return "is no whole picture"
    return None


def faults_of(line, before, after, done, statuses):
    """The rules that a line broke."""
    status = done.returncode
    out, err = done.stdout, done.stderr.decode(errors="backslashreplace")
    if status < 0:
        yield f"signal {-status}"
        return
    if status not in statuses:
        yield f"status {status} is not documented"
    if FORBIDDEN.search(err):
        yield "a message without a cause, or of a library"
    if status == 0 and err:
        yield "messages, and status 0"
    if status >= 2 and not MESSAGE.search(err):
        yield "no message says why"
    if status == 1 and not MESSAGE.search(err) and not SAYS_NO.search(out.decode(errors="replace") + "".join(
            after[name].decode(errors="replace") for name in after if after[name] != before.get(name))):
        yield "nothing says why the answer is no"
    if status in (2, 3) and out:
        yield "a result beside an error"
    allowed = {os.path.normpath(name) for name in line.outputs}
    allowed |= {os.path.splitext(name)[0] + end for name in allowed for end in (".gp", ".dat")}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        if status in (2, 3):
            yield f"{name} was changed by a line that failed"
        elif name not in allowed:
            yield f"{name} was left behind"
        elif name not in after:
            yield f"{name} is gone"
        else:
            why = is_whole(name, after[name])
            if why:
                yield f"{name} {why}"
    if status == 0 and out:
        why = is_whole("-", out)
        if why:
            yield f"standard output {why}"


def limit_memory():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not os.environ.get("ASAN_OPTIONS"):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


def run_line(program, tables, environment, seed, index):
    """Runs line @index; returns its faults and how to reproduce them."""
    rng = random.Random(f"{seed}:{index}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="longhaul-random-"))
    try:
        line = Line(rng, folder, tables)
        before = snapshot(folder)
        words = [word if isinstance(word, bytes) else word.encode() for word in line.words]
        if any(b"mpi" in word for word in words):  # MPI's own leaks are excluded
            options = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
            environment = dict(environment, ASAN_OPTIONS=options)
        try:
            done = subprocess.run([program, *words], cwd=folder, env=environment, timeout=SECONDS_MAX,
                                  capture_output=True, stdin=subprocess.DEVNULL,
                                  preexec_fn=limit_memory)
        except subprocess.TimeoutExpired:
            return ["it does not end"], words, None
        return list(faults_of(line, before, snapshot(folder), done, tables.statuses)), words, done
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    program = os.path.realpath(given.program)
    environment = dict(os.environ, LC_ALL="C", G_DEBUG="fatal-warnings")
    environment.setdefault("LONGHAUL_DATA_DIR", str(ROOT))
    environment.pop("SOURCE_DATE_EPOCH", None)
    tables = Tables(program, environment)
    indices = range(given.count) if given.only is None else [given.only]
    statuses, violations = {}, 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = pool.map(lambda index: run_line(program, tables, environment, given.seed, index),
                           indices)
        for index, (faults, words, done) in zip(indices, results):
            status = "none" if done is None else done.returncode
            statuses[status] = statuses.get(status, 0) + 1
            violations += bool(faults)
            if faults or given.only is not None:
                print(f"line {index}: {words}\n  status {status}; {'; '.join(faults) or 'well'}")
            if done is not None and (faults or given.only is not None):
                print(f"  out: {done.stdout[:400]!r}\n  err: {done.stderr[:400]!r}")
    told = ", ".join(f"{statuses[status]} with status {status}" for status in sorted(statuses, key=str))
    print(f"{len(indices)} lines of seed {given.seed} ({told}): {violations} violations")
    return violations > 0


if __name__ == "__main__":
    sys.exit(main())
