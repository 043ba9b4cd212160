#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
here=$(dirname "$0")
"$here/transcript.sh" "$1" "$here/collective.transcript" && exec python3 "$here/collective.py" "$1"
