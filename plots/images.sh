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
"$program" sim --step --model llama-3-8b --cluster hgx-h100 --seq-length 256K --schedule zigzag --framework torchtitan \
    --checkpoint layer --loss chunked --memory-timeline "$folder/step_chunked.png" -o /dev/null
"$program" sweep sweep-length --figure "$folder/sweep.png" -o /dev/null
"$program" sweep sweep-crossover --figure "$folder/crossover.png" -o /dev/null
"$program" plan --model llama-3-8b --seq-length 256K --cluster hgx-h100:1 --cluster hgx-h100:2 --cluster hgx-h100:4 \
    --shard fsdp --pareto --top 1 --figure "$folder/pareto.png" -o /dev/null
"$program" synth --cluster azure-nc96-a100:4 --model llama-7b --seq-length 32K --pass fwd --budget 16 \
    --output /dev/null --figure "$folder/synth.png" > /dev/null
"$program" reproduce --figure "$folder/accuracy.png" > /dev/null

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
