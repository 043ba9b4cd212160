#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes longhaul-sbom, the software bill of materials of a build, as SPDX 2.3 in JSON:

    tools/sbom.py --version VERSION --output FILE [--depfile FILE] [LIBRARY=VERSION:HOW...]

It lists every source file of the program and every installed data file, with their digests, and the libraries
that the program links or loads. Meson calls it; HOW is the use of the library, a key of RELATIONS. The same
sources and libraries give the same bytes in any folder and at any time; the timestamp is SOURCE_DATE_EPOCH, or
1970.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("src",)
DATA = ("topologies", "devices", "models", "frameworks", "scenarios")

# Library as named by Meson -> name, licence, supplier.
LIBRARIES = {
    "glib-2.0": ("GLib", "LGPL-2.1-or-later", "Organization: The GNOME Project"),
    "libc": ("GNU C Library", "LGPL-2.1-or-later", "Organization: GNU Project"),
    "cjson": ("cJSON", "MIT", "Organization: cJSON contributors"),
    "yaml": ("LibYAML", "MIT", "Organization: The YAML Project"),
    "zlib": ("zlib", "Zlib", "Organization: zlib.net"),
    "sqlite": ("SQLite", "blessing", "Organization: SQLite Consortium"),
    "mpi": ("Open MPI", "BSD-3-Clause", "Organization: The Open MPI Project"),
    "cudart": ("CUDA Runtime", "LicenseRef-NVIDIA", "Organization: NVIDIA Corporation"),
    "nccl": ("NCCL", "BSD-3-Clause", "Organization: NVIDIA Corporation"),
    "cudnn": ("cuDNN", "LicenseRef-NVIDIA", "Organization: NVIDIA Corporation"),
    "gnuplot": ("gnuplot", "LicenseRef-gnuplot", "Organization: The gnuplot team"),
}
RELATIONS = {
    "dynamic": ("SPDXRef-longhaul", "DYNAMIC_LINK", "SPDXRef-{}"),
    "static": ("SPDXRef-longhaul", "STATIC_LINK", "SPDXRef-{}"),
    "loaded": ("SPDXRef-{}", "OPTIONAL_DEPENDENCY_OF", "SPDXRef-longhaul"),
}
LICENCES = {
    "LicenseRef-NVIDIA": "NVIDIA Software License Agreement; see the documentation of the CUDA Toolkit and of cuDNN.",
    "LicenseRef-gnuplot": "The gnuplot licence; see the file Copyright of gnuplot.",
}


def files():
    """Sources and data files, in an order that does not depend on the file system."""
    paths = (path for folder in SOURCES + DATA for path in (ROOT / folder).rglob("*"))
    return sorted((path for path in paths if path.is_file() and not path.name.startswith(".")
                   and not path.name.endswith("~")), key=lambda path: path.relative_to(ROOT).as_posix())


def describe_file(path):
    data, name = path.read_bytes(), path.relative_to(ROOT).as_posix()
    return {
        "SPDXID": "SPDXRef-file-" + hashlib.sha256(name.encode()).hexdigest()[:16],
        "fileName": "./" + name,
        "fileTypes": ["SOURCE" if name.startswith("src/") else "TEXT"],
        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                      {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
        "licenseConcluded": "Apache-2.0",
        "licenseInfoInFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    }


def verification_code(described):
    """Package verification code: SPDX 2.3, 7.9."""
    digests = sorted(entry["checksums"][0]["checksumValue"] for entry in described)
    return hashlib.sha1("".join(digests).encode()).hexdigest()


def describe_program(version, described):
    return {
        "SPDXID": "SPDXRef-longhaul",
        "name": "longhaul",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification_code(described)},
        "primaryPackagePurpose": "APPLICATION",
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "licenseInfoFromFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
        "hasFiles": [entry["SPDXID"] for entry in described],
    }


def describe_library(key, version):
    name, licence, supplier = LIBRARIES[key]
    return {
        "SPDXID": f"SPDXRef-{key}",
        "name": name,
        **({"versionInfo": version} if version else {}),
        "supplier": supplier,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "APPLICATION" if key == "gnuplot" else "LIBRARY",
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }


def relation(first, kind, second):
    return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}


def describe(version, libraries):
    described = [describe_file(path) for path in files()]
    created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    used = sorted({LIBRARIES[key][1] for key, _, _ in libraries} & LICENCES.keys())
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"longhaul-{version}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: longhaul-sbom"]},
        "packages": [describe_program(version, described)]
                    + [describe_library(key, number) for key, number, _ in libraries],
        "files": described,
        "hasExtractedLicensingInfos": [{"licenseId": name, "extractedText": LICENCES[name]} for name in used],
        "relationships": [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-longhaul")]
                         + [relation(*(word.format(key) for word in RELATIONS[how])) for key, _, how in libraries],
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["documentNamespace"] = f"https://spdx.org/spdxdocs/longhaul-{version}-{digest[:32]}"
    return document


def library(word):
    key, _, rest = word.partition("=")
    version, _, how = rest.rpartition(":")
    if key not in LIBRARIES or how not in RELATIONS:
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=VERSION:HOW with a name of LIBRARIES")
    return key, version, how


def main():
    parser = argparse.ArgumentParser(description="Write the bill of materials of a build.")
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--depfile", type=pathlib.Path, help="dependencies of the output, for ninja")
    parser.add_argument("libraries", nargs="*", type=library)
    o = parser.parse_args()
    text = json.dumps(describe(o.version, o.libraries), indent=1, ensure_ascii=False) + "\n"
    o.output.write_text(text, encoding="utf-8")
    if o.depfile:
        names = " ".join(str(path).replace(" ", "\\ ") for path in files())
        o.depfile.write_text(f"{o.output}: {names}\n", encoding="utf-8")
    return 0


sys.exit(main())
