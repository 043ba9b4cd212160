#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests help and man pages of every command: help fits 80 columns and is coloured on terminals only; man pages have
# every option, and mandoc and groff print no warnings.
set -euo pipefail
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# fail TEXT...
fail() {
    echo "$*"
    failures=$((failures + 1))
}

# on_terminal COMMAND: its output on a terminal, including standard error.
on_terminal() {
    TERM=${TERM_IS-xterm} script -qec "$1" /dev/null < /dev/null
}

commands=$("$program" list commands --format names)
[ -n "$commands" ] || fail 'there are no commands'
for command in '' $commands; do
    "$program" help $command ${command:+--all} > "$folder/help"
    "$program" help $command --format man > "$folder/page.1"
    if awk 'length > 80' "$folder/help" | grep .; then
        fail "help $command: a line is longer than 80 columns"
    fi
    if grep -q "$(printf '\033')" "$folder/help"; then
        fail "help $command: colours in a file"
    fi
    for option in $(grep -o '^  \(-o, \)\?--[a-z0-9-]*' "$folder/help" | grep -o '\--[a-z0-9-]*'); do
        grep -qF -- "\\fB${option//-/\\-}\\fR" "$folder/page.1" ||
            fail "the man page of $command lacks $option"
    done
    # Without a date, which would be that of the build.
    if command -v mandoc > /dev/null; then
        mandoc -Tlint -W warning "$folder/page.1" > "$folder/lint" || true
        grep -v 'missing date' "$folder/lint" && fail "mandoc: $command"
    fi
    if command -v groff > /dev/null; then
        groff -man -ww -z "$folder/page.1" 2> "$folder/lint"
        [ ! -s "$folder/lint" ] || fail "groff: $command: $(cat "$folder/lint")"
    fi
done

if command -v script > /dev/null; then
    unset NO_COLOR
    # coloured COMMAND: whether its output on a terminal has escape sequences.
    coloured() {
        [[ $(on_terminal "$1") == *$'\033['* ]]
    }
    coloured "$program help sim" || fail 'help: no colours on a terminal'
    coloured "$program sim || true" || fail 'error: no colours on a terminal'
    coloured "NO_COLOR=1 $program help sim" && fail 'help: NO_COLOR is not obeyed'
    coloured "NO_COLOR=1 $program sim || true" && fail 'error: NO_COLOR is not obeyed'
    TERM_IS=dumb coloured "$program help sim" && fail 'colours on a dumb terminal'
fi

[ $failures -eq 0 ]
