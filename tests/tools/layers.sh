#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests tools/check-layers.py with sources made here. It finds an include upwards, a call upwards without an include,
# a cycle of includes, four files that call each other, a declaration in another file's header, a wrong README and an
# unknown folder; and nothing in a correct tree.
set -euo pipefail

check=$LONGHAUL_SOURCE_DIR/tools/check-layers.py
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/src/low "$root"/src/low/deep "$root"/src/high "$root"/build
cat > "$root"/src/layers.txt << 'END'
low:      # the lowest
low/deep: low
high:     low
low = low/deep
END

# put FILE LINES...: writes a file of src.
put() {
    local file=$1
    shift
    printf '%s\n' "$@" > "$root/src/$file"
}

# Makes a correct tree: high uses low, and the folders of low use each other.
plain() {
    rm -rf "$root"/src/other "$root"/src/low/ring?.[ch] "$root"/build/*.o
    put low/README.md 'May use: nothing else; begin with low.h.'
    put low/deep/README.md 'May use: `low`.'
    put high/README.md 'May use: `low`.'
    put low/low.h 'int low(void);'
    put low/low.c '#include "low/low.h"' '#include "low/deep/deep.h"' 'int low(void) { return deep(); }'
    put low/deep/deep.h 'int deep(void);'
    put low/deep/deep.c '#include "low/deep/deep.h"' 'int deep(void) { return 1; }'
    put high/high.h '#include "low/low.h"' 'int high(void);'
    put high/high.c '#include "high/high.h"' 'int high(void) { return low(); }'
}

# Compiles everything, with the compile_commands.json that Meson would write.
compile() {
    local file object comma=
    echo '[' > "$root"/build/compile_commands.json
    for file in $(cd "$root" && find src -name '*.c' | sort); do
        object=$(echo "$file" | tr / _).o
        cc -I "$root"/src -c "$root/$file" -o "$root/build/$object"
        echo "$comma{\"directory\": \"$root/build\", \"file\": \"../$file\", \"output\": \"$object\"}"
        comma=,
    done >> "$root"/build/compile_commands.json
    echo ']' >> "$root"/build/compile_commands.json
}

failures=0

# expect WHAT TEXT: the check of the tree prints exactly TEXT and fails; empty TEXT: passes. Restores the tree.
expect() {
    local found status=0 wanted=0
    compile
    found=$("$check" "$root" "$root"/build) || status=$?
    [ -z "$2" ] || wanted=1
    if [ "$found" != "$2" ] || [ $status -ne $wanted ]; then
        printf '%s: status %s\nfound:  %s\nwanted: %s\n' "$1" $status "$found" "$2"
        failures=$((failures + 1))
    fi
    plain
}

plain
expect 'no fault' ''

put low/low.c '#include "high/high.h"' 'int low(void) { return 1; }'
expect 'an include upwards' 'src/low/low.c:1: low may not include high/high.h'

put low/low.c 'int high(void);' 'int low(void) { return high(); }'
expect 'a call upwards' "src/low/low.c:1: low may not use high, which is src/high/high.c's"

put low/low.h '#include "low/deep/deep.h"' 'int low(void);'
put low/deep/deep.h '#pragma once' '#include "low/low.h"' 'int deep(void);'
sed -i '1i #pragma once' "$root"/src/low/low.h
expect 'a circle' \
    'src/low/low.h:1: a circle of includes: low/low.h -> low/deep/deep.h -> low/low.h'

# Four files in a cycle; three are allowed.
for i in 1 2 3 4; do
    put low/ring$i.h "int lh_ring$i(void);"
    put low/ring$i.c "#include \"low/ring$i.h\"" "int lh_ring$((i % 4 + 1))(void);" \
        "int lh_ring$i(void) { return lh_ring$((i % 4 + 1))(); }"
done
expect 'four files in a circle' \
    'src/low/ring1.c:1: 4 files call each other: low/ring1 low/ring2 low/ring3 low/ring4'

put low/low.h 'int low(void);' 'int lh_deep(void);'
put low/deep/deep.c '#include "low/deep/deep.h"' 'int deep(void) { return 1; }' \
    'int lh_deep(void) { return 1; }'
expect "a declaration in another file's header" \
    'src/low/deep/deep.c:1: lh_deep is declared in low/low.h: declare it in low/deep/deep.h'

put high/README.md 'May use: nothing else. Begin with height.h.'
expect 'a README that is wrong' "src/high/README.md:1: says not 'May use: \`low\`', as layers.txt does
src/high/README.md:1: there is no height.h here"

mkdir "$root"/src/other
put other/other.c 'int other(void) { return 1; }'
expect 'a folder without a layer' 'src/other/other.c:1: src/layers.txt does not know the folder other'

put layers.txt 'low: high' 'high:'
compile
if "$check" "$root" "$root"/build > "$root"/out 2>&1 ||
    ! grep -q 'layers.txt:1: low stands on high, which is not above it' "$root"/out; then
    cat "$root"/out
    failures=$((failures + 1))
fi

[ $failures -eq 0 ]
