#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of CONTRIBUTING.md that neither the compiler nor clang-tidy checks.

Prints one line per finding, and fails if there is any. A line may break a rule with a reason:
/* nocheck:<rule>: <reason> */.
"""

import pathlib
import re
import subprocess
import sys

COLUMNS_MAX = 100
LINES_MAX = 600  # of a file of src/
FILES_MAX = 40  # of a folder of src/
NAMES = pathlib.Path("tools/names.tsv")
UNIT = r"(ps|ns|us|ms|s|seconds|bytes|per_s)"

# Rule, files it applies to, pattern on code without comments and strings, message.
CODE_RULES = [
    ("goto", r"\.[ch]$", r"\bgoto\b", "no goto: use g_autoptr and early returns"),
    ("locale", r"\.[ch]$", r"\b(setlocale|strtod|strtof|atof|atoi|atol)\s*\(",
     "depends on the locale or hides errors: use g_ascii_* or base/units.h"),
    ("unsafe", r"\.[ch]$", r"\b(gets|strcpy|strcat|sprintf|vsprintf|alloca)\s*\(",
     "writes without a bound"),
    ("random", r"^src/.*\.[ch]$", r"\b(s?rand|s?random|drand48|g_random_\w+)\s*\(",
     "not reproducible: use base/rng.h"),
    ("print", r"^src/(?!cli/).*\.[ch]$", r"\b(printf|puts|putchar|perror|g_print|g_printerr|exit)\s*\(",
     "only src/cli prints or exits: return a GError"),
    ("files", r"^src/(?!base/).*\.c$",
     r"\b(g_file_set_contents\w*|freopen|creat|mkstemp|(g_)?rename|popen|system|g_spawn_\w+|g_subprocess_\w+)\s*\(",
     "files are written by base/files/output.h, and programs are run by base/files/subprocess.h"),
    ("read", r"^src/(?!base/).*\.c$",
     r"(?<![>.\w])((g_)?f?open|openat|gzopen|g_file_get_contents|g_mapped_file_new|sqlite3_open\w*)\s*\(",
     "files are read by base/files/file_input.h, so that nothing overwrites them; files of the system are exempt"),
    # An LhTime needs no suffix: its type is its unit.
    ("unit", r"^src/.*\.h$",
     r"\b(double|u?int\d+_t|gsize|size_t|int|unsigned)\s+\*?(?!\w*_" + UNIT + r"(_\w+)?\s*[;,)\[])"
     r"(\w*_)?(bandwidth|latency|duration|makespan|timeout|time)\s*[;,)\[]",
     "a physical quantity ends in its unit"),
]
TEXT_RULES = [
    ("tab", r"\.([ch]|py|json|md|build)$", r"\t", "tab"),
    ("space", r".", r"[ \t]+$", "space at the end of the line"),
    ("word", r"^(?!tools/check-style)", r"\b(TODO|FIXME|XXX|HACK|WIP)\b",
     "unfinished work: finish it or open an issue"),
    ("riddle", r"^(?!tools/check-style|CHANGELOG).*\.([ch]|cuh?|py|sh|md|build)$|^(quickstart|check|\.ci/run)$",
     r"\b([Ww]hoever|So many|[Ww]ho (takes|sends|waits|computes|reads|writes|asks)|(is|are|been) had|"
     r"(is|are|was|were|be|been) told|(held|hold|holds) (it |them |that )?against|the same again|not told apart|"
     r"takes (longer )?at least from|how far off|what is off|good to (%|\d)|[Oo]f one's own|"
     r"how far [\w ]{1,40} can be trusted|[Ww]hat [\w ]{1,30} takes at least)\b",
     "must be read twice: use the noun and the verb of CONTRIBUTING.md, Text"),
    ("path", r"^(?!tools/check-style)", r"""(^|[\s"'(=])/(home|root|Users|work|workspace)/""",
     "a path of a single machine"),
]


def tracked_files():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.split("\n") if pathlib.Path(path).is_file()]


def without_comments_and_strings(text):
    """Replaces comments and strings by blanks, keeping lines and columns."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def findings_in(path, text):
    lines = text.split("\n")
    code = without_comments_and_strings(text).split("\n")
    if re.search(r"\.[ch]$", path) and not text.endswith("\n"):
        yield path, len(lines), "no line break at the end of the file"
    for number, (line, bare) in enumerate(zip(lines, code), 1):
        if re.search(r"\.[ch]$", path) and len(line) > COLUMNS_MAX:
            yield path, number, f"{len(line)} columns (at most {COLUMNS_MAX})"
        for source, rules in ((bare, CODE_RULES), (line, TEXT_RULES)):
            for rule, files, pattern, message in rules:
                if re.search(files, path) and re.search(pattern, source):
                    if f"nocheck:{rule}" not in line and not (rule == "read" and '("/proc/' in line):
                        yield path, number, f"{message} [{rule}]"
    if re.search(r"^src/.*\.h$", path):
        first = next((line for line in code if line.strip()), "")
        if first.strip() != "#pragma once":
            yield path, 1, "does not start with #pragma once after its comment [once]"


# File-private definitions: functions, variables, types, and constants of enumerations.
OWN_NAMES = [
    r"^static\b[^;{}()=]*?\b(\w+)\s*\(",
    r"^static\b[^;{}()=]*?\b(\w+)(?:\[[^\]\n]*\])*\s*[=;]",
    r"^\}\s*(\w+)(?:\[[^\]\n]*\])*\s*[=;]",
    r"^typedef\b[^;{}]*?\b(\w+);",
]
OWN_ENUM = r"^(?:typedef )?enum(?: \w+)?\s*\{([^}]*)\}"


def own_names(code):
    code = re.sub(r"\b(_Atomic|G_GNUC_\w+)(\([^)]*\))?", "", code)
    names = {name for pattern in OWN_NAMES for name in re.findall(pattern, code, flags=re.M)}
    for body in re.findall(OWN_ENUM, code, flags=re.M):
        names |= {name for name in re.findall(r"(?:^|,)\s*(\w+)", body)}
    return names


def shared_names(codes):
    """File-private names defined by two files of a library, which prevent unity builds (-Dunity=on)."""
    first = {}
    for path, code in sorted(codes.items()):
        library = str(pathlib.PurePath(path).parent)
        # Kernels are compiled file by file: see src/meson.build.
        if re.match(r"src/kernels/(cpu|cuda)/", path):
            continue
        for name in sorted(own_names(code)):
            other = first.setdefault((library, name), path)
            if other != path:
                yield path, 1, f"{other} has a file-private '{name}', too [own]"


LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = r"\.([ch]|cuh?|py|sh)$|(^|/)meson\.build$|^(quickstart|check|\.ci/run)$"


def unlicensed(texts):
    """Files without their licence in the first two lines."""
    for path, text in texts.items():
        if re.search(LICENSED, path) and not path.startswith("tests/data/"):
            if not any(LICENCE in line for line in text.split("\n", 2)[:2]):
                yield path, 1, f"does not begin with {LICENCE} [licence]"


def is_source(path):
    return re.search(r"^src/.*\.([ch]|cuh?)$", path) is not None


def outgrown(texts):
    """Files and folders above the size limits."""
    folders = {}
    for path, text in texts.items():
        if is_source(path):
            folders.setdefault(str(pathlib.PurePath(path).parent), []).append(path)
            if text.count("\n") > LINES_MAX:
                yield path, LINES_MAX + 1, f"{text.count(chr(10))} lines (at most {LINES_MAX}) [long]"
    for folder, paths in folders.items():
        if len(paths) > FILES_MAX:
            yield folder, 1, f"{len(paths)} files (at most {FILES_MAX}) [folder]"


def old_names(texts):
    """Old names of tools/names.tsv that are in use again."""
    rows = [line.split("\t") for line in NAMES.read_text().splitlines() if not line.startswith("#")][1:]
    new = {row[2] for row in rows}
    old = {row[1]: row[2] for row in rows if row[1] not in new and " " not in row[1]}
    files = {name: other for name, other in old.items() if "." in name}
    words = re.compile(r"\b_?((?:lh_|Lh|LH_)\w+)\b")
    for path, text in texts.items():
        if path.removeprefix("src/") in files:
            yield path, 1, f"is called {files[path.removeprefix('src/')]} [name]"
        if re.search(r"\.([ch]|cuh?)$", path):
            for number, line in enumerate(text.split("\n"), 1):
                for word in words.findall(line):
                    if word in old:
                        yield path, number, f"{word} is called {old[word]} [name]"


def reached_headers(path, seen):
    """All names in #include lines that are reachable from a header of src/."""
    for name in re.findall(r'^#include\s+["<]([^">]+)', path.read_text(), flags=re.M):
        if name not in seen:
            seen.add(name)
            if (pathlib.Path("src") / name).is_file():
                reached_headers(pathlib.Path("src") / name, seen)
    return seen


def main():
    findings, codes, texts = [], {}, {}
    for path in tracked_files():
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if not path.startswith("fuzz/corpus/"):
            findings += findings_in(path, text)
            texts[path] = text
        if re.search(r"^src/.*\.c$", path):
            codes[path] = without_comments_and_strings(text)
    findings += [*shared_names(codes), *outgrown(texts), *old_names(texts),
                 *unlicensed(texts)]
    # Device compilers read these headers, and GLib's are not made for them.
    for header in pathlib.Path("src/kernels").glob("*.h"):
        if "shared with device code" in header.read_text() and any(
                name.startswith("glib") for name in reached_headers(header, set())):
            findings.append((str(header), 1, "reaches <glib.h>, but is shared with device code"))
    for path, number, message in findings:
        print(f"{path}:{number}: {message}")
    return 1 if findings else 0


sys.exit(main())
