#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates every data file against the JSON Schema of its format: check-schemas.py PROGRAM.

PROGRAM prints the schemas; the field "schema" of a file names its format. Only models may lack the field: the
config.json of a published model is read unchanged. Also checks that the schemas allow exactly the backends of
src/runtime/backend.c.
"""

import json
import pathlib
import re
import subprocess
import sys

import jsonschema

KINDS = ("topologies", "devices", "models", "frameworks", "scenarios", "scenarios/papers",
         "tests/data/broken")


def backends_allowed(node):
    """The values of every property "backend" below the node."""
    if isinstance(node, list):
        return [values for child in node for values in backends_allowed(child)]
    if not isinstance(node, dict):
        return []
    found = [values for child in node.values() for values in backends_allowed(child)]
    own = node.get("properties", {}).get("backend", {})
    return found + ([own["enum"]] if "enum" in own else [])


def read_schemas(program):
    """The schemas of all formats that have one."""
    listed = subprocess.run([program, "list", "formats", "--format", "json"], check=True,
                            capture_output=True, text=True)
    for entry in json.loads(listed.stdout)["entries"]:
        name = re.fullmatch(r"longhaul\.([\w-]+)/\d+", entry["name"])
        shown = name and subprocess.run([program, "help", "schema", name[1]], check=False,
                                        capture_output=True, text=True)
        if shown and shown.returncode == 0:
            yield json.loads(shown.stdout)


def main():
    source = pathlib.Path("src/runtime/backend.c").read_text(encoding="utf-8")
    backends = re.findall(r'"(\w+)"', re.search(r"lh_backend_names\[\] = {([^}]*)}", source)[1])
    validators = {}
    for schema in read_schemas(sys.argv[1]):
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[schema["$id"]] = jsonschema.Draft202012Validator(schema)
    checked = 0
    failures = [f"{name}: allows the backends {allowed}; src/runtime/backend.c has {backends}"
                for name, validator in validators.items()
                for allowed in backends_allowed(validator.schema) if allowed != backends]
    for path in sorted(path for kind in KINDS for path in pathlib.Path(kind).glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if "schema" not in data and path.parts[0] == "models":
            continue
        validator = validators.get(data.get("schema"))
        if validator is None:
            failures.append(f"{path}: no schema has the $id {data.get('schema')!r}")
            continue
        checked += 1
        failures += [f"{path}: {error.json_path}: {error.message}"
                     for error in validator.iter_errors(data)]
    installed = re.findall(r"^  '([\w-]+)',$", re.search(
        r"formats = \[([^]]*)\]", pathlib.Path("share/meson.build").read_text(encoding="utf-8"))[1], re.M)
    named = [re.sub(r"longhaul\.([\w-]+)/.*", r"\1", name) for name in validators]
    if sorted(installed) != sorted(named):
        failures.append(f"share/meson.build installs the schemas {installed}; the formats are {named}")
    print("\n".join(failures + [f"{checked} data files checked, {len(failures)} failures"]))
    return 1 if failures else 0


sys.exit(main())
