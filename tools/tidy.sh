#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on files that a build folder compiles:
#     tools/tidy.sh BUILD all [OPTION...]       all files
#     tools/tidy.sh BUILD COMMIT [OPTION...]    files that differ from COMMIT, or include a header that does
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 since=$2
shift 2

root=$(printf '%s' "$PWD" | sed 's/[][\.*^$+?(){}|]/\\&/g')
if [ "$since" = all ]; then
    patterns=("^$root/(src|tests|bench|fuzz)/.*\.c$")
else
    mapfile -t changed < <(git diff --name-only --diff-filter=d "$since" -- '*.c' '*.h')
    if [ ${#changed[@]} -eq 0 ]; then
        echo "tidy: no changes since $since"
        exit 0
    fi
    files=()
    for file in "${changed[@]}"; do
        case $file in
        *.c) files+=("$file") ;;
        *.h) mapfile -t -O ${#files[@]} files < <(git grep -lE "^#include \"(.*/)?$(basename "$file" | sed 's/\./\\./g')\"" -- '*.c') ;;
        esac
    done
    patterns=()
    for file in $(printf '%s\n' "${files[@]}" | sort -u); do
        patterns+=("^$root/${file//./\\.}$")
    done
    echo "tidy: ${#patterns[@]} files, since $since"
fi
run-clang-tidy -quiet -j "$(nproc)" -p "$build" "$@" "${patterns[@]}" 2> /dev/null | { grep -v '^clang-tidy' || true; }
