#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds out which mistakes in src/runtime are detected, and by which check: in the submitting engine, in the lowering
of collectives, in the use of cuDNN for attention, and in single-rank replay.

Works like run.py. Mutants of engine.list are given to tests/test_submit, with the CPU's kernels on the stand-in's
streams, and if that finds nothing to tests/test_toy_device; those of collectives.list to tests/test_runtime_ops and
tests/test_nccl; those of cudnn.list to tests/test_cudnn and tests/test_cudnn_runs, with the stand-ins of both
libraries; those of replay.list to tests/test_replay and tests/test_replay_gpu. Needs the headers of nvcc, NCCL and
cuDNN, and compiles no kernels.

    tests/mutants/engine.py                  all mutants
    tests/mutants/engine.py wait             those whose id or class contains one of the words
    tests/mutants/engine.py --of cudnn.list  those of one list
    tests/mutants/engine.py --list           check the lists against the sources, build nothing
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import run

run.SECONDS = 1200  # for a build on a busy machine, too
CASE_SECONDS = "300"  # for a single case of a test there

BASE = "src/"
# The tests that the mutants of each list are given to, and what else these need.
TARGETS = {
    "engine.list": ["tests/test_submit", "tests/test_toy_device"],
    "collectives.list": ["tests/test_runtime_ops", "tests/test_nccl"],
    "cudnn.list": ["tests/test_cudnn", "tests/test_cudnn_runs"],
    "replay.list": ["tests/test_replay", "tests/test_replay_gpu"],
}
NEEDED = {
    "collectives.list": {"LONGHAUL_NCCL": "tests/standin-nccl.so"},
    "cudnn.list": {"LONGHAUL_CUDNN": "tests/standin-cudnn.so"},
}
# Text of a finding, and the check that it belongs to. The first line with a match counts.
FINDERS = [
    ("RACE", "race"),
    ("a copy is between", "stand-in"),
    ("an event", "stand-in"),
    ("events are not", "leak"),
    ("not freed", "leak"),
    ("not destroyed", "leak"),
    ("freed", "stand-in"),
    ("nobody's", "stand-in"),
    ("default stream", "stand-in"),
    ("waits for an event", "stand-in"),
    ("has completed for", "deadline"),
    ("does not end", "deadline"),
    ("imeout", "deadline"),
    ("simulated", "time"),
    ("wrong results", "gates or counts"),
    (": error ", "numbers"),
    ("the kernel has no implementation", "stand-in of cuDNN"),
    ("cuDNN: ", "stand-in of cuDNN"),
    ("host[", "guard"),
    ("other bits", "bits"),
    ("beyond the end", "canary"),
    ("signal", "crash"),
    ("CUDA:", "error of CUDA"),
    ("invalid peer", "stand-in of NCCL"),
    ("which receives", "stand-in of NCCL"),
    ("NCCL", "stand-in of NCCL"),
    ("has waited for", "deadline"),
    ("toy_value", "numbers"),
    ("toy_bits", "numbers"),
    ("bytes_sent", "counts"),
    ("digest", "bits"),
]
# Check's output for a failed case, before the reason.
CASE = re.compile(r"^not ok \d+ - \S+?:\w+:", re.MULTILINE)


def prepare(tree, lists):
    """Copies the tracked files and builds what the mutants of the lists need."""
    needed = {variable: file for name in lists for variable, file in NEEDED.get(name, {}).items()}
    targets = [target for name in lists for target in TARGETS[name]]
    os.environ.update({variable: str(tree / "build" / file) for variable, file in needed.items()})
    files = subprocess.run(["git", "ls-files", "-z"], cwd=run.ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    for name in filter(None, files):
        if (run.ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((run.ROOT / name).read_bytes())
            (tree / name).chmod((run.ROOT / name).stat().st_mode)
    for args in (["meson", "setup", "build", "--buildtype=release", "-Dsimgrid=disabled",
                  "-Dmpi=disabled", "-Dtests=enabled", "-Dcuda=enabled", "-Dgpu_archs=",
                  "-Dc_args=-DFEW_RUNS"],
                 ["ninja", "-C", "build"] + list(needed.values()) + targets):
        good, output = run.command(args, tree)
        if not good:
            run.stop(output)


def finder_of(output):
    for line in output.splitlines():
        for text, finder in FINDERS:
            if text in line:
                return finder, CASE.sub("", line.strip())
    return "test", CASE.sub("", output.strip())


def failure(tree, target):
    """Runs the test until one of its cases fails, and returns that output; "": all pass."""
    env = {**os.environ, "LONGHAUL_SOURCE_DIR": str(tree), "LONGHAUL_DATA_DIR": str(tree),
           "CK_DEFAULT_TIMEOUT": CASE_SECONDS, "CK_TAP_LOG_FILE_NAME": "-",
           "CK_VERBOSITY": "silent"}
    output = ""
    # Check forwards a signal to its whole process group.
    with subprocess.Popen(["build/" + target], cwd=tree, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            output += piece.decode(errors="replace")
            failed = CASE.search(output)
            if failed:
                process.terminate()
                return output[failed.start():]
    return "" if process.returncode == 0 else output + f"exits with {process.returncode}"


def judge(tree, targets):
    """Returns which check detects the mutant in the tree, and its message; None: none does."""
    for target in targets:
        output = failure(tree, target)
        if output:
            finder, line = finder_of(output)
            return (finder if target == targets[0] else f"{target[11:]}: {finder}"), line
    return None


def examine(mutant, tree, targets):
    changed = run.apply(mutant, run.read_source, BASE)
    for path, text in changed.items():
        (tree / path).write_text(text)
    good, output = run.command(["ninja", "-C", "build"] + targets, tree)
    found = judge(tree, targets) if good else ("DOES NOT COMPILE", run.first_line(output))
    for path in changed:
        (tree / path).write_text(run.read_source(path))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these words")
    parser.add_argument("--of", choices=TARGETS, help="only mutants of this list")
    parser.add_argument("--list", action="store_true", help="check the lists and build nothing")
    options = parser.parse_args()
    mutants = [(name, mutant) for name in ([options.of] if options.of else TARGETS)
               for mutant in run.parse((run.HERE / name).read_text())]
    for _, mutant in mutants:
        run.apply(mutant, run.read_source, BASE)
        if not mutant.kind or not mutant.hunks:
            mutant.error("needs a class and a change")
    mutants = [(name, m) for name, m in mutants
               if not options.words or any(w in f"{m.name} {m.kind}" for w in options.words)]
    print(f"{len(mutants)} mutants", flush=True)
    if options.list:
        return 0
    table, unexplained = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = pathlib.Path(folder)
        prepare(tree, sorted({name for name, _ in mutants}))
        for name, mutant in mutants:
            found = examine(mutant, tree, TARGETS[name])
            finder, line = found or ("survived", mutant.harmless or mutant.survives or "?")
            table[finder] += 1
            unexplained += finder == "DOES NOT COMPILE" or (
                found is None and not mutant.harmless and not mutant.survives)
            print(f"{mutant.name:34} {finder:16} {line}", flush=True)
    for finder, count in table.most_common():
        print(f"{count:4} {finder}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
