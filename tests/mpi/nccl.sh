#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `longhaul run --backend nccl` with one rank per process, on the stand-ins. Results must equal
# those of threads on the CPU bit by bit; any failure of a rank must end all of them in time, with
# an error status and a message.
#
#     nccl.sh PROGRAM STANDIN
#
# PROGRAM is longhaul on the stand-in for CUDA, STANDIN the library that replaces NCCL. Exit status
# 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
LONGHAUL_NCCL=$(realpath "$2")
export LONGHAUL_NCCL
begin "$1"
shape='--num-attention-heads 4 --kv-channels 32'

# compare SCHEDULE RANKS
compare() {
    # shellcheck disable=SC2086
    set -- "$2" --schedule "$1" --ranks "$2" $shape --seq-length $((16 * $2)) --format json
    "$program" run "${@:2}" >threads.json 2>threads.err || fail "threads: $* $(cat threads.err)"
    timeout 120 mpirun -n "$1" "$program" run --backend nccl "${@:2}" >nccl.json 2>nccl.err ||
        fail "nccl: $* $(cat nccl.err)"
    agree threads.json nccl.json "$*" outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"tensor"' \
        '"within"'
}

export STANDIN_SEED=3 STANDIN_EAGER=30
for schedule in zigzag te-p2p usp attention2d-no; do
    compare $schedule 4
done
compare tokenring 3

# expect NAME STATUS PATTERN COMMAND...: runs a job that must fail and leave no process and no file.
expect() {
    local name=$1 expected=$2 pattern=$3 status started=$SECONDS
    shift 3
    timeout 60 mpirun "$@" >/dev/null 2>err
    status=$?
    if [ "$expected" = any ]; then
        [ $status -ne 0 ] && [ $status -ne 124 ] || fail "$name: status $status"
    else
        [ $status -eq "$expected" ] || fail "$name: status $status, not $expected: $(cat err)"
    fi
    grep -q -e "$pattern" err || fail "$name: $(cat err)"
    [ $((SECONDS - started)) -lt 40 ] || fail "$name: ended after $((SECONDS - started)) s"
    none_left "$program" 5 >/dev/null || fail "$name: a process is left"
}

run="$program run --backend nccl --schedule ring --ranks 3 --deadline 2s $shape --seq-length 48"
# shellcheck disable=SC2086
{
    expect 'a rank that sends nothing' 4 'error: rank 1 on host .*: 2 other ranks wait for it' \
        -n 3 $run --inject stall:1
    STANDIN_NCCL=error=1:6 expect 'an asynchronous error' 4 \
        'rank 1: NCCL: .*: remote process exited' -n 3 $run
    STANDIN_NCCL=silent=1 expect 'a rank that never connects' 4 \
        'in the connections of communicator 0 of ranks 0, 1, 2' -n 3 $run
    STANDIN_NCCL=hang=2 expect 'a rank that never joins' 4 'in the communicator of all ranks' \
        -n 3 $run
    STANDIN_NCCL=exit=1:6 expect 'a process that is gone' any '' -n 3 $run
    expect 'a rank without NCCL' 4 'rank 1: NCCL: cannot load /nowhere (' \
        -n 1 $run : -n 1 env LONGHAUL_NCCL=/nowhere $run : -n 1 $run
    expect 'a rank without a device' 4 'no GPU is visible' \
        -n 1 $run : -n 1 env STANDIN_DEVICES=0 $run : -n 1 $run
    expect 'a rank without a device of its own' 4 'rank 2 needs GPU 2 of this machine, which has 2' \
        -n 2 $run : -n 1 env STANDIN_DEVICES=2 $run
    expect 'a rank without a driver' 4 'there is no driver for NVIDIA GPUs here' \
        -n 2 $run : -n 1 env STANDIN_DRIVER=-1 $run
    expect 'a rank with an old driver' 4 'the driver is too old: it supports CUDA 11.8' \
        -n 2 $run : -n 1 env STANDIN_DRIVER=11080 $run
    expect 'a rank without memory' 4 "the GPU's memory is full" \
        -n 1 $run : -n 1 env STANDIN_MEMORY=1000000 $run : -n 1 $run
    expect 'a rank with another seed' 2 '--seed differs: rank 1 has 1, and ranks 0, 2 have 0' -n 1 $run : -n 1 $run --seed 1 : -n 1 $run
    expect 'a rank with another option' 2 '--no-overlap differs: rank 2 has yes, and ranks 0, 1 have none' \
        -n 2 $run : -n 1 $run --no-overlap
}
# The stand-in removes its files when all ranks have joined, which some never did here.
for file in /dev/shm/longhaul-nccl-*; do
    process=${file#/dev/shm/longhaul-nccl-}
    kill -0 "${process%%-*}" 2>/dev/null || rm -f "$file"
done
exit $failed
