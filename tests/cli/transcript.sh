#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of a transcript and compares the output with it.
#
#     transcript.sh PROGRAM TRANSCRIPT [--update]
#
# A line "$ command" is run by bash, in an empty folder, with `longhaul` as the program; below it stand
# its standard output, then its standard error, then "[N]" if it ended with status N other than 0.
# Lines that begin with '#' and empty lines before a command are comments. --update rewrites the file.
# The folder of the data files is written DATA, hashes HASH, and lists of what there is to choose from "...", so that
# a new model or schedule does not change the errors. In errors.transcript, `try COMMAND JSON [OPTIONS]` writes JSON to in.json and runs the command on it.
set -u
program=$(realpath "$1")
transcript=$(realpath "$2")
update=${3:-${LONGHAUL_UPDATE:+--update}}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

export program
export LONGHAUL_SOURCE_DIR=${LONGHAUL_SOURCE_DIR:-$(realpath "$(dirname "$0")/../..")}
export LONGHAUL_DATA_DIR=${LONGHAUL_DATA_DIR:-$LONGHAUL_SOURCE_DIR}
export LC_ALL=C
unset SOURCE_DATE_EPOCH
cd "$folder" || exit 99

longhaul() {
    "$program" "$@"
}
try() {
    local command=$1
    printf '%s' "$2" >in.json
    "$program" "$command" in.json "${@:3}"
}
# Writes a topology, device or profile file with this JSON and uses it in an otherwise valid run.
topology() {
    printf '%s' "$1" >t.json
    "$program" sim --schedule ring --cluster ./t.json
}
profile() {
    printf '%s' "$1" >p.json
    "$program" sim --schedule ring --profile p.json "${@:2}" $([ $# -gt 1 ] || echo --ranks 4)
}
model() {
    printf '%s' "$1" >m.json
    "$program" sim --schedule ring --ranks 4 --model ./m.json
}
program_file() {
    printf '%s' "$1" >s.json
    "$program" verify --schedule-file s.json
}
export -f longhaul try topology profile model program_file

# Errors are printed after the output. Machine-dependent and growing parts are masked; commands are not.
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '$ '*)
        printf '%s\n' "$line"
        (
            set +u
            eval "${line#\$ }"
        ) >out 2>err </dev/null
        status=$?
        cat out err
        if [ $status -ne 0 ]; then
            echo "[$status]"
        fi
        echo
        rm -f out err
        ;;
    '#'*) printf '%s\n' "$line" ;;
    esac
done <"$transcript" | sed -e '/^\$ /b' -e "s|$LONGHAUL_DATA_DIR|DATA|g" -e 's/available: [^(]*(/available: ... (/' \
    -e 's/(dfa-balanced, [^)]*)/(...)/' -e 's/[0-9a-f]\{64\}/HASH/' \
    -e 's/allowed: schema, description, sweep,.*/allowed: .../' \
    -e 's/allowed: schedule_file, cluster,.*/allowed: .../' \
    -e '/^Options that only some schedules read/,/^$/{/^  /d; s/:$/: .../}' >"$folder.new"

if [ "$update" = --update ]; then
    cp "$folder.new" "$transcript"
fi
diff -u "$transcript" "$folder.new"
status=$?
rm -f "$folder.new"
exit $status
