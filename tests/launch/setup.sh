# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder and by others that start processes: ports, and processes left.
# shellcheck shell=bash

# in_folder: changes to a temporary folder of the script, removed at its end.
in_folder() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cd "$folder" || exit 99
}

# fail WORDS...: reports a failure and continues; the script's `exit $failed` then fails.
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

# agree FILE OTHER WORDS KEY...: both files must have equal lines for each key, at least one. WORDS
# name the case.
agree() {
    local key
    for key in "${@:4}"; do
        grep -q "$key" "$1" && [ "$(grep "$key" "$1")" = "$(grep "$key" "$2")" ] || fail "$key: $3"
    done
}

# take_ports COUNT [--slurm]: reserves COUNT ports for this script (ports.py); next_port sets `port`
# to one after another.
take_ports() {
    coproc ports { exec python3 "$(dirname "${BASH_SOURCE[0]}")/ports.py" "$@"; }
}
next_port() {
    read -r -u "${ports[0]}" port || exit 99
}

# left PROGRAM: lists the program's processes started in this folder, which belongs to one test.
left() {
    local exe
    find /proc/[0-9]*/exe -maxdepth 0 -lname "$1" 2> /dev/null | while read -r exe; do
        [ "$(readlink "${exe%exe}cwd")" = "$PWD" ] && basename "${exe%/exe}"
    done
}

# none_left PROGRAM SECONDS: whether all of them end within this time; otherwise prints their ids.
none_left() {
    local end=$((SECONDS + $2)) pids
    while pids=$(left "$1"); [ -n "$pids" ]; do
        if [ $SECONDS -ge $end ]; then
            echo $pids
            return 1
        fi
        sleep 0.1
    done
}
