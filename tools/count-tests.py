#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarises a run of the tests from Meson's testlog.json (one JSON object per line): the slowest tests, the
skipped ones with their reasons, how to run the rest, and last "tests: N passed, M failed"."""

import json
import os
import sys

FINE = ("OK", "EXPECTEDFAIL")
SLOWEST = 5
REASON = "skipped: "  # prefix of the line with the reason, of tests that end with status 77

with open(sys.argv[1], encoding="utf-8") as log:
    tests = [json.loads(line) for line in log if line.strip()]
slowest = sorted(tests, key=lambda test: -test["duration"])[:SLOWEST]
print("slowest: " + ", ".join(f"{test['name']} {test['duration']:.0f} s" for test in slowest))
skipped = [test for test in tests if test["result"] == "SKIP"]
for test in skipped:
    lines = (test.get("stdout") or "").splitlines()
    why = [line[len(REASON):] for line in lines if line.startswith(REASON)]
    print(f"skipped: {test['name']}: {why[0] if why else 'no reason given'}")
passed = sum(test["result"] in FINE for test in tests)
failed = len(tests) - passed - len(skipped)
print("the rest: .ci/run deep SUITE... (.ci/deep.list has the suites); all cases of one test here: "
      "LONGHAUL_TEST_SHARE=1 ./check TEST")
print(f"tests: {passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
if skipped and os.environ.get("CI"):
    sys.exit("CI must not skip tests")
