#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds out which mutants of the schedules are detected, and by which check.

A mutant is one semantic change of src/sched, listed in mutants.list; the head of that file describes the format. Each
is applied to a copy of the tree, which is rebuilt incrementally, and given to `longhaul verify` (with as many
key-value heads as heads, and with fewer), to the traces (tests/test_traces.c) and, if these two find nothing, to
`longhaul run` and to the tests of closed forms. A mutant that no check detects has survived. It is either harmless,
for the reason given in the list, or shows a gap of the verifier.

    tests/mutants/run.py                    all mutants
    tests/mutants/run.py ring te-           those whose id, class or file contains one of the words
    tests/mutants/run.py --list             check the list against the sources, build nothing
"""
import argparse
import collections
import functools
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RANKS = "2-6,8,9"
EVEN_RANKS = "2,4,6,8"  # for public code that is wrong for odd numbers of ranks
SECONDS = 120  # a command that takes longer hangs, which is a finding
BUILD_SECONDS = 1800  # for builds, to tolerate other load
RUN = "--ranks 4 --seq-length 256 --num-attention-heads 8 --kv-channels 32 --deadline 5s".split()
GROUPED = [["--num-attention-heads", "16", "--num-query-groups", groups] for groups in "82"]
TARGETS = ["longhaul", "tests/test_traces"]
TESTS = [f"tests/test_{name}" for name in (
    "forms_attention2d", "forms_heads", "forms_linear", "forms_rings", "forms_rsa", "sched_forms",
    "papers", "lasp_order")]

Hunk = collections.namedtuple("Hunk", "file index old new")


class Mutant:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.schedules, self.kernels, self.harmless, self.survives = [], "", "", ""
        self.hunks = []

    def error(self, text):
        sys.exit(f"mutants.list: {self.name}: {text}")


def parse(text):
    """Returns the mutants of the list; its head describes the format."""
    mutants, mutant, hunk = [], None, None
    file, kernels, index = "", "", None
    for line in text.splitlines():
        mark, rest = line[:2].rstrip(), line[2:]
        if not line or line.startswith("#"):
            hunk = None
        elif line.startswith("["):
            name, _, kind = line[1:].partition("] ")
            mutant, hunk, index = Mutant(name, kind), None, None
            mutant.kernels = kernels
            mutants.append(mutant)
        elif mark == "-":
            if hunk is None or hunk.new:
                hunk = Hunk(file, index, [], [])
                mutant.hunks.append(hunk)
                index = None
            hunk.old.append(rest)
        elif mark == "+":
            hunk.new.append(rest)
        elif mark == "@":
            hunk, index = None, rest
        else:
            key, _, value = line.partition(": ")
            if key == "file":
                hunk, file = None, value
            elif key == "kernels":
                kernels = value
            elif key == "schedules":
                mutant.schedules = value.split()
            elif key in ("harmless", "survives"):
                setattr(mutant, key, value)
            else:
                mutant.error(f"line not understood: {line}")
    return mutants


def apply(mutant, texts, base="src/"):
    """Returns the changed texts of the files below `base`, by name."""
    changed = {}
    for hunk in mutant.hunks:
        path = base + hunk.file
        text = changed.get(path) or texts(path)
        old, new = "\n".join(hunk.old), "\n".join(hunk.new)
        count = text.count(old)
        if hunk.index == "all" and count > 0:
            text = text.replace(old, new)
        elif hunk.index is None and count != 1:
            mutant.error(f"{count} times in {path}, not exactly once: {old}")
        elif hunk.index not in (None, "all") and int(hunk.index) >= count:
            mutant.error(f"{count} times in {path}: {old}")
        else:
            at = -1
            for _ in range(int(hunk.index or 0) + 1):
                at = text.find(old, at + 1)
            text = text[:at] + new + text[at + len(old):]
        changed[path] = text
    return changed


@functools.cache
def read_source(path):
    """Cached, so that later changes of the tree have no effect."""
    return (ROOT / path).read_text()


def command(args, tree):
    env = dict(os.environ, LONGHAUL_DATA_DIR=str(tree), LONGHAUL_SOURCE_DIR=str(tree),
               CK_DEFAULT_TIMEOUT=str(SECONDS))
    limit = BUILD_SECONDS if args[0] in ("meson", "ninja") else SECONDS
    try:
        done = subprocess.run(args, cwd=tree, env=env, timeout=limit, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired:
        return False, "does not end"
    return done.returncode == 0, done.stdout


def first_line(output):
    """Returns the first line with an error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for word in ("longhaul: error", " ranks", " rank", "ERROR", "assert", ":F:", ":E:", "ailed"):
        for line in lines:
            if word in line and not line.startswith("schedule "):
                return line
    return lines[-1] if lines else "ended without a word"


def stop(text):
    """Ends all threads, unlike sys.exit."""
    sys.stderr.write(text + "\n")
    os._exit(1)


def prepare(tree):
    """Copies the tracked files and configures a build of what the mutants need."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    for name in filter(None, files):
        if not (ROOT / name).is_file():
            continue
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    for args in (["meson", "setup", "build", "--buildtype=plain", "-Doptimization=1",
                  "-Dsimgrid=disabled", "-Dmpi=disabled", "-Dcuda=disabled", "-Dnccl=disabled",
                  "-Dtests=enabled"],
                 ["ninja", "-C", "build"] + TARGETS + TESTS):
        good, output = command(args, tree)
        if not good:
            stop(output)


def verify(tree, schedule, options):
    return command(["build/longhaul", "verify", "--schedule", schedule] + options, tree)


def proofs(tree, schedules):
    """Returns the options with which `verify` proves each schedule without mutants. Public code is included where it
    is correct."""
    proven = {}
    for schedule in schedules:
        proven[schedule] = [["--ranks", RANKS]]
        proven[schedule] += [["--ranks", RANKS] + heads for heads in GROUPED]
        for ranks in (RANKS, EVEN_RANKS):
            published = ["--published-code", "--ranks", ranks]
            good, output = verify(tree, schedule, published)
            if good:
                proven[schedule].append(published)
            if good or "does not read this option" in output:
                break
        for options in proven[schedule]:
            good, output = verify(tree, schedule, options)
            if not good:
                stop(f"{schedule} is not proven as it is: {output}")
    return proven


def judge(mutant, tree, proven):
    """Returns which check detects the mutant in the tree, and the first line of the finding."""
    found = []
    for schedule in mutant.schedules:
        for options in proven[schedule]:
            good, output = verify(tree, schedule, options)
            if not good:
                found.append(("verify", first_line(output)))
                break
        if found:
            break
    good, output = command(["build/tests/test_traces"], tree)
    if not good:
        found.append(("traces", first_line(output)))
    if found:
        return found
    for schedule in mutant.schedules:
        good, output = command(["build/longhaul", "run", "--schedule", schedule] + RUN, tree)
        if not good:
            return [("run", first_line(output))]
    command(["ninja", "-j1", "-C", "build"] + TESTS, tree)
    for test in TESTS:
        good, output = command(["build/" + test], tree)
        if not good:
            return [("tests", f"{test}: {first_line(output)}")]
    return []


def examine(mutant, tree, proven):
    changed = apply(mutant, read_source)
    for path, text in changed.items():
        (tree / path).write_text(text)
    good, output = command(["ninja", "-j1", "-C", "build"] + TARGETS, tree)
    found = judge(mutant, tree, proven) if good else None
    for path in changed:
        (tree / path).write_text(read_source(path))
    if not good:
        sys.stderr.write(f"{mutant.name} does not compile:\n{output}")
    return found


def line_of(mutant, found):
    if found is None:
        return f"{mutant.name:34} DOES NOT COMPILE"
    if not found:
        reason = f"harmless: {mutant.harmless}" if mutant.harmless else mutant.survives or "?"
        return f"{mutant.name:34} SURVIVED  {reason}"
    also = ", also by " + ", ".join(who for who, _ in found[1:]) if found[1:] else ""
    return f"{mutant.name:34} {found[0][0]:9} {found[0][1]}{also}"


def work(tree, waiting, results, lock):
    prepare(tree)
    proven = proofs(tree, sorted({s for m in waiting.queue for s in m.schedules}))
    while True:
        try:
            mutant = waiting.get_nowait()
        except queue.Empty:
            return
        found = examine(mutant, tree, proven)
        with lock:
            results[mutant.name] = found
            print(line_of(mutant, found), flush=True)


def print_totals(mutants, results):
    killers = ["verify", "traces", "run", "tests", "survived"]
    table = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        found = results[mutant.name]
        if found is not None:
            table[mutant.kind][found[0][0] if found else "survived"] += 1
            table["all"][found[0][0] if found else "survived"] += 1
    print("\n" + f"{'class':44}" + "".join(f"{k:>10}" for k in killers))
    for kind in sorted(set(table) - {"all"}) + ["all"]:
        print(f"{kind:44}" + "".join(f"{table[kind][k]:10}" for k in killers))
    survivors = [m for m in mutants if results[m.name] == []]
    print(f"\n{len(survivors)} survivors")
    for mutant in survivors:
        print(line_of(mutant, []))
    for mutant in mutants:
        if results[mutant.name] and (mutant.harmless or mutant.survives):
            print(f"{mutant.name} is detected: remove its reason to survive")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these words")
    parser.add_argument("--list", action="store_true", help="check the list and build nothing")
    parser.add_argument("--jobs", type=int, default=2, help="parallel copies of the tree; default 2")
    options = parser.parse_args()
    mutants = parse((HERE / "mutants.list").read_text())
    names = collections.Counter(m.name for m in mutants)
    for mutant in mutants:
        apply(mutant, read_source)
        if names[mutant.name] > 1 or not mutant.schedules or not mutant.kind or not mutant.hunks:
            mutant.error("needs a unique id, a class, schedules and a change")
    mutants = [m for m in mutants if not options.words or any(
        w in f"{m.name} {m.kind} {m.hunks[0].file}" for w in options.words)]
    print(f"{len(mutants)} mutants")
    if options.list:
        return 0
    waiting, results, lock = queue.Queue(), {}, threading.Lock()
    for mutant in mutants:
        waiting.put(mutant)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        threads = []
        for job in range(max(options.jobs, 1)):
            tree = pathlib.Path(folder) / str(job)
            tree.mkdir()
            threads.append(threading.Thread(target=work, args=(tree, waiting, results, lock)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    if len(results) < len(mutants):
        return 1
    print_totals(mutants, results)
    unexplained = [m.name for m in mutants
                   if results[m.name] is None
                   or (not results[m.name] and not m.harmless and not m.survives)]
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
