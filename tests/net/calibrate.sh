#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests longhaul calibrate and validate over hosts in namespaces: calibrate must find the cluster
# that was made, also with a slow adapter, and with its constants the simulator must predict run
# times.
#
#     calibrate.sh PROGRAM WIRE
#
# Rates are low enough for the network to be the bottleneck, not the CPU. LONGHAUL_NET_GATE bounds
# the median of the makespans' errors, 0.15 by default; a third of it bounds the errors of rates (a
# half with MPI), four thirds that of latency. On a shared machine, measurements depend on its other
# load. Exit status 77 if MPI is absent, or the machine does not allow such hosts (cluster.sh).
set -u
# shellcheck source=tests/net/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"
need_module jsonschema

for schema in profile topology validation; do
    "$program" help schema $schema > $schema.schema.json
done

cat > judge.py <<'END'
"""judge.py found|latencies|predicted: whether the files say what they must."""
import hashlib
import json
import os
import re
import statistics
import sys

import jsonschema


def load(path, schema=None):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if schema:
        with open(f"{schema}.schema.json", encoding="utf-8") as file:
            jsonschema.validate(document, json.load(file))
    return document


def megabytes(text):
    number, unit = text.split()
    return float(number) * {"kB/s": 1e-3, "MB/s": 1, "GB/s": 1e3}[unit]


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]


GATE = float(os.environ.get("LONGHAUL_NET_GATE", "0.15"))


def found():
    nodes, per_node, slow = (int(word) for word in sys.argv[2:5])
    profile = load("profile.json", "profile")
    cluster = load("cluster.json", "topology")
    collectives(nodes * per_node)
    nics = cluster["node"]["nics"]
    overhead(profile["messages"], nics)
    assert cluster["max_nodes"] == nodes and cluster["node"]["gpus"] == per_node, cluster["description"]
    assert nics["count"] == 1, nics
    # 50 Mb/s less the headers of TCP and IP are 5.98 MB/s.
    rate_gate = GATE / (3 if sys.argv[5] == "tcp" else 2)
    assert abs(megabytes(nics["bandwidth"]) / 5.98 - 1) < rate_gate, nics["bandwidth"]
    slower = nics.get("slower", [])
    assert [row["node"] for row in slower] == ([slow] if slow >= 0 else []), slower
    assert all(abs(megabytes(row["bandwidth"]) / 2.39 - 1) < rate_gate for row in slower), slower


def overhead(messages, nics):
    """What further messages cost was looked for, and what is printed is in the file."""
    fans = [row for row in messages if row["flows"] == "fan"]
    assert [row["bytes"] for row in fans] == [32 << 10, 128 << 10, 512 << 10], fans
    with open("out", encoding="utf-8") as out:
        printed = re.search(r"^adapter, each further message +(.*)$", out.read(), re.MULTILINE)
    assert (printed[1] if printed else None) == nics.get("overhead"), (printed, nics)


def latencies():
    """A message of longhaul makes three trips: that its receiver is ready, the message, and that it is there. Over TCP, at
    two delays in microseconds, what it takes longer is three times what they differ by."""
    found_s = {}
    for delay in sys.argv[2:]:
        node = load(f"cluster.{delay}.json")["node"]
        latency = node["nics"]["latency"], node["scale_up"].get("latency", "0 us")
        found_s[int(delay)] = sum(seconds(text) for text in latency)
    (short, least_s), (long, most_s) = sorted(found_s.items())
    assert abs((most_s - least_s) / (3e-6 * (long - short)) - 1) < GATE * 4 / 3, found_s


def collectives(ranks):
    """Of the table that calibrate prints: kinds, sizes, and how far those over the network are off."""
    kinds = "all-gather|reduce-scatter|all-reduce|all-to-all|broadcast"
    with open("out", encoding="utf-8") as out:
        rows = re.findall(rf"^({kinds}) +(\d+) +(\d+ [KM]iB) .* ([-+][0-9.]+)$", out.read(), re.MULTILINE)
    errors = [abs(float(row[3])) / 100 for row in rows if int(row[1]) == ranks]
    assert {row[0] for row in rows} == set(kinds.split("|")) and len(errors) == 10, rows
    assert statistics.median(errors) < GATE, rows


def predicted():
    v = load("validation.json", "validation")
    lines = "".join(line + "\n" for line in v["prediction"]["lines"])
    assert hashlib.sha256(lines.encode()).hexdigest() == v["prediction"]["sha256"]
    texts = {row["path"] for row in v["files"]}
    assert {"profile.json", "cluster.json", "devices/this-cpu.json"} <= texts, texts
    assert v["summary"]["runs"] == 3 * len(v["schedules"]), v["summary"]
    assert v["summary"]["error_median"] < GATE, [
        (row["schedule"], row["makespan_error"]) for row in v["schedules"]]


try:
    {"found": found, "latencies": latencies, "predicted": predicted}[sys.argv[1]]()
except AssertionError as error:
    sys.exit(f"{' '.join(sys.argv[1:])}: {error}")
END

cat > inside.sh <<'END'
# PER_NODE SLOW found|predicted BACKEND DELAY: SLOW is the number of the node that is slow, -1 for none
backend=$4
calibrate() {
    timeout 200 "$cluster" mpirun "$1" "$program" calibrate --backend "$backend" --quick --repeat 1 \
        -o profile.json --topology cluster.json > out 2> err || return 1
    /usr/bin/python3 judge.py found "$NET_NODES" "$1" "$2" "$backend" 2> err
}

validate() {
    rm -f validation.json
    # Exit status 1 is the program's own judgement, of each schedule and kernel.
    timeout 200 "$cluster" mpirun "$1" "$program" validate --backend "$backend" --profile profile.json \
        --cluster cluster.json --schedule ring --schedule dfa-balanced --schedule te-a2a \
        --seq-length 128 --num-attention-heads 16 --kv-channels 128 --pass fwd --repeat 3 \
        --budget 100s -o validation.json --report report.md > out 2> err
    [ -f validation.json ] && grep -q 'rank correlation' report.md &&
        /usr/bin/python3 judge.py predicted 2> err
}

if calibrate "$1" "$2" && { [ "$3" = found ] || validate "$1"; }; then
    [ "$backend" = mpi ] || cp cluster.json "cluster.$5.json"
    exit 0
fi
echo "$* of $NET_NODES hosts: $(cat err)"
exit 1
END
failed=0
measure() {
    "$cluster" make "$@"
    local status=$?
    [ $status -ne 77 ] || exit 77
    [ $status -eq 0 ] || failed=1
}
measure 2 50mbit 200 -- bash inside.sh 2 -1 predicted mpi 200
measure 2 50mbit 200 -- bash inside.sh 2 -1 predicted tcp 200
measure 3 50mbit 1000 1=20mbit -- bash inside.sh 1 1 found tcp 1000
[ $failed = 1 ] || /usr/bin/python3 judge.py latencies 200 1000 || failed=1
exit $failed
