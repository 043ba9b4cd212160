#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Llama-3-8B on two nodes of eight, as a first try has it.
TP=8
SEQ=131072
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --swiglu
    --untie-embeddings-and-output-weights
    --normalization RMSNorm
    --max-position-embeddings "$SEQ"
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --sequence-parallel
    --context-parallel-size 2   # the rest of the ranks
    --use-distributed-optimizer
    --overlap-grad-reduce
)
torchrun --nproc_per_node 8 --nnodes ${NNODES:-2} pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    "${PARALLEL_ARGS[@]}" \
    --seq-length "$SEQ" --micro-batch-size 1 --global-batch-size 1 \
    --bf16 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --lr 3e-4 --train-iters 1000 --my-own-flag 7
