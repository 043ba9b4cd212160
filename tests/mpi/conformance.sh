#!/bin/bash
# Programs of the conformance test with one rank a process against threads: the same bits and counts.
#
#     conformance.sh PROGRAM PRINT_PROGRAM
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
program=$(realpath "$1")
print=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99

command -v mpirun > /dev/null || exit 77
"$program" run --backend mpi --schedule ring --ranks 1 --seq-length 8 --num-attention-heads 1 \
    --kv-channels 64 > /dev/null 2> err || { grep -q 'without MPI' err && exit 77; }

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo
# Open MPI's own leaks are not ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
failed=0
compared=0

for what in $("$print") 1 2 3 4 5 6 7 8; do
    "$print" "$what" > file.json || exit 99
    ranks=$(sed -n 's/^ *"ranks": \([0-9]*\),$/\1/p' file.json | head -1)
    "$program" run --schedule-file file.json --format json > threads.json 2> err ||
        { failed=1; echo "FAILED: threads, $what: $(cat err)"; }
    timeout 120 mpirun -n "$ranks" "$program" run --backend mpi --schedule-file file.json --format json \
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
[ $compared -ge 14 ] || { failed=1; echo "FAILED: only $compared programs were compared"; }
exit $failed
