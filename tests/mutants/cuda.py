#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds out which mutants of the GPU kernels are detected, and by which test.

A mutant is one change of src/kernels/cuda, in cuda-*.list beside this file; the head of mutants.list describes the
format ("schedules" are not needed; "kernels" are prefixes of the names of the affected kernels). Each is applied to a
copy of the tree, built for PTX only, without machine code, and given to tests/test_cuda_kernels: first with a share of
the cases of these kernels, then with all of their cases, then with all cases.

    tests/mutants/cuda.py                    all mutants
    tests/mutants/cuda.py keys- mask         those whose family, id, class or file has one of the words
    tests/mutants/cuda.py --list             check the lists against the sources, build nothing
    tests/mutants/cuda.py --tree FOLDER      keep the built copy there, for the next run to continue
"""
import argparse
import collections
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import run

HERE, ROOT = run.HERE, run.ROOT
BASE = "src/"
TEST = "tests/test_cuda_kernels"
# One case in SHARE is run first; a test of these that takes SHARE_SECONDS hangs.
SHARE, SHARE_SECONDS = "5", "120"
SECONDS = 1800  # for a build, and for a test of all cases
FAILED = re.compile(r"not ok \d+ - \S+?:\w+:(\w+): (.*)")
# Text of a finding, and the check that it belongs to. The first match counts.
FINDERS = [
    ("race in shared memory", "race"),
    ("write different values", "race"),
    ("cp.async", "race"),
    ("RACE", "race"),
    ("beyond", "bounds"),
    ("which it must not", "bounds"),
    ("is no multiple of", "alignment"),
    ("touches", "bounds"),
    ("m->received", "guards"),
    (": error ", "numbers"),
    ("lh_element_get", "bits"),
    ("got.call", "bits"),
    ("shared_waves", "bank conflicts"),
    ("global_sectors", "sectors"),
    ("sectors, least", "sectors"),
    ("counts->instructions", "instructions"),
    ("counts->mma", "instructions"),
    ("LH_STATUS", "status"),
    ("run_on_device", "status"),
    ("failed:", "stand-in"),
    ("timeout expired", "does not end"),
    ("signal", "crash"),
]


def build(tree, *args):
    """Returns whether it succeeds, and its output."""
    done = subprocess.run(args, cwd=tree, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    return done.returncode == 0, done.stdout


def finding(tree, **variables):
    """Runs the test until one of its cases fails; returns that case's name and reason, None if all pass."""
    env = {"CK_DEFAULT_TIMEOUT": str(SECONDS), **os.environ, **variables,
           "LONGHAUL_SOURCE_DIR": str(tree), "LONGHAUL_DATA_DIR": str(tree),
           "CK_TAP_LOG_FILE_NAME": "-", "CK_VERBOSITY": "silent"}
    # Check forwards a signal to its whole process group.
    with subprocess.Popen(["build/" + TEST], cwd=tree, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        for line in process.stdout:
            failed = FAILED.match(line)
            if failed:
                process.terminate()
                return failed.group(1).removeprefix("cuda_kernels_"), failed.group(2)
    return None if process.returncode == 0 else ("the program", f"exits with {process.returncode}")


def is_same(file, copy):
    return copy.is_file() and copy.read_bytes() == file.read_bytes()


def prepare(tree):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    for name in filter(None, files):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file() and not is_same(ROOT / name, tree / name):
            shutil.copy(ROOT / name, tree / name)
    for args in (["meson", "setup", "build", "--buildtype=release", "-Dgpu_archs=", "-Dcuda=enabled",
                  "-Dsimgrid=disabled", "-Dmpi=disabled", "-Dtests=enabled"],
                 ["ninja", "-C", "build", TEST]):
        good, output = build(tree, *args)
        if not good:
            sys.exit(output)
    found = finding(tree, LONGHAUL_TEST_SHARE=SHARE)
    if found:
        sys.exit(f"the test fails without mutants: {found}")


def finder_of(reason):
    return next((finder for text, finder in FINDERS if text in reason), "test")


def examine(mutant, tree):
    """Returns which check detects the mutant, in which test, and its message."""
    changed = run.apply(mutant, run.read_source, BASE)
    for path, text in changed.items():
        (tree / path).write_text(text)
    good, output = build(tree, "ninja", "-C", "build", TEST)
    if good:
        mine = {"LONGHAUL_TEST_KERNELS": mutant.kernels}
        found = (finding(tree, **mine, LONGHAUL_TEST_SHARE=SHARE, CK_DEFAULT_TIMEOUT=SHARE_SECONDS)
                 or finding(tree, **mine) or finding(tree))
        found = found and (finder_of(found[1]), *found)
    else:
        sys.stderr.write(f"{mutant.name} does not compile:\n{output}")
        found = "DOES NOT COMPILE", "", ""
    for path in changed:
        (tree / path).write_text(run.read_source(path))
    return found


def line_of(mutant, found):
    finder, test, reason = found or ("SURVIVED", "", mutant.harmless or mutant.survives or "?")
    return f"{mutant.name:34} {finder:16} {test}: {reason[:200]}"


def print_totals(mutants, results):
    """Prints the counts by family's list and first check."""
    table = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        finder = results[mutant.name][0] if results[mutant.name] else "survived"
        table[mutant.family][finder] += 1
        table["all"][finder] += 1
    finders = [finder for finder, _ in table["all"].most_common()]
    print("\n" + f"{'family':16}" + "".join(f"{finder:>16}" for finder in finders))
    for family in sorted(set(table) - {"all"}) + ["all"]:
        print(f"{family:16}" + "".join(f"{table[family][finder]:16}" for finder in finders))


def read_lists():
    mutants = []
    for path in sorted(HERE.glob("cuda-*.list")):
        for mutant in run.parse(path.read_text()):
            mutant.family = path.stem.removeprefix("cuda-")
            mutants.append(mutant)
    return mutants


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these words")
    parser.add_argument("--list", action="store_true", help="check the lists and build nothing")
    parser.add_argument("--tree", type=pathlib.Path, help="folder of the built copy, which is kept")
    options = parser.parse_args()
    mutants = read_lists()
    for mutant in mutants:
        run.apply(mutant, run.read_source, BASE)
        if [m.name for m in mutants].count(mutant.name) > 1 or not (
                mutant.kind and mutant.hunks and mutant.kernels):
            mutant.error("needs a unique id, a class, kernels and a change")
    mutants = [m for m in mutants if not options.words or any(
        w in f"{m.family} {m.name} {m.kind} {m.hunks[0].file}" for w in options.words)]
    print(f"{len(mutants)} mutants", flush=True)
    if options.list:
        return 0
    results, unexplained = {}, 0
    with (contextlib.nullcontext(options.tree.resolve()) if options.tree else
          tempfile.TemporaryDirectory(prefix="mutants-")) as folder:
        tree = pathlib.Path(folder)
        prepare(tree)
        for mutant in mutants:
            found = results[mutant.name] = examine(mutant, tree)
            unexplained += (found or [""])[0] == "DOES NOT COMPILE" or (
                found is None and not mutant.harmless and not mutant.survives)
            print(line_of(mutant, found), flush=True)
    print_totals(mutants, results)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
