#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the registers of GPU kernels with the table: check-registers.py [--update] BUILD.

src/kernels/cuda/registers.tsv has the number of registers of every kernel on every architecture. A change
must be reviewed, since more registers may make a kernel slower. Spills to memory are errors. --update writes
the table from a build with -Dgpu_archs=80,90,90a,100. Architectures missing in BUILD are listed and
skipped; with another version of nvcc than the table's, only spills are checked. Exit status 77 if BUILD has
no kernels.
"""

import argparse
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).resolve().parent.parent / "src/kernels/cuda/registers.tsv"
KERNEL = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def name_of(mangled):
    """A kernel's name and template arguments, without the namespaces of files."""
    done = subprocess.run(["c++filt", mangled], check=True, capture_output=True, text=True)
    name = re.sub(r"(\(anonymous namespace\)|lh)::", "", done.stdout.strip())
    return re.sub(r"^void |\([^()]*\)$", "", name)


def read_logs(build):
    """Registers by kernel and architecture, and the errors."""
    found, wrong, kernel = {}, [], None
    for path in sorted((build / "src/kernels/cuda").glob("*.ptxas")):
        for line in path.read_text(encoding="utf-8").splitlines():
            started, spills, used = (p.search(line) for p in (KERNEL, SPILLS, REGISTERS))
            if started:
                kernel = (name_of(started.group(1)), started.group(2))
            elif spills and kernel and any(map(int, spills.groups())):
                wrong.append(f"{kernel[0]} on sm_{kernel[1]}: {line.strip()}")
            elif used and kernel:
                found[kernel] = int(used.group(1))
    return found, wrong


def read_table():
    """The version of nvcc, and registers by kernel and architecture."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    heads, *rows = rows
    return heads[0], {(row[0], arch): int(cell)
                      for row in rows for arch, cell in zip(heads[1:], row[1:])}


def arch_order(arch):
    """Sort key: 90a follows 90."""
    return int(re.sub(r"\D", "", arch)), arch


def write_table(version, found):
    archs = sorted({arch for _, arch in found}, key=arch_order)
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write("# Registers of a thread of each kernel, by architecture; tools/check-registers.py\n")
        file.write("\t".join([version, *archs]) + "\n")
        for name in sorted({name for name, _ in found}):
            file.write("\t".join([name, *(str(found[name, arch]) for arch in archs)]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--update", action="store_true", help="write the table")
    parser.add_argument("build", type=pathlib.Path, help="a build folder that is up to date")
    args = parser.parse_args()
    found, wrong = read_logs(args.build)
    if not found:
        print("skipped: no kernels were compiled for a GPU")
        return 77
    said = (args.build / "src/kernels/cuda/nvcc.version").read_text(encoding="utf-8")
    version = re.search(r"V[\d.]+", said).group()
    if args.update:
        write_table(version, found)
        return 0
    table_version, table = read_table()
    archs = {arch for _, arch in found} & {arch for _, arch in table}
    for arch in sorted({arch for _, arch in table} - archs, key=arch_order):
        print(f"check-registers: BUILD has no kernels for sm_{arch}")
    for name, arch in sorted(set(found) | set(table)):
        if arch not in archs or version != table_version:
            continue
        is_now, was = (rows.get((name, arch), "none") for rows in (found, table))
        if is_now != was:
            wrong.append(f"{name} on sm_{arch}: {is_now} registers, {was} in {TABLE.name}")
    for line in wrong:
        print(f"check-registers: {line}")
    return 1 if wrong else 0


sys.exit(main())
