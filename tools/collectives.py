#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the measured collectives of a topology file from a table of nccl-tests times.

    tools/collectives.py TABLE.csv                                      lists the GPUs of the table
    tools/collectives.py TABLE.csv --gpu NAME                           prints rows of JSON
    tools/collectives.py TABLE.csv --gpu NAME --topology FILE [--check] puts them into the file
    tools/collectives.py TABLE.csv --errors                             holdout errors by GPU

The table has the columns gpu, op, num_gpus, size_bytes_nccl_tests, time_us and nccl_version. A row's
time at a size is the median over the rows of one GPU (--gpu may be repeated) and of versions of NCCL
that agree: the mean difference of any two of them is at most 5 % for every operation from 256 KiB on.
The newest version's rows come first and are the default. --lines also fits the three lines (LL, LL128,
Simple) of each operation to all versions of the first GPU, for numbers of GPUs without rows. The result
depends on the table alone. --check writes nothing; exit status 1 if the file differs from the result.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import re
import statistics
import sys

OPERATIONS = {"all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
              "all_reduce": "all-reduce", "alltoall": "all-to-all"}
LL_BYTES = 64 << 10  # bytes that a rank sends: approximate limits of NCCL's protocols
LL128_BYTES = {"all-reduce": 8 << 20}
LL128_BYTES_ELSE = 4 << 20
RATE_MAX = 1e5  # GB/s: faster terms are omitted
LEFT_OUT_FROM = 256 << 10  # smallest size of errors and of differences between versions
AGREE = 0.05
BEND = 2 / 3  # fraction of the way from the line between two knots to the intersection of their neighbours' lines


def read(path):
    """{gpu: {version: {(operation, ranks): {bytes: [us]}}}}."""
    times = collections.defaultdict(lambda: collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(list))))
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = OPERATIONS[row["op"]], int(row["num_gpus"])
            sizes = times[row["gpu"]][row["nccl_version"]][key]
            sizes[int(row["size_bytes_nccl_tests"])].append(float(row["time_us"]))
    return times


def pooled(by_version, versions):
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    for version in versions:
        for key, samples in by_version[version].items():
            for size, us in samples.items():
                table[key][size] += us
    return table


def version_key(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def agree(one, other):
    """Whether the tables of two versions agree."""
    differences = collections.defaultdict(list)
    for key in one.keys() & other.keys():
        for size in one[key].keys() & other[key].keys():
            if size >= LEFT_OUT_FROM:
                ratio = statistics.median(one[key][size]) / statistics.median(other[key][size])
                differences[key[0]].append(abs(math.log(ratio)))
    return all(statistics.mean(values) <= AGREE for values in differences.values())


def groups_of(by_version):
    """Versions that agree, the newest first."""
    groups = []
    for version in sorted(by_version, key=version_key, reverse=True):
        for group in groups:
            if all(agree(by_version[version], by_version[other]) for other in group):
                group.append(version)
                break
        else:
            groups.append([version])
    return groups


def knots(samples):
    """Sizes and medians, rounded as the tables print them; a last size that is no slower than the
    one before it cannot be extrapolated and is omitted."""
    points = [(size, round(statistics.median(us), 3)) for size, us in sorted(samples.items())]
    while len(points) > 2 and points[-1][1] <= points[-2][1]:
        points.pop()
    return points


def line(points, start, size):
    (low, a), (high, b) = points[start:start + 2]
    return a + (b - a) * (size - low) / (high - low)


def interpolate(points, size):
    """As in src/sim/network/collectives/collective_times.c."""
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return line(points, len(points) - 2, size)
    start = next(i for i in range(len(points) - 1) if size <= points[i + 1][0])
    straight = line(points, start, size)
    if start == 0 or start + 2 >= len(points):
        return straight
    before, after = line(points, start - 1, size), line(points, start + 1, size)
    if min(before, after) > straight:
        meet = min(before, after)
    elif max(before, after) < straight:
        meet = max(before, after)
    else:
        return straight
    low, high = sorted((points[start][1], points[start + 1][1]))
    return straight + BEND * (min(max(meet, low), high) - straight)


# ---- three lines ---------------------------------------------------------------------------------


def parts_of(operation, ranks, size):
    """Factors of base, hop, bandwidth and copy: 1, hops, bytes sent, bytes to one peer."""
    rounds = 2 if operation == "all-reduce" else 1
    hops = math.log2(ranks) if operation == "all-to-all" else rounds * (ranks - 1)
    sent = rounds * size * (ranks - 1) / ranks
    return 1.0, hops, sent, sent / (ranks - 1)


def fit(rows):
    """Non-negative least squares of relative errors, by coordinate descent: rows of (parts, us)."""
    scales = [max(parts[i] for parts, _ in rows) for i in range(4)]
    a = [[parts[i] / scales[i] / us for i in range(4)] for parts, us in rows]
    x = [0.0] * 4
    residual = [1.0] * len(rows)
    for _ in range(20000):
        for i in range(4):
            norm = sum(line[i] ** 2 for line in a)
            step = sum(line[i] * r for line, r in zip(a, residual)) / norm
            new = max(0.0, x[i] + step)
            residual = [r - line[i] * (new - x[i]) for line, r in zip(a, residual)]
            x[i] = new
    return [value / scale for value, scale in zip(x, scales)]


def line_of(coefficients):
    base, hop, byte, copy = coefficients
    line = {"base": f"{base:.2f}us", "hop": f"{hop:.2f}us"}
    for name, us in (("bandwidth", byte), ("copy", copy)):
        if us > 1e-3 / RATE_MAX:
            line[name] = f"{1e-3 / us:.0f}GB/s"
    return line


def three_lines(operation, table, source):
    limits = LL_BYTES, LL128_BYTES.get(operation, LL128_BYTES_ELSE), math.inf
    row = {"op": operation}
    low = -1
    for name, high in zip(("ll", "ll128", "simple"), limits):
        rows = []
        for (op, ranks), samples in sorted(table.items()):
            for size, us in knots(samples):
                parts = parts_of(op, ranks, size)
                if op == operation and low < parts[2] <= high:
                    rows.append((parts, us))
        if not rows:
            return None
        row[name] = line_of(fit(rows))
        low = high
    row.update(ll_bytes=limits[0], ll128_bytes=limits[1], provenance="fitted", source=source)
    return row


# ---- output --------------------------------------------------------------------------------------


def rows_of(by_version, source):
    rows = []
    for group in groups_of(by_version):
        for (operation, ranks), samples in sorted(pooled(by_version, group).items(), key=lambda item: (
                list(OPERATIONS.values()).index(item[0][0]), item[0][1])):
            points = knots(samples)
            versions = [v for v in group if (operation, ranks) in by_version[v]]
            rows.append({"op": operation, "ranks": ranks,
                         "nccl": ", ".join(sorted(versions, key=version_key)),
                         "bytes": [size for size, _ in points], "us": [us for _, us in points],
                         "provenance": "measured", "source": source})
    return rows


def lines_of(table, source):
    rows = (three_lines(operation, table, source) for operation in OPERATIONS.values())
    return [row for row in rows if row is not None]


def text_of(document):
    """JSON in the layout of topology files: arrays of numbers, and rows of lines, on one line."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    text = re.sub(r"\"measured_on\": \{[^{}]*(\{[^{}]*\}[^{}]*)*\}",
                  lambda m: re.sub(r"\s+", " ", m[0]).replace("{ ", "{").replace(" }", "}"), text)
    return re.sub(r"\{\s+(\"base\"[^{}]+?)\s+\}", lambda m: "{" + re.sub(r"\s+", " ", m[1]) + "}",
                  text) + "\n"


def links_of(node):
    """The links that rows were measured on: those of the file."""
    places = [place for place in ("scale_up", "pcie")
              if "bandwidth" in node.get(place, {}) and
              (place == "scale_up" or node["scale_up"]["kind"] in ("none", "pairs"))]
    return {place: {key: node[place][key] for key in ("bandwidth", "latency")} for place in places}


def with_rows(document, times, lines):
    node = {}
    for key, value in document["node"].items():
        if key not in ("measured_on", "collective_times", "collective_lines"):
            node[key] = value
    document["schema"] = "longhaul.topology/2"
    node["measured_on"] = links_of(node)
    node["collective_times"] = times
    if lines:
        node["collective_lines"] = lines
    return {key: node if key == "node" else value for key, value in document.items()}


def print_errors(times):
    """Prints errors of every size except the first and the last, predicted from the others."""
    everything = collections.defaultdict(list)
    for gpu in sorted(times):
        errors = collections.defaultdict(list)
        for group in groups_of(times[gpu]):
            for (operation, _), samples in pooled(times[gpu], group).items():
                points = knots(samples)
                for i in range(1, len(points) - 1):
                    if points[i][0] < LEFT_OUT_FROM:
                        continue
                    others = points[:i] + points[i + 1:]
                    error = abs(interpolate(others, points[i][0]) / points[i][1] - 1)
                    errors[operation].append(error)
                    everything[operation].append(error)
        print(f"{gpu}: " + ", ".join(f"{name} {100 * statistics.mean(values):.1f} %"
                                     for name, values in sorted(errors.items())))
    print("all: " + ", ".join(f"{name} {100 * statistics.mean(values):.1f} %"
                              for name, values in sorted(everything.items())))


def source_of(options, gpu):
    return (options.source or options.table).replace("{gpu}", gpu.removeprefix("NVIDIA "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table")
    parser.add_argument("--gpu", action="append", help="a name of the column gpu; may be repeated")
    parser.add_argument("--source", default="", help="source of the table; {gpu} is replaced by the GPU's name")
    parser.add_argument("--topology", type=pathlib.Path, help="put the rows into this file")
    parser.add_argument("--lines", action="store_true", help="also fit the three lines")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the file would change")
    parser.add_argument("--errors", action="store_true", help="print holdout errors of sizes")
    options = parser.parse_args()
    times = read(options.table)
    if options.errors:
        print_errors(times)
        return 0
    if options.gpu is None:
        print("\n".join(sorted(times)))
        return 0
    rows = []
    for gpu in options.gpu:
        if gpu not in times:
            parser.error(f"no GPU \"{gpu}\" in {options.table}; known: {', '.join(sorted(times))}")
        rows += rows_of(times[gpu], source_of(options, gpu))
    first = times[options.gpu[0]]
    lines = lines_of(pooled(first, first), source_of(options, options.gpu[0])) if options.lines else []
    if options.topology is None:
        print(text_of({"collective_times": rows, **({"collective_lines": lines} if lines else {})}), end="")
        return 0
    before = options.topology.read_text(encoding="utf-8")
    after = text_of(with_rows(json.loads(before), rows, lines))
    if options.check:
        return int(before != after)
    options.topology.write_text(after, encoding="utf-8")
    return 0


sys.exit(main())
