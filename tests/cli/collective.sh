#!/bin/sh
here=$(dirname "$0")
"$here/transcript.sh" "$1" "$here/collective.transcript" && exec python3 "$here/collective.py" "$1"
