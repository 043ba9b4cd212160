#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Replays the corpus and fuzzes every reader for a few seconds, about a minute in total.
#
#     fuzz/smoke.sh [BUILD]     builds in BUILD (default build-fuzz) with clang
#
# FUZZ_SECONDS is the total time for all readers, FUZZ_READERS the readers (default: all).
# Exit status 1 after a crash, a leak, or an input that takes more than 10 s or 2 GB; such an input is
# kept in BUILD/findings. New corpus inputs are kept in BUILD/learnt for the next run.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build-fuzz}
seconds=${FUZZ_SECONDS:-60}
readers=${FUZZ_READERS:-$(awk '!/^#/ && NF { print $1 }' fuzz/readers.list)}

has_libfuzzer() {
    local program
    program=$(mktemp)
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d == 0 && n; }' |
        clang -fsanitize=fuzzer,address -x c - -o "$program" 2> /dev/null
    local status=$?
    rm -f "$program"
    return $status
}

if ! has_libfuzzer; then
    echo "fuzz: skipped: clang or its fuzzer runtime (libclang-rt-14-dev) is missing"
    exit 0
fi

if [ ! -f "$build/build.ninja" ]; then
    CC=clang meson setup "$build" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
        -Dtests=disabled -Dcuda=disabled -Dsimgrid=disabled > /dev/null
fi
targets=()
for reader in $readers; do
    targets+=("fuzz/fuzz_$reader" "fuzz/replay_$reader")
done
ninja -C "$build" --quiet "${targets[@]}"
build=$(cd "$build" && pwd)
mkdir -p "$build/findings" "$build/learnt"

# GLib's own small-block allocator would hide leaks and overruns.
export G_SLICE=always-malloc LONGHAUL_DATA_DIR=$PWD
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
count=$(wc -w <<< "$readers")
each=$((seconds / count > 0 ? seconds / count : 1))
failed=()
for reader in $readers; do
    read -r -a folders <<< "$(awk -v r="$reader" '$1 == r { $1 = ""; print }' fuzz/readers.list)"
    mkdir -p "$build/learnt/$reader"
    log=$build/findings/$reader.log
    if "$build/fuzz/fuzz_$reader" -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 \
        -max_len=32768 -dict=fuzz/dict/json.dict -print_final_stats=1 \
        -artifact_prefix="$build/findings/$reader-" "$build/learnt/$reader" \
        "fuzz/corpus/$reader" "${folders[@]}" > "$log" 2>&1; then
        echo "fuzz: $reader: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs in $each s," \
            "no finding"
        rm -f "$log"
        continue
    fi
    failed+=("$reader")
    echo "fuzz: $reader: FAILED"
    grep -a -m 1 -A 12 -E 'ERROR|runtime error' "$log" || tail -n 12 "$log"
    input=$(awk -F 'written to ' '/Test unit written to/ { print $2 }' "$log" | tail -n 1)
    echo "fuzz: full log: $log"
    echo "fuzz: to reproduce: $build/fuzz/replay_$reader $input"
done
[ ${#failed[@]} -eq 0 ]
