#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every printed total with integers of any size: totals.py PROGRAM.

First cases whose sums over ranks exceed 64 bits, then every schedule, then random cases: --cases N of them (default
40) from --seed N (default 1). A failed case prints its command. Table, CSV and JSON must agree, sums must be those of
their parts, and flops and bytes those of the formulas. Refusals must have a reason and be no crash.
"""

import argparse
import csv
import decimal
import io
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys

try:
    import jsonschema
except ImportError:  # needed by tools/check-schemas.py, but may be missing on a user's machine
    jsonschema = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
decimal.getcontext().prec = 60
D = decimal.Decimal

PARTS = ("compute", "imbalance", "exposed_nvlink", "exposed_pcie", "exposed_nic", "exposed_fabric",
         "host")
TIERS = ("nvlink", "pcie", "nic", "fabric")
# Schedules that compute exactly the pairs of the mask, once. The others write whole rows of scores, or recompute the
# forward pass.
NOT_EXACT = ("rsa",)
NOT_IN_CSV = {"per_rank", "peak_bytes_by_tensor", "peak", "out_of_memory"}
FLOPS = {"fwd": 4, "bwd": 10, "both": 14}


class Wrong(Exception):
    pass


def check(true, text, *values):
    if not true:
        raise Wrong(text + ": " + ", ".join(str(value) for value in values))


class Program:
    def __init__(self, path):
        self.path = path
        self.schema = json.loads(self.run(["help", "schema", "result"]).stdout)

    def run(self, arguments):
        result = subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False,
                                timeout=300)
        check(result.returncode in range(5), "ended with", result.returncode, result.stderr)
        check(result.returncode == 0 or result.stderr or result.returncode == 1,
              "failed without a message", result.returncode)
        return result

    def document(self, arguments):
        """The JSON output, with numbers as texts. None if the case is invalid."""
        result = self.run([*arguments, "--format", "json"])
        if not result.stdout:
            return None
        if jsonschema is not None:
            jsonschema.Draft202012Validator(self.schema).validate(json.loads(result.stdout))
        return json.loads(result.stdout, parse_float=str, parse_int=str)

    def rows(self, arguments):
        return list(csv.DictReader(io.StringIO(self.run([*arguments, "--format", "csv"]).stdout)))

    def table(self, arguments):
        return self.run(arguments).stdout


# --- invariants ------------------------------------------------------------------------------------


def rounded(value, decimals):
    return value.quantize(D(1).scaleb(-decimals), rounding=decimal.ROUND_HALF_UP)


def total(numbers):
    return sum(map(D, numbers))


def check_sums(case, row):
    ranks, each = D(case["ranks"]), row["per_rank"]
    span = D(row["makespan_s"]) * ranks
    check(D(row["span_sum_s"]) == span, "span is not ranks x makespan", row["span_sum_s"], span)
    parts = total(row[f"{part}_sum_s"] for part in PARTS)
    check(parts == span, "parts do not add up to ranks x makespan", parts, span)
    for key, numbers in (("compute_sum_s", "compute_s"), ("flops_sum", "flops"),
                         ("sent_bytes_sum", "sent_bytes")):
        check(len(each[numbers]) == ranks, "not one number per rank", numbers)
        check(D(row[key]) == total(each[numbers]), "not the sum over ranks", key, row[key])
    exposed = total(row[f"exposed_{tier}_sum_s"] for tier in TIERS)
    check(exposed == total(each["exposed_s"]), "exposed is not the sum over ranks", exposed)
    sent = total(row[f"sent_{tier}_bytes_sum"] for tier in TIERS)
    check(sent == D(row["sent_bytes_sum"]), "bytes on links differ from bytes sent", sent)
    check(D(row["sent_bytes_max"]) == max(map(D, each["sent_bytes"])), "not the largest", "sent")
    check(D(row["peak_bytes_max"]) == max(map(D, each["peak_bytes"])), "not the largest", "peak")
    check(D(row["makespan_s"]) == max(map(D, each["finish_s"])), "not the last end", "makespan")
    if row["closed_form_bytes_sum"] is not None:
        check(D(row["closed_form_bytes_sum"]) == total(each["closed_form_bytes"]), "not the sum",
              "closed_form_bytes")
        check(row["closed_form_bytes_sum"] == row["sent_bytes_sum"], "not as the closed form says",
              "all bytes")
        # In trees some members send more than in rings and others less.
        check(case["collectives"] == "tree" or each["closed_form_bytes"] == each["sent_bytes"],
              "not as the closed form says", "bytes")
    if row["time_low_s"] is not None:
        low, high = D(row["time_low_s"]), D(row["time_high_s"])
        time = D(row["makespan_s"])
        check(0 < low < time < high, "the time is not within its error bar", low, time, high)
        # Assumed link rates have two ends, which may be at different distances.
        if case["link_fault"] is None and case["link_notes"] is None:
            check(abs(high * low / time**2 - 1) < D("1e-12"), "the error bar is not a factor", low, time, high)
    peak = row["peak_bytes_by_tensor"]
    check(D(row["peak_bytes_max"]) == total(peak.values()), "not the sum of the tensors", peak)
    held = row["peak"]["by_category"]
    check(D(row["peak_bytes_max"]) == total(held.values()), "not the sum of the categories", held)
    beyond = row["out_of_memory"]
    check((beyond is None) == (row["state"] != "out-of-memory"), "wrong state", beyond)
    if beyond is not None:
        check(D(beyond["needed_bytes"]) == total(beyond["by_category"].values()),
              "not the sum of the categories", beyond)
        check(D(beyond["needed_bytes"]) == D(row["peak_bytes_max"]), "not the peak", beyond)
        check(beyond["rank"] == row["peak_rank"], "not the rank of the peak", beyond)
        check(D(beyond["limit_bytes"]) < D(beyond["first"]["held_bytes"]) <= D(beyond["needed_bytes"]),
              "not between limit and peak", beyond)
    if row["peak_bytes_low"] is not None:
        check(D(row["peak_bytes_low"]) < D(row["peak_bytes_max"]) < D(row["peak_bytes_high"]),
              "the peak is not within its error bar", row["peak_bytes_low"])


def pairs_of(case):
    """Exact number of visible query-key pairs; None for packed documents."""
    length, window = int(case["seq_length"]), int(case["window_size"])
    if case["documents"] != "1":
        return None
    if case["mask"] == "full":
        return length * length
    window = min(window or length, length)
    return window * (window + 1) // 2 + (length - window) * window


def check_flops(case, row):
    pairs = pairs_of(case)
    if (case["attention"] != "softmax" or row["schedule"] in NOT_EXACT or pairs is None or
            row["options"].keys() & {"recompute_granularity", "published_code"}):
        return
    heads = int(row["options"].get("num_attention_heads", case["num_attention_heads"]))
    expected = (FLOPS[case["pass"]] * int(case["micro_batch_size"]) * heads *
                int(case["kv_channels"]) * pairs * int(case["data_parallel_size"]))
    check(int(row["flops_sum"]) == expected, "flops are not those of the mask's pairs",
          row["flops_sum"], expected)


def check_path(document):
    """The critical path of the fastest schedule is contiguous."""
    path = document["winner_critical_path"]
    if path:
        makespan = D(document["results"][0]["makespan_s"])
        check(total(step["time_s"] for step in path) == makespan, "path does not add up to the makespan", makespan)


def cell_of(value):
    """The CSV cell of a member of JSON; lists of objects are those of options."""
    if isinstance(value, list):
        return ";".join(":".join(element.values()) for element in value)
    return value or ""


def check_csv(document, rows):
    check(len(rows) == len(document["results"]), "CSV and JSON differ in the number of rows", len(rows))
    for line, row in zip(rows, document["results"]):
        fields = {**document["case"], **row}
        check(set(line) == set(fields) - NOT_IN_CSV, "different columns", set(line) ^ set(fields))
        for key, text in line.items():
            if key == "options":
                check((text == "") == (fields[key] == {}), "different options", text)
            else:
                check(text == cell_of(fields[key]), "CSV differs from JSON", key, text,
                      fields[key])


def check_comparison_table(document, text):
    """The printed parts add up to the printed time; both are rounded from the exact ones."""
    lines = text.split("\n")
    head = next(i for i, line in enumerate(lines) if line.startswith("schedule "))
    unit = {"us": D(10) ** 6, "ms": D(10) ** 3, "s": D(1)}[lines[head + 1].split()[0]]
    ranks = D(document["case"]["ranks"])
    names = re.split(r"\s{2,}", lines[head].strip())
    for line, row in zip(lines[head + 2:], document["results"]):
        if row["makespan_s"] is None:
            continue
        cells = dict(zip(enumerate(names), re.split(r"\s{3,}", line.strip())))
        by_name = {name: cell for (_, name), cell in reversed(cells.items())}
        time = D(by_name["time"])
        decimals = -time.as_tuple().exponent
        quantum = D(1).scaleb(-decimals)
        check(time == rounded(D(row["makespan_s"]) * unit, decimals), "wrong time", line)
        parts = sum(D(cell) for (_, name), cell in cells.items()
                    if name in ("compute", "imbalance", "exposed", "host"))
        check(parts == time, "the printed parts do not add up", line)
        mean = D(row["compute_sum_s"]) / ranks * unit
        check(abs(D(by_name["compute"]) - mean) < quantum, "wrong compute time", mean, line)
        check_mib(by_name["sent/GPU"], D(row["sent_bytes_max"]))
        check_mib(by_name["attention"], D(row["peak_bytes_max"]))


def check_mib(text, count):
    mib = count / 2**20
    check(D(text) == rounded(mib, 2 if mib < 100 else 1), "wrong MiB", text, mib)


QUANTITIES = {"compute": ("compute_s", D("1e-3")), "communication": ("comm_s", D("1e-3")),
              "exposed communication": ("exposed_s", D("1e-3")), "finish time": ("finish_s", D("1e-3")),
              "attention flops": ("flops", D(10) ** 12), "sent": ("sent_bytes", D(2) ** 20),
              "attention buffers": ("peak_bytes", D(2) ** 20)}


def check_sim_table(document, text):
    row, ranks = document["results"][0], D(document["case"]["ranks"])
    tables = {lines[0].split("  ")[0]: [re.split(r"\s{2,}", line.strip()) for line in lines[1:]]
              for lines in (block.split("\n") for block in text.split("\n\n"))}
    for name, _, *cells in tables["over the ranks"]:
        key, per = QUANTITIES[name]
        exact = [D(number) for number in row["per_rank"][key]]
        expected = [min(exact), sum(exact) / ranks, max(exact)]
        for cell, value in zip(cells, expected):
            check(D(cell) == rounded(value / per, 3), f"wrong {name} in the table", value, cell)
    sent = {line[0]: line[1] for line in tables["bytes sent"][1:]}
    check(sent["total"] == f"{int(row['sent_bytes_sum']):,}", "total bytes", sent)
    for tier in TIERS:
        check(sent.get(f"over {tier}", "0") == f"{int(row[f'sent_{tier}_bytes_sum']):,}", tier, sent)
    times = tables["where the time goes"][1:]
    check(sum(D(line[1]) for line in times[:-1]) == D(times[-1][1]), "printed parts", times)


def check_case(program, arguments):
    """Checks everything about one schedule in one case. Returns its state; None: invalid case."""
    document = program.document(["sim", *arguments])
    if document is None:
        return None
    (row,) = document["results"]
    check_csv(document, program.rows(["sim", *arguments]))
    if row["makespan_s"] is None:
        check(row["state"] in ("refused", "failed") and row["reason"], "a result without a reason",
              row["state"])
        return row["state"]
    check_sums(document["case"], row)
    check_flops(document["case"], row)
    check_sim_table(document, program.table(["sim", *arguments]))
    return row["state"]


# --- cases -----------------------------------------------------------------------------------------


def check_beyond_64_bits(program):
    """Sums over ranks that exceed 64 bits; a case whose numbers exceed them for one rank is refused."""
    slow = ["--ranks", "8", "--cost", "unit", "--straggler", "0:100000", "--schedule", "zigzag"]
    document = program.document(["sim", *slow])
    check(D(document["results"][0]["span_sum_s"]) * 10**12 > 2**63, "not beyond 63 bits", slow)
    check(check_case(program, slow) == "ok", "not simulated", slow)
    for schedule in ("zigzag", "ring", "ulysses", "dfa-unbalanced"):
        large = ["--ranks", "64", "--seq-length", "64M", "--num-attention-heads", "64",
                 "--kv-channels", "64", "--schedule", schedule]
        document = program.document(["sim", *large])
        check(int(document["results"][0]["flops_sum"]) > 2**64, "not beyond 64 bits", schedule)
        check_case(program, large)
    huge = ["--ranks", "8", "--seq-length", "1G", "--schedule", "ring"]
    check(check_case(program, huge) == "refused", "not refused", huge)
    endless = ["--ranks", "8", "--cost", "unit", "--straggler", "7:1000000", "--schedule", "ring"]
    check(check_case(program, endless) == "refused", "not refused", endless)
    check_verify(program)


def check_verify(program):
    length = 64 * 2**20
    arguments = ["verify", "--schedule", "zigzag", "--ranks", "64", "--seq-length", str(length),
                 "--num-attention-heads", "32", "--num-query-groups", "32", "--kv-channels", "128",
                 "--micro-batch-size", "1", "--mask", "causal", "--dtype", "bf16", "--pass", "both"]
    (row,) = program.rows(arguments)
    pairs = length * (length + 1) // 2
    check(row["programs"] == "1", "more than one program", row)
    check(int(row["flops"]) == 14 * 32 * 128 * pairs, "flops proven", row["flops"])
    # Each block is computed forward and backward.
    check(int(row["pairs"]) == 2 * pairs, "pairs proven", row["pairs"])


def check_every_schedule(program):
    for case in (["--ranks", "8", "--seq-length", "1M"],
                 ["--ranks", "16", "--seq-length", "256K", "--mask", "full", "--pass", "bwd"],
                 ["--ranks", "4", "--seq-length", "64K", "--attention", "linear"],
                 ["--ranks", "8", "--cost", "unit", "--straggler", "0:100000"],
                 ["--ranks", "16", "--straggler", "3:2", "--straggler", "5:1.5", "--link-fault",
                  "nic:1:0.5", "--link-fault", "nvlink:0:0.25"]):
        document = program.document(["compare", *case])
        check_csv(document, program.rows(["compare", *case]))
        check_path(document)
        check_comparison_table(document, program.table(["compare", *case]))
        for row in document["results"]:
            if row["makespan_s"] is None:
                continue
            check_sums(document["case"], row)
            check_flops(document["case"], row)
            alone = program.document(["sim", *case, "--schedule", row["schedule"]])
            (same,) = alone["results"]
            of_all = {"vs_best": None, "vs_best_good_to": None}
            check({**same, **of_all} == {**row, **of_all},
                  "sim and compare disagree", row["schedule"])
            check(alone.keys() == document.keys(), "sim has different members", row["schedule"])


def random_case(rng, schedules):
    ranks = rng.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64))
    length = ranks * 2 * rng.choice((1, 3, 2**rng.randrange(0, 36)))
    heads = rng.choice((1, 8, 32, 33, 64, ranks, 2 * ranks, 1024))
    arguments = ["--schedule", rng.choice(schedules), "--ranks", str(ranks),
                 "--seq-length", str(length), "--num-attention-heads", str(heads),
                 "--kv-channels", str(rng.choice((1, 64, 128, 2**rng.randrange(0, 17)))),
                 "--pass", rng.choice(("fwd", "bwd", "both"))]
    maybe = [["--num-query-groups", str(rng.choice((1, heads, max(heads // 4, 1))))],
             ["--micro-batch-size", str(2**rng.randrange(0, 17))],
             ["--dtype", rng.choice(("fp16", "fp32"))], ["--mask", "full"],
             ["--window-size", str(rng.randrange(1, 2 * length))],
             ["--cost", rng.choice(("unit", "flops"))],
             ["--network", rng.choice(("alpha-beta", "fifo"))],
             ["--collectives", rng.choice(("tree", "pairwise", "nccl", "closed-form"))],
             ["--straggler", f"0:{10**rng.randrange(0, 7)}"], ["--jitter", "0.1"],
             ["--straggler", f"{ranks - 1}:1.5"], ["--link-fault", "nvlink:0:0.5"],
             ["--link-fault", "nic:0:0.25"],
             ["--no-overlap"], ["--pad-heads"], ["--attention", "linear"],
             ["--data-parallel-size", rng.choice(("1", "2", "3"))],
             ["--gradient-wire", rng.choice(("fp32", "16bit"))]]
    for option in maybe:
        if rng.random() < 0.2:
            arguments += option
    return arguments


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=40)
    options = parser.parse_args()
    program = Program(str(pathlib.Path(options.program).resolve()))
    listed = program.rows(["list", "schedules"])
    schedules = [row["name"] for row in listed]
    check_beyond_64_bits(program)
    check_every_schedule(program)
    rng = random.Random(options.seed)
    states = {}
    for _ in range(options.cases):
        arguments = random_case(rng, schedules)
        try:
            state = check_case(program, arguments)
        except (Wrong, subprocess.TimeoutExpired) as error:
            print(f"longhaul sim {shlex.join(arguments)}", file=sys.stderr)
            raise error
        states[state] = states.get(state, 0) + 1
    print(f"seed {options.seed}:", ", ".join(f"{n} {state or 'no case'}"
                                             for state, n in sorted(states.items(), key=str)))


if __name__ == "__main__":
    try:
        main()
    except Wrong as error:
        sys.exit(f"totals: {error}")
