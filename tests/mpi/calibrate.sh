#!/bin/bash
# calibrate and validate with one rank a process: what is measured is in the profile, with the collectives that are
# printed, and validate takes it. How far predictions are off says tests/net/calibrate.sh, not this: here ranks share
# cores with other tests.
#
#     calibrate.sh PROGRAM
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
tests=$(dirname "$(realpath "$0")")
# shellcheck source=tests/mpi/setup.sh
. "$tests/setup.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$(realpath "$1")
cd "$folder" || exit 99
need_mpi "$program"
/usr/bin/python3 -c 'import jsonschema' 2> /dev/null || exit 77

# refuses STATUS WORDS COMMAND...: what would be missing at the end is said before kernels are measured, which would
# take a minute with a thousand timings of each.
refuses() {
    timeout 60 "${@:3}" > out 2> err
    status=$?
    [ $status = "$1" ] && grep -q -- "$2" err && return
    echo "${*:3}: exit status $status, not $1:"
    cat err
    exit 1
}
refuses 2 'there is one process' mpirun -n 1 "$program" calibrate --backend mpi --repeat 1000
refuses 3 'no file "this-cpu.json"' env LONGHAUL_DATA_DIR="$folder" \
    mpirun -n 2 "$program" calibrate --backend mpi --repeat 1000

mpirun -n 3 "$program" calibrate --backend mpi --quick --repeat 1 -o profile.json --topology cluster.json > out 2> err || {
    cat err
    exit 1
}
mpirun -n 3 "$program" validate --backend mpi --profile profile.json --cluster cluster.json --schedule ring \
    --schedule lasp2 --attention linear --seq-length 48 --num-attention-heads 3 --kv-channels 64 --repeat 1 \
    -o validation.json --report report.md > /dev/null 2> err
status=$?
[ $status -le 1 ] || {
    cat err
    exit 1
}
/usr/bin/python3 - "$LONGHAUL_SOURCE_DIR/schemas" << 'END'
import json
import pathlib
import re
import sys

import jsonschema

for name, schema in (("profile", "profile"), ("cluster", "topology"), ("validation", "validation")):
    document = json.loads(pathlib.Path(name + ".json").read_text())
    jsonschema.validate(document, json.loads(pathlib.Path(sys.argv[1], schema + ".schema.json").read_text()))
checks = json.loads(pathlib.Path("profile.json").read_text())["collective_checks"]
kinds = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast"]
# Every member has as many, whole numbers of fp32.
sizes = [size // 12 * 12 for size in (64 << 10, 1 << 20)]
assert [(c["op"], c["ranks"], c["bytes"]) for c in checks] == [(k, 3, s) for k in kinds for s in sizes], checks
assert all(c["measured_s"] > 0 and c["predicted_s"] > 0 for c in checks), checks
out = pathlib.Path("out").read_text()
printed = re.findall(r"^(all-\S+|reduce-scatter|broadcast) +3 .* ([-+][0-9.]+)$", out, re.MULTILINE)
errors = [c["predicted_s"] / c["measured_s"] - 1 for c in checks]
assert [kind for kind, _ in printed] == [c["op"] for c in checks], out
assert all(abs(float(error) - 100 * wanted) < 0.06 for (_, error), wanted in zip(printed, errors)), (printed, errors)
END
