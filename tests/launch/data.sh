#!/bin/bash
# longhaul run --backend tcp in processes that nobody but this script has started: the bits and counts of
# threads for programs of the conformance test and every schedule; and a rank that dies, stops or says
# something else ends all of them in time, with a status and words, and none is left.
#
#     data.sh PROGRAM PRINT_PROGRAM
set -u
program=$(realpath "$1")
print=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
failed=0
compared=0
port=$((20000 + $$ % 10000))
limit_s=40 # with a deadline of 3 s, on a machine that has other things to do

fail() {
    echo "FAILED: $*"
    failed=1
}

pids=() status=()
# launch RANKS ARGUMENTS...: one process for each rank; of rank R the variable options_R goes before.
launch() {
    local ranks=$1 rank options
    shift
    port=$((port + 2))
    pids=() status=()
    rm -f ./*.out ./*.err
    for ((rank = 0; rank < ranks; rank++)); do
        options=options_$rank
        # shellcheck disable=SC2086
        env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE="$ranks" MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            timeout -k 5 120 "$program" run --backend tcp "$@" ${!options:-} > "$rank.out" 2> "$rank.err" &
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

for what in $("$print") 1 2 3 4; do
    "$print" "$what" > file.json || exit 99
    compare "$what" "$(sed -n 's/^ *"ranks": \([0-9]*\),$/\1/p' file.json | head -1)" --schedule-file file.json
done
for schedule in $("$program" list schedules --format csv | sed '/^#/d; 1d; s/,.*//'); do
    compare "$schedule" 4 --schedule "$schedule" --ranks 4 --seq-length 128 --num-attention-heads 8 \
        --num-query-groups 4 --kv-channels 32 --repeat 2
done
[ $compared -ge 30 ] || fail "only $compared programs were compared"

# What one rank does is heard of by all of them.
trouble() { # NAME PATTERN ARGUMENTS...
    local name=$1 pattern=$2 started=$SECONDS rank
    shift 2
    launch 4 --schedule ring --ranks 4 --seq-length 4096 --num-attention-heads 8 --kv-channels 64 --deadline 3s "$@"
    if [ -n "${signal:-}" ]; then
        sleep "0.$((RANDOM % 5 + 1))"
        pkill "-$signal" -P "${pids[2]}"
        [ "$signal" != STOP ] || { sleep 12; pkill -CONT -P "${pids[2]}"; }
    fi
    finish
    for rank in 0 1 3; do
        [ "${status[$rank]}" -eq 4 ] || fail "$name: rank $rank: status ${status[$rank]}: $(cat $rank.err)"
    done
    grep -Eq -e "$pattern" 0.err 1.err 3.err || fail "$name: nobody says '$pattern': $(cat ./*.err)"
    [ $((SECONDS - started)) -le $limit_s ] || fail "$name: took $((SECONDS - started)) s"
    ! pgrep -f "$program run --backend tcp" > /dev/null || fail "$name: a process is left"
}

signal=KILL trouble "a rank that is killed" 'ranks? ([013], )*2' --repeat 1000
signal=STOP trouble "a rank that is stopped" 'ranks? ([013], )*2' --repeat 1000
options_2='--seed 7' trouble "a rank with another seed" 'seed'
exit $failed
