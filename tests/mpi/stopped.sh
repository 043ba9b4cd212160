#!/bin/bash
# A rank that stops (SIGSTOP) at any phase ends the job: with exit status 4, with a message that names a
# rank and the phase, and with no process left. The clock of deadlines stands still until it has stopped.
#
#     stopped.sh PROGRAM STOP_AT_LIBRARY HELD_CLOCK_LIBRARY [STANDIN]
#
# These are some of the phases. If LONGHAUL_TEST_DEEP is set, they are all, and it is judged that the end comes within a
# time that has to do with the deadline.
#
# With STANDIN, the library in the place of NCCL, PROGRAM is longhaul on the stand-in for CUDA, and
# messages go over NCCL.
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
libraries=$(realpath "$2"):$(realpath "$3")
deep=${LONGHAUL_TEST_DEEP:-}
backend=mpi
[ -z "${4:-}" ] || { backend=nccl && LONGHAUL_NCCL=$(realpath "$4") && export LONGHAUL_NCCL; }
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
deadline_s=10 limit_s=60
[ -z "$deep" ] || deadline_s=4

# One job, whose case is in the variables of stop; sets status. Places "nccl:N" are the stand-in's.
start() {
    timeout -k 5 300 mpirun -n 3 -x LD_PRELOAD="$libraries" -x STOP_RANK="$rank" -x STOP_AT="$place" \
        -x STANDIN_NCCL="${place/nccl:/stop=$rank:}" -x STOP_PID="$folder/$number.pid" \
        -x CLOCK_HELD_UNTIL="$folder/$number.pid" \
        "$program" run --backend $backend --schedule "$schedule" --ranks 3 \
        --seq-length 24 --num-attention-heads 3 --kv-channels 32 --deadline ${deadline_s}s \
        >/dev/null 2>"$number.err"
    status=$?
}

# has_ended PID: whether it is gone, or will be in a minute.
has_ended() {
    for ((i = 0; i < 600; i++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# stop NUMBER RANK PLACE SCHEDULE WORDS: what went wrong goes into NUMBER.failed.
stop() {
    local number=$1 rank=$2 place=$3 schedule=$4 words=$5 started=$SECONDS status
    mkdir "$number.files" && own_files "$folder/$number.files"
    start
    {
        if [ $status -eq 139 ] && ! grep -q 'on signal' "$number.err"; then
            echo "mpirun itself has crashed (SIGSEGV), of which no rank was told"
        elif [ $status -ne 4 ]; then
            echo "status $status"
        fi
        [ -z "$deep" ] || [ $((SECONDS - started)) -le $limit_s ] || echo "took $((SECONDS - started)) s"
        if [ -s "$number.pid" ]; then
            has_ended "$(cat "$number.pid")" || echo "process $(cat "$number.pid") is left"
        else
            echo "nothing was stopped"
        fi
        grep -Eq "$words" "$number.err" || echo "does not say: $words"
    } >"$number.failed"
    [ -s "$number.failed" ] || return
    echo "FAILED: rank $rank at $place, $schedule: $(cat "$number.failed")"
    sed 's/^/    /' "$number.err" | head -20
}

# Rank 1 sends to the control plane: 1 and 2 that it is there, 3 and 4 its options, 5 and 6 its program, 7 and 8 what
# the check needs, 9 the barrier, 10 to 19 when all begin (over NCCL 9 and 10 are cards), then one that it has ended, two
# of results and one of what the check found. The rank that is stopped can say nothing: the others do.
cases=(
    '1 init ring rank [02]: MPI has not returned for .* in the start'
    '0 init ring rank [12]: MPI has not returned for .* in the start'
    '1 dup ring rank [02]: MPI has not returned for .* in the opening'
    '1 control:1 ring rank 0 has waited for .* in the exchange .* for rank 1'
    '1 control:3 ring rank 0 has waited for .* in the exchange of what processes tell each other for rank 1'
    '1 control:9 ring rank 0 has waited for .* in the barrier for rank 1'
    '0 control:1 ring rank [12] has waited for .* in the exchange .* for rank 0'
    '1 transfer:1 ring rank 2, op .* receives from rank 1'
    '0 transfer:2 zigzag rank [12], op .* receives from rank 0'
    '2 transfer:1 ulysses rank [01], op .* (receives from|sends to) rank 2'
    '1 control:10 ring rank 0 has waited for .* in the exchange .* for rank 1'
    '1 control:20 ring rank 0 has waited for .* in the barrier for rank 1'
    '1 control:21 ring rank 0 has waited for .* in the gathering of the results for rank 1'
    '1 control:23 ring rank 0 has waited for .* in the gathering of the results for rank 1'
    '1 finalize ring rank [02]: MPI has not returned for .* in the end'
)
transports=(tcp shared)
if [ $backend = nccl ]; then
    transports=(tcp)
    cases=(
        '1 init ring rank [02]: MPI has not returned for .* in the start'
        '1 control:1 ring rank 0 has waited for .* in the exchange .* for rank 1'
        '1 control:4 ring rank 0 has waited for .* in the exchange .* for rank 1'
        '1 nccl:0 ring rank [02] has waited for .* in the communicator of all ranks'
        '1 nccl:1 ring rank [02] has waited for .* in the connections of communicator 0'
        '1 nccl:4 ring rank 2, op .* receives from rank 1'
        '0 nccl:4 zigzag rank [12], op .* receives from rank 0'
        '2 nccl:4 ulysses rank [01], op .* (receives from|sends to) rank 2'
        '1 control:12 ring rank 0 has waited for .* in the barrier for rank 1'
        '1 control:13 ring rank 0 has waited for .* in the gathering of the results for rank 1'
        '1 finalize ring rank [02]: MPI has not returned for .* in the end'
    )
fi
# Without the others, one of a start, an exchange, a transfer and an end, over one transport and the other.
short=(3 7 10 15)
[ $backend = mpi ] || short=(2 4 7 11)
number=0 count=0
for transport in "${transports[@]}"; do
    over $transport
    for case in "${cases[@]}"; do
        number=$((number + 1))
        if [ -z "$deep" ] && [ $number -ne "${short[$count]:-0}" ]; then continue; fi
        [ -n "$deep" ] || over "${transports[count % ${#transports[@]}]}"
        count=$((count + 1))
        read -r rank place schedule words <<<"$case"
        stop $number "$rank" "$place" "$schedule" "$words" &
        # Most of them wait for a deadline: a few at a time.
        while [ "$(jobs -rp | wc -l)" -ge 6 ]; do sleep 0.2; done
    done
    wait
done
# A process ends with the status of what went wrong, and accuses nobody, though MPI_Abort does not return.
if [ $backend = mpi ]; then
    timeout -k 5 120 mpirun -n 1 -x LD_PRELOAD="${libraries%:*}" -x STOP_AT=abort "$program" calibrate --backend mpi \
        >/dev/null 2>abort.err
    status=$?
    if [ $status -ne 2 ] || ! grep -q 'there is one process' abort.err || grep -q 'take part' abort.err; then
        echo "FAILED: MPI_Abort does not return: status $status: $(cat abort.err)"
        exit 1
    fi
fi
[ "$(ls -- *.failed | wc -l)" -eq $count ] || { echo "FAILED: some did not run"; exit 1; }
for file in *.failed; do
    [ -s "$file" ] && exit 1
done
exit 0
