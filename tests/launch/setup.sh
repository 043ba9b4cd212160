# SPDX-License-Identifier: Apache-2.0
# Read by the scripts of this folder, and by those of others that start processes: ports, and who is left.
# shellcheck shell=bash

# in_folder: the script goes on in a folder of its own, which ends with it.
in_folder() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cd "$folder" || exit 99
}

# fail WORDS...: the script goes on, but `exit $failed` at its end is of a failure.
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

# agree FILE OTHER WORDS KEY...: both files have the same lines with each key, and have some. WORDS say of what.
agree() {
    local key
    for key in "${@:4}"; do
        grep -q "$key" "$1" && [ "$(grep "$key" "$1")" = "$(grep "$key" "$2")" ] || fail "$key: $3"
    done
}

# take_ports COUNT [--slurm]: so many ports are this script's own (ports.py); next_port sets `port` to one after another.
take_ports() {
    coproc ports { exec python3 "$(dirname "${BASH_SOURCE[0]}")/ports.py" "$@"; }
}
next_port() {
    read -r -u "${ports[0]}" port || exit 99
}

# left PROGRAM: the processes of the program that were started in this folder, which each test has of its own.
left() {
    local exe
    find /proc/[0-9]*/exe -maxdepth 0 -lname "$1" 2> /dev/null | while read -r exe; do
        [ "$(readlink "${exe%exe}cwd")" = "$PWD" ] && basename "${exe%/exe}"
    done
}

# none_left PROGRAM SECONDS: whether there are none, or will be none in this time; else their ids are printed.
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
