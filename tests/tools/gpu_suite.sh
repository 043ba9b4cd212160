#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests tools/gpu-suite.sh with a stand-in for a GPU: it fills its tables, in a copy of the page, and reports
# unexpected results. Without a GPU it ends with status 77 and changes nothing.
#
#     gpu_suite.sh PROGRAM NCCL BUILD [CUDNN]
set -u
program=$(realpath "$1")
LONGHAUL_NCCL=$(realpath "$2")
build=$(realpath "$3")
given=${4:-}
cudnn=$(realpath "${given:-/nowhere}")
export LONGHAUL_NCCL LONGHAUL_CUDNN=/nowhere STANDIN_EAGER=50 STANDIN_DEVICES=2
suite=$LONGHAUL_SOURCE_DIR/tools/gpu-suite.sh
page=$LONGHAUL_SOURCE_DIR/docs/results/gpu.md
# shellcheck source=tests/launch/setup.sh
. "$(dirname "$0")/../launch/setup.sh"
in_folder

# suite STATUS ARGUMENTS...: runs on a copy of the page; expects the exit status.
suite() {
    local expected=$1 status
    shift
    cp "$page" page.md
    "$suite" --small --program "$program" --document page.md "$@" >out 2>err
    status=$?
    [ $status -eq "$expected" ] || fail "$*: status $status, not $expected: $(cat err)"
}

STANDIN_DEVICES=0 suite 77 "$build"
cmp -s page.md "$page" || fail 'the page changes without a device'
suite 2 "$build" everything
suite 2 /nowhere
cmp -s page.md "$page" || fail 'a wrong call changes the page'

suite 0 "$build" machine failures speed
grep -q '^| device | GPU 1: stand-in' page.md || fail "no device: $(cat page.md)"
grep -q '^| more ranks than GPUs | 4 | rank 2 needs GPU 2' page.md || fail "no failure: $(cat page.md)"
[ "$(grep -c '^| [0-9]* | [0-9.]* | none | .* | ok |$' page.md)" -eq 2 ] || fail "no rates: $(cat page.md)"
[ -z "$given" ] || LONGHAUL_CUDNN=$cudnn suite 0 "$build" speed
[ -z "$given" ] || [ "$(grep -c '^| [0-9]* | [0-9.]* | [0-9.]* | .* | ok |$' page.md)" -eq 2 ] || fail "no rates with cuDNN: $(cat page.md)"
STANDIN_IDLE=1 suite 0 "$build" truth
[ "$(grep -Ec '^\| (ring|zigzag|ulysses|usp) \| [0-9.]+ \| [0-9.]+ \| [-+][0-9.]+ \| [a-z]+ \|$' page.md)" -eq 4 ] ||
    fail "no predictions: $(cat page.md)"
LONGHAUL_CUDNN=$cudnn STANDIN_IDLE=1 STANDIN_DEVICES=1 suite 0 "$build" truth alone
kernels=longhaul
[ -z "$given" ] || kernels='longhaul cuDNN,.data.files'
for of in $kernels; do
    [ "$(grep -Ec "^\\| $of \\| (ring|zigzag|dfa-balanced|usp) \\| [0-7] \\| [0-9.]+ \\| [0-9.]+ \\| [-+][0-9.]+ \\| [0-9.]+ \\|\$" page.md)" -eq 4 ] ||
        fail "no rank alone, $of: $(cat page.md)"
done
[ "$(grep -c '<!-- gpu-suite' page.md)" -eq "$(grep -c '<!-- gpu-suite' "$page")" ] || fail 'tables are missing'
[ "$(grep -vc '^|' page.md)" -eq "$(grep -vc '^|' "$page")" ] || fail 'text beside the tables changed'

# Unexpected results show in the exit status and in the page.
LONGHAUL_NCCL=/nowhere suite 1 "$build" nccl
grep -q 'ring | 2 |  |  |  | \*\*status 4\*\*: longhaul: error: ring: NCCL: cannot load' page.md || fail "no error in the page: $(cat page.md)"
grep -q 'gpu-suite: nccl: ring on 2 ranks: status 4' err || fail "no message: $(cat err)"
exit $failed
