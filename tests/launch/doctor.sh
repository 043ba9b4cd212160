#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs `longhaul doctor` on the stand-ins: its exit status must be that of a run, and its output
# must follow its schema.
#
#     doctor.sh PROGRAM STANDIN
set -u
program=$(realpath "$1")
standin=$(realpath "$2")
# shellcheck source=tests/launch/setup.sh
. "$(dirname "$0")/setup.sh"
in_folder
"$program" help schema doctor > schema.json
schema=$PWD/schema.json

# Validates the document against its schema; does nothing without the library.
check_document() {
    /usr/bin/python3 - "$schema" "$1" <<'END' || fail "$1 is not what its schema says"
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit(0)
jsonschema.Draft202012Validator(json.load(open(sys.argv[1]))).validate(json.load(open(sys.argv[2])))
END
}

# doctor NAME STATUS PATTERN VARIABLE=VALUE...: checks doctor for --backend nccl, and a run with it.
doctor() {
    local name=$1 expected=$2 pattern=$3 status
    shift 3
    env LONGHAUL_NCCL="$standin" "$@" "$program" doctor --backend nccl --format json >doctor.json 2>err
    status=$?
    [ $status -eq "$expected" ] || fail "$name: status $status, not $expected: $(cat doctor.json err)"
    check_document doctor.json
    grep -Eq -e "$pattern" doctor.json || fail "$name: does not say '$pattern': $(cat doctor.json)"
    env LONGHAUL_NCCL="$standin" "$@" "$program" run --backend nccl --schedule ring --ranks 2 --seq-length 16 \
        --num-attention-heads 1 --kv-channels 32 >run.out 2>run.err
    status=$?
    [ $((status == 0)) -eq $((expected == 0)) ] || fail "$name: the run has status $status: $(cat run.err)"
}

doctor 'all is well' 0 '"GPU 1: stand-in, 80 GiB, compute capability 9.0"' STANDIN_DEVICES=2
doctor 'NCCL' 0 '"found": "2.28.9, .*standin-nccl.so"' A=1
doctor 'no NCCL' 1 '"why": "NCCL: cannot load /nowhere' LONGHAUL_NCCL=/nowhere
doctor 'no device' 1 '"why": "CUDA: .*no GPU is visible' STANDIN_DEVICES=0
doctor 'no driver' 1 '"why": "CUDA: there is no driver' STANDIN_DRIVER=-1
doctor 'an old driver' 1 '"why": "CUDA: the driver is too old' STANDIN_DRIVER=11080
doctor 'torchrun with a gap' 1 '"why": "MASTER_PORT: .* is not set' MASTER_ADDR=a RANK=0 WORLD_SIZE=2
doctor 'Slurm with a gap' 1 '"why": "SLURM_JOB_ID: .* is not set' SLURM_STEP_NODELIST=a SLURM_PROCID=0 SLURM_NTASKS=2

for format in table csv md json; do
    "$program" doctor --format $format -o out.$format || fail "--format $format"
    [ -s out.$format ] || fail "--format $format writes nothing"
done
"$program" doctor --format json >a.json
"$program" doctor --format json >b.json
[ "$(grep -v ' available (limit' a.json)" = "$(grep -v ' available (limit' b.json)" ] || fail 'not the same twice'
exit $failed
