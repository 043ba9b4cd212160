#!/bin/sh
exec python3 "$(dirname "$0")/shared.py" "$1" --cases 12
