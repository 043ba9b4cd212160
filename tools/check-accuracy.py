#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the error bounds of tables of published numbers: check-accuracy.py PROGRAM.

Every bound is at most 1.3 times the error (for groups, the worst group's error), or 1 %. Judged whole steps of
the four papers have a mean error of at most 4 %, and none more than 12 %. Constants fitted to the other half of a
paper's rows change no mean error by more than 1.5 points. Prints the errors.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOOSE, TINY = 1.3, 0.01
STEP_TABLES = {"lightseq_table1", "lightseq_table2_max_length", "lightseq_table3_checkpointing", "dfa_table3_rsa",
               "lasp_table4"}
STEP_METRICS = {"iteration_s", "tokens_per_s", "longest_tokens"}
STEP_MEAN, STEP_WORST = 0.04, 0.12
REFITTED = ["lightseq_table1", "lasp_table4"]
REFIT_POINTS = 0.015


def reproduce(program, *words):
    done = subprocess.run([program, "reproduce", *words, "--format", "json"], check=False, capture_output=True,
                          text=True, cwd=ROOT, env=dict(os.environ, LONGHAUL_DATA_DIR=str(ROOT)))
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["tables"]


def loose_bounds(table):
    lines = [(table["table"], table)] + [(f"{table['table']}, {metric['column']}", metric)
                                         for metric in table["metrics"]]
    if table["groups"]:
        worst = {key: max(group[key] or 0 for group in table["groups"]) for key in ("mean_abs_error", "worst_abs_error")}
        lines.append((f"{table['table']}, groups", dict(table["groups"][0], **worst)))
    for name, line in lines:
        for what in ("mean", "worst"):
            bound, reached = line[f"tolerance_{what}"], line[f"{what}_abs_error"] or 0
            if what == "worst":
                reached = max(reached, line["worst_below_bound"] or 0)
            if bound is not None and bound > max(LOOSE * reached, TINY):
                yield f"{name}: the bound of the {what} error is {bound:g}, but the error is only {reached:.4f}"


def step_errors(tables):
    return [abs(case["error"]) for table in tables if table["table"] in STEP_TABLES for case in table["cases"]
            if case["state"] == "judged" and case["metric"] in STEP_METRICS and case["error"] is not None]


def moved_means(tables):
    for table in tables:
        fit = table["cross_fit"]
        print(f"{table['table']}: {fit['judged']} rows, mean error {100 * fit['own_mean_abs_error']:.1f} % with the "
              f"constants fitted to them, {100 * fit['mean_abs_error']:.1f} % with those of the other rows")
        if abs(fit["mean_abs_error"] - fit["own_mean_abs_error"]) > REFIT_POINTS:
            yield f"{table['table']}: refitting moves the mean error"


def main():
    tables = reproduce(sys.argv[1])
    errors = step_errors(tables)
    mean, worst = sum(errors) / len(errors), max(errors)
    print(f"{len(errors)} whole steps of the papers: mean error {100 * mean:.1f} %, worst {100 * worst:.1f} %")
    failures = [line for table in tables for line in loose_bounds(table)]
    if mean > STEP_MEAN or worst > STEP_WORST:
        failures.append("whole steps of the papers: errors exceed the limits")
    failures += moved_means(reproduce(sys.argv[1], *REFITTED, "--cross-fit"))
    print("\n".join(failures) or "bounds are tight")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
