#!/bin/bash
# Programs of the conformance test with one rank a process against threads: the same bits and counts.
#
#     conformance.sh PROGRAM PRINT_PROGRAM
#
# These are some of them; if LONGHAUL_TEST_DEEP is set, they are all.
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
program=$(realpath "$1")
print=$(realpath "$2")
tests=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
# shellcheck source=tests/mpi/setup.sh
. "$tests/setup.sh"
need_mpi "$program"
failed=0
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
        { failed=1; echo "FAILED: threads, $what: $(cat err)"; }
    timeout 300 mpirun -n "$ranks" "$program" run --backend mpi --schedule-file file.json --format json \
        > mpi.json 2> err || { failed=1; echo "FAILED: mpi, $what: $(cat err)"; }
    for key in outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"ok": true'; do
        if ! grep -q "$key" mpi.json ||
            [ "$(grep "$key" threads.json)" != "$(grep "$key" mpi.json)" ]; then
            failed=1
            echo "FAILED: $key: $what"
        fi
    done
    compared=$((compared + 1))
done
# Some tokens of each rank; ulysses does not put out lse.
for schedule in $sampled; do
    if ! timeout 300 mpirun -n 4 "$program" run --backend mpi --schedule $schedule --ranks 4 --seq-length 256 \
        --num-attention-heads 8 --num-query-groups 4 --kv-channels 32 --check-tokens 5 --format json > sampled.json \
        2> err || ! grep -q '"ok": true' sampled.json; then
        failed=1
        echo "FAILED: --check-tokens 5: $schedule: $(cat err)"
    fi
done
[ $compared -ge $least ] || { failed=1; echo "FAILED: only $compared programs were compared"; }
exit $failed
