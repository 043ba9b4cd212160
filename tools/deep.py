#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Selects the deep suites that are due, and records their runs.

    deep.py due               prints the suites that a change pulls forward, and reports stale ones
    deep.py check BUILD       checks .ci/deep.list against .ci/run and the tests of a build folder
    deep.py record SUITE S    records that SUITE passed at this commit, in S seconds
    deep.py since SUITE       prints the commit of its last run

.ci/deep.list has the suites, the stated duration of each in seconds, and the files and folders that it covers (a
folder without its subfolders). .ci/deep.tsv has the last run of each: suite, commit, seconds. A suite is due if a
file that it covers has changed since its last run; a suite that never ran is stale. Due suites are pulled forward
in the order of the list while their stated durations add up to at most FORWARD_SECONDS; the others are stale.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / ".ci/deep.list"
RUNS = ROOT / ".ci/deep.tsv"
FORWARD_SECONDS = 1800
SECONDS_MAX = 3600  # of one suite
COMMITS_STALE = 20


def git(*arguments):
    """The output of git, or None on failure."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else None


def read_suites():
    """Suite -> (stated seconds, covered files and folders), in the order of the list."""
    suites = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if len(words) < 3 or not words[1].isdigit() or words[0] in suites:
            sys.exit(f"{LIST}:{number}: a row is SUITE SECONDS FOLDER..., once for each suite")
        if int(words[1]) > SECONDS_MAX:
            sys.exit(f"{LIST}:{number}: {words[0]} takes {words[1]} s; allowed: {SECONDS_MAX}: split it")
        for path in words[2:] if words[2:] != ["-"] else []:
            if not (ROOT / path).exists():
                sys.exit(f"{LIST}:{number}: {path} does not exist")
        suites[words[0]] = (int(words[1]), words[2:])
    return suites


def read_runs(suites):
    """Suite -> (commit, seconds as text) of its last run."""
    runs = {}
    for number, line in enumerate(RUNS.read_text().splitlines() if RUNS.exists() else [], 1):
        words = line.split("\t")
        if len(words) != 3 or words[0] not in suites or words[0] in runs:
            sys.exit(f"{RUNS}:{number}: a row is SUITE, COMMIT, SECONDS, once for each suite of {LIST.name}")
        runs[words[0]] = (words[1], words[2])
    return runs


def covers(paths, file):
    return any(file == path or str(pathlib.PurePath(file).parent) == path for path in paths)


def changed_since(commit):
    """Files of the working tree that differ from @commit; None if the commit is unknown."""
    differing = git("diff", "--name-only", commit)
    return None if differing is None else differing.splitlines()


def print_due():
    suites, left = read_suites(), FORWARD_SECONDS
    runs = read_runs(suites)
    for suite, (seconds, paths) in suites.items():
        commit = runs[suite][0] if suite in runs else None
        changed = changed_since(commit) if commit else None
        age = git("rev-list", "--count", f"{commit}..HEAD") if changed is not None else None
        touched = changed is None or any(covers(paths, file) for file in changed)
        since = (f"since {commit[:12]}, {age.strip()} commits ago" if age
                 else f"since {commit[:12]}, which is not known here" if commit else "never run")
        if touched and changed is not None and seconds <= left:
            left -= seconds
            print(suite)
            print(f"deep: {suite} is pulled forward: {seconds} s ({since})", file=sys.stderr)
        elif touched:
            print(f"deep: {suite} is STALE ({since}): .ci/run deep {suite}", file=sys.stderr)
        elif age and int(age) > COMMITS_STALE:
            print(f"deep: {suite} is old ({since}): .ci/run deep {suite}", file=sys.stderr)


def check(build):
    """Checks that every suite is a step, and that every deep test is in a suite."""
    suites, wrong = read_suites(), []
    read_runs(suites)
    text = (ROOT / ".ci/run").read_text()
    wrong += [f"{LIST}: .ci/run has no step_{s.replace('-', '_')} for the suite {s}" for s in suites
              if f"\nstep_{s.replace('-', '_')}() {{" not in text]
    listed = subprocess.run(["meson", "introspect", "--tests", build], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    for test in json.loads(listed):
        names = {suite.split(":")[-1] for suite in test["suite"]}
        if "deep" in names and not names & set(suites):
            wrong.append(f"{LIST}: no suite contains the deep test {test['name']} ({', '.join(sorted(names))})")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def record(suite, seconds):
    suites = read_suites()
    runs = read_runs(suites)
    if suite not in suites:
        sys.exit(f"deep: no suite {suite}; suites: {', '.join(suites)}")
    if not seconds.isdigit():
        sys.exit(f"deep: {seconds} is not a whole number of seconds")
    runs[suite] = (git("rev-parse", "--short=12", "HEAD").strip(), seconds)
    RUNS.write_text("".join("\t".join([name, *runs[name]]) + "\n" for name in suites if name in runs))


def main():
    words = sys.argv[1:]
    if words == ["due"]:
        print_due()
    elif len(words) == 2 and words[0] == "check":
        return check(words[1])
    elif len(words) == 3 and words[0] == "record":
        record(words[1], words[2])
    elif len(words) == 2 and words[0] == "since":
        print(read_runs(read_suites()).get(words[1], ("",))[0])
    else:
        sys.exit(__doc__.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
