#!/bin/sh
exec python3 "$(dirname "$0")/totals.py" "$1" --cases 10
