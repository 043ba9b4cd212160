#!/usr/bin/env python3
"""
Which mutants of the GPU's kernels are found, and by which test.

A mutant is one change of src/kernels/cuda, in cuda-*.list beside this file; the head of mutants.list
says how these are written ("schedules" are not needed). Each is applied to a copy of the tree, which
is built for no machine code, only PTX, and given to tests/test_cuda_kernels, first with one case in
some, then with all.

    tests/mutants/cuda.py                    all mutants
    tests/mutants/cuda.py keys- mask         those whose id, class or file contains one of the words
    tests/mutants/cuda.py --list             check the lists against the sources, build nothing
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import run

HERE, ROOT = run.HERE, run.ROOT
BASE = "src/kernels/cuda/"
TEST = "tests/test_cuda_kernels"
SECONDS = 1800
SHARES = ["5", "1"]


def command(args, tree, **variables):
    env = dict(os.environ, LONGHAUL_SOURCE_DIR=str(tree), LONGHAUL_DATA_DIR=str(tree),
               CK_DEFAULT_TIMEOUT=str(SECONDS), **variables)
    try:
        done = subprocess.run(args, cwd=tree, env=env, timeout=SECONDS, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired:
        return False, "does not end"
    return done.returncode == 0, done.stdout


def prepare(tree):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    for name in filter(None, files):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, tree / name)
    for args in (["meson", "setup", "build", "--buildtype=release", "-Dgpu_archs=", "-Dcuda=enabled",
                  "-Dsimgrid=disabled", "-Dmpi=disabled", "-Dtests=enabled"],
                 ["ninja", "-C", "build", TEST]):
        good, output = command(args, tree)
        if not good:
            sys.exit(output)
    good, output = command(["build/" + TEST], tree, LONGHAUL_TEST_SHARE=SHARES[0])
    if not good:
        sys.exit("the test fails as it is:\n" + output)


def findings(output):
    """The tests that failed, and the first one's reason."""
    lines = re.findall(r"^\S+?:\d+:[FE]:\w+:(\w+):\d+: (.*)", output, flags=re.M)
    return [(name.removeprefix("cuda_kernels_"), reason) for name, reason in lines]


def examine(mutant, tree):
    changed = run.apply(mutant, run.read_source, BASE)
    for path, text in changed.items():
        (tree / path).write_text(text)
    good, output = command(["ninja", "-C", "build", TEST], tree)
    found = None
    if not good:
        sys.stderr.write(f"{mutant.name} does not compile:\n{output}")
    for share in SHARES if good else []:
        good, output = command(["build/" + TEST], tree, LONGHAUL_TEST_SHARE=share)
        found = findings(output) or ([] if good else [("the program", run.first_line(output))])
        if found:
            break
    for path in changed:
        (tree / path).write_text(run.read_source(path))
    return found


def line_of(mutant, found):
    if found is None:
        return f"{mutant.name:30} DOES NOT COMPILE"
    if not found:
        return f"{mutant.name:30} SURVIVED  {mutant.harmless or mutant.survives or '?'}"
    return f"{mutant.name:30} {', '.join(name for name, _ in found)}: {found[0][1][:160]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these words")
    parser.add_argument("--list", action="store_true", help="check the lists and build nothing")
    options = parser.parse_args()
    mutants = [m for path in sorted(HERE.glob("cuda-*.list")) for m in run.parse(path.read_text())]
    for mutant in mutants:
        run.apply(mutant, run.read_source, BASE)
        if [m.name for m in mutants].count(mutant.name) > 1 or not mutant.kind or not mutant.hunks:
            mutant.error("needs an id of its own, a class and a change")
    mutants = [m for m in mutants if not options.words or any(
        w in f"{m.name} {m.kind} {m.hunks[0].file}" for w in options.words)]
    print(f"{len(mutants)} mutants", flush=True)
    if options.list:
        return 0
    unexplained = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = pathlib.Path(folder)
        prepare(tree)
        for mutant in mutants:
            found = examine(mutant, tree)
            unexplained += found is None or (not found and not mutant.harmless
                                             and not mutant.survives)
            print(line_of(mutant, found), flush=True)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
