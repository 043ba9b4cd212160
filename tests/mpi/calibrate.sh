#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests calibrate and validate with one rank per process: the profile contains the measurements,
# including the collectives printed, and validate accepts it. Prediction errors are tested by
# tests/net/calibrate.sh: here ranks share cores with other tests.
#
#     calibrate.sh PROGRAM
#
# Two hosts with a rank each; with LONGHAUL_TEST_DEEP set also two with two each, and one with
# three. One host if the machine cannot have two.
#
# Exit status 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
need_module jsonschema

# refuses STATUS WORDS COMMAND...: errors that would show only at the end are reported before
# kernels are measured, which would take a minute with a thousand timings of each. Each process is
# limited to half of that in CPU time.
refuses() {
    (ulimit -t 30 && exec timeout 300 "${@:3}") > out 2> err
    status=$?
    [ $status = "$1" ] && grep -q -- "$2" err && return
    echo "${*:3}: exit status $status, not $1:"
    cat err
    exit 1
}
refuses 2 'there is one process' mpirun -n 1 "$program" calibrate --backend mpi --repeat 1000
refuses 3 'no file "this-cpu.json"' env LONGHAUL_DATA_DIR="$folder" \
    mpirun -n 2 "$program" calibrate --backend mpi --repeat 1000

for schema in profile topology validation; do
    "$program" help schema $schema > $schema.schema.json
done

cat > judge.py << 'END'
"""judge.py RANKS: what was measured is in the files, and what is printed."""
import json
import os
import pathlib
import re
import sys

import jsonschema


def load(name, schema):
    document = json.loads(pathlib.Path(name + ".json").read_text())
    jsonschema.validate(document, json.loads(pathlib.Path(schema + ".schema.json").read_text()))
    return document


ranks = int(sys.argv[1])
profile, cluster = load("profile", "profile"), load("cluster", "topology")
validation = load("validation", "validation")
out = pathlib.Path("out").read_text()

nodes, per_node = cluster["max_nodes"], cluster["node"]["gpus"]
assert nodes * per_node == ranks, cluster

# Of each host its kernels, and of two hosts a message.
assert {row["schedule"] for row in validation["schedules"]} == {"ring", "lasp2"}, validation["schedules"]
rows = [(n, None) for n in range(nodes)] + [(n, m) for n in range(nodes) for m in range(n + 1, nodes)]
assert [(row["node"], row.get("peer")) for row in validation["hosts"]] == rows, validation["hosts"]
assert all(row["measured_s"] > 0 and row["predicted_s"] > 0 for row in validation["hosts"]), validation["hosts"]

# Every member has as many, whole numbers of fp32; collectives of a host, too, where there are others.
kinds = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast"]
members = [per_node, ranks] if 1 < per_node < ranks else [ranks]
checks = profile["collective_checks"]
assert [(c["op"], c["ranks"], c["bytes"]) for c in checks] == [
    (k, m, size // (4 * m) * 4 * m) for k in kinds for m in members for size in (64 << 10, 1 << 20)], checks
assert all(c["measured_s"] > 0 and c["predicted_s"] > 0 for c in checks), checks
printed = re.findall(r"^(all-\S+|reduce-scatter|broadcast) +(\d+) .* ([-+][0-9.]+)$", out, re.MULTILINE)
errors = [c["predicted_s"] / c["measured_s"] - 1 for c in checks]
assert [(kind, int(m)) for kind, m, _ in printed] == [(c["op"], c["ranks"]) for c in checks], out
assert all(abs(float(error) - 100 * wanted) < 0.06 for (_, _, error), wanted in zip(printed, errors)), (printed, errors)

# Ranks of a machine share its cores, whatever its hosts are called.
assert profile.get("machine_ranks", ranks) == ranks, profile
hosts = re.search(r"hosts?: ([^;]*);", cluster["description"])[1].split(", ")
assert nodes == 1 or hosts == [f"host{n}" for n in range(nodes)], cluster["description"]

# All-gathers of all ranks, where a rank has several on other hosts: what further messages cost comes of them. What is
# printed is in the file.
fans = [row for row in profile["messages"] if row["flows"] == "fan"]
wanted = [32 << 10, 128 << 10, 512 << 10] if ranks - per_node > 1 else []
assert [row["bytes"] for row in fans] == wanted, fans
assert all(row["measured_s"] > 0 and row["fitted_s"] > 0 for row in fans), fans
overhead = re.search(r"^adapter, each further message +(.*)$", out, re.MULTILINE)
assert (overhead[1] if overhead else None) == cluster["node"].get("nics", {}).get("overhead"), (out, cluster)
END

# judge RANKS COMMAND...: checks the result of calibrate, with the program started by COMMAND, and
# that validate accepts it.
judge() {
    timeout -k 5 500 mpirun -n "$1" "${@:2}" calibrate --backend mpi --quick --repeat 1 -o profile.json \
        --topology cluster.json > out 2> err || {
        cat err
        exit 1
    }
    timeout -k 5 500 mpirun -n "$1" "${@:2}" validate --backend mpi --profile profile.json --cluster cluster.json \
        --schedule ring --schedule lasp2 --attention linear --seq-length 48 --num-attention-heads "$1" --kv-channels 64 --repeat 1 \
        -o validation.json --report report.md > /dev/null 2> err
    [ $? -le 1 ] || {
        cat err
        exit 1
    }
    /usr/bin/python3 judge.py "$1" || exit 1
    rm profile.json cluster.json validation.json report.md
}
per_host=1
if [ -n "${LONGHAUL_TEST_DEEP:-}" ]; then
    per_host=2
    judge 3 "$program"
fi

# Gives the processes two host names, which processes of one machine can have where namespaces are
# permitted. A user other than root keeps the user id: Open MPI's processes do not talk to those of
# another user.
ways=(--uts)
[ "$(id -u)" -eq 0 ] || ways+=(--map-current-user --keep-caps)
cat > on_hosts << END
#!/bin/bash
exec unshare ${ways[*]} sh -c 'hostname "host\$((OMPI_COMM_WORLD_RANK / $per_host))" && exec "\$@"' sh "\$@"
END
chmod +x on_hosts
if OMPI_COMM_WORLD_RANK=0 ./on_hosts true 2> err; then
    judge $((2 * per_host)) ./on_hosts "$program"
else
    echo "not tried: two hosts, since this machine makes none: $(cat err)"
    judge 3 "$program"
fi
