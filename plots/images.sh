#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Draws the pictures of the documentation: plots/images.sh PROGRAM (build-release/longhaul, for example).
# Of gnuplot's scripts, data and pictures only the pictures are kept. Where there is chromium, report.png and
# report_plan.png are made too, the upper parts of pages: of longhaul report dfa-2node, and of the plan in README.md.
set -euo pipefail
program=$(realpath "$1")
images=$(realpath "$(dirname "$0")/../docs/images")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$program" compare dfa-2node --figure "$folder/compare.png" -o /dev/null
"$program" sim dfa-2node --schedule dfa-balanced --figure "$folder/gantt.png" -o /dev/null
"$program" sim --step --model llama-7b --seq-length 32K --cluster hgx-h100:2 --framework megatron-lm --schedule ulysses \
    --pipeline-model-parallel-size 4 --num-micro-batches 8 --figure "$folder/pipeline.png" -o /dev/null
"$program" sim dgx-a100-8 --schedule zigzag --figure "$folder/zigzag.png" -o /dev/null
"$program" show zigzag --ranks 8 --figure "$folder/placement.png" -o /dev/null
"$program" show dfa-balanced --ranks 8 --figure "$folder/blocks.png" -o /dev/null
"$program" show zigzag --step --model llama-7b --seq-length 64K --cluster hgx-h100:4 --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 --data-parallel-size 2 --figure "$folder/groups.png" -o /dev/null
"$program" sim step-7b --memory-timeline "$folder/step_memory.png" -o /dev/null
"$program" sweep sweep-length --figure "$folder/sweep.png" -o /dev/null
"$program" sweep sweep-crossover --figure "$folder/crossover.png" -o /dev/null
"$program" plan --model llama-3-8b --seq-length 256K --cluster hgx-h100:1 --cluster hgx-h100:2 --cluster hgx-h100:4 \
    --shard fsdp --pareto --top 1 --figure "$folder/pareto.png" -o /dev/null
"$program" synth --cluster azure-nc96-a100:4 --model llama-7b --seq-length 32K --pass fwd --budget 16 \
    --output /dev/null --figure "$folder/synth.png" > /dev/null
"$program" reproduce --figure "$folder/accuracy.png" > /dev/null

# What a step keeps (docs/manual/steps.md): one case, and what one option changes. The first does not fit: status 1.
step=(--step --model llama-3-8b --cluster hgx-h100 --seq-length 96K --schedule zigzag --framework torchtitan)

# kept NAME OPTIONS...: memory over time.
kept() {
    "$program" sim "${step[@]}" "${@:2}" --memory-timeline "$folder/$1.png" -o /dev/null
}
kept step_kept --checkpoint none || [ $? = 1 ]
kept step_modules --recompute-modules mlp
kept step_layers --checkpoint layer --recompute-method block --recompute-num-layers 16
kept step_chunked --checkpoint none --loss chunked
kept step_tiled --checkpoint none --tiled-mlp auto
kept step_states --checkpoint none --main-params-dtype none --exp-avg-dtype 8bit
kept step_offload --checkpoint none --cpu-offloading-num-layers 31
kept step_lora --checkpoint none --lora-rank 16
"$(dirname "$0")/host_memory.sh" "$program" "$folder/step_host.png" "${step[@]}" --checkpoint none \
    --cpu-offloading-num-layers 31
eight="8K 8K 8K 8K 8K 8K 8K 8K"
echo "64K; 64K; 32K 32K; 16K 16K 16K 16K; 64K; $eight; $eight; $eight" > "$folder/packs.txt"
"$program" sim --step --model llama-3-8b --cluster hgx-h100 --seq-length 64K --tensor-model-parallel-size 2 \
    --data-parallel-size 4 --num-micro-batches 2 --schedule zigzag --checkpoint layer --shard zero1 --loss fused \
    --document-lengths "$folder/packs.txt" --ranks-shown 0,2,4,6 --figure "$folder/step_packs.png" -o /dev/null
"$program" sim --step --pass fwd --cluster hgx-h100 --model llama-3-70b --seq-length 512K --schedule zigzag \
    --tensor-model-parallel-size 4 --memory-timeline "$folder/step_prefill.png" -o /dev/null
"$(dirname "$0")/palette.py" "$folder"/step_*.png

# photograph NAME HEIGHT: the page as a browser shows it.
photograph() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="1280,$2" \
        --screenshot="$folder/$1.png" "file://$folder/$1.html" > /dev/null 2>&1
}
if command -v chromium > /dev/null; then
    "$program" report dfa-2node -o "$folder/report.html"
    photograph report 3000
    "$program" plan --model llama-7b --cluster dfa-2node:2 --seq-length 64K --pareto --report "$folder/report_plan.html" \
        -o /dev/null
    photograph report_plan 2740
fi
cp "$folder"/*.png "$images"
