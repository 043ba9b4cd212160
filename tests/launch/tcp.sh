#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `longhaul run --backend nccl` in processes started by this script alone, with the environment
# of torchrun and of Slurm, on the stand-ins. Results must equal those of threads on the CPU bit by
# bit; any failure of a rank must end all of them in time, with an error status and a message,
# leaving no process.
#
#     tcp.sh PROGRAM STANDIN
#
# PROGRAM is longhaul on the stand-in for CUDA, STANDIN the library that replaces NCCL.
set -u
program=$(realpath "$1")
LONGHAUL_NCCL=$(realpath "$2")
export LONGHAUL_NCCL STANDIN_SEED=3 STANDIN_EAGER=30
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
# shellcheck source=tests/launch/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"
take_ports 60 --slurm
read -r -u "${ports[0]}" job || exit 99
in_folder
shape='--ranks 4 --num-attention-heads 4 --kv-channels 32 --seq-length 64'
limit_s=40 # with a deadline of 3 s, on a loaded machine

# Individual settings of a rank: variables, further options, another shape.
declare -A extra options shapes
pids=() status=()

# start RANK ARGUMENTS...: starts a rank in the background.
start() {
    local rank=$1
    shift
    # shellcheck disable=SC2086
    env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port - 1)) \
        ${extra[$rank]:-} timeout -k 5 120 "$program" run --backend nccl ${shapes[$rank]:-$shape} "$@" ${options[$rank]:-} \
        >"$rank.out" 2>"$rank.err" &
    pids[rank]=$!
}
# launch RANKS ARGUMENTS...: starts the ranks of a list such as "0 1 2 3".
launch() {
    local rank ranks=$1
    shift
    next_port
    pids=() status=()
    rm -f ./*.out ./*.err
    for rank in $ranks; do start "$rank" "$@"; done
}

# Waits for all started ranks and clears the individual settings.
finish() {
    local rank
    for rank in "${!pids[@]}"; do
        wait "${pids[$rank]}"
        status[rank]=$?
    done
    extra=() options=() shapes=()
}

# expect NAME STATUS PATTERN [RANK]: every rank must have ended with the status, and RANK (default:
# any) must have printed the pattern, if it is not empty.
expect() {
    local name=$1 rank
    for rank in "${!status[@]}"; do
        [ "${status[$rank]}" -eq "$2" ] ||
            fail "$name: rank $rank: status ${status[$rank]}, not $2: $(cat "$rank.err")"
    done
    # shellcheck disable=SC2086
    [ -z "$3" ] || grep -Eq -e "$3" ./${4:-*}.err || fail "$name: nobody says '$3': $(cat ./*.err)"
    [ $((SECONDS - started)) -le $limit_s ] || fail "$name: took $((SECONDS - started)) s"
}

# trouble NAME STATUS PATTERN RANKS ARGUMENTS...: runs a job that must fail.
trouble() {
    local name=$1 expected=$2 pattern=$3 ranks=$4
    shift 4
    started=$SECONDS
    launch "$ranks" --schedule ring --deadline 3s "$@"
    finish
    expect "$name" "$expected" "$pattern"
}

# ---- jobs that succeed ----

for schedule in zigzag te-p2p attention2d-no; do
    # shellcheck disable=SC2086
    "$program" run --schedule $schedule $shape --format json >threads.json 2>threads.err ||
        fail "threads: $schedule $(cat threads.err)"
    mv threads.json threads
    started=$SECONDS
    launch '0 1 2 3' --schedule $schedule --format json
    finish
    expect "$schedule" 0 ''
    for key in outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"tensor"' '"within"'; do
        [ "$(grep "$key" threads)" = "$(grep "$key" 0.out)" ] || fail "$key: $schedule"
    done
    grep -q '"bootstrap": "torchrun"' 0.out || fail "$schedule: $(head -30 0.out)"
    cat 1.out 2.out 3.out | grep -q . && fail "$schedule: other ranks print, too"
done

# Slurm's environment, and the first of its hosts.
started=$SECONDS
for rank in 0 1 2 3; do
    # shellcheck disable=SC2086
    SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NTASKS=4 SLURM_JOB_ID=$job SLURM_STEP_ID=0 \
        SLURM_STEP_NODELIST='localhost,node[01-03]' timeout -k 5 120 "$program" run --backend nccl \
        $shape --schedule zigzag --format json >$rank.out 2>$rank.err &
    pids[rank]=$!
done
finish
expect slurm 0 ''
grep -q '"bootstrap": "slurm"' 0.out || fail "slurm: $(head -30 0.out)"

# ---- missing and unwanted processes ----

trouble 'a rank that never comes' 4 'error: rank 3 has not connected within 3[0-9.]* s$' '0 1 2'
trouble 'a first rank that never comes' 4 'for rank 0, which does not listen at 127.0.0.1' '1 2 3'
extra[2]=TORCHELASTIC_RUN_ID=other
trouble 'another token' 4 'rank 2: .* rejected it: it belongs to another job' '0 1 2 3'
extra[2]='RANK=1 WORLD_SIZE=2' shapes[2]=${shape/--ranks 4/--ranks 2}
trouble 'another size' 4 'started as one of 2 processes, and this job has 4' '0 1 2 3'
extra[2]=RANK=1
trouble 'a rank that is there twice' 4 'rejected it: rank 1 is already connected' '0 1 2 3'
extra[1]=RANK=x
trouble 'a rank that is none' 2 'RANK: the environment variable is "x"; allowed: a number from 0 to 3' '1'
options[3]='--seed 5'
trouble 'another seed' 2 '--seed differs: rank 3 has 5, and ranks 0, 1, 2 have 0' '0 1 2 3'
options[2]='--no-overlap'
trouble 'another option' 2 '--no-overlap differs: rank 2 has yes, and ranks 0, 1, 3 have none' '0 1 2 3'

# Strangers: one is silent, one sends noise, one sends half of a frame, one announces 4 GiB.
started=$SECONDS
launch '0 1 2' --schedule ring --deadline 20s
first=$port
for _ in $(seq 100); do
    (exec 3<>/dev/tcp/127.0.0.1/$first) 2>/dev/null && break
    sleep 0.1
done
exec 3<>/dev/tcp/127.0.0.1/$first 4<>/dev/tcp/127.0.0.1/$first 5<>/dev/tcp/127.0.0.1/$first \
    6<>/dev/tcp/127.0.0.1/$first
head -c 100000 /dev/urandom >&4 2>/dev/null
printf 'lhF1\0\0' >&5
printf 'lhF1\0\0\0\0\377\377\377\377' >&6
sleep 0.5
start 3 --schedule ring --deadline 20s
finish
exec 3>&- 4>&- 5>&- 6>&-
expect strangers 0 ''

# ---- processes that disappear ----

# All wait for NCCL until the deadline: time to kill or stop one of them there.
for how in KILL STOP; do
    started=$SECONDS
    STANDIN_NCCL=hang=2 launch '0 1 2 3' --schedule ring --deadline 8s
    sleep 2
    victim=$(pgrep -P "${pids[2]}" | head -1)
    kill -$how "${victim:-0}" 2>/dev/null || fail "$how: rank 2 is not there"
    for rank in 0 1 3; do
        wait "${pids[$rank]}"
        status[rank]=$?
    done
    kill -CONT "${victim:-0}" 2>/dev/null
    { wait "${pids[2]}"; } 2>/dev/null # without the shell's message about a killed process
    status[2]=$?
    if [ $how = KILL ]; then unset 'status[2]'; fi
    if [ $how = KILL ]; then
        expect 'a rank that is killed' 4 'error: rank 2 on host .*: its process is gone'
        [ $((SECONDS - started)) -lt 8 ] || fail "a rank that is killed is noticed after the deadline only"
    else
        expect 'a rank that is stopped' 4 'error: rank 2 on host .* does not answer, though the host does'
    fi
done

# ---- failures during the run ----

trouble 'a rank that sends nothing' 4 'rank 2, op .* receives from rank 1, slot' '0 1 2 3' --inject stall:1
export STANDIN_NCCL
STANDIN_NCCL=error=1:6
trouble 'an asynchronous error' 4 'rank 1: NCCL: .*: remote process exited' '0 1 2 3'
STANDIN_NCCL=silent=1
trouble 'a rank that never connects' 4 'in the connections of communicator 0 of ranks' '0 1 2 3'
STANDIN_NCCL=hang=2
trouble 'a rank that never joins' 4 'in the communicator of all ranks' '0 1 2 3'
STANDIN_NCCL=exit=1:6
started=$SECONDS
launch '0 1 2 3' --schedule ring --deadline 20s
finish
[ "${status[1]}" -eq 9 ] || fail "a process that is gone: status ${status[1]}"
unset 'status[1]' STANDIN_NCCL
expect 'a process that is gone' 4 'error: rank 1 on host .*: its process is gone'
[ $((SECONDS - started)) -lt 15 ] || fail "a process that is gone is noticed after its deadline only"

# ---- requirements a rank lacks: all ranks report it ----

extra[1]=LONGHAUL_NCCL=/nowhere
trouble 'no NCCL' 4 'rank 1: NCCL: cannot load /nowhere \(' '0 1 2 3'
extra[2]=STANDIN_DEVICES=0
trouble 'no device' 4 'error: rank 2 on host .*no GPU is visible' '0 1 2 3'
extra[2]=STANDIN_DRIVER=-1
trouble 'no driver' 4 'error: rank 2 on host .*there is no driver for NVIDIA GPUs here' '0 1 2 3'
extra[2]=STANDIN_DRIVER=11080
trouble 'an old driver' 4 'error: rank 2 on host .*the driver is too old: it supports CUDA 11.8' '0 1 2 3'
extra[2]=STANDIN_MEMORY=1000000
trouble 'no memory' 4 "error: rank 2 on host .*the GPU's memory is full" '0 1 2 3'
extra[2]=STANDIN_DEVICES=2
trouble 'too few devices' 4 'error: rank 2 on host .* needs GPU 2 of this machine, which has 2' '0 1 2 3'

[ -z "$(left "$program")" ] || fail "processes are left: $(left "$program")"
# The stand-in removes its files when all ranks have joined, which some never did here.
for file in /dev/shm/longhaul-nccl-*; do
    process=${file#/dev/shm/longhaul-nccl-}
    kill -0 "${process%%-*}" 2>/dev/null || rm -f "$file"
done
exit $failed
