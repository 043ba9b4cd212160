#!/usr/bin/env python3
"""Holds README.md and docs/*.md against what the program prints: check-docs.py PROGRAM [--update].

What stands between a line <!-- longhaul ARGUMENTS --> and a line <!-- end --> is what the program
prints for these arguments: as it is if it is Markdown (--format md), else as indented text below the
command itself. With "| tables" behind the arguments, of a table of Markdown only rows of whole tables
stand there, and of these the columns that say how far off they are. --update writes it. Every schedule has a block <!-- longhaul show NAME --format about -->
in docs/schedules.md; --update appends a section for one that has none.
"""

import concurrent.futures
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


TABLES = " | tables"
COLUMNS = ["table", "numbers", "judged", "mean off", "worst off", "bias", "within error bars", "pairs in order"]


@functools.cache
def output_of(program, arguments):
    environment = dict(os.environ, LONGHAUL_DATA_DIR=str(ROOT), LC_ALL="C")
    result = subprocess.run([program, *shlex.split(arguments)], check=False, capture_output=True,
                            text=True, env=environment, cwd=ROOT)
    if result.returncode not in (0, 1): # 1: the answer is no, and is printed
        raise SystemExit(f"longhaul {arguments}: {result.stderr}")
    return result.stdout


def tables_of(text):
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    kept = [i for i, name in enumerate(rows[0]) if name in COLUMNS]
    judged = rows[0].index("judged")
    rows = [row for row in rows if len(row) == len(rows[0]) and not row[0].startswith("- ") and row[judged]]
    return "\n".join("| " + " | ".join(row[i] for i in kept) + " |" for row in rows)


def block(program, arguments):
    """The lines of a block, without its ends."""
    text = output_of(program, arguments.removesuffix(TABLES)).rstrip("\n")
    if arguments.endswith(TABLES):
        return f"\n{tables_of(text)}\n\n"
    if "--format md" in arguments:
        return f"\n{text}\n\n"
    lines = [f"$ longhaul {arguments}", *text.split("\n")]
    if "--format about" in arguments:
        lines = lines[1:]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"


def updated(program, text):
    return BLOCK.sub(lambda match: f"<!-- longhaul {match['arguments']} -->\n"
                     f"{block(program, match['arguments'])}<!-- end -->", text)


def with_all_schedules(program, text):
    names = [line.split(",")[0] for line in
             output_of(program, "list schedules --format csv").split("\n")[1:] if line]
    for name in names:
        if not re.search(rf"^<!-- longhaul show {name} --format about -->$", text, re.M):
            text += f"\n## {name}\n\n<!-- longhaul show {name} --format about -->\n<!-- end -->\n"
    return text


def main():
    program = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
    update = "--update" in sys.argv[2:]
    stale = 0
    texts = {path: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
    # Side by side first; then each is at hand.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        every = {match["arguments"].removesuffix(TABLES) for text in texts.values() for match in BLOCK.finditer(text)}
        list(pool.map(functools.partial(output_of, program), sorted(every)))
    for path, text in texts.items():
        wanted = with_all_schedules(program, text) if path.name == "schedules.md" else text
        wanted = updated(program, wanted)
        if wanted == text:
            continue
        stale += 1
        if update:
            path.write_text(wanted)
        else:
            name = str(path.relative_to(ROOT))
            sys.stdout.writelines(difflib.unified_diff(text.splitlines(True),
                                                       wanted.splitlines(True), name,
                                                       name + ", as printed"))
    return 1 if stale and not update else 0


if __name__ == "__main__":
    sys.exit(main())
