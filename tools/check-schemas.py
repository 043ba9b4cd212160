#!/usr/bin/env python3
"""Validates every data file against the JSON Schema whose $id its "schema" field names.

Only models may lack the field: the config.json of a published model is read as it is.
"""

import json
import pathlib
import sys

import jsonschema

KINDS = ("topologies", "devices", "models", "frameworks", "scenarios", "scenarios/papers",
         "tests/data/broken")


def main():
    validators = {}
    for path in sorted(pathlib.Path("schemas").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[schema["$id"]] = jsonschema.Draft202012Validator(schema)
    checked = 0
    failures = []
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
    print("\n".join(failures + [f"{checked} data files checked, {len(failures)} failures"]))
    return 1 if failures else 0


sys.exit(main())
