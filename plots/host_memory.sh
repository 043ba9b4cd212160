#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Draws the host memory that one rank takes over time, beside the picture of its GPU by `sim --memory-timeline`:
# plots/host_memory.sh PROGRAM PICTURE.png OPTIONS... (of sim, with --cpu-offloading-num-layers)
set -euo pipefail
program=$1
picture=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$program" sim "$@" --memory-timeline "$folder/memory.csv" --format csv -o "$folder/result.csv"

# value NAME: a column of the result.
value() {
    awk -F, -v name="$1" '
        /^#/ { next }
        !column { for (i = 1; i <= NF; i++) if ($i == name) column = i; next }
        { print $column }' "$folder/result.csv"
}

# Steps: "time in ms, GiB" when the host reaches an alloc or free of host memory.
rank=$(value peak_rank)
awk -F, -v rank="$rank" '
    $1 == rank && $7 == "host" { print 1e3 * $2, $8 / 2^30 }' "$folder/memory.csv" > "$folder/host"
peak=$(sort -g -k 2 "$folder/host" | tail -n 1 | cut -d ' ' -f 2)
cat > "$folder/host.gp" << END
set terminal pngcairo size 2400,720 font 'DejaVu Sans,24' noenhanced background rgb '#FFFFFF' linewidth 2
set output "$folder/host.png"
set title sprintf("host memory of rank $rank: at most %.2f GiB", $peak) font 'DejaVu Sans,30'
set xrange [0:1e3 * $(value makespan_s)]
set yrange [0:1.18 * $peak]
set xlabel 'time at the host (ms)'
set ylabel 'memory (GiB)'
set lmargin 12
set rmargin 4
set border 3
set tics nomirror out
set grid lc rgb '#DDDDDD' lw 0.5
set style fill solid 1 noborder
plot "$folder/host" using 1:2 with fillsteps fc rgb '#009E73' notitle
END
gnuplot "$folder/host.gp"
cp "$folder/host.png" "$picture"
