#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests that a rank stopped (SIGSTOP) in any phase ends the job: exit status 4, a verdict of all
# other ranks that names it, and no process left. The clock of deadlines is held until the rank has
# stopped.
#
#     stopped.sh PROGRAM STOP_AT_LIBRARY HELD_CLOCK_LIBRARY [STANDIN]
#
# Tests some of the phases. With LONGHAUL_TEST_DEEP set, tests all and checks that the job ends in a
# time related to the deadline.
#
# With STANDIN, the library that replaces NCCL, PROGRAM is longhaul on the stand-in for CUDA, and
# messages go over NCCL. Exit status 77 if MPI is absent, in the build or on the machine.
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

# Starts one job, whose case is in the variables of stop; sets status. Places "nccl:N" are the
# stand-in's.
start() {
    timeout -k 5 300 mpirun -n 3 -x LD_PRELOAD="$libraries" -x STOP_RANK="$rank" -x STOP_AT="$place" \
        -x STANDIN_NCCL="${place/nccl:/stop=$rank:}" -x STOP_PID="$folder/$number.pid" \
        -x CLOCK_HELD_UNTIL="$folder/$number.pid" \
        "$program" run --backend $backend --schedule "$schedule" --ranks 3 \
        --seq-length 24 --num-attention-heads 3 --kv-channels 32 --deadline ${deadline_s}s \
        >/dev/null 2>"$number.err"
    status=$?
}

# has_ended PID: whether the process ends within a minute.
has_ended() {
    for ((i = 0; i < 600; i++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# stop NUMBER RANK PLACE SCHEDULE WORDS: writes failures to NUMBER.failed.
stop() {
    local number=$1 rank=$2 place=$3 schedule=$4 words=$5 started=$SECONDS status
    mkdir "$number.files" && own_files "$folder/$number.files"
    start
    {
        if [ $status -eq 139 ] && ! grep -q 'on signal' "$number.err"; then
            echo "mpirun itself has crashed (SIGSEGV), which no rank reported"
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
        # Other errors that a rank prints follow the verdict.
        said=$(grep -c '^longhaul: error: ' "$number.err")
        [ "$said" -eq "$(grep -Ec "^longhaul: .*$words" "$number.err")" ] || echo "not all say: $words"
        case $place in init | start) ;; *) [ "$said" -ge 2 ] || echo "$said ranks say it" ;; esac
    } >"$number.failed"
    [ -s "$number.failed" ] || return
    echo "FAILED: rank $rank at $place, $schedule: $(cat "$number.failed")"
    sed 's/^/    /' "$number.err" | head -20
}

# Control data sent by rank 1: 1 its options, 2 its program, 3 the requirements of the check, 4 the
# barrier, 5 to 9 the common start (over NCCL 4 and 5 are cards), then its end, its results, and the
# findings of the check. The stopped rank cannot print anything: all others name it.
silent='on host [^ ]* does not answer, though the host does'
cases=(
    '1 init ring rank [02]: MPI has not returned for .* in the start'
    '0 init ring rank [12]: MPI has not returned for .* in the start'
    '1 start ring error: rank 1 has not connected within '
    '0 start ring rank [12]: MPI has not returned for .* in the start .address of the first process'
    "1 control:1 ring error: rank 1 $silent"
    "1 control:2 ring error: rank 1 $silent"
    "1 control:4 ring error: rank 1 $silent"
    "0 control:1 ring error: rank 0 $silent"
    "1 transfer:1 ring error: rank 1 $silent"
    "0 transfer:2 zigzag error: rank 0 $silent"
    "2 transfer:1 ulysses error: rank 2 $silent"
    "1 control:5 ring error: rank 1 $silent"
    "1 control:10 ring error: rank 1 $silent"
    "1 control:11 ring error: rank 1 $silent"
    "1 control:12 ring error: rank 1 $silent"
    "1 finalize ring error: rank 1 $silent"
)
transports=(tcp shared)
if [ $backend = nccl ]; then
    transports=(tcp)
    cases=(
        '1 init ring rank [02]: MPI has not returned for .* in the start'
        "1 control:1 ring error: rank 1 $silent"
        "1 control:2 ring error: rank 1 $silent"
        "1 nccl:0 ring error: rank 1 $silent"
        "1 nccl:1 ring error: rank 1 $silent"
        "1 nccl:4 ring error: rank 1 $silent"
        "0 nccl:4 zigzag error: rank 0 $silent"
        "2 nccl:4 ulysses error: rank 2 $silent"
        "1 control:6 ring error: rank 1 $silent"
        "1 control:7 ring error: rank 1 $silent"
        "1 finalize ring error: rank 1 $silent"
    )
fi
# By default one place each in the start, an exchange, a transfer and the end, over both transports.
short=(3 8 11 16)
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
        # Most cases wait for a deadline, so a few run at a time.
        while [ "$(jobs -rp | wc -l)" -ge 6 ]; do sleep 0.2; done
    done
    wait
done
# A process exits with the status of its error and accuses nobody, even if MPI_Abort does not
# return.
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
