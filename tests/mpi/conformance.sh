#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs programs of the conformance test with one rank per process: digests and counts must equal
# those of threads.
#
#     conformance.sh PROGRAM PRINT_PROGRAM
#
# Tests some of the programs; with LONGHAUL_TEST_DEEP set, all.
#
# Exit status 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
print=$(realpath "$2")
begin "$1"
compared=0

if [ -n "${LONGHAUL_TEST_DEEP:-}" ]; then
    programs="$("$print") 1 2 3 4 5 6 7 8" least=14 sampled='ring ulysses'
else
    programs="$("$print" | sed -n 4,5p) 1" least=3 sampled=ulysses
fi
for what in $programs; do
    "$print" "$what" > file.json || exit 99
    ranks=$(sed -n 's/^ *"ranks": \([0-9]*\),$/\1/p' file.json | head -1)
    "$program" run --schedule-file file.json --format json > threads.json 2> err ||
        fail "threads, $what: $(cat err)"
    timeout 300 mpirun -n "$ranks" "$program" run --backend mpi --schedule-file file.json --format json \
        > mpi.json 2> err || fail "mpi, $what: $(cat err)"
    agree threads.json mpi.json "$what" outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"ok": true'
    compared=$((compared + 1))
done
# Some tokens of each rank; ulysses does not return lse.
for schedule in $sampled; do
    if ! timeout 300 mpirun -n 4 "$program" run --backend mpi --schedule $schedule --ranks 4 --seq-length 256 \
        --num-attention-heads 8 --num-query-groups 4 --kv-channels 32 --check-tokens 5 --format json > sampled.json \
        2> err || ! grep -q '"ok": true' sampled.json; then
        failed=1
        echo "FAILED: --check-tokens 5: $schedule: $(cat err)"
    fi
done
[ $compared -ge $least ] || fail "only $compared programs were compared"
exit $failed
