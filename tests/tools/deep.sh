#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests tools/deep.py in a repository made here: it pulls suites forward only for files that they cover, up to half an
# hour in all; reports stale and old suites; records runs; and rejects invalid lists.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/tools "$root"/.ci "$root"/src/low/deep "$root"/net
cp "$LONGHAUL_SOURCE_DIR"/tools/deep.py "$root"/tools
cd "$root"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
failed=0

git() { command git -c init.defaultBranch=main -c commit.gpgsign=false "$@"; }

# change FILE...: commits a change of these files.
change() {
    for file in "$@"; do echo x >> "$file"; done
    git add -A
    git commit -qm change
}

# due WORDS: exactly these suites are pulled forward; messages go to err.
due() {
    local found
    found=$(tools/deep.py due 2> err | tr '\n' ' ')
    [ "$found" = "${1:+$1 }" ] && return
    echo "line ${BASH_LINENO[0]}: pulled forward: '$found', not '$1': $(cat err)"
    failed=1
}

# says PATTERN: the messages of the last call match it.
says() {
    grep -Eq "$1" err && return
    echo "line ${BASH_LINENO[0]}: does not say '$1': $(cat err)"
    failed=1
}

# refuses PATTERN LINE: the list with this line added is rejected.
refuses() {
    cp .ci/deep.list list
    echo "$2" >> .ci/deep.list
    if tools/deep.py due > out 2> err; then
        echo "line ${BASH_LINENO[0]}: accepts '$2'"
        failed=1
    fi
    says "$1"
    cp list .ci/deep.list
}

cat > .ci/deep.list << 'END'
# SUITE SECONDS FOLDERS
low     900  src/low
deep    900  src/low/deep net/one.sh
net     700  net
timed   100  -
never   100  src
END
git init -q
echo .ci/deep.tsv >> .git/info/exclude
change src/low/a.c src/low/deep/b.c net/one.sh net/two.sh
for suite in low deep net timed; do tools/deep.py record $suite 12; done
[ "$(sed -n 2p .ci/deep.tsv)" = "$(printf 'deep\t%s\t12' "$(git rev-parse --short=12 HEAD)")" ] || {
    echo "recorded: $(cat .ci/deep.tsv)"
    failed=1
}
[ "$(tools/deep.py since low)" = "$(git rev-parse --short=12 HEAD)" ] || failed=1
due ''
says '^deep: never is STALE \(never run\)'

# A folder without its subfolders; a file; uncommitted changes.
change src/low/a.c
due low
says '^deep: low is pulled forward: 900 s \(since [0-9a-f]{12}, 1 commits ago\)'
git reset -q --hard HEAD~1
echo x >> src/low/deep/b.c
due deep
git checkout -q src
change net/two.sh
due net
git reset -q --hard HEAD~1

# In the order of the list, half an hour in all: the third suite is stale.
change src/low/a.c src/low/deep/b.c net/one.sh
due 'low deep'
says '^deep: net is STALE \(since'
tools/deep.py record low 1
due 'deep net'

# Suites that nothing pulls forward, and unchanged ones, become old.
for _ in $(seq 19); do git commit -q --allow-empty -m empty; done
due 'deep net'
grep -q 'timed is old' err && { echo "20 commits are not old"; failed=1; }
git commit -q --allow-empty -m empty
due 'deep net'
says '^deep: timed is old \(since [0-9a-f]{12}, 21 commits ago\)'

# An unknown commit.
sed -i 's/^low\t[0-9a-f]*/low\t0123456789ab/' .ci/deep.tsv
due 'deep net'
says '^deep: low is STALE \(since 0123456789ab, which is not known here\)'

refuses 'deep.list:7: a row is SUITE SECONDS FOLDER' 'more 100'
refuses 'deep.list:7: a row is SUITE SECONDS FOLDER' 'more ten src'
refuses 'deep.list:7: a row is SUITE SECONDS FOLDER' 'low 100 src'
refuses 'deep.list:7: more takes 3601 s; allowed: 3600' 'more 3601 src'
refuses 'deep.list:7: nowhere does not exist' 'more 100 nowhere'
printf 'low\tabc\n' >> .ci/deep.tsv
tools/deep.py due > out 2> err && failed=1
says 'deep.tsv:5: a row is SUITE, COMMIT, SECONDS'
sed -i 5d .ci/deep.tsv
tools/deep.py record nothing 3 > out 2> err && failed=1
says 'no suite nothing; suites: low, deep, net, timed, never'
exit $failed
