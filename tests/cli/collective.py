#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `collective` on a log with equivalent files and commands: collective.py PROGRAM.

JSON has the form of its schema, and CSV has the same numbers. If a single number of a topology's file would explain a
log, it is edited in the file: then as many rows of the log as predicted are inside their bars, with the times of this
file. The times of one node equal those of `reproduce`.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from totals import ROOT, D, Program, Wrong, check

LOGS = ROOT / "tests/data/nccl-tests", ROOT / "tests/data/topology"
CLUSTERS = ("hgx-h100", "dgx-a100-80g", "hgx-b200", "pcie-l40s", "hgx-a800", "azure-nc40-h100")
UNITS_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
PREFIXES = " kMGT"
NUMBERS = {"bytes": ("bytes", 1), "time_us": ("time_s", D(10) ** 6), "low_us": ("low_s", D(10) ** 6),
           "high_us": ("high_s", D(10) ** 6), "log_us": ("log_s", D(10) ** 6),
           "algbw_gbps": ("algbw_bytes_per_s", D(10) ** -9),
           "busbw_gbps": ("busbw_bytes_per_s", D(10) ** -9)}


def typed(value, factor):
    """The value of the file multiplied by the factor."""
    if not isinstance(value, str):
        return float(D(str(value)) / factor)
    number, unit = re.fullmatch(r"([0-9.]+)(.*)", value).groups()
    if unit in UNITS_PS:
        return f"{(D(number) * UNITS_PS[unit] / factor).to_integral_value():f}ps"
    prefix, bits = re.fullmatch(r"([kMGT]?)(B/s|bps)", unit).groups()
    rate = D(number) * 1000 ** PREFIXES.index(prefix or " ") / (8 if bits == "bps" else 1)
    return f"{(rate * factor).to_integral_value():f}B/s"


def edited(name, path, factor):
    topology = json.loads((ROOT / "topologies" / f"{name}.json").read_text(encoding="utf-8"))
    *folders, last = path.split(".")
    place = topology
    for folder in folders:
        place = place[folder]
    place[last] = typed(place[last], factor)
    # The limit of a pair of GPUs is at most the rate of the link.
    for pair in ("pair_p2p", "pair_collective") if last == "bandwidth" else ():
        if pair in place and typed(place[pair], D(1)) != typed(place[last], D(1)):
            place[pair] = min(place[pair], place[last], key=lambda text: D(typed(text, D(1))[:-3]))
    return topology


def inside_of(document):
    """Number of rows of the log within the error bars of @document's own predictions."""
    return sum(row["verdict"] == "inside" for run in document["runs"] for row in run["rows"])


class Check:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.causes = self.logs = 0

    def check_csv(self, arguments, document):
        rows = [row for run in document["runs"] for row in run["rows"]]
        lines = self.program.rows(arguments)
        check(len(rows) == len(lines), "CSV and JSON differ in the number of rows", *arguments)
        for row, line in zip(rows, lines):
            for key, (name, unit) in NUMBERS.items():
                if name in row:
                    check(abs(D(line[key]) / (D(row[name]) * unit) - 1) < D("1e-12"),
                          "CSV differs in", key, *arguments)
            check(line["source"] == row["source"] and line["verdict"] == row.get("verdict", ""),
                  "CSV differs in source or verdict", *arguments)

    def check_cause(self, cause, document, log, cluster):
        """Predictions of the edited file, with the error bars of the original."""
        file = self.folder / "edited.json"
        file.write_text(json.dumps(edited(cluster, cause["as_if"], D(cause["factor"]))),
                        encoding="utf-8")
        again = self.program.document(["collective", "--cluster", str(file), "--log", str(log)])
        check(again is not None, "the edited file fails", cause["as_if"], log, cluster, cause)
        inside = 0
        for run, other in zip(document["runs"], again["runs"]):
            for row, then in zip(run["rows"], other["rows"]):
                bar = D(row["high_s"]) / D(row["time_s"]) * (1 + D("1e-9"))
                inside += 1 / bar <= D(row["log_s"]) / D(then["time_s"]) <= bar
        check(inside == D(cause["rows_inside"]), "the edited file differs in the rows inside", inside,
              cause["as_if"], cause["factor"], log, cluster)
        self.causes += 1

    def check_log(self, log, cluster):
        arguments = ["collective", "--cluster", cluster, "--log", str(log)]
        document = self.program.document(arguments)
        if document is None:
            return # more ranks per host than GPUs per node of the cluster
        self.logs += 1
        self.check_csv(arguments, document)
        check(D(document["rows_inside"]) == inside_of(document), "wrong number of rows inside", log)
        all_inside = document["rows_inside"] == document["rows_of_logs"]
        check(self.program.run(arguments).returncode == (0 if all_inside else 1), "wrong status", log)
        check(not all_inside or not document["causes"], "a cause without a deviation", log)
        for cause in document["causes"]:
            if "factor" in cause:
                self.check_cause(cause, document, log, cluster)

    def check_reproduced(self):
        """Compares single rows that are published."""
        for case in self.program.rows(["reproduce", "nccl_tests"])[::211]:
            options = dict(word.split("=") for word in case["options"].split(", "))
            if case["metric"] != "collective_us" or "2.23" in options["nccl"]:
                continue # times of NCCL versions that are not the first in the file
            arguments = ["collective", options["collective"], "--cluster", options["cluster"], "-g",
                         options["ranks"], "-b", options["bytes"], "-e", options["bytes"]]
            (row,) = self.program.rows(arguments)
            check(abs(D(row["time_us"]) / D(case["predicted"]) - 1) < D("1e-6") or
                  "2.27.5" in options["nccl"] or "2.28" in options["nccl"],
                  "reproduce has another time", row["time_us"], case["predicted"], *arguments)


def main():
    program = Program(sys.argv[1])
    program.schema = json.loads(subprocess.run([sys.argv[1], "help", "schema", "collective"], check=True,
                                               capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        test = Check(program, pathlib.Path(folder))
        try:
            for log in sorted(log for place in LOGS for log in place.glob("*.txt")):
                for cluster in CLUSTERS if re.search(r"all|sendrecv", log.name) else ():
                    test.check_log(log, cluster)
            test.check_reproduced()
        except Wrong as wrong:
            print(wrong)
            return 1
    print(f"{test.logs} logs, {test.causes} causes edited into files")
    return 0 if test.causes > 5 else 1


sys.exit(main())
