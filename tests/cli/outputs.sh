#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Failures while results are written: outputs.sh PROGRAM FAULT_LIBRARY
#
# Each check runs the program in an empty folder and looks at its exit status, its messages, and what
# is in the folder afterwards: an output that failed is as it was before, and nothing else is left.
set -u
program=$(realpath "$1")
faults=$(realpath "$2")
folder=$(mktemp -d)
trap 'chmod -R u+rwx "$folder"; rm -rf "$folder"' EXIT
export LC_ALL=C ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export LONGHAUL_DATA_DIR=${LONGHAUL_DATA_DIR:-$(realpath "$(dirname "$0")/../..")}
failures=0
checks=0
sim=("$program" sim --ranks 4 --schedule ring --cost unit)
deep=${LONGHAUL_TEST_DEEP:-}
turn=0

# takes ONE_IN: whether to run this case: one in ONE_IN, or all if LONGHAUL_TEST_DEEP is set.
takes() {
    turn=$((turn + 1))
    [ -n "$deep" ] || [ $((turn % $1)) -eq 0 ]
}

fail() {
    failures=$((failures + 1))
    echo "outputs: line ${BASH_LINENO[1]}: $1"
    sed 's/^/    stdout: /' "$folder/out" | head -5
    sed 's/^/    stderr: /' "$folder/err" | head -5
}

# Creates a new, empty working folder.
fresh() {
    chmod -R u+rwx "$folder/work" 2> /dev/null
    rm -rf "$folder/work"
    mkdir "$folder/work"
    cd "$folder/work" || exit 99
}

# expect STATUS WORDS COMMAND...: runs it and checks its status and that WORDS are in its standard error.
expect() {
    local status=$1 words=$2
    shift 2
    checks=$((checks + 1))
    "$@" > "$folder/out" 2> "$folder/err" < /dev/null
    local found=$?
    [ $found -eq "$status" ] || fail "status $found, not $status: ${*##*/}"
    [ -z "$words" ] || grep -qF -- "$words" "$folder/err" || fail "no \"$words\" in the messages of ${*##*/}"
}

# printed: the result is still printed to standard output.
printed() { grep -q '^makespan\|makespan' "$folder/out" || fail "the answer is not printed"; }

# holds FILE TEXT; left NAMES...: the complete contents of the folder, drafts included.
holds() { [ "$(cat "$1" 2> /dev/null)" = "$2" ] || fail "$1 has changed"; }
left() {
    local names
    names=$(ls -A | tr '\n' ' ')
    [ "$names" = "${*:+$* }" ] || fail "left: $names, not: $*"
}

# limited KILOBYTES COMMAND...: limits the size of files, but not of pipes.
limited() { (
    set -o pipefail
    (
        ulimit -f "$1"
        "${@:2}"
    ) 2>&1 > >(cat > "$folder/answer") | cat >&2
); }

with_fault() {
    local fault=$1
    shift
    env FAULT="$fault" LD_PRELOAD="$faults" "$@"
}

# --- calls that fail ------------------------------------------------------------------------------

# One in five: this covers each option with a new and with an old file.
enospc=28 efbig=27 eio=5 edquot=122
while read -r fault words; do
    for option in -o --timeline --memory-timeline; do
        for before in new old; do
            takes 5 || continue
            fresh
            [ $before = old ] && echo precious > f.csv
            expect 4 "cannot write f.csv: $words" with_fault "$fault" "${sim[@]}" $option f.csv
            if [ $before = old ]; then
                holds f.csv precious
                left f.csv
            else
                left
            fi
            [ $option != -o ] && case $fault in create*) ;; *) printed ;; esac
        done
    done
done << END
disk:0:$enospc No space left on device
disk:100:$enospc No space left on device
disk:100:$edquot Disk quota exceeded
disk:64:$efbig File too large
create:$enospc No space left on device
create:$eio Input/output error
fsync:$eio Input/output error
close:$eio Input/output error
rename:$eio Input/output error
END

# The script of a figure may be written and the figure not.
if command -v gnuplot > /dev/null; then
    fresh
    echo precious > g.svg
    expect 4 "cannot write g.svg: No space left on device" with_fault disk:6000:$enospc "${sim[@]}" \
        --figure g.svg
    printed
    holds g.svg precious
    left g.gp g.svg
    fresh
    echo precious > g.svg
    expect 4 "cannot write g.svg: No space left on device" with_fault disk:3000:$enospc "${sim[@]}" \
        --memory-timeline g.svg
    printed
    holds g.svg precious
    left g.gp g.svg
fi

# Memory over time as a figure.
if command -v gnuplot > /dev/null; then
    for suffix in svg ${deep:+png} pdf; do
        fresh
        expect 0 "" "${sim[@]}" --memory-timeline m.$suffix --figure g.$suffix
        printed
        left g.gp g.$suffix m.gp m.$suffix
        grep -q "filledcurves .* title 'attention'" m.gp || fail "no area in the script"
        mv m.$suffix first
        expect 0 "" "${sim[@]}" --memory-timeline m.$suffix
        [ $suffix = pdf ] || cmp -s m.$suffix first || fail "m.$suffix differs from itself"
    done
fi

# A deadlocked run writes no rows.
fresh
echo precious > f.csv
expect 4 "" "$program" sim --ranks 16 --cluster dgx-a100-80g --schedule ring --link-fault nic:0:0 \
    --memory-timeline f.csv
holds f.csv precious
left f.csv

# Short and interrupted writes, and a mode that cannot be preserved, are handled.
for kind in new old hard-link; do
    option=--timeline
    [ $kind = hard-link ] && option=--memory-timeline
    fresh
    expect 0 "" "${sim[@]}" $option expected.csv
    [ $kind != new ] && echo old > f.csv
    [ $kind = hard-link ] && ln f.csv other
    expect 0 "" with_fault short "${sim[@]}" $option f.csv
    cmp -s f.csv expected.csv || fail "short writes change the file ($kind)"
    [ $kind != hard-link ] || cmp -s other expected.csv || fail "a hard link is lost"
done
fresh
echo old > f.csv
expect 0 "" with_fault fchmod:1 "${sim[@]}" -o f.csv
left f.csv

# A file with other links is overwritten in place if there is room for all of it.
fresh
echo precious > f.csv
ln f.csv other
for option in --timeline --memory-timeline; do
    expect 4 "cannot write f.csv: File too large" limited 0 "${sim[@]}" $option f.csv
    holds other precious
    left f.csv other
done

# --- errors of the system itself -------------------------------------------------------------------

fresh
for option in --timeline --memory-timeline; do
    expect 4 "cannot write f.csv: File too large" limited 1 "${sim[@]}" $option f.csv
    grep -q makespan "$folder/answer" || fail "the answer is not printed"
    left
done
long=$(printf 'a%.0s' {1..300})
expect 4 "$long: File name too long" "${sim[@]}" -o "$long"
expect 4 "cannot write .: Is a directory" "${sim[@]}" -o .
expect 4 "cannot write no/file: there is no folder no" "${sim[@]}" -o no/file
touch f.csv
expect 4 "cannot write f.csv/below: Not a directory" "${sim[@]}" -o f.csv/below
ln -s loop loop
expect 4 "cannot write loop: Too many levels of symbolic links" "${sim[@]}" -o loop

# Root may do everything, so as root these checks run as another user.
as_nobody=()
if [ "$(id -u)" -eq 0 ]; then
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chmod 755 "$folder"
fi
if "${as_nobody[@]}" "$program" version > /dev/null 2>&1; then
    fresh
    chmod 555 .
    expect 4 "cannot write f.csv: Permission denied" "${as_nobody[@]}" "${sim[@]}" -o f.csv
    fresh
    chmod 777 .
    echo precious > f.csv
    chmod 444 f.csv
    expect 4 "cannot write f.csv: Permission denied" "${as_nobody[@]}" "${sim[@]}" -o f.csv
    holds f.csv precious
    # The file is writable, but its folder is not.
    chmod 666 f.csv
    chmod 555 .
    expect 0 "" "${as_nobody[@]}" "${sim[@]}" -o f.csv
    grep -q makespan f.csv || fail "a file in a folder that is read-only is not overwritten"
    left f.csv
fi

# --- standard streams -----------------------------------------------------------------------------

fresh
echo '{"schema": "longhaul.scenario/1", "ranks": 4, "schedule": ["ring"], "cost": "unit"}' > in.json
for words in version help "help sim" list "list schedules" "show ring" "sim in.json" "compare in.json" \
    "verify --schedule ring --ranks 2" "sim in.json --format json" "--help" "sim --help" \
    "run --schedule ring --ranks 2 --seq-length 64 --num-attention-heads 2 --kv-channels 64"; do
    if takes 2; then
        expect 4 "cannot write standard output: No space left on device" \
            bash -c 'exec > /dev/full; exec "$@"' - "$program" $words
    fi
    if [ -n "$deep" ] || [ $((turn % 2)) -eq 1 ]; then
        expect 4 "cannot write standard output: Bad file descriptor" \
            bash -c 'exec >&-; exec "$@"' - "$program" $words
    fi
    left in.json
done
expect 0 "" bash -c 'exec <&- 2>&-; exec "$@"' - "$program" sim in.json -o f.csv
left f.csv in.json
# No file may get the descriptor of a closed stream.
fresh
expect 4 "cannot write standard output" bash -c 'exec >&-; exec "$@"' - "${sim[@]}" --timeline f.csv
grep -q makespan f.csv 2> /dev/null && fail "the answer is in the timeline"

# --- before the work ------------------------------------------------------------------------------

# The output is checked first: the scenario's other file is missing, too.
fresh
expect 4 "cannot write no/file" "${sim[@]}" --profile missing.json -o no/file
expect 4 "cannot write no/file.svg" "${sim[@]}" --profile missing.json --figure no/file.svg
expect 2 '--memory-timeline: "g.jpg" is not allowed; allowed: a name that ends in .csv, .json, .svg' \
    "${sim[@]}" --memory-timeline g.jpg
expect 2 '--figure: "g.jpg" is not allowed; allowed: a name that ends in .svg, .png or .pdf' \
    "${sim[@]}" --figure g.jpg
expect 4 "cannot write no/file" "$program" calibrate --quick -o no/file
expect 4 "cannot write no/file" "$program" verify -o no/file
left

# --- outputs that would overwrite something ---------------------------------------------------------

fresh
cat > in.json << 'END'
{"schema": "longhaul.scenario/1", "ranks": 4, "schedule": ["ring"], "cost": "unit",
 "document_lengths": "lengths"}
END
echo "8K 8K" > lengths
ln -s in.json link.json
ln in.json hard.json
cp in.json copy
for name in in.json ./in.json link.json hard.json; do
    for option in -o --timeline; do
        expect 2 "would overwrite the scenario" "$program" sim in.json $option $name
        cmp -s in.json copy || fail "an input is overwritten"
    done
done
expect 2 "would overwrite the file of --document-lengths" "$program" sim in.json -o lengths
cp "$LONGHAUL_DATA_DIR/topologies/dgx-a100-80g.json" t.json
expect 2 "would overwrite the file of --cluster" "$program" compare --cluster ./t.json:1 -o t.json
"$program" show ring --ranks 4 --format json -o p.json
expect 2 "would overwrite the file of --schedule-file" "$program" verify --schedule-file p.json -o p.json
expect 2 "--timeline ./n.csv would overwrite the file of --output" "${sim[@]}" -o n.csv --timeline ./n.csv
expect 2 "script g.gp would overwrite the file of --output" "${sim[@]}" --figure g.svg -o g.gp
expect 2 "script g.gp would overwrite the figure's script" "${sim[@]}" --figure g.svg \
    --memory-timeline g.png
cp p.json g.gp
expect 2 "script g.gp would overwrite the file of --schedule-file" "$program" sim \
    --schedule-file g.gp --figure g.svg
expect 2 "would overwrite what goes to standard output" bash -c 'exec > out.csv; exec "$@"' - \
    "${sim[@]}" --timeline out.csv

# --- pipes and devices, under any name --------------------------------------------------------------

fresh
ln -s /dev/null null.csv
expect 0 "" "${sim[@]}" -o /dev/null --timeline null.csv
expect 0 "" "${sim[@]}" -o /dev/null --timeline /dev/null
rm null.csv
if command -v gnuplot > /dev/null; then
    expect 0 "" "${sim[@]}" -o /dev/null --figure /dev/null
    "${sim[@]}" -o /dev/null --figure /dev/stdout | grep -q '<svg' || fail "no figure in a pipe"
fi
left
for path in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
    "${sim[@]}" -o $path | grep -q makespan || fail "no answer in $path"
    "${sim[@]}" -o answer --timeline $path | head -n 1 | grep -q '^rank,' || fail "no timeline in $path"
    grep -q makespan answer || fail "no answer beside the timeline in $path"
    rm answer
done
mkfifo pipe
grep -q '^rank,' pipe &
expect 0 "" "${sim[@]}" --timeline pipe
wait $! || fail "no timeline in a named pipe"
left pipe
echo mine > t.txt
expect 2 "allowed: a name that ends in .csv or .json, a pipe or a device" "${sim[@]}" --timeline t.txt
expect 2 "allowed: a name that ends in .svg, .png or .pdf, a pipe or a device" "${sim[@]}" --figure t.txt
holds t.txt mine

# --- links ------------------------------------------------------------------------------------------

fresh
mkdir victim
for name in .g.svg.part .g.gp.part .f.csv.part; do
    ln -s victim/stolen "$name"
done
expect 0 "" "${sim[@]}" -o f.csv
[ -e victim/stolen ] && fail "a link of a predictable name was followed"

# --- gnuplot ----------------------------------------------------------------------------------------

# fake SCRIPT: replaces gnuplot by this shell script; $real is the system's.
real=$(command -v gnuplot)
fake() {
    mkdir -p fake
    printf '#!/bin/bash\n%s\n' "$1" > fake/gnuplot
    chmod +x fake/gnuplot
}
with_fake() { PATH=$PWD/fake:$PATH "$@"; }

# bad_gnuplot WORDS SCRIPT: gnuplot fails, the result is printed, and the previous figure is still there.
bad_gnuplot() {
    local words=$1 suffixes=(svg png pdf)
    turn=$((turn + 1))
    [ -n "$deep" ] || suffixes=("${suffixes[turn % 3]}")
    for suffix in "${suffixes[@]}"; do
        fresh
        fake "$2"
        echo precious > g.$suffix
        expect 4 "cannot draw g.$suffix: $words" with_fake "${sim[@]}" --figure g.$suffix
        grep -qF "its script is in g.gp" "$folder/err" || fail "the script is not named"
        printed
        holds g.$suffix precious
        left fake g.gp g.$suffix
    done
}
bad_gnuplot 'gnuplot failed with status 3: line 7: \x1b[31mundefined' \
    'printf "line 7: \033[31mundefined\n" >&2; exit 3'
bad_gnuplot "gnuplot was ended by signal 11" 'kill -SEGV $$'
bad_gnuplot "gnuplot's output is not a complete figure" 'exit 0'
bad_gnuplot "gnuplot's output is not a complete figure" 'echo "<?xml version=1?><svg>"'
[ -z "$real" ] ||
    bad_gnuplot "gnuplot's output is not a complete figure" "$real \"\$@\" | head -c 2000"
export LONGHAUL_GNUPLOT_SECONDS=1
bad_gnuplot "gnuplot did not end within 1 s and was killed" 'sleep 1000'
bad_gnuplot "gnuplot did not end within 1 s and was killed" 'cat > /dev/null; exec >&- 2>&-; sleep 1000'
bad_gnuplot "gnuplot did not end within 1 s and was killed" 'trap "" TERM INT HUP; sleep 1000 & wait'
unset LONGHAUL_GNUPLOT_SECONDS
fresh
expect 4 "gnuplot is not installed" env PATH= "${sim[@]}" --figure g.svg
printed
left g.gp
mkdir fake
touch fake/gnuplot
chmod +x fake/gnuplot
echo 'no program' > fake/gnuplot
expect 4 "cannot draw g.svg" with_fake "${sim[@]}" --figure g.svg
printed

# --- signals ------------------------------------------------------------------------------------------

# await COMMAND...: waits until it succeeds, for at most 100 s.
await() {
    for ((i = 0; i < 2000; i++)); do
        "$@" && return
        sleep 0.05
    done
    fail "timed out waiting: $*"
}
has_draft() { compgen -G '.longhaul-*' > /dev/null; }
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null; }

{
for signal in TERM HUP; do
    fresh
    # The parent, e.g. nohup, may ignore the signal.
    env --default-signal=$signal FAULT=stall LD_PRELOAD="$faults" "${sim[@]}" --timeline f.csv > "$folder/out" 2> "$folder/err" &
    pid=$!
    await has_draft
    kill -$signal $pid
    await is_gone $pid
    wait $pid 2> "$folder/err"
    [ $? -eq $((128 + $(kill -l $signal))) ] || fail "the status does not say SIG$signal"
    left
done
for signal in TERM KILL; do
    fresh
    fake 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000'
    PATH=$PWD/fake:$PATH "${sim[@]}" --figure g.svg > "$folder/out" 2> "$folder/err" &
    pid=$!
    await test -s pid
    kill -$signal $pid
    wait $pid 2> /dev/null
    await is_gone "$(cat pid)"
done
} 2> /dev/null # the shell's notices of ended processes

# --- hostile names ------------------------------------------------------------------------------------

fresh
name='`touch ran`\u0027.system(\"touch ran\").\u0027\n!touch ran\n\u001b]0;title\u0007\u009b31m\u202e=1+1</text><script>'
sed "s|\"name\": \"[^\"]*\"|\"name\": \"$(printf '%s' "$name" | sed 's/[\\&|]/\\&/g')\"|" \
    "$LONGHAUL_DATA_DIR/topologies/dgx-a100-80g.json" > t.json
grep -q 'touch ran' t.json || fail "the hostile name is not in the file"
hostile=(--cluster ./t.json --ranks 4 --schedule ring)
for format in table md csv json; do
    expect 0 "" "$program" compare "${hostile[@]}" --format $format
    LC_ALL=C.UTF-8 grep -qP '[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{202a}-\x{202e}]' "$folder/out" &&
        fail "control characters in $format"
done
if [ -n "$real" ]; then
    for command in sim compare; do
        expect 0 "" "$program" $command "${hostile[@]}" --figure h.svg
        [ ! -e ran ] || fail "a name was run"
        grep -q '<script' h.svg && fail "a name is markup"
        ! command -v xmllint > /dev/null || xmllint --noout h.svg || fail "the figure is no XML"
        gnuplot h.gp 2> "$folder/err" || fail "the script does not draw"
        [ ! -e ran ] || fail "a name was run"
    done
    # File names must not be interpreted either, and the user's gnuplot settings are ignored.
    fresh
    echo 'set terminal dumb' > .gnuplot
    for stem in '< touch ran;' '|touch ran' "a'; system('touch ran')" '`touch ran`' '-e' $'a\nb'; do
        expect 0 "" env HOME="$PWD" "${sim[@]}" --figure "./$stem.svg" -o /dev/null
        [ -s "./$stem.svg" ] || fail "no figure $stem.svg"
        gnuplot "./$stem.gp" 2> /dev/null
        [ ! -e ran ] || fail "a name was run: $stem"
    done
fi
expect 3 '\x1b[2Jx.json' "$program" sim $'./\e[2Jx.json'

cd /
echo "outputs: $checks checks, $failures failures"
[ $failures -eq 0 ]
