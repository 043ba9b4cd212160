#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec "$(dirname "$0")/transcript.sh" "$1" "$(dirname "$0")/planner.transcript"
