#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the table of docs/results/validation.md: prediction errors on hosts in namespaces,
# calibrated and validated at each rate and delay, over TCP and without MPI. A row is printed as
# soon as it is measured.
#
#     accuracy.sh [--rates LIST] [--delays LIST] [--tokens N] [--heads N] [--kv-channels N] [--dtype TYPE]
#                 [--attention softmax|linear] [--repeat N] PROGRAM WIRE FOLDER
#
# WIRE is the program built from wire.c. Rates are written as 100mbit or 1gbit, delays one way in
# microseconds; a list is one word. Measured times are medians of --repeat runs, by default 5.
# FOLDER, which is created, gets profiles, topologies, validations and reports. Exit status 77 if
# the machine does not allow such hosts (cluster.sh), 1 if something failed or a row exceeds a
# median error of 5 % or a worst error of 12 %, or has a rank correlation below 0.95.
set -u

rates='100mbit 1gbit' delays='100 1000' tokens=128 heads=128 channels=64 dtype=bf16 attention=softmax repeat=5
while [ $# -gt 3 ]; do
    case $1 in
    --rates) rates=$2 ;;
    --delays) delays=$2 ;;
    --tokens) tokens=$2 ;;
    --heads) heads=$2 ;;
    --kv-channels) channels=$2 ;;
    --dtype) dtype=$2 ;;
    --attention) attention=$2 ;;
    --repeat) repeat=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 3 ] || {
    sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
program=$(realpath "$1")
WIRE=$(realpath "$2")
cluster=$(dirname "$(realpath "$0")")/cluster.sh
mkdir -p "$3" && cd "$3" || exit 1
export program WIRE cluster

cat > inside.sh <<'END'
# NAME NODES PER_NODE TOKENS HEADS CHANNELS DTYPE ATTENTION REPEAT: calibrates, then validates.
name=$1 nodes=$2 per_node=$3 gathered=(--gather-groups $(($5 > 8 ? $5 / 8 : 1)))
[ "$8" = softmax ] || gathered=() # allgather-kv's
everywhere() { # runs the program on every rank, as torchrun does
    local rank pids=() failed=0
    for ((rank = 0; rank < nodes * per_node; rank++)); do
        "$cluster" on $((rank / per_node)) env RANK=$rank LOCAL_RANK=$((rank % per_node)) \
            WORLD_SIZE=$((nodes * per_node)) LOCAL_WORLD_SIZE="$per_node" \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$program" "$@" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || failed=$?
    done
    return $failed
}
rm -f "$name".*
everywhere calibrate --backend tcp --quick --dtype "$7" -o "$name.profile.json" --topology "$name.cluster.json" \
    > "$name.calibrate.txt" 2>&1 || exit 1
# Status 1 is the program's own judgement, of each schedule and kernel.
everywhere validate --backend tcp --profile "$name.profile.json" --cluster "$name.cluster.json" \
    --seq-length "$4" --num-attention-heads "$5" --kv-channels "$6" "${gathered[@]}" --dtype "$7" \
    --attention "$8" --pass both --repeat "$9" -o "$name.validation.json" --report "$name.md" > "$name.validate.txt" 2>&1
[ $? -le 1 ]
END

failed=0
echo '| hosts x ranks | rate | delay | median error | worst | rank correlation |'
echo '|---|---|---|---|---|---|'
for rate in $rates; do
    for shape in '2 2' '4 1'; do
        for delay in $delays; do
            read -r nodes per_node <<< "$shape"
            name=$nodes-$per_node-$rate-$delay
            "$cluster" make "$nodes" "$rate" "$delay" -- bash inside.sh "$name" "$nodes" "$per_node" \
                "$tokens" "$heads" "$channels" "$dtype" "$attention" "$repeat"
            status=$?
            [ $status -ne 77 ] || exit 77
            [ $status -eq 0 ] || {
                echo "accuracy: $name did not run; see $PWD/$name.*.txt" >&2
                exit 1
            }
            python3 - "$name.validation.json" "$repeat" "$nodes x $per_node" "$rate" "$delay us" <<'END' || failed=1
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    validation = json.load(file)
summary, schedules = validation["summary"], validation["schedules"]
if summary["runs"] < int(sys.argv[2]) * len(schedules) or any(row["makespan_error"] is None for row in schedules):
    sys.exit(f"accuracy: {sys.argv[1]}: not all of {len(schedules)} schedules have run {sys.argv[2]} times")
worst = max(schedules, key=lambda row: abs(row["makespan_error"]))
errors = summary["error_median"], abs(worst["makespan_error"]), summary["rank_correlation"]
print(f"| {' | '.join(sys.argv[3:])} | {100 * errors[0]:.1f} % | {100 * errors[1]:.1f} % ({worst['schedule']}) "
      f"| {errors[2]:.3f} |", flush=True)
sys.exit(errors[0] > 0.05 or errors[1] > 0.12 or errors[2] < 0.95)
END
        done
    done
done
exit $failed
