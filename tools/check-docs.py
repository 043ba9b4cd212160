#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the printed blocks of README.md and of docs/ against the program: check-docs.py PROGRAM [--update].

A block is the text between a line <!-- longhaul ARGUMENTS --> and a line <!-- end -->. It equals the program's output
for these arguments: verbatim if it is Markdown (--format md), else as indented text below the command. ARGUMENTS may
end in one of
    "| tables"        only rows of whole tables, and only columns of errors
    "| index"         only tables, without rows that begin with "- "
    "| columns A; B"  only these columns of the first table; "all": all of them
    "| answer"        the text below the first table, one paragraph a line
    "> FILE"          an empty block: the output goes to FILE beside the page
A block <!-- csv FILE [columns=A,B] [where=COLUMN:VALUE] --> ... <!-- end --> has rows of FILE, which is beside the
page, as a table. --update writes all blocks. Every schedule has a block <!-- longhaul show NAME --format about --> in
docs/reference/schedules.md; --update appends a section for a schedule without one.
"""

import concurrent.futures
import csv
import difflib
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^<!-- longhaul (?P<arguments>[^\n]*) -->\n(?P<text>.*?)^<!-- end -->$", re.M | re.S)


CSV = re.compile(r"^<!-- csv (?P<file>\S+)(?P<options>[^\n]*) -->\n.*?^<!-- end -->$", re.M | re.S)

TABLES = " | tables"
INDEX = " | index"
COLUMNS_OF = " | columns "
ANSWER = " | answer"
INTO = " > "
COLUMNS = ["table", "numbers", "judged", "mean error", "worst error", "bias", "within error bars", "pairs in order"]


@functools.cache
def output_of(program, arguments):
    environment = dict(os.environ, LONGHAUL_DATA_DIR=str(ROOT), LC_ALL="C")
    result = subprocess.run([program, *shlex.split(arguments)], check=False, capture_output=True,
                            text=True, env=environment, cwd=ROOT)
    if result.returncode not in (0, 1): # 1: the answer is no, and is printed
        raise SystemExit(f"longhaul {arguments}: {result.stderr}")
    return result.stdout


def command_of(arguments):
    """The arguments of longhaul."""
    return arguments.removesuffix(TABLES).removesuffix(INDEX).removesuffix(ANSWER).split(COLUMNS_OF)[0].split(INTO)[0]


def index_of(text):
    rows = [line for line in text.split("\n") if line.startswith("|") and not line.startswith("| - ")]
    return "\n".join(rows)


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def first_table(text):
    """The lines of the first table, and those below it."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
    return lines[start:end], lines[end:]


def columns_of(text, names):
    rows = [cells_of(line) for line in first_table(text)[0]]
    kept = range(len(rows[0])) if names == ["all"] else [rows[0].index(name) for name in names]
    return "\n".join("| " + " | ".join(row[i] for i in kept) + " |" for row in rows)


def answer_of(text):
    return "\n\n".join(line for line in first_table(text)[1] if line)


def tables_of(text):
    rows = [cells_of(line) for line in index_of(text).split("\n")]
    kept = [i for i, name in enumerate(rows[0]) if name in COLUMNS]
    judged = rows[0].index("judged")
    rows = [row for row in rows if row[judged]]
    return "\n".join("| " + " | ".join(row[i] for i in kept) + " |" for row in rows)


def block(program, arguments):
    """The lines of a block, without its first and last line."""
    text = output_of(program, command_of(arguments)).rstrip("\n")
    if INTO in arguments:
        return ""
    if COLUMNS_OF in arguments:
        return f"\n{columns_of(text, arguments.split(COLUMNS_OF)[1].split('; '))}\n\n"
    if arguments.endswith(ANSWER):
        return f"\n{answer_of(text)}\n\n"
    if arguments.endswith(INDEX):
        return f"\n{index_of(text)}\n\n"
    if arguments.endswith(TABLES):
        return f"\n{tables_of(text)}\n\n"
    if "--format md" in arguments:
        return f"\n{text}\n\n"
    lines = [f"$ longhaul {arguments}", *text.split("\n")]
    if "--format about" in arguments:
        lines = lines[1:]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"


def is_number(text):
    return re.fullmatch(r"[-+]?[\d.,]+( ?%)?|-|", text) is not None


def csv_table(path, options):
    """The rows of a CSV file as a table of Markdown: all columns and rows, or those of columns= and where=."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    wanted = dict(word.split("=", 1) for word in shlex.split(options))
    if set(wanted) - {"columns", "where"}:
        raise SystemExit(f"{path}: csv {options}: allowed are columns= and where=")
    columns = wanted["columns"].split(",") if "columns" in wanted else list(rows[0])
    if "where" in wanted:
        column, value = wanted["where"].split(":", 1)
        rows = [row for row in rows if row[column] == value]
    if not rows:
        raise SystemExit(f"{path}: csv {options}: no row")
    lines = [[name.replace("_", " ") for name in columns],
             ["---:" if all(is_number(row[name]) for row in rows) else "---" for name in columns],
             *([row[name].replace("|", "\\|") for name in columns] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def updated(program, text, folder=ROOT):
    text = CSV.sub(lambda match: f"<!-- csv {match['file']}{match['options']} -->\n\n"
                   f"{csv_table(folder / match['file'], match['options'])}\n<!-- end -->", text)
    return BLOCK.sub(lambda match: f"<!-- longhaul {match['arguments']} -->\n"
                     f"{block(program, match['arguments'])}<!-- end -->", text)


def with_all_schedules(program, text):
    names = [line.split(",")[0] for line in
             output_of(program, "list schedules --format csv").split("\n")[1:] if line]
    for name in names:
        if not re.search(rf"^<!-- longhaul show {name} --format about -->$", text, re.M):
            text += f"\n## {name}\n\n<!-- longhaul show {name} --format about -->\n<!-- end -->\n"
    return text


def written_files(program, texts):
    """Path and content of the files that blocks write beside their pages."""
    return {path.parent / match["arguments"].split(INTO)[1]: output_of(program, command_of(match["arguments"]))
            for path, text in texts.items() for match in BLOCK.finditer(text) if INTO in match["arguments"]}


def show_or_write(path, text, wanted, update):
    """Writes a stale file, or shows the difference. Returns whether the file is stale."""
    if wanted == text:
        return False
    if update:
        path.write_text(wanted)
    else:
        name = str(path.relative_to(ROOT))
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True), name,
                                                   name + ", as printed"))
    return True


def main():
    program = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
    update = "--update" in sys.argv[2:]
    stale = 0
    texts = {path: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
    # Runs all commands in parallel first; output_of() caches the results.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        every = {command_of(match["arguments"]) for text in texts.values() for match in BLOCK.finditer(text)}
        list(pool.map(functools.partial(output_of, program), sorted(every)))
    for path, wanted in written_files(program, texts).items():
        stale += show_or_write(path, path.read_text() if path.exists() else "", wanted, update)
    for path, text in texts.items():
        wanted = with_all_schedules(program, text) if path.name == "schedules.md" else text
        wanted = updated(program, wanted, path.parent)
        stale += show_or_write(path, text, wanted, update)
    return 1 if stale and not update else 0


if __name__ == "__main__":
    sys.exit(main())
