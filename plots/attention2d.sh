#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Draws how attention scales on Ethernet, and prints the table of the README:
# plots/attention2d.sh PROGRAM PICTURE.png
# One attention module of GPT-3 2.7B on boxes of 4 x A100 (Azure NC96), forward and backward.
set -euo pipefail
program=$(realpath "$1")
picture=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
schedules="zigzag te-p2p usp ulysses attention2d-o attention2d-no"

# GPUS LENGTH: lines of "schedule,ms,exposed communication in ms".
compare() {
    local options=()
    for schedule in $schedules; do
        options+=(--schedule "$schedule")
    done
    "$program" compare attention2d-azure --cluster "azure-nc96-a100:$(($1 / 4))" --seq-length "$2" \
        "${options[@]}" --format csv 2> /dev/null |
        awk -F, -v ranks="$1" '
            /^#/ { next }
            !named { for (i = 1; i <= NF; i++) column[$i] = i; named = 1; next }
            $column["makespan_s"] != "" {
                exposed = 0
                for (name in column)
                    if (name ~ /^exposed_/)
                        exposed += $column[name]
                printf "%s,%.6g,%.6g\n", $column["schedule"], 1e3 * $column["makespan_s"], 1e3 * exposed / ranks
            }'
}

lengths="8K 16K 32K 64K 128K"
for gpus in 4 8 16 32 64; do
    compare $gpus 64K | sed "s/^/$gpus,/"
done > "$folder/scaling.csv"

echo "| GPUs | tokens |$(printf ' %s |' $schedules) zigzag / attention2d-no |"
echo "|---:|---:|$(printf -- '---:|%.0s' $schedules)---:|"
for gpus in 16 64; do
    for length in $lengths; do
        compare $gpus "$length" | awk -F, -v names="$schedules" -v gpus=$gpus -v length_="$length" '
            { time[$1] = $2 }
            END {
                count = split(names, name, " ")
                printf "| %d | %s |", gpus, length_
                for (i = 1; i <= count; i++)
                    printf(name[i] in time ? " %.1f |" : " - |", time[name[i]])
                printf " %.2f |\n", time["zigzag"] / time["attention2d-no"]
            }'
    done
done

# One file a schedule: GPUs, time, exposed communication.
for schedule in $schedules; do
    awk -F, -v name="$schedule" '$2 == name { print $1, $3, $4 }' "$folder/scaling.csv" \
        > "$folder/$schedule"
done
cat > "$folder/scaling.gp" << END
set terminal pngcairo size 1500,640 font "sans,13"
set output "$folder/scaling.png"
set multiplot layout 1,2 title "One attention module of GPT-3 2.7B, 64K tokens, forward + backward; boxes of 4 x A100 on Ethernet" font ",15"
set logscale xy
set xtics (4, 8, 16, 32, 64)
set xrange [3.5:73]
set yrange [5:2000]
set xlabel "GPUs"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set key bottom left
list = "$schedules"
colours = "#444444 #999999 #2ca02c #9467bd #ff7f0e #1f77b4"
set ylabel "time, ms"
plot for [i = 1:words(list)] "$folder/".word(list, i) using 1:2 with linespoints lw 2 pt 7 lc rgb word(colours, i) title word(list, i)
set ylabel "exposed communication, ms"
unset key
start = $(awk -F, '$1 == 16 && $2 == "attention2d-no" { print $4 }' "$folder/scaling.csv")
set label "1 / sqrt(GPUs)" at 24, 0.66 * start * sqrt(16.0 / 24) textcolor rgb "#1f77b4"
plot for [i = 1:words(list)] "$folder/".word(list, i) using 1:3 with linespoints lw 2 pt 7 lc rgb word(colours, i) notitle, \\
    [16:64] start * sqrt(16 / x) with lines dt 2 lc rgb "#1f77b4" notitle
END
gnuplot "$folder/scaling.gp"
cp "$folder/scaling.png" "$picture"
