#!/bin/bash
# A rank that stops (SIGSTOP) at any phase ends the job: with exit status 4, within a time that has
# to do with the deadline, with a message that names a rank and the phase, and with no process left.
#
#     stopped.sh PROGRAM STOP_AT_LIBRARY [STANDIN]
#
# With STANDIN, the library in the place of NCCL, PROGRAM is longhaul on the stand-in for CUDA, and
# messages go over NCCL.
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
program=$(realpath "$1")
library=$(realpath "$2")
backend=mpi
[ -z "${3:-}" ] || { backend=nccl && LONGHAUL_NCCL=$(realpath "$3") && export LONGHAUL_NCCL; }
tests=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
# shellcheck source=tests/mpi/setup.sh
. "$tests/setup.sh"
need_mpi "$program"
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
limit_s=60 # with a deadline of 4 s, or a little more, on a machine that has other things to do

# One job, whose case is in the variables of stop; sets status. Places "nccl:N" are the stand-in's.
start() {
    timeout -k 5 120 mpirun -n 3 -x LD_PRELOAD="$library" -x STOP_RANK="$rank" -x STOP_AT="$place" \
        -x STANDIN_NCCL="${place/nccl:/stop=$rank:}" -x STOP_PID="$folder/$number.pid" \
        "$program" run --backend $backend --schedule "$schedule" --ranks 3 \
        --seq-length 24 --num-attention-heads 3 --kv-channels 32 --deadline ${deadline_s}s \
        >/dev/null 2>"$number.err"
    status=$?
}

# stop NUMBER RANK PLACE SCHEDULE WORDS: what went wrong goes into NUMBER.failed. Once in a while mpirun
# itself crashes when a job ends in its start, and says nothing of a signal; and on a busy machine the
# deadline can be over before the rank gets there: then again.
stop() {
    local number=$1 rank=$2 place=$3 schedule=$4 words=$5 deadline_s started status pid
    for deadline_s in 4 8 16; do
        started=$SECONDS
        start
        if [ -s "$number.pid" ] && { [ $status -ne 139 ] || grep -q 'on signal' "$number.err"; }; then
            break
        fi
        [ $deadline_s -eq 16 ] || rm -f "$number.pid"
    done
    {
        [ $status -eq 4 ] || echo "status $status"
        [ $((SECONDS - started)) -le $limit_s ] || echo "took $((SECONDS - started)) s"
        [ -s "$number.pid" ] || echo "nothing was stopped"
        pid=$(cat "$number.pid" 2>/dev/null)
        for _ in 1 2 3 4 5; do
            kill -0 "${pid:-0}" 2>/dev/null && sleep 1
        done
        kill -0 "${pid:-0}" 2>/dev/null && echo "process $pid is left"
        grep -Eq "$words" "$number.err" || echo "does not say: $words"
    } >"$number.failed"
    [ -s "$number.failed" ] || return
    echo "FAILED: rank $rank at $place, $schedule: $(cat "$number.failed")"
    sed 's/^/    /' "$number.err" | head -20
}

# Rank 1 sends to the control plane: 1 and 2 what all must agree in, 3 and 4 what the check needs, 5
# the barrier, 6 to 15 when all begin (over NCCL 5 and 6 are cards), then one that it has ended, two of
# results and one of what the check found. The rank that is stopped can say nothing: the others do.
cases=(
    '1 init ring rank [02]: MPI has not returned for .* in the start'
    '0 init ring rank [12]: MPI has not returned for .* in the start'
    '1 dup ring rank [02]: MPI has not returned for .* in the opening'
    '1 control:1 ring rank 0 has waited for .* in the exchange .* for rank 1'
    '1 control:3 ring rank 0 has waited for .* in the exchange of what processes tell each other for rank 1'
    '1 control:5 ring rank 0 has waited for .* in the barrier for rank 1'
    '0 control:1 ring rank [12] has waited for .* in the exchange .* for rank 0'
    '1 transfer:1 ring rank 2, op .* receives from rank 1'
    '0 transfer:2 zigzag rank [12], op .* receives from rank 0'
    '2 transfer:1 ulysses rank [01], op .* (receives from|sends to) rank 2'
    '1 control:6 ring rank 0 has waited for .* in the exchange .* for rank 1'
    '1 control:16 ring rank 0 has waited for .* in the barrier for rank 1'
    '1 control:17 ring rank 0 has waited for .* in the gathering of the results for rank 1'
    '1 control:19 ring rank 0 has waited for .* in the gathering of the results for rank 1'
    '1 finalize ring rank [02]: MPI has not returned for .* in the end'
)
transports='tcp shared'
if [ $backend = nccl ]; then
    transports=tcp
    cases=(
        '1 init ring rank [02]: MPI has not returned for .* in the start'
        '1 control:1 ring rank 0 has waited for .* in the exchange .* for rank 1'
        '1 control:4 ring rank 0 has waited for .* in the exchange .* for rank 1'
        '1 nccl:0 ring rank [02] has waited for .* in the communicator of all ranks'
        '1 nccl:1 ring rank [02] has waited for .* in the connections of communicator 0'
        '1 nccl:4 ring rank 2, op .* receives from rank 1'
        '0 nccl:4 zigzag rank [12], op .* receives from rank 0'
        '2 nccl:4 ulysses rank [01], op .* (receives from|sends to) rank 2'
        '1 control:8 ring rank 0 has waited for .* in the barrier for rank 1'
        '1 control:9 ring rank 0 has waited for .* in the gathering of the results for rank 1'
        '1 finalize ring rank [02]: MPI has not returned for .* in the end'
    )
fi
number=0
for transport in $transports; do
    over $transport
    for case in "${cases[@]}"; do
        read -r rank place schedule words <<<"$case"
        number=$((number + 1))
        stop $number "$rank" "$place" "$schedule" "$words" &
        # Most of them wait for a deadline: a few at a time.
        while [ "$(jobs -rp | wc -l)" -ge 6 ]; do sleep 0.2; done
    done
    wait
done
[ "$(ls -- *.failed | wc -l)" -eq $number ] || { echo "FAILED: some did not run"; exit 1; }
for file in *.failed; do
    [ -s "$file" ] && exit 1
done
exit 0
