#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests that longhaul validate names the slow host and the slow link, over three hosts in
# namespaces: one gets a tenth of the predicted rate, then one has slow kernels.
#
#     slow.sh PROGRAM WIRE
#
# The constants are not measured here: the cluster's file gives slightly less than the real rate,
# and any profile will do, since hosts are compared with each other. On a shared machine other hosts
# may be slow too: only the one made slow must be named. Exit status 77 if MPI is absent, or the
# machine does not allow such hosts.
set -u
# shellcheck source=tests/net/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"

cat > cluster.json <<'END'
{
  "schema": "longhaul.topology/1", "name": "hosts", "description": "three hosts of one rank, 100 Mb/s",
  "source": "tests/net/slow.sh", "device": "this-cpu",
  "node": {
    "gpus": 1,
    "scale_up": { "kind": "none" },
    "nics": { "count": 1, "bandwidth": "8 MB/s", "latency": "1 ms", "ctas": 0, "provenance": "assumed",
              "source": "tests/net/cluster.sh make 3 100mbit 200" }
  },
  "max_nodes": 3
}
END
"$program" calibrate --quick --repeat 1 --threads 1 -o profile.json > out 2> err || { cat err; exit 1; }
# The profile's links are this machine's memory, not the cluster's.
/usr/bin/python3 - << 'END' || exit 1
import json

with open("profile.json", encoding="utf-8") as file:
    profile = json.load(file)
del profile["nvlink"]
with open("profile.json", "w", encoding="utf-8") as file:
    json.dump(profile, file)
END

# Host SLOW_HOST uses the kernels that compute in fp64, which are several times slower.
cat > rank.sh <<'END'
[ "$(hostname)" = "${SLOW_HOST:-}" ] && set -- "$@" --kernels reference
exec "$@"
END
cat > inside.sh <<'END'
validate() {
    timeout 150 "$cluster" mpirun 1 bash rank.sh "$program" validate --backend mpi --profile profile.json --cluster cluster.json \
        --schedule zigzag --seq-length 1536 --num-attention-heads 4 --kv-channels 64 --pass fwd --repeat 3 --statistic best \
        -o "$1.json" --report "$1.md" > out 2> err
    # Exit status 1 is the program's own judgement of its predictions.
    [ $? -le 1 ] && [ -s "$1.md" ]
}

# must_name NAME PATTERN: validation NAME says so.
must_name() {
    validate "$1" || { cat err; return 1; }
    grep -Eq "$2" "$1.md" && return
    echo "$1: nothing says '$2':"
    grep -E '^(Slow|No host)|messages|kernels' "$1.md"
    return 1
}

"$cluster" rate 1 10mbit
must_name network 'Slow: the network of host node1: its messages take [0-9.]+ to [0-9.]+ times as long' || exit 1
"$cluster" rate 1 100mbit

SLOW_HOST=node2 must_name host \
    'Slow: host node2: its kernels take [0-9.]+ times as long as predicted, those of the median host' || exit 1

/usr/bin/python3 -c 'import jsonschema' 2> err || exit 0
"$program" help schema validation > schema.json
/usr/bin/python3 - schema.json network.json host.json << 'PY'
import json, sys

import jsonschema

schema, *documents = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
for document in documents:
    jsonschema.validate(document, schema)
    assert len(document["hosts"]) == 6, document["hosts"]
slow = {(row["node"], row["peer"]) for row in documents[0]["hosts"] if row["slow"] and "peer" in row}
assert slow >= {(0, 1), (1, 2)}, slow
PY
END
"$cluster" make 3 100mbit 200 -- bash inside.sh
