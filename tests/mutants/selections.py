#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a smaller selection of tests gives up: the mistakes that only the deep run detects.

Takes the mutants of all lists beside this file. Each is applied to a copy of the tree, built once without sanitizers,
and given to the tests that cover the changed files (cover.list). First to those that .ci/run runs now: Meson's tests
outside the suite `deep`, with one case in --share as in ./check, or for the suite `shipped` in as many as in the step
`numbers`. Mutants not detected by these are given to the tests that ran before: also `deep`, with one case in 10, and
those that a release build ran again (WHOLE) with all of their cases. The first test that fails detects the mutant. Sanitizers, part of both selections, are excluded here: what only they detect counts for neither.

    tests/mutants/selections.py                 all mutants, except those that the results already have
    tests/mutants/selections.py fold planted    those whose list, id, class or file has one of the words
    tests/mutants/selections.py --every 20      every 20th mutant of each list
    tests/mutants/selections.py --tree FOLDER   keep the built copies there, for the next run to continue
    tests/mutants/selections.py --list          check the lists against the sources, build nothing
    tests/mutants/selections.py --report        only print the table of the results

Mutants for which the list gives a reason that nothing detects them are skipped.

Results are lines of selections.tsv. A run adds what is missing, what was detected with another text of the mutant,
another share, or by a test whose suite has changed since, and mutants that nothing detected: a test may be better now.
Status 1 if mutants are missing, or if only the deep run detects more than 3 % of what was detected before, or any
mistake of the class "wrong number printed".
"""
import argparse
import atexit
import collections
import contextlib
import csv
import fnmatch
import hashlib
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cuda
import engine
import run

HERE, ROOT = run.HERE, run.ROOT
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "tools"))
import deep
SUITES = {"unit", "cli", "mpi", "net", "fuzz"}  # those of ./check; not those of GPUs, nor `inject`
OLD_SHARE = 10  # for a sanitized build
# Tests that a release build ran again, with all of their cases.
WHOLE = set("""bound conformance executed_path fold kernels kernels_answers kernels_experts kernels_layer
    kernels_linear kernels_run path plan reference repeat runtime sample sim_fluid step_run synth
    verify_damage verify_step verify_step_damage""".split())
PRINTED = "wrong number printed"
GIVEN_UP_MAX = 0.03
# A test that takes so many times its normal time, plus so many seconds, hangs.
SLOWER, SECONDS = 20, 60
BUILD_SECONDS = 3600
NOBODY, GPU = "-", "gpu"
CUDA_PULLS = deep.read_suites()["cuda"][1]
COLUMNS = ["id", "list", "class", "folder", "new", "old", "seconds", "hash", "share"]
SHARE = re.compile(r"^#define TEST_SHARE (\d+)U", re.MULTILINE)
NUMBERS_SHARE = re.compile(r"LONGHAUL_TEST_SHARE=(\d+) meson test .*--suite shipped$", re.MULTILINE)

Test = collections.namedtuple("Test", "name command env deep shipped shared alone target")


# ---- lists ----

def read_lists():
    mutants = []
    for path in sorted(HERE.glob("*.list")):
        if path.name == "cover.list":
            continue
        for mutant in run.parse(path.read_text()):
            mutant.list, mutant.base = path.name, "src/"
            mutant.files = sorted(map(os.path.normpath,
                                      run.apply(mutant, run.read_source, mutant.base)))
            text = json.dumps([mutant.base, mutant.hunks])
            mutant.hash = hashlib.sha256(text.encode()).hexdigest()[:12]
            if not mutant.kind or not mutant.hunks:
                mutant.error("needs a class and a change")
            mutants.append(mutant)
    for key, count in collections.Counter((m.list, m.name) for m in mutants).items():
        if count > 1:
            sys.exit(f"{key[0]}: {key[1]}: {count} mutants have this id")
    return mutants


def read_cover():
    """Lines of cover.list: a path prefix, and patterns of names of tests."""
    lines = [line for line in (HERE / "cover.list").read_text().splitlines()
             if line and not line.startswith("#")]
    return [(path, tests.split()) for path, _, tests in (line.partition(": ") for line in lines)]


def patterns_of(cover, files):
    """The patterns for these files, those of the most specific line first; None for GPU code."""
    patterns = []
    for file in files:
        rows = sorted((row for row in cover if file.startswith(row[0])), key=lambda r: -len(r[0]))
        if not rows:
            sys.exit(f"cover.list: no line matches {file}")
        if rows[0][1] != [GPU]:
            patterns += [pattern for _, row in rows for pattern in row]
        elif not deep.covers(CUDA_PULLS, file):
            sys.exit(f"cover.list: {file}: .ci/deep.list has no row that runs the suite cuda for it")
    return patterns or None


def is_explained(mutant):
    """Whether the list gives a reason that nothing detects it."""
    return bool(mutant.harmless or mutant.survives)


# ---- results ----

def read_results(path):
    """Results by list and id; the last line of each counts."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {(row["list"], row["id"]): row for row in csv.DictReader(file, delimiter="\t")}


def append_result(path, row):
    begun = path.is_file()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        if not begun:
            writer.writeheader()
        writer.writerow(row)


def result_of(results, mutant, share):
    """The mutant's line, if it is for this text and this share."""
    row = results.get((mutant.list, mutant.name))
    return row if row and row["hash"] == mutant.hash and row["share"] == str(share) else None


def is_known(results, mutant, share, tests):
    """Whether the line is valid for the present suites."""
    row = result_of(results, mutant, share)
    if row is None:
        return False
    if row["new"] != NOBODY:
        return row["new"] in tests and not tests[row["new"]].deep
    return row["old"] in tests and (tests[row["old"]].deep or tests[row["old"]].shared)


# ---- the copy ----

def command(args, tree):
    done = subprocess.run(args, cwd=tree, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=BUILD_SECONDS, check=False)
    return done.returncode == 0, done.stdout


def times_of(*paths):
    """Modification time and size of the files, to detect changes."""
    return [[stat.st_mtime_ns, stat.st_size] if stat else None
            for stat in (path.stat() if path.is_file() else None for path in paths)]


def copy_files(tree):
    """Copies the tracked files from the sources; unchanged ones keep their time."""
    kept = tree / "build/copied.json"
    copied = json.loads(kept.read_text()) if kept.is_file() else {}
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    names = {name for name in names if name and (ROOT / name).is_file()}
    for name in sorted(names):
        pair = ROOT / name, tree / name
        if times_of(*pair) == copied.get(name):
            continue
        if not cuda.is_same(*pair):
            pair[1].parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(*pair)
        copied[name] = times_of(*pair)
    for path in tree.rglob("*"):
        name = path.relative_to(tree)
        if path.is_file() and str(name) not in names and name.parts[0] != "build":
            path.unlink()
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps({name: copied[name] for name in names}))


def configure(tree):
    tree.mkdir(parents=True, exist_ok=True)
    copy_files(tree)
    setup = ["meson", "setup", "build", "--buildtype=plain", "-Doptimization=1", "-Dtests=enabled",
             "-Dsimgrid=disabled", "-Dcuda=disabled"]
    if shutil.which("ld.lld"):
        setup.append("-Dc_link_args=-fuse-ld=lld")
    if (tree / "build/build.ninja").is_file():
        setup = ["ninja", "-C", "build", "build.ninja"]  # after changes of Meson's files
    good, output = command(setup, tree)
    if not good:
        run.stop(output)


def is_shared(tree, args):
    """Whether the test supports taking a share of its cases."""
    program = pathlib.Path(args[0])
    source = (tree / "tests" / f"{program.name}.c" if tree / "build" in program.parents
              else program)
    text = source.read_text() if source.is_file() else ""
    return "share.h" in text or "LONGHAUL_TEST_SHARE" in text


def read_tests(tree):
    """The tests of ./check by name, as Meson runs them."""
    targets = json.loads((tree / "build/meson-info/intro-targets.json").read_text())
    files = {t["id"]: [os.path.relpath(f, tree / "build") for f in t["filename"]] for t in targets}
    tests = {}
    for t in json.loads(subprocess.run(["meson", "introspect", "--tests", "build"], cwd=tree,
                                       check=True, text=True, stdout=subprocess.PIPE).stdout):
        suites = {suite.partition(":")[2] for suite in t["suite"]}
        if not suites & SUITES:
            continue
        name = "fuzz/" * ("fuzz" in suites) + t["name"]
        tests[name] = Test(name, t["cmd"], t["env"], "deep" in suites, "shipped" in suites,
                           is_shared(tree, t["cmd"]), not t["is_parallel"], [f for d in t["depends"] for f in files[d]])
    return tests


def tests_of(patterns, tests):
    """Names in the order of the patterns, without duplicates."""
    names = []
    for pattern in patterns:
        found = fnmatch.filter(tests, pattern)
        if not found:
            run.stop(f"cover.list: no test is called {pattern}")
        names += [name for name in found if name not in names]
    return [tests[name] for name in names]


# ---- running ----

alone = threading.Lock()  # for tests that Meson runs alone
running = set()  # processes of tests, ended with this program


def end(process):
    """Ends the process with its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def passes(test, tree, share, fork, seconds):
    """Returns whether the test passes; ends it as soon as one of its cases fails. None if it times out."""
    env = {**os.environ, **test.env, "LONGHAUL_TEST_SHARE": str(share), "CK_FORK": fork,
           "CK_TAP_LOG_FILE_NAME": "-", "CK_VERBOSITY": "silent"}
    by_line = ["stdbuf", "-oL"] * (tree / "build" in pathlib.Path(test.command[0]).parents)
    output, over = "", threading.Event()
    with (alone if test.alone else contextlib.nullcontext(),
          subprocess.Popen(by_line + test.command, cwd=tree / "build", env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, start_new_session=True) as process):
        def stop():
            over.set()
            end(process)
        running.add(process)
        timer = threading.Timer(seconds, stop)
        timer.start()
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            output = output[-4096:] + piece.decode(errors="replace")
            if engine.CASE.search(output):
                end(process)
        timer.cancel()
        running.discard(process)
    return None if over.is_set() else process.returncode in (0, 77)


def build(test, tree):
    return command(["ninja", "-j1", "-C", "build"] + test.target, tree)


def measure(test, tree, share):
    """Returns the test's time without mutants, and how to run it; None if it fails."""
    good, output = build(test, tree)
    if not good:
        run.stop(output)
    for fork in "no", "yes", "yes":  # some cases end the process, or need one of their own
        started = time.monotonic()
        if passes(test, tree, share, fork, BUILD_SECONDS):
            return round(time.monotonic() - started, 2), fork
    return None


def selections(tests, share):
    """What is run now, and what was run before that may detect more."""
    of_shipped = min(share, int(NUMBERS_SHARE.search((ROOT / ".ci/run").read_text()).group(1)))
    new = [(test, of_shipped if test.shipped else share) for test in tests if not test.deep]
    old = []
    for test in tests:
        before = 1 if test.name in WHOLE else OLD_SHARE
        if test.deep or (test.shared and before < (of_shipped if test.shipped else share)):
            old.append((test, before))
    return new, sorted(old, key=lambda pair: not pair[0].deep)


def put(tree, texts):
    for path, text in texts.items():
        (tree / path).write_text(text)


def find(job, selection, changed):
    """Returns the first test that fails; None and the output if it cannot be built."""
    for test, share in selection:
        key = f"{test.name} {share}"
        if key not in job.known:
            put(job.tree, {path: run.read_source(path) for path in changed})
            job.learn(key, test, share)
            put(job.tree, changed)
        good, output = build(test, job.tree)
        if not good:
            return None, output
        seconds, fork = job.known[key]
        passed = passes(test, job.tree, share, fork, SLOWER * seconds + SECONDS)
        if passed is None:  # the machine may have stalled
            passed = passes(test, job.tree, share, fork, SLOWER * seconds + SECONDS)
        if not passed:
            return test.name, ""
    return NOBODY, ""


def examine(job, mutant):
    """Returns which test detects it now, which before, and the compiler's output if it does not compile."""
    changed = run.apply(mutant, run.read_source, mutant.base)
    selected = selections(tests_of(patterns_of(job.cover, mutant.files), job.tests),
                          job.options.share)
    try:
        put(job.tree, changed)
        new, output = find(job, selected[0], changed)
        if new != NOBODY:
            return new, new, output
        old, output = find(job, selected[1], changed)
        return new, old, output
    finally:
        put(job.tree, {path: run.read_source(path) for path in changed})


def digest_of_tree():
    """A digest of everything that the tests' results may depend on."""
    of, found = ["--", ".", ":!tests/mutants", ":!docs"], hashlib.sha256()
    for args in ["ls-files", "-s"], ["diff", "HEAD", "--binary"]:
        found.update(subprocess.run(["git"] + args + of, cwd=ROOT, check=True,
                                    stdout=subprocess.PIPE).stdout)
    return found.hexdigest()


class Known(dict):
    """Times of tests without mutants. Stored with the copies, so that reruns need not measure them again."""

    def __init__(self, folder):
        self.path, self.digest = folder / "as-it-is.json", digest_of_tree()
        kept = json.loads(self.path.read_text()) if self.path.is_file() else {"digest": ""}
        super().__init__(kept["known"] if kept["digest"] == self.digest else {})

    def add(self, key, taken):
        self[key] = taken
        self.path.write_text(json.dumps({"digest": self.digest, "known": self}))


class Job:
    """One copy of the tree, and state shared by all copies."""

    def __init__(self, tree, options, cover, waiting, lock, known):
        self.tree, self.options, self.cover = tree, options, cover
        self.waiting, self.lock, self.known = waiting, lock, known
        self.broken = []
        configure(tree)
        self.tests = read_tests(tree)

    def learn(self, key, test, share):
        """Records that the test passes without mutants."""
        taken = measure(test, self.tree, share)
        if taken is None:
            run.stop(f"{test.name} fails as it is, with one case in {share}")
        with self.lock:
            self.known.add(key, taken)
        print(f"without mutants: {test.name}, one case in {share}: {taken[0]:.1f} s", flush=True)

    def work(self):
        while True:
            try:
                mutant = self.waiting.get_nowait()
            except queue.Empty:
                return
            started = time.monotonic()
            new, old, output = examine(self, mutant)
            with self.lock:
                if new is None or old is None:
                    self.broken.append(mutant.name)
                    sys.stderr.write(f"{mutant.list}: {mutant.name} does not compile:\n{output}")
                    continue
                row = dict(zip(COLUMNS, [mutant.name, mutant.list, mutant.kind,
                                         os.path.dirname(mutant.files[0]), new, old,
                                         f"{time.monotonic() - started:.1f}", mutant.hash,
                                         self.options.share]))
                append_result(self.options.results, row)
                print(f"{mutant.list:22} {mutant.name:34} now: {new:20} before: {old:20} "
                      f"{row['seconds']:>6} s", flush=True)


def run_all(mutants, options, cover):
    """Adds missing results; returns the names of mutants that do not compile."""
    waiting, lock = queue.Queue(), threading.Lock()
    with (contextlib.nullcontext(options.tree.resolve()) if options.tree else
          tempfile.TemporaryDirectory(prefix="selections-")) as folder:
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        known = Known(folder)
        jobs = [Job(folder / str(i), options, cover, waiting, lock, known)
                for i in range(max(options.jobs, 1))]
        results = read_results(options.results)
        mutants = [m for m in mutants
                   if not is_known(results, m, options.share, jobs[0].tests)]
        print(f"{len(mutants)} to examine", flush=True)
        for mutant in mutants:
            waiting.put(mutant)
        threads = [threading.Thread(target=job.work, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [name for job in jobs for name in job.broken]


# ---- the table ----

def add_to(count, mutant, row):
    count["mutants"] += 1
    if mutant.gpu:
        count["gpu"] += 1
    elif is_explained(mutant):
        count["explained"] += 1
    elif row is None:
        count["missing"] += 1
    else:
        count["new"] += row["new"] != NOBODY
        count["old"] += row["old"] != NOBODY
        count["deep"] += row["new"] == NOBODY != row["old"]


def print_count(title, count):
    share = f"{100 * count['deep'] / count['old']:.1f} %" if count["old"] else ""
    print(f"{title:62}" + "".join(f"{count[k]:9}" for k in
                                  ("mutants", "gpu", "explained", "missing", "old", "new", "deep")) + f"{share:>8}")


def print_report(mutants, options):
    """Prints the table; returns whether the loss is acceptable."""
    results = read_results(options.results)
    table = collections.defaultdict(collections.Counter)
    deep = []
    for mutant in mutants:
        row = result_of(results, mutant, options.share)
        for key in (mutant.list, mutant.kind), (mutant.list, ""), ("", ""):
            if not (mutant.gpu and key[1]):
                add_to(table[key], mutant, row)
        if row and row["new"] == NOBODY != row["old"]:
            deep.append((mutant, row))
    print(f"\n{'list, class':62}{'mutants':>9}{'for GPUs':>9}{'harmless':>9}{'missing':>9}{'before':>9}{'now':>9}"
          f"{'deep':>9}")
    for name, kind in sorted(table, key=lambda key: (not key[0], key)):
        print_count("all" if not name else f"  {kind}" if kind else name, table[name, kind])
    if table["", ""]["gpu"]:
        print(f"\n{table['', '']['gpu']} are of code that only tests of the suite `cuda` run: neither "
              "selection runs it, and\na change of it runs the tests of the suite `cuda`.")
    print(f"\nOnly the deep run finds {len(deep)}:")
    for mutant, row in deep:
        print(f"{mutant.list:22} {mutant.name:34} {mutant.kind}: {row['old']}")
    return (not table["", ""]["missing"] and not any(m.kind == PRINTED for m, _ in deep)
            and len(deep) <= GIVEN_UP_MAX * table["", ""]["old"])


def arguments():
    instrumented = int(SHARE.search((ROOT / "tests/share.h").read_text()).group(1))
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these words")
    parser.add_argument("--every", type=int, default=1, help="only every N-th mutant of a list")
    parser.add_argument("--list", action="store_true", help="check the lists and build nothing")
    parser.add_argument("--report", action="store_true", help="print the table and run nothing")
    parser.add_argument("--share", type=int, default=instrumented,
                        help="one case in how many ./check takes; default %(default)s (share.h)")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "selections.tsv")
    parser.add_argument("--jobs", type=int, default=1, help="parallel copies of the tree; default 1")
    parser.add_argument("--tree", type=pathlib.Path, help="folder of the built copies, which are kept")
    return parser.parse_args()


def chosen_mutants(options, cover):
    places, chosen = collections.Counter(), []
    for mutant in read_lists():
        mutant.gpu = patterns_of(cover, mutant.files) is None
        if options.words and not any(w in f"{mutant.list} {mutant.name} {mutant.kind} {mutant.files}"
                                     for w in options.words):
            continue
        if places[mutant.list] % options.every == 0:
            chosen.append(mutant)
        places[mutant.list] += 1
    return chosen


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored in the background: tests send it
    atexit.register(lambda: [end(process) for process in list(running)])
    options, cover = arguments(), read_cover()
    mutants = chosen_mutants(options, cover)
    print(f"{len(mutants)} mutants, {sum(m.gpu for m in mutants)} of code for GPUs", flush=True)
    if options.list:
        return 0
    broken = []
    if not options.report:
        broken = run_all([m for m in mutants if not m.gpu and not is_explained(m)], options, cover)
    return 0 if print_report(mutants, options) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
