#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs longhaul on the GPUs of this machine, and writes the results to the tables of
# docs/results/gpu.md.
#
#     tools/gpu-suite.sh [--program FILE] [--document FILE] [--small] BUILD [PIECE...]
#
# BUILD is a build folder with CUDA. Pieces, all by default; problems that are cheap to fix show first:
#
#     machine     the output of longhaul doctor
#     kernels     every kernel against its reference (test_gpu_kernels)
#     sanitizer   a run under the tools of compute-sanitizer, where it is installed
#     copies      every schedule, forward and backward, with all ranks on one GPU
#     nccl        the same with a GPU for each rank
#     failures    runs that must fail with a specific error
#     speed       attention on one GPU, compared with cuDNN and PyTorch where installed
#     truth       calibrate and validate; LONGHAUL_CLUSTER is the cluster of these GPUs (default hgx-h100)
#     alone       the slowest rank of eight nodes of that cluster, alone on one GPU; likewise with cuDNN
#
# --small uses few tokens: for tests of this script with a stand-in for a GPU.
#
# A piece takes less than ten minutes; otherwise it is stopped and reported as unfinished. Exit status 0 if
# all results are as expected, 1 if not, 2 for a wrong call, 77 without a device (nothing is written).
set -u

usage() {
    sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

all='machine kernels sanitizer copies nccl failures speed truth alone'
source=$(dirname "$(dirname "$(realpath "$0")")")
document=$source/docs/results/gpu.md program=
tokens=256 lengths='1024 2048 4096 8192' truth_tokens=8192 truth_heads=16 truth_width=128 quick= nodes=8
while [ $# -gt 0 ]; do
    case $1 in
    --program) program=$(realpath "${2:?}") && shift 2 ;;
    --document) document=$(realpath "${2:?}") && shift 2 ;;
    --small) tokens=16 lengths='64 128' truth_tokens=16 truth_heads=4 truth_width=64 quick=--quick nodes=1 && shift ;;
    -*) usage ;;
    *) break ;;
    esac
done
if [ $# -eq 0 ] || [ ! -d "$1" ]; then usage; fi
build=$(realpath "$1")
shift
pieces=${*:-$all}
program=${program:-$build/longhaul}
export LC_ALL=C LONGHAUL_DATA_DIR=$source
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
limit_s=570 # of a piece
wrong=0

"$program" doctor --backend cuda --format json >"$folder/doctor.json" || {
    echo "gpu-suite: no usable GPU: nothing was run" >&2
    "$program" doctor --backend cuda >&2
    exit 77
}
gpus=$(grep -c '"part": "device"' "$folder/doctor.json")
"$program" doctor --format csv >"$folder/parts.csv"

# ---- rows of tables ----

# row CELL...: prints a row of the piece's table.
row() {
    local cell
    for cell in "$@"; do printf '| %s ' "$(printf '%s' "$cell" | tr '|\n' '/ ')"; done
    printf '|\n'
}

# table HEADING...: prints the table's head.
table() {
    row "$@"
    printf '|---%.0s' "$@"
    printf '|\n'
}

has_cudnn() {
    grep -q '^cudnn,works' "$folder/parts.csv"
}

# Remaining time of this piece, seconds.
left_s() {
    local left=$((limit_s - (SECONDS - piece_began)))
    echo $((left > 1 ? left : 1))
}

# not_well TEXT: reports a result that is not as expected.
not_well() {
    echo "gpu-suite: $piece: $*" >&2
    wrong=1
}

# timed COMMAND...: runs it; output in out, exit status in $status, seconds in $took.
timed() {
    local began
    began=$(date +%s%N)
    timeout -k 10 "$(left_s)" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
    took=$((($(date +%s%N) - began) / 1000000))
    took=$((took / 1000)).$(printf %03d $((took % 1000)))
}

# ---- pieces: each prints its table ----

piece_machine() {
    table part found
    row longhaul "$("$program" version)"
    row commit "$(git -C "$source" describe --always --dirty 2>/dev/null || echo unknown)"
    python3 - "$folder/parts.csv" <<'END'
import csv, sys
for line in csv.DictReader(open(sys.argv[1])):
    if line["part"] in ("driver", "device", "nccl", "cudnn", "mpi", "cores"):
        print("| {} | {} |".format(line["part"], line["found"] or "none"))
END
}

piece_kernels() {
    table check result seconds
    timed env CK_FORK=no CK_DEFAULT_TIMEOUT=600 "$build/tests/test_gpu_kernels"
    case $status in
    0) row test_gpu_kernels "$(tail -n 1 "$folder/out")" "$took" ;;
    77) row test_gpu_kernels '**no device found**' "$took" && not_well 'test_gpu_kernels: no device found' ;;
    124) row test_gpu_kernels "unfinished after $limit_s s" "$took" && not_well 'test_gpu_kernels: unfinished' ;;
    *) row test_gpu_kernels "**$(tail -n 1 "$folder/out")**" "$took" && not_well 'test_gpu_kernels' ;;
    esac
}

piece_sanitizer() {
    local tool
    table tool errors seconds
    for tool in memcheck racecheck initcheck synccheck; do
        if ! command -v compute-sanitizer >/dev/null; then
            row $tool 'not run: compute-sanitizer is not installed' ''
            continue
        fi
        timed compute-sanitizer --tool $tool --error-exitcode 99 "$program" run --backend cuda \
            --schedule zigzag --ranks 2 --seq-length 256 --num-attention-heads 2 --kv-channels 64
        row $tool "$(sed -nE 's/.*(ERROR SUMMARY: |hazards? displayed \()([0-9]+) errors?.*/\2/p' "$folder/out" | grep . || echo unknown)" "$took"
        [ $status -eq 0 ] || not_well "$tool: status $status"
    done
}

# Python: the result of a run, from its JSON.
what_it_is='
def what_it_is(run):
    wrong = [e["tensor"] for e in run["errors"] if not e["within"]]
    if not run["same_bits"]:
        wrong.append("runs not bitwise equal")
    return "ok" if run["ok"] else "**WRONG**: " + (", ".join(wrong) or "counts")
'

# Cells of a run's JSON: worst mean, worst row, counts, result.
run_cells() {
    python3 - "$folder/out" <<END
import json, sys
$what_it_is
run = json.load(open(sys.argv[1]))
mean = max((e["mean"] for e in run["errors"] if e["mean"] is not None), default=float("nan"))
worst = max((e["row"] for e in run["errors"] if e["row"] is not None), default=float("nan"))
counts = all(run[k]["equal"] for k in ("bytes_sent", "flops", "peak_bytes"))
print("{:.3f}|{:.3f}|{}|{}".format(mean, worst, "equal" if counts else "**differ**",
                                   what_it_is(run)))
END
}

# schedules BACKEND RANKS: every schedule, both passes.
schedules() {
    local schedule cells
    table schedule ranks 'worst mean, units' 'worst row, units' counts result seconds
    for schedule in $("$program" list schedules --format names); do
        timed "$program" run --backend "$1" --schedule "$schedule" --ranks "$2" --num-attention-heads 8 \
            --kv-channels 64 --seq-length $((tokens * $2)) --deadline 60s --format json
        if [ $status -le 1 ] && cells=$(run_cells 2>/dev/null); then
            IFS='|' read -r mean worst counts result <<<"$cells"
            row "$schedule" "$2" "$mean" "$worst" "$counts" "$result" "$took"
            [ $status -eq 0 ] || not_well "$schedule on $2 ranks: WRONG"
        elif [ $status -eq 1 ]; then
            row "$schedule" "$2" '' '' '' "refused: $(sed 's/^longhaul: error: //' "$folder/err" | head -c 120)" "$took"
        elif [ $status -eq 124 ]; then
            row "$schedule" "$2" '' '' '' unfinished "$took"
            not_well "$schedule on $2 ranks: out of time"
        else
            row "$schedule" "$2" '' '' '' "**status $status**: $(head -c 200 "$folder/err")" "$took"
            not_well "$schedule on $2 ranks: status $status"
        fi
    done
}

piece_copies() { schedules cuda 4; }

piece_nccl() {
    if [ "$gpus" -lt 2 ]; then
        table schedule result
        row all 'not run: this machine has one GPU'
        return
    fi
    schedules nccl "$((gpus < 8 ? gpus : 8))"
}

# must_fail NAME STATUS PATTERN COMMAND...
must_fail() {
    local name=$1 expected=$2 pattern=$3 found
    shift 3
    timed "$@"
    found=$(grep -Eo -m 1 -e "$pattern" "$folder/err")
    if [ $status -eq "$expected" ] && [ -n "$found" ]; then
        row "$name" "$status" "$found" "$took"
    else
        row "$name" "**$status**" "**$(head -c 200 "$folder/err")**" "$took"
        not_well "$name: status $status, not $expected, or another message"
    fi
}

piece_failures() {
    local run="$program run --schedule ring --num-attention-heads 2 --kv-channels 64 --deadline 5s"
    table failure status message seconds
    # shellcheck disable=SC2086
    {
        must_fail 'a rank that sends nothing, copies' 4 'no op and no message has completed for 5 s' \
            $run --backend cuda --ranks 3 --seq-length 192 --inject stall:1
        must_fail 'a GPU that is hidden' 4 'no GPU is visible' \
            env CUDA_VISIBLE_DEVICES= STANDIN_DEVICES=0 $run --backend cuda --ranks 2 --seq-length 128
        [ "$gpus" -lt 2 ] && return
        must_fail 'a rank that sends nothing, NCCL' 4 'no op and no message has completed for 5 s|has waited for 5' \
            $run --backend nccl --ranks 2 --seq-length 128 --inject stall:1
        must_fail 'more ranks than GPUs' 4 'rank [0-9]+ needs GPU [0-9]+ of this machine, which has [0-9]+' \
            $run --backend nccl --ranks $((gpus + 1)) --seq-length $((64 * (gpus + 1)))
        must_fail 'no NCCL' 4 'NCCL: cannot load /nowhere' \
            env LONGHAUL_NCCL=/nowhere $run --backend nccl --ranks 2 --seq-length 128
    }
}

# Milliseconds of PyTorch's attention, forward and backward, for n tokens; empty without PyTorch.
pytorch_ms() {
    timeout -k 10 "$(left_s)" python3 - "$1" 2>/dev/null <<'END'
import statistics, sys
import torch
n = int(sys.argv[1])
q, k, v = (torch.randn(1, 8, n, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
do = torch.randn_like(q)
times = []
for i in range(13):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).backward(do)
    end.record()
    end.synchronize()
    times.append(begin.elapsed_time(end))
print("{:.3f}".format(statistics.median(times[3:])))
END
}

piece_speed() {
    local n rate torch ours cudnns theirs result
    local -a attention=("$program" run --backend cuda --schedule ring --ranks 1 --num-attention-heads 8
        --kv-channels 128 --repeat 10 --check-tokens 256 --format json)

    table tokens 'longhaul, TFLOP/s' 'longhaul with cuDNN, TFLOP/s' "PyTorch's attention, TFLOP/s" result
    for n in $lengths; do
        echo '{}' >"$folder/cudnn"
        if has_cudnn; then
            timed "${attention[@]}" --seq-length $n --kernels cudnn
            if [ $status -le 1 ] && [ -s "$folder/out" ]; then
                mv "$folder/out" "$folder/cudnn"
            else
                not_well "$n tokens, cuDNN: status $status: $(head -c 200 "$folder/err")"
            fi
        fi
        timed "${attention[@]}" --seq-length $n
        if [ $status -gt 1 ] || [ ! -s "$folder/out" ]; then
            row $n '' '' '' "**status $status**: $(head -c 200 "$folder/err")"
            not_well "$n tokens: status $status"
            continue
        fi
        torch=$(pytorch_ms $n)
        rate=$(python3 - "$folder/out" "$folder/cudnn" "${torch:-0}" <<END
import json, statistics, sys
$what_it_is
run, cudnn, torch_ms = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), float(sys.argv[3])
def rate(seconds):
    return "{:.2f}".format(run["flops"]["executed"] / seconds / 1e12) if seconds > 0 else "none"
result = what_it_is(run)
if cudnn and not cudnn["ok"]:
    result += "; cuDNN " + what_it_is(cudnn)
print("|".join((rate(statistics.median(run["makespans_s"])), rate(statistics.median(cudnn.get("makespans_s", [0]))),
                rate(torch_ms / 1e3), result)))
END
        )
        IFS='|' read -r ours cudnns theirs result <<<"$rate"
        row $n "$ours" "$cudnns" "$theirs" "$result"
        [ "$result" = ok ] || not_well "$n tokens: ${result:-no result}"
    done
}

# Rows of the output of validate.
validated_rows() {
    python3 - "$folder/validation.json" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
cause = result.get("explanation", {}).get("best") or "none"
for row in result["schedules"]:
    if row["refused"] or "measured_s" not in row:
        print("| {} | | | | {} |".format(row["schedule"], row["refused"]))
    else:
        print("| {} | {:.3f} | {:.3f} | {:+.1f} | {} |".format(
            row["schedule"], 1e3 * row["measured_s"], 1e3 * row["predicted_s"],
            100 * row["makespan_error"], cause))
END
}

piece_truth() {
    local ranks=$((gpus < 8 ? gpus : 8)) on='--backend cuda' few= profile=$folder/gpu.json
    table schedule 'measured, ms' 'predicted, ms' 'error, %' 'constants that explain most of the error'
    if [ "$ranks" -gt 1 ]; then
        on='--backend nccl' few="--ranks $ranks" profile=$folder/gpus.json
    fi
    # shellcheck disable=SC2086
    timed "$program" calibrate $on $few $quick --cluster "${LONGHAUL_CLUSTER:-hgx-h100}" -o "$profile"
    if [ $status -ne 0 ]; then
        row calibrate '' '' '' "**status $status**: $(head -c 200 "$folder/err")"
        not_well "calibrate: status $status"
        return
    fi
    # shellcheck disable=SC2086
    timed "$program" validate $on $few --cluster "${LONGHAUL_CLUSTER:-hgx-h100}" --profile "$profile" \
        --seq-length $((truth_tokens * ranks)) --num-attention-heads $truth_heads --num-query-groups $truth_heads \
        --kv-channels $truth_width --schedule ring --schedule zigzag --schedule ulysses --schedule usp \
        --format json -o "$folder/validation.json"
    if [ $status -gt 1 ]; then
        row validate '' '' '' "**status $status**: $(head -c 200 "$folder/err")"
        not_well "validate: status $status"
        return
    fi
    validated_rows || not_well 'validate: no result'
}

# Always on one GPU, with the cluster's links. With a single GPU, piece_truth has calibrated it.
piece_alone() {
    local cluster=${LONGHAUL_CLUSTER:-hgx-h100} ranks=$((8 * nodes))
    local -a rank=("$program" validate --backend cuda --replay-rank slowest --cluster "$cluster:$nodes" --ranks $ranks
        --seq-length $((truth_tokens * ranks)) --num-attention-heads $truth_heads --num-query-groups $truth_heads
        --kv-channels $truth_width --schedule ring --schedule zigzag --schedule dfa-balanced --schedule usp --format json)

    table attention schedule rank 'measured, ms' 'predicted, ms' 'error, %' 'median kernel error, %'
    status=0
    # shellcheck disable=SC2086
    [ -s "$folder/gpu.json" ] || timed "$program" calibrate --backend cuda $quick --cluster "$cluster" -o "$folder/gpu.json"
    if [ $status -ne 0 ]; then
        row calibrate '' '' '' '' '' "**status $status**: $(head -c 200 "$folder/err")"
        not_well "calibrate: status $status"
        return
    fi
    timed "${rank[@]}" --profile "$folder/gpu.json" --repeat 3 -o "$folder/alone.json"
    alone_rows longhaul "$folder/alone.json"
    if has_cudnn; then
        timed "${rank[@]}" --kernels cudnn --repeat 3 -o "$folder/cudnn.json"
        alone_rows 'cuDNN, data files' "$folder/cudnn.json"
    fi
}

# alone_rows ATTENTION FILE: rows of the validation in FILE, if there is one.
alone_rows() {
    if [ $status -gt 1 ]; then
        row "$1" '' '' '' '' '' "**status $status**: $(head -c 200 "$folder/err")"
        not_well "alone: $1: status $status"
        return
    fi
    python3 - "$@" <<'END' || not_well "alone: $1: incomplete measurements: $(head -c 200 "$folder/err")"
import json, sys
rows = json.load(open(sys.argv[2]))["schedules"]
for row in rows:
    if row["refused"] or "measured_s" not in row:
        print("| {} | {} | | | | | {} |".format(sys.argv[1], row["schedule"], row["refused"] or "**not measured**"))
    else:
        print("| {} | {} | {} | {:.3f} | {:.3f} | {:+.1f} | {:.1f} |".format(
            sys.argv[1], row["schedule"], row["rank"], 1e3 * row["measured_s"], 1e3 * row["predicted_s"],
            100 * row["makespan_error"], 100 * row["op_error"]))
sys.exit(0 if all(row["refused"] or "measured_s" in row for row in rows) else 1)
END
}

# ---- all of it ----

# Puts the table of a piece between <!-- gpu-suite PIECE --> and <!-- end --> of the page.
write_table() { # PIECE
    python3 - "$document" "$folder/$1.md" "$1" <<'END' || wrong=1
import pathlib, re, sys
document, table, piece = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
mark = "<!-- gpu-suite {} -->".format(piece)
rows = table.read_text(encoding="utf-8", errors="replace")
text, count = re.subn(re.escape(mark) + r"\n.*?<!-- end -->",
                      lambda _: "{}\n\n{}\n<!-- end -->".format(mark, rows),
                      document.read_text(encoding="utf-8"), flags=re.S)
if count != 1:
    sys.exit("{}: missing table {}".format(document, mark))
new = document.with_name(document.name + ".new")
new.write_text(text, encoding="utf-8")
new.replace(document)
END
}

for piece in $pieces; do
    case " $all " in *" $piece "*) ;; *) usage ;; esac
done
for piece in $pieces; do
    piece_began=$SECONDS
    echo "gpu-suite: $piece" >&2
    "piece_$piece" >"$folder/$piece.md"
    write_table "$piece"
    echo "gpu-suite: $piece took $((SECONDS - piece_began)) s" >&2
done
exit $wrong
