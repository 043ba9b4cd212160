#!/bin/bash
# Draws the pictures of the documentation: plots/images.sh PROGRAM (build-release/longhaul, for example).
# Of gnuplot's scripts, data and pictures only the pictures are kept.
# (report.png and report_plan.png are the upper parts of pages, in a browser 1,280 pixels wide: of longhaul report
# dfa-2node, and of the plan in README.md.)
set -euo pipefail
program=$(realpath "$1")
images=$(realpath "$(dirname "$0")/../docs/images")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$program" compare dfa-2node --figure "$folder/compare.png" -o /dev/null
"$program" sim dfa-2node --schedule dfa-balanced --figure "$folder/gantt.png" -o /dev/null
"$program" sim dgx-a100-8 --schedule zigzag --figure "$folder/zigzag.png" -o /dev/null
"$program" sim step-7b --memory-timeline "$folder/step_memory.png" -o /dev/null
"$program" sweep sweep-length --figure "$folder/sweep.png" -o /dev/null
"$program" sweep sweep-crossover --figure "$folder/crossover.png" -o /dev/null
"$program" plan --model llama-3-8b --seq-length 256K --cluster hgx-h100:1 --cluster hgx-h100:2 --cluster hgx-h100:4 \
    --shard fsdp --pareto --top 1 --figure "$folder/pareto.png" -o /dev/null
"$program" synth --cluster azure-nc96-a100:4 --model llama-7b --seq-length 32K --pass fwd --budget 16 \
    --output /dev/null --figure "$folder/synth.png" > /dev/null
cp "$folder"/*.png "$images"
