#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the line coverage of src/, from a build with coverage whose tests have run.

    coverage.py BUILD

A line counts as executed if any of the objects that contain it executed it. Prints one row for each file
below ENOUGH, with its reason from tests/coverage.list, and the total. Exit status 1 if a file is below
ENOUGH without a reason, or below the limit of its row.
"""
import collections
import json
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/coverage.list"
ENOUGH = 85.0  # per cent


def read_list():
    """File -> (lowest coverage allowed, reason)."""
    reasons = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        file, lowest, reason = (line.split(None, 2) + ["", ""])[:3]
        if not reason or not (ROOT / file).is_file():
            sys.exit(f"{LIST}:{number}: a row is FILE LOWEST REASON; FILE must exist")
        reasons[file] = (float(lowest), reason)
    return reasons


def counts_of(data):
    """Lines of one object: file -> line -> executed."""
    text = subprocess.run(["gcov", "--json-format", "--stdout", str(data)], cwd=data.parent, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    files = collections.defaultdict(dict)
    for document in text.splitlines():
        report = json.loads(document)
        for entry in report["files"]:
            path = pathlib.Path(report["current_working_directory"], entry["file"]).resolve()
            if ROOT / "src" not in path.parents:
                continue
            lines = files[str(path.relative_to(ROOT))]
            for line in entry["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
    return files


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    objects = sorted(p.with_suffix(".gcda") for folder in ("src", "longhaul.p")
                     for p in (build / folder).rglob("*.gcno"))
    ran = [p for p in objects if p.exists()]
    never = [p.with_suffix(".gcno") for p in objects if not p.exists()]
    total = collections.defaultdict(dict)
    with ThreadPoolExecutor() as pool:
        for files in pool.map(counts_of, ran + never):
            for file, lines in files.items():
                for number, executed in lines.items():
                    total[file][number] = total[file].get(number, False) or executed
    if not ran or not total:
        sys.exit(f"{build}: no test has run here")
    reasons, wrong = read_list(), []
    for file, lines in sorted(total.items()):
        share = 100.0 * sum(lines.values()) / len(lines)
        lowest, reason = reasons.pop(file, (ENOUGH, None))
        if share >= ENOUGH and reason is not None:
            print(f"{file:40} {share:5.1f} %  needs no row in {LIST.name} here")
        elif share < ENOUGH:
            print(f"{file:40} {share:5.1f} %  {reason or 'NO REASON'}")
            if share < lowest:
                wrong.append(f"{file}: {share:.1f} % is less than {lowest:g} %")
    executed = sum(sum(lines.values()) for lines in total.values())
    count = sum(len(lines) for lines in total.values())
    print(f"coverage: {100.0 * executed / count:.1f} % of {count} lines in {len(total)} files of src/")
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
