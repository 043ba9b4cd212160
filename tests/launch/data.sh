#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `longhaul run --backend tcp` in processes started by this script alone. Digests and counts
# must equal those of threads for programs of the conformance test and every schedule; a rank that
# dies, stops or has other options must end all of them with an error status and a message, leaving
# no process.
#
#     data.sh PROGRAM PRINT_PROGRAM HELD_CLOCK_LIBRARY
#
# Tests some of the programs and schedules. With LONGHAUL_TEST_DEEP set, tests all and checks how
# long the end takes.
set -u
program=$(realpath "$1")
print=$(realpath "$2")
held_clock=$(realpath "$3")
deep=${LONGHAUL_TEST_DEEP:-}
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
# shellcheck source=tests/launch/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"
take_ports 60
in_folder
compared=0
limit_s=40 # with a deadline of 3 s

pids=() status=()
# launch RANKS ARGUMENTS...: starts one process per rank; the variable options_R has rank R's
# further arguments. If `held` is set, deadlines begin when that file exists.
launch() {
    local ranks=$1 rank options
    shift
    next_port
    pids=() status=()
    rm -f ./*.out ./*.err
    for ((rank = 0; rank < ranks; rank++)); do
        options=options_$rank
        # shellcheck disable=SC2086
        env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE="$ranks" MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port - 1)) \
            ${held:+LD_PRELOAD="$held_clock" CLOCK_HELD_UNTIL="$held"} timeout -k 5 300 "$program" run --backend tcp "$@" ${!options:-} > "$rank.out" 2> "$rank.err" &
        pids[rank]=$!
    done
}
finish() {
    local rank
    for rank in "${!pids[@]}"; do
        wait "${pids[$rank]}" 2> /dev/null
        status[rank]=$?
    done
}

# compare NAME RANKS ARGUMENTS...
compare() {
    local name=$1 ranks=$2 key
    shift 2
    "$program" run "$@" --format json > threads.json 2> threads.txt || fail "threads, $name: $(cat threads.txt)"
    launch "$ranks" "$@" --format json
    finish
    for key in "${!status[@]}"; do
        [ "${status[$key]}" -eq 0 ] || fail "$name: rank $key: status ${status[$key]}: $(cat "$key.err")"
    done
    for key in outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"ok": true'; do
        if ! grep -q "$key" 0.out || [ "$(grep "$key" threads.json)" != "$(grep "$key" 0.out)" ]; then
            fail "$key: $name"
        fi
    done
    compared=$((compared + 1))
}

if [ -n "$deep" ]; then
    programs="$("$print") 1 2 3 4"
    schedules=$("$program" list schedules --format csv | sed '/^#/d; 1d; s/,.*//')
else
    programs="$("$print" | sed -n 1,2p) 1"
    schedules='usp lasp2'
fi
for what in $programs; do
    "$print" "$what" > file.json || exit 99
    compare "$what" "$(sed -n 's/^ *"ranks": \([0-9]*\),$/\1/p' file.json | head -1)" --schedule-file file.json
done
for schedule in $schedules; do
    compare "$schedule" 4 --schedule "$schedule" --ranks 4 --seq-length 128 --num-attention-heads 8 \
        --num-query-groups 4 --kv-channels 32 --repeat 2
done
[ $compared -ge $((${deep:+25} + 5)) ] || fail "only $compared programs were compared"

# Sockets of a process. In a ring a rank that has met the others has those of two neighbours, of the
# first rank, and the one that it listens at.
connected_sockets=4
sockets_of() { # PID
    find "/proc/$1/fd" -lname 'socket:*' 2> /dev/null | wc -l
}

# All ranks must report the fault of one rank, with one status ($ends, 4). Where a fault is
# injected, no deadline begins before it.
trouble() { # NAME PATTERN ARGUMENTS...
    local name=$1 pattern=$2 started=$SECONDS rank victim
    shift 2
    rm -f now
    held=${signal:+$PWD/now} launch 4 --schedule ring --ranks 4 --seq-length 4096 --num-attention-heads 8 \
        --kv-channels 64 --deadline $deadline_s "$@"
    if [ -n "${signal:-}" ]; then
        # At any moment after rank 2 has met the others. A rank that never comes: tcp.sh.
        victim=
        while victim=$(pgrep -P "${pids[2]}"); [ -z "$victim" ]; do sleep 0.05; done
        while [ "$(sockets_of "$victim")" -lt $connected_sockets ] && kill -0 "$victim"; do sleep 0.05; done
        sleep "0.$((RANDOM % 5 + 1))"
        kill "-$signal" "$victim"
        touch now
        for rank in 0 1 3; do
            wait "${pids[$rank]}"
            status[rank]=$?
        done
        kill -CONT "$victim" 2> /dev/null
        wait "${pids[2]}" 2> /dev/null
    else
        finish
    fi
    for rank in 0 1 3; do
        [ "${status[$rank]}" -eq "${ends:-4}" ] || fail "$name: rank $rank: status ${status[$rank]}: $(cat $rank.err)"
    done
    for rank in 0 1 3; do
        grep -Eq -e "$pattern" $rank.err || fail "$name: rank $rank does not say '$pattern': $(cat ./*.err)"
    done
    [ -z "$deep" ] || [ $((SECONDS - started)) -le $limit_s ] || fail "$name: took $((SECONDS - started)) s"
    [ -z "$(left "$program")" ] || fail "$name: a process is left"
}

{
deadline_s=3s
[ -n "$deep" ] || deadline_s=10s
signal=KILL trouble "a rank that is killed" 'error: rank 2 on host .*: its process is gone' --repeat 1000
signal=STOP trouble "a rank that is stopped" 'error: rank 2 on host .* does not answer, though' --repeat 1000
trouble "a rank that sends nothing" 'error: rank 1 on host .*: 2 other ranks wait for it' --inject stall:1
deadline_s=200s
ends=2 options_2='--seed 7' trouble "a rank with another seed" 'error: --seed differs: rank 2 has 7'
} 2> /dev/null # the shell's messages about ended processes
exit $failed
