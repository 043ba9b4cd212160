#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares training steps with one rank per process to threads: the weights must be bit-identical,
# and the counts equal.
#
#     steps.sh PROGRAM
#
# Steps of eight ranks run only with LONGHAUL_TEST_DEEP set.
#
# Exit status 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
compared=0

cat >tiny.json <<END
{
  "schema": "longhaul.model/1",
  "name": "tiny",
  "source": "made up",
  "num_layers": 2,
  "hidden_size": 64,
  "num_attention_heads": 8,
  "num_query_groups": 4,
  "kv_channels": 8,
  "ffn_hidden_size": 192,
  "gated_mlp": true,
  "vocab_size": 61
}
END

# compare RANKS OPTIONS...: threads and processes must agree.
compare() {
    local ranks=$1
    shift
    set -- --step --model tiny.json --ranks "$ranks" --seq-length 64 --format json "$@"
    "$program" run "$@" >threads.json 2>err || fail "threads, $*: $(cat err)"
    timeout 300 mpirun -n "$ranks" "$program" run --backend mpi "$@" >mpi.json 2>err || fail "mpi, $*: $(cat err)"
    agree threads.json mpi.json "$*" outputs_sha256 '"executed"' '"bytes_sent": [0-9]' '"messages"' '"rel_l2"' \
        '"ok": true'
    compared=$((compared + 1))
}

compare 4 --schedule zigzag --tensor-model-parallel-size 2 --shard fsdp --checkpoint remat --dtype fp32
over shared
compare 4 --schedule ulysses --data-parallel-size 2 --shard zero2 --checkpoint layer --num-micro-batches 2
least=2
if [ -n "${LONGHAUL_TEST_DEEP:-}" ]; then
    compare 8 --schedule ring --tensor-model-parallel-size 2 --data-parallel-size 2 --shard zero1
    least=3
fi
[ $compared -eq $least ] || fail "only $compared steps were compared"
exit $failed
