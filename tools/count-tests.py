#!/usr/bin/env python3
"""Prints "tests: N passed, M failed" from Meson's testlog.json (one JSON object per line)."""

import json
import sys

FINE = ("OK", "EXPECTEDFAIL")
NEITHER = ("SKIP",)

with open(sys.argv[1], encoding="utf-8") as log:
    results = [json.loads(line)["result"] for line in log if line.strip()]
passed = sum(result in FINE for result in results)
skipped = sum(result in NEITHER for result in results)
note = f", {skipped} skipped" if skipped else ""
print(f"tests: {passed} passed, {len(results) - passed - skipped} failed{note}")
