#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package twice and holds it to what a package promises:
#     tools/check-package.sh [--tarballs|--once]
#
#   - the two builds, in different folders, under other settings, are the same, byte for byte;
#   - lintian has no complaint about the source and the package;
#   - installed, the program runs and finds its data, and there are man pages and completions;
#   - removed, it leaves nothing;
#   - the tarball runs wherever it is unpacked, and prints the same as the package.
#
# With --tarballs, the tarball is built twice as well, and compared; with --once, nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."
how=${1:-}
unset CC CFLAGS CPPFLAGS LDFLAGS LONGHAUL_DATA_DIR SOURCE_DATE_EPOCH # what is built is Debian's way to build it
export CCACHE_DISABLE=1 # a second build that is the first one's copy shows nothing
PATH=$PATH:/usr/sbin:/sbin                                            # dpkg asks for ldconfig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# export_tree FOLDER: what git would take, as it is now.
export_tree() {
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        while IFS= read -r -d '' file; do
            if [ -e "$file" ]; then
                printf '%s\0' "$file"
            fi
        done | tar --null -T - -cf - | tar -C "$1" -xf -
}

# build FOLDER LOG OPTIONS...: in a folder of its own; the log is shown if it fails.
build() {
    local folder=$1 log=$2
    shift 2
    (cd "$folder" && DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -us -uc "$@") > "$log" 2>&1 ||
        { tail -n 40 "$log" >&2; fail "dpkg-buildpackage failed"; }
}

version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
grep -qF "version: '$version'," meson.build || fail "debian/changelog has another version than meson.build: $version"

first=$work/a/longhaul-$version
second=$work/another-place/of-another-length/longhaul
started=$SECONDS
export_tree "$first"
export_tree "$second"
(umask 022; TZ=UTC LC_ALL=C.UTF-8 build "$first" "$work/log")
if [ "$how" != --once ]; then
    (umask 027; TZ=Asia/Tokyo LC_ALL=C HOME=/nonexistent build "$second" "$work/log" -b)
    for deb in "$work"/a/*.deb; do
        cmp "$deb" "$(dirname "$second")/$(basename "$deb")"
    done
    echo "two builds: $(cd "$work/a" && ls ./*.deb | wc -l) packages are equal, byte for byte ($((SECONDS - started)) s)"
fi

lintian --allow-root --fail-on error,warning,info --display-info "$work"/a/*.changes || fail "lintian has complaints"
echo "lintian: no complaint"

# --- installed and removed, in a folder ---------------------------------------------------------

root=$work/root
deb=$(echo "$work"/a/longhaul_"$version"_*.deb)
in_root() {
    fakeroot dpkg --root="$root" --log=/dev/null --force-not-root --force-depends --no-triggers "$@" > "$work/log" 2>&1 ||
        { cat "$work/log" >&2; fail "dpkg $1 failed"; }
}
contents() {
    find "$root" -mindepth 1 ! -path "$root/var/lib/dpkg/*" | sort
}
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root"/etc
touch "$root/var/lib/dpkg/status"
contents > "$work/before"
in_root --install "$deb"
program=$root/usr/bin/longhaul
"$program" compare dfa-2node > "$work/compared"
"$program" verify --schedule zigzag --ranks 1-8 > /dev/null
grep -q 'wins' "$work/compared" || fail "compare does not answer"
for command in '' $("$program" list commands --format names | sed 's/^/-/'); do
    gzip -dc "$root/usr/share/man/man1/longhaul$command.1.gz" > "$work/page"
    if [ -n "$command" ]; then
        "$program" help "${command#-}" --format man | cmp - "$work/page"
    fi
done
for file in bash-completion/completions/longhaul zsh/vendor-completions/_longhaul \
    fish/vendor_completions.d/longhaul.fish; do
    [ -s "$root/usr/share/$file" ] || fail "there is no completion in usr/share/$file"
done
gzip -dc "$root"/usr/share/doc/longhaul/longhaul-sbom.spdx.json.gz > "$work/sbom" 2> /dev/null ||
    cp "$root"/usr/share/doc/longhaul/longhaul-sbom.spdx.json "$work/sbom"
(cd "$first" && tests/tools/sbom.py "$program" "$work/sbom")
in_root --purge longhaul
contents > "$work/after"
diff "$work/before" "$work/after" || fail "the package leaves something"
echo "installed, run and removed: nothing is left"

# --- the tarball ---------------------------------------------------------------------------------

mkdir -p "$work/here" "$work/there" "$work/un packed/somewhere"
tarball=$("$first"/tools/tarball.sh "$work/here")
if [ "$how" = --tarballs ]; then
    other=$(umask 077; TZ=Asia/Tokyo LC_ALL=C "$second"/tools/tarball.sh "$work/there")
    cmp "$tarball" "$other"
    echo "two builds of the tarball are equal, byte for byte"
fi
tar -C "$work/un packed" -xzf "$tarball"
mv "$work/un packed"/longhaul-* "$work/un packed/somewhere/else"
"$work/un packed/somewhere/else/bin/longhaul" compare dfa-2node | cmp - "$work/compared"
if grep -qaF -e "$work" -e "$first" "$work/un packed/somewhere/else/bin/longhaul"; then
    fail "the program of the tarball names the folder that it was built in"
fi
echo "the tarball runs where it is unpacked, and prints the same: $(stat -c %s "$tarball") bytes"
