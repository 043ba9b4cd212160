#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that two builds of the program, under different settings, print the same bytes:
#     tools/same-bytes.sh [--once] build-release/longhaul build-release-clang/longhaul
# --once: the first build runs under one setting only, since sanitizers make it slow.
set -euo pipefail

once=
if [ "${1:-}" = --once ]; then
    once=1
    shift
fi
if [ $# -ne 2 ]; then
    echo "usage: tools/same-bytes.sh [--once] PROGRAM OTHER_PROGRAM" >&2
    exit 2
fi
first=$(realpath "$1")
second=$(realpath "$2")
cd "$(dirname "$0")/.."
LONGHAUL_DATA_DIR=$PWD
export LONGHAUL_DATA_DIR

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

commands=("help")
for scenario in scenarios/*.json; do
    if grep -q '"sweep"' "$scenario"; then
        commands+=("sweep $scenario --format json")
        continue
    fi
    commands+=("compare $scenario" "compare $scenario --format json" "sim $scenario --schedule zigzag --format json")
done
for format in csv md; do
    commands+=("compare scenarios/dfa-2node.json --format $format")
done

# Settings that must not affect the output. The German locale prints 1,5 for 1.5.
settings=(
    "LC_ALL=C"
    "LC_ALL=C.UTF-8"
    "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8"
    "LC_ALL=C G_SLICE=always-malloc MALLOC_PERTURB_=165 OMP_NUM_THREADS=1"
    "LC_ALL=C OMP_NUM_THREADS=7 TZ=Asia/Tokyo COLUMNS=40"
)

programs=("$first" "$second")
[ -z "$once" ] || programs=("$second")

# Runs one command and records its output and exit status.
record() {
    local program=$1 setting=$2 command=$3 file=$4 status=0
    # Results are stamped with the command line, so both programs get the same name.
    # shellcheck disable=SC2086
    (
        export $setting
        exec -a longhaul "$program" $command
    ) > "$file" 2> "$file.log" || status=$?
    echo "exit $status" >> "$file"
    if [ "$status" -gt 1 ]; then
        echo "longhaul $command: exit $status" >&2
        cat "$file.log" >&2
        return 1
    fi
}

# Compares the outputs of the programs for command number $1 of the list.
compare() {
    local command=${commands[$1]} mine=$out/$1 program setting
    record "$first" "${settings[0]}" "$command" "$mine.wanted"
    for program in "${programs[@]}"; do
        for setting in "${settings[@]}"; do
            record "$program" "$setting" "$command" "$mine.found"
            if ! cmp -s "$mine.wanted" "$mine.found"; then
                echo "$program under $setting differs: longhaul $command" >&2
                diff "$mine.wanted" "$mine.found" | head -20 >&2 || true
                return 1
            fi
        done
    done
}

# Runs as many commands in parallel as there are processors.
running=0
for i in "${!commands[@]}"; do
    if [ "$running" -eq "$(nproc)" ]; then
        wait -n
        running=$((running - 1))
    fi
    compare "$i" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n
    running=$((running - 1))
done
echo "$((${#commands[@]} * ${#settings[@]} * ${#programs[@]})) outputs of ${#commands[@]} commands are equal, byte for byte"
