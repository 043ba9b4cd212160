#!/bin/sh
exec "$(dirname "$0")/transcript.sh" "$1" "$(dirname "$0")/planner.transcript"
