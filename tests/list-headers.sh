#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints every header of src/, one per line, as it is written in an #include.
cd "$1" && find . -name '*.h' | sed 's|^\./||' | LC_ALL=C sort
