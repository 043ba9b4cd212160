#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks src/ against src/layers.txt: check-layers.py ROOT BUILD.

Errors: an include or a call upwards; a cycle of includes; within a room (a folder), a cycle of more than CIRCLE_MAX
files that call each other; a function or an object declared in a header other than its file's own or the room's
<subject>_private.h; a README.md of a room that contradicts layers.txt or names missing files. Calls are found in the
objects of BUILD, a Meson build folder that is up to date: a symbol that one object needs and another defines is a
call, however it was declared.

Prints one line per error, and fails if there is any.
"""

import json
import pathlib
import re
import subprocess
import sys

CIRCLE_MAX = 3
# Entries of tables: declared beside the table, each defined in its own file.
ENTRIES = re.compile(r"lh_((cpu_|cuda_)?kernel|schedule|command|transport|control|links|device)_\w+|"
                     r"lh_controls|lh_export_(chakra|goal|msccl)|lh_trace_(chrome|perfetto)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DECLARED = re.compile(r"\b(lh_\w+)\s*\(|\bextern\b[^;]*?\b(lh_\w+)\s*[\[;]")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def fail(message):
    sys.exit(f"check-layers: {message}")


class Layers:
    """The folders that each folder may use."""

    def __init__(self, path):
        self.uses, self.below = {}, {}
        joined = []
        for number, line in enumerate(path.read_text().split("\n"), 1):
            line = line.split("#")[0].strip()
            if re.fullmatch(r"\S+\s*=\s*\S+", line):
                joined.append([word.strip() for word in line.split("=")])
            elif re.fullmatch(r"\S+:(\s+\S+)*", line):
                name, *below = line.replace(":", " ", 1).split()
                for folder in below:
                    if folder not in self.uses:
                        fail(f"{path}:{number}: {name} stands on {folder}, which is not above it")
                self.below[name] = below
                self.uses[name] = {name}.union(below, *(self.uses[folder] for folder in below))
            elif line:
                fail(f"{path}:{number}: neither FOLDER: FOLDERS nor FOLDER = FOLDER")
        # Repeated once per pair, since a later pair may extend an earlier one.
        for one, other in joined * len(joined):
            both = self.uses[one] | self.uses[other]
            for name, below in self.uses.items():
                if name in (one, other) or below & {one, other}:
                    below |= both

    def allow(self, user, used):
        return used in self.uses[user]


def folder_of(path):
    return str(pathlib.PurePath(path).parent)


def read_includes(source):
    """For every file of src: the files of src that it includes, with the line."""
    includes = {}
    for path in sorted(source.rglob("*.[ch]")):
        text = path.read_text()
        includes[str(path.relative_to(source))] = [
            (text.count("\n", 0, match.start()) + 1, match.group(1))
            for match in INCLUDE.finditer(text) if (source / match.group(1)).is_file()]
    return includes


def check_includes(layers, includes):
    for path, included in includes.items():
        folder = folder_of(path)
        if folder not in layers.uses:
            yield f"src/{path}:1: src/layers.txt does not know the folder {folder}"
            continue
        for line, other in included:
            if not layers.allow(folder, folder_of(other)):
                yield f"src/{path}:{line}: {folder} may not include {other}"


def find_circles(includes):
    """Cycles of includes, each once, by depth-first search."""
    state, found = {}, []

    def visit(path, trail):
        state[path] = "open"
        for _, other in includes[path]:
            if state.get(other) == "open":
                found.append(trail[trail.index(other):] + [other])
            elif other not in state:
                visit(other, trail + [other])
        state[path] = "done"

    for path in includes:
        if path not in state:
            visit(path, [path])
    return [f"src/{circle[0]}:1: a circle of includes: {' -> '.join(circle)}" for circle in found]


def read_objects(source, build):
    """The objects of BUILD compiled from files of src, by file."""
    objects = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        output = pathlib.Path(command["directory"], command["output"])
        if source in path.parents and output.is_file():
            objects.setdefault(str(path.relative_to(source)), []).append(output)
    if not objects:
        fail(f"{build} has no object of a file of {source}: build it first")
    return objects


def read_symbols(objects):
    """For every file: the symbols that its objects define, and those that they need."""
    owners = {str(one): path for path, made in objects.items() for one in made}
    defined = {path: set() for path in objects}
    needed = {path: set() for path in objects}
    listed = subprocess.run(["nm", "-A", "-P", "-g", *owners], check=True, capture_output=True,
                            text=True)
    for line in listed.stdout.split("\n"):
        match = re.match(r"(.*\.o): (\S+) (\S)", line)
        if match:
            (needed if match.group(3) in "Uwv" else defined)[owners[match.group(1)]].add(
                match.group(2))
    return defined, needed


def check_calls(layers, defined, needed):
    definers = {name: path for path, names in defined.items() for name in names}
    for path, names in needed.items():
        folder = folder_of(path)
        for name in sorted(names):
            used = definers.get(name)
            if used is not None and folder in layers.uses and \
                    not layers.allow(folder, folder_of(used)):
                yield f"src/{path}:1: {folder} may not use {name}, which is src/{used}'s"


def strip(path):
    return path.rsplit(".", 1)[0]


def find_rings(edges):
    """The strongly connected components of a graph, by Tarjan's algorithm."""
    index, low, stack, rings = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            rings.append(stack[at:])
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return rings


def check_rings(defined, needed):
    """Cycles of calls among files of a room; a source and its header count as one."""
    definers = {name: path for path, names in defined.items() for name in names}
    edges = {}
    for path, names in needed.items():
        used = {definers[name] for name in names if name in definers and not ENTRIES.fullmatch(name)}
        edges[strip(path)] = {strip(other) for other in used
                              if folder_of(other) == folder_of(path) and other != path}
    for ring in find_rings(edges):
        if len(ring) > CIRCLE_MAX:
            yield f"src/{min(ring)}.c:1: {len(ring)} files call each other: {' '.join(sorted(ring))}"


def read_declarations(source):
    """For every name: the headers that declare it."""
    declared = {}
    for path in source.rglob("*.h"):
        for match in DECLARED.finditer(COMMENT.sub("", path.read_text())):
            declared.setdefault(match.group(1) or match.group(2), set()).add(str(path.relative_to(source)))
    return declared


def check_declarations(source, defined):
    declared = read_declarations(source)
    for path, names in sorted(defined.items()):
        for name in sorted(names):
            headers = declared.get(name, {strip(path) + ".h"})
            if ENTRIES.fullmatch(name) or path.endswith("absent.c"):
                continue
            if not any(header == strip(path) + ".h" or
                       (header.endswith("_private.h") and folder_of(header) == folder_of(path))
                       for header in headers):
                yield f"src/{path}:1: {name} is declared in {min(headers)}: declare it in {strip(path)}.h"


def check_readmes(source, layers):
    for room, below in layers.below.items():
        path = source / room / "README.md"
        text = path.read_text() if path.is_file() else ""
        uses = ", ".join(f"`{one}`" for one in below) or "nothing else"
        if f"May use: {uses}" not in " ".join(text.split()):
            yield f"src/{room}/README.md:1: says not 'May use: {uses}', as layers.txt does"
        for name in sorted(set(re.findall(r"(?<![\w/<*.-])(\w[\w/]*\.(?:c|h|cu|cuh))\b", text))):
            if not (any((source / room).rglob(pathlib.PurePath(name).name)) or (source / name).is_file() or
                    (source.parent / name).is_file()):
                yield f"src/{room}/README.md:1: there is no {name} here"


def main():
    if len(sys.argv) != 3:
        fail("usage: check-layers.py ROOT BUILD")
    source = (pathlib.Path(sys.argv[1]) / "src").resolve()
    build = pathlib.Path(sys.argv[2]).resolve()
    layers = Layers(source / "layers.txt")
    includes = read_includes(source)
    defined, needed = read_symbols(read_objects(source, build))
    errors = [*check_includes(layers, includes), *find_circles(includes),
              *check_calls(layers, defined, needed), *check_rings(defined, needed),
              *check_declarations(source, defined), *check_readmes(source, layers)]
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
