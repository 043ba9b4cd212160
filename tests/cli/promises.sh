#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec python3 "$(dirname "$0")/promises.py" "$1" --share 17
