#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests longhaul run over hosts connected by a network: results, and the bytes that cross it.
#
#     run.sh PROGRAM WIRE
#
# Exit status 77 if MPI is absent, or the machine does not allow such hosts (cluster.sh).
set -u
# shellcheck source=tests/net/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"

cat > inside.sh <<'END'
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
sent() { sed -n 's/^ *port0: *\([0-9]*\) .*/\1/p' /proc/net/dev; }

[ "$("$cluster" mpirun 2 hostname | sort | uniq -c | tr -s ' \n' ' ')" = ' 2 node0 2 node1 ' ] ||
    fail 'hosts have names of their own'
for schedule in zigzag te-allgather; do
    before=$(sent)
    timeout 120 "$cluster" mpirun 2 "$program" run --backend mpi --schedule $schedule --ranks 4 \
        --seq-length 256 --num-attention-heads 4 --kv-channels 64 --format json > run.json 2> err ||
        fail "$schedule: $(cat err)"
    # Of 256 tokens, k and v of 4 heads in 16 bits are 256 KiB: a quarter of that leaves node0 at least.
    [ $(($(sent) - before)) -gt 65536 ] || fail "$schedule: nothing has crossed the network"
done
exit $failed
END
"$cluster" make 2 1gbit 200 node1=500mbit -- bash inside.sh
