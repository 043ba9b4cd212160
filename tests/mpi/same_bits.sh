#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares `longhaul run` with one rank per process to threads: the digests, counts and exit
# statuses must be equal. A rank that dies or stalls must end the job with an error status, leaving
# no process.
#
#     same_bits.sh PROGRAM
#
# Tests some of the cases. With LONGHAUL_TEST_DEEP set, tests all and checks how long the end takes.
#
# Exit status 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
deep=${LONGHAUL_TEST_DEEP:-}
left_s=${deep:+5} left_s=${left_s:-60} # within which a process must end

# compare RANKS STATUS OPTIONS...: threads and processes must give the same digest and counts.
compare() {
    local ranks=$1 expected=$2
    shift 2
    # shellcheck disable=SC2086
    compare_runs "$ranks" "$expected" --ranks "$ranks" --seq-length $((ranks * 12)) $shape "$@"
}

# Likewise for the case given by the options.
compare_runs() {
    local ranks=$1 expected=$2
    shift 2
    set -- --format json "$@"
    "$program" run "$@" >threads.json 2>threads.err
    local status=$?
    compared=$((compared + 1))
    [ $status -eq "$expected" ] || fail "threads, status $status: $* $(cat threads.err)"
    timeout 300 mpirun -n "$ranks" "$program" run --backend mpi "$@" >mpi.json 2>mpi.err
    status=$?
    [ $status -eq "$expected" ] || fail "mpi, status $status: $* $(cat mpi.err)"
    agree threads.json mpi.json "$*" outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"tensor"' \
        '"within"'
}

compared=0
shape='--num-attention-heads 4 --kv-channels 64' # a head for every rank

# A rank that never sends: every rank reports what it waits for, with status 4. The deadline is far
# away, and the others must not wait for it.
mkdir stall && (
    cd stall && own_files "$PWD" || exit 99
    # shellcheck disable=SC2086
    exec timeout 500 mpirun -n 4 "$program" run --backend mpi --schedule ring --ranks 4 --seq-length 48 $shape \
        --num-query-groups 2 --inject stall:1 --deadline 20s >/dev/null 2>../stall.err
) &
stall=$!

if [ -n "$deep" ]; then
    schedules=$("$program" list schedules --format csv | sed 1d | cut -d, -f1)
    of_six='dfa-balanced ring zigzag' of_shared='ring ulysses attention2d-o'
else
    schedules=lasp2 of_six=dfa-balanced of_shared=ulysses
fi
for schedule in $schedules; do
    compare 4 0 --schedule "$schedule"
done
shape="$shape --num-query-groups 2"
for schedule in $of_six; do
    compare 6 0 --schedule $schedule --dtype fp32 --kernels reference
done
over shared
for schedule in $of_shared; do
    compare 4 0 --schedule $schedule
done
over tcp
# Programs found by the search: GPUs, cluster and pass.
found() {
    "$program" synth --cluster "$2" --num-attention-heads 8 --num-query-groups 8 --kv-channels 64 \
        --seq-length 1K --pass "$3" --budget 4 --output found.json >found 2>&1 || fail "synth: $* $(cat found)"
    grep -q '^Proven and written to found.json: the best candidate' found || fail "synth: $* $(cat found)"
    compare_runs "$1" 0 --schedule-file found.json
}
if [ -n "$deep" ]; then
    found 4 azure-nc96-a100:1 fwd
    found 8 azure-nc96-a100:2 fwd
    found 8 azure-nc96-a100:2 both
fi
least=${deep:+17} least=${least:-3}
[ $compared -ge "$least" ] || fail "only $compared cases were compared"
compare 4 0 --schedule zigzag --repeat 3 --inject delay:5
compare 4 1 --schedule ring --inject wrong-kv-head

wait $stall
status=$?
[ $status -eq 4 ] || fail "stall: status $status, not 4"
grep -q 'rank 2, op .* receives from rank 1, slot fwd_kv' stall.err || fail "stall: $(cat stall.err)"

# A rank that is killed ends the job with an error status long before the deadline of the others.
# shellcheck disable=SC2086
timeout 300 mpirun -n 4 "$program" run --backend mpi --schedule ring --ranks 4 --seq-length 48 $shape \
    --inject stall:1 --deadline 500s >/dev/null 2>err &
job=$!
while [ "$(left "$program" | wc -l)" -lt 4 ] && kill -0 $job 2>/dev/null; do sleep 0.1; done
sleep 1
started=$SECONDS
kill -KILL "$(left "$program" | sed -n 2p)"
wait $job
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ] || fail "kill: status $status"
[ -z "$deep" ] || [ $((SECONDS - started)) -lt 40 ] || fail "kill: ended after $((SECONDS - started)) s"
pids=$(none_left "$program" "$left_s") || fail "kill: processes are left: $pids"
exit $failed
