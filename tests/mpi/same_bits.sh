#!/bin/bash
# longhaul run with one rank a process against threads: the same bits, counts and exit statuses; and
# a rank that dies or stalls ends the job, with a status, leaving no process behind.
#
#     same_bits.sh PROGRAM
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
program=$(realpath "$1")
tests=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
# shellcheck source=tests/mpi/setup.sh
. "$tests/setup.sh"
need_mpi "$program"
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# compare RANKS STATUS OPTIONS...: threads and processes give the same digest and the same counts.
compare() {
    local ranks=$1 expected=$2
    shift 2
    # shellcheck disable=SC2086
    compare_runs "$ranks" "$expected" --ranks "$ranks" --seq-length $((ranks * 12)) $shape "$@"
}

# The same of the case that the options say.
compare_runs() {
    local ranks=$1 expected=$2
    shift 2
    set -- --format json "$@"
    "$program" run "$@" >threads.json 2>threads.err
    local status=$?
    compared=$((compared + 1))
    [ $status -eq "$expected" ] || fail "threads, status $status: $* $(cat threads.err)"
    timeout 120 mpirun -n "$ranks" "$program" run --backend mpi "$@" >mpi.json 2>mpi.err
    status=$?
    [ $status -eq "$expected" ] || fail "mpi, status $status: $* $(cat mpi.err)"
    for key in outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"tensor"' '"within"'; do
        [ "$(grep "$key" threads.json)" = "$(grep "$key" mpi.json)" ] || fail "$key: $*"
    done
    grep -q outputs_sha256 mpi.json || fail "no result: $*"
}

compared=0
shape='--num-attention-heads 4 --kv-channels 64' # a head for every rank
for schedule in $("$program" list schedules --format csv | sed 1d | cut -d, -f1); do
    compare 4 0 --schedule "$schedule"
done
shape="$shape --num-query-groups 2"
for schedule in dfa-balanced ring zigzag; do
    compare 6 0 --schedule $schedule --dtype fp32 --kernels reference
done
over shared
for schedule in ring ulysses attention2d-o; do
    compare 4 0 --schedule $schedule
done
over tcp
# Programs that a search found: GPUs, cluster and pass.
found() {
    "$program" synth --cluster "$2" --num-attention-heads 8 --num-query-groups 8 --kv-channels 64 \
        --seq-length 1K --pass "$3" --budget 4 --output found.json >found 2>&1 || fail "synth: $* $(cat found)"
    grep -q '^Proven and written to found.json: the best candidate' found || fail "synth: $* $(cat found)"
    compare_runs "$1" 0 --schedule-file found.json
}
found 4 azure-nc96-a100:1 fwd
found 8 azure-nc96-a100:2 fwd
found 8 azure-nc96-a100:2 both
[ $compared -ge 8 ] || fail "only $compared cases were compared"
compare 4 0 --schedule zigzag --repeat 3 --inject delay:5
compare 4 1 --schedule ring --inject wrong-kv-head

# A rank that never sends: everyone says what it waits for, status 4.
# shellcheck disable=SC2086
timeout 60 mpirun -n 4 "$program" run --backend mpi --schedule ring --ranks 4 --seq-length 48 $shape \
    --inject stall:1 --deadline 1s >/dev/null 2>err
status=$?
[ $status -eq 4 ] || fail "stall: status $status, not 4"
grep -q 'rank 2, op .* receives from rank 1, slot fwd_kv' err || fail "stall: $(cat err)"

# A rank that is killed ends the job before the deadline of the others, with a status.
# shellcheck disable=SC2086
timeout 60 mpirun -n 4 "$program" run --backend mpi --schedule ring --ranks 4 --seq-length 48 $shape \
    --inject stall:1 --deadline 50s >/dev/null 2>err &
job=$!
sleep 3
ranks=$(pgrep -P "$(pgrep -P "$job")") # of timeout, of mpirun
started=$SECONDS
kill -KILL "$(echo "$ranks" | sed -n 2p)"
wait $job
status=$?
[ $status -ne 0 ] || fail "kill: status 0"
[ $((SECONDS - started)) -lt 40 ] || fail "kill: ended after $((SECONDS - started)) s"
for rank in $ranks; do
    for _ in 1 2 3 4 5; do
        kill -0 "$rank" 2>/dev/null && sleep 1
    done
    kill -0 "$rank" 2>/dev/null && fail "kill: process $rank is left"
done
exit $failed
