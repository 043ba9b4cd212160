#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the bill of materials: sbom.py PROGRAM SBOM.

Every digest is that of its file. All files that git tracks in the source and data folders, and all linked libraries,
are listed. The bill is reproducible: the same from a copy of the folders.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ["src", "topologies", "devices", "models", "frameworks", "scenarios"]
# ELF name -> library.
NAMES = {r"libglib-2\.0\.so": "glib-2.0", r"lib(c|m|dl|rt|pthread)\.so|ld-": "libc", r"libmpi\.so": "mpi",
         r"libcjson\.so": "cjson", r"libyaml-0\.so": "yaml", r"libz\.so": "zlib", r"libsqlite3\.so": "sqlite"}
SANITIZERS = r"lib(asan|ubsan|tsan|lsan|gcc_s|stdc\+\+)\.so"


def needed(program):
    text = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def hold_files(document):
    listed = {entry["fileName"].removeprefix("./"): entry for entry in document["files"]}
    assert len(listed) == len(document["files"]) > 500
    for name, entry in listed.items():
        data = (ROOT / name).read_bytes()
        found = {sum["algorithm"]: sum["checksumValue"] for sum in entry["checksums"]}
        assert found == {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}, name
    if shutil.which("git") and (ROOT / ".git").exists():
        known = subprocess.run(["git", "-C", ROOT, "ls-files", "--", *FOLDERS], check=True, capture_output=True,
                               text=True).stdout.split()
        known = {name for name in known if (ROOT / name).exists()}
        assert known <= listed.keys(), sorted(known - listed.keys())[:5]
    [program] = [p for p in document["packages"] if p["name"] == "longhaul"]
    assert sorted(program["hasFiles"]) == sorted(entry["SPDXID"] for entry in document["files"])
    assert len(set(program["hasFiles"])) == len(program["hasFiles"])


def hold_libraries(document, program):
    """The listed dynamic libraries are exactly those of the program."""
    linked = {r["relatedSpdxElement"].removeprefix("SPDXRef-") for r in document["relationships"]
              if r["relationshipType"] == "DYNAMIC_LINK"}
    found = set()
    for name in needed(program):
        if re.match(SANITIZERS, name):
            continue
        [key] = [key for pattern, key in NAMES.items() if re.match(pattern, name)]
        found.add(key)
    assert found == linked, (found, linked)
    packages = {p["SPDXID"] for p in document["packages"]} | {"SPDXRef-DOCUMENT"}
    for r in document["relationships"]:
        assert {r["spdxElementId"], r["relatedSpdxElement"]} <= packages, r
    for package in document["packages"]:
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"])
        known = package["licenseDeclared"].removeprefix("LicenseRef-") != package["licenseDeclared"]
        assert not known or any(entry["licenseId"] == package["licenseDeclared"]
                                for entry in document["hasExtractedLicensingInfos"]), package


def hold_repeats(document):
    """A copy of the folders gives the same bill; a changed byte gives another one."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "a copy"
        for name in FOLDERS + ["tools"]:
            shutil.copytree(ROOT / name, copy / name)

        def make(version="1", **environment):
            subprocess.run([copy / "tools" / "sbom.py", "--version", version, "--output", copy / "s.json",
                            "glib-2.0=2.74.6:dynamic"], check=True, env=dict(os.environ, **environment))
            return json.loads((copy / "s.json").read_text())

        made = make(SOURCE_DATE_EPOCH="1700000000")
        assert made["files"] == document["files"] and made["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
        assert made == make(SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C")
        with open(copy / "models" / "llama-7b.json", "a", encoding="utf-8") as file:
            file.write("\n")
        changed = make(SOURCE_DATE_EPOCH="1700000000")
        code = "packageVerificationCode"
        assert changed["packages"][0][code] != made["packages"][0][code]
        assert changed["documentNamespace"] != made["documentNamespace"]


def main():
    document = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    hold_files(document)
    hold_libraries(document, sys.argv[1])
    hold_repeats(document)
    return 0


sys.exit(main())
