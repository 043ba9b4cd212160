#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package twice and checks it:
#     tools/check-package.sh [--tarballs|--once]
#
#   - two builds, in different folders and under different settings, are equal byte for byte;
#   - lintian has no complaint about the source and the package;
#   - the installed program runs and finds its data; man pages and completions are installed;
#   - removal leaves no files;
#   - the tarball runs in any folder, and prints the same as the package.
#
# --tarballs: also build the tarball twice and compare; --once: one build of the package, no comparison.
set -euo pipefail
cd "$(dirname "$0")/.."
how=${1:-}
unset CC CFLAGS CPPFLAGS LDFLAGS LONGHAUL_DATA_DIR SOURCE_DATE_EPOCH # build with Debian's settings
export CCACHE_DISABLE=1 # a cached second build would prove nothing
PATH=$PATH:/usr/sbin:/sbin                                            # dpkg needs ldconfig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# export_tree FOLDER: copies the working tree without ignored files.
export_tree() {
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        while IFS= read -r -d '' file; do
            if [ -e "$file" ]; then
                printf '%s\0' "$file"
            fi
        done | tar --null -T - -cf - | tar -C "$1" -xf -
}

# build FOLDER LOG OPTIONS...: builds the package in FOLDER; shows the log on failure.
build() {
    local folder=$1 log=$2
    shift 2
    (cd "$folder" && DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -us -uc "$@") > "$log" 2>&1 ||
        { tail -n 40 "$log" >&2; fail "dpkg-buildpackage failed"; }
}

version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
grep -qF "version: '$version'," meson.build || fail "versions of debian/changelog and meson.build differ: $version"

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
grep -q 'wins' "$work/compared" || fail "compare names no winner"
for command in '' $("$program" list commands --format names | sed 's/^/-/'); do
    gzip -dc "$root/usr/share/man/man1/longhaul$command.1.gz" > "$work/page"
    if [ -n "$command" ]; then
        "$program" help "${command#-}" --format man | cmp - "$work/page"
    fi
done
for file in bash-completion/completions/longhaul zsh/vendor-completions/_longhaul \
    fish/vendor_completions.d/longhaul.fish; do
    [ -s "$root/usr/share/$file" ] || fail "missing completion: usr/share/$file"
done
gzip -dc "$root"/usr/share/doc/longhaul/longhaul-sbom.spdx.json.gz > "$work/sbom" 2> /dev/null ||
    cp "$root"/usr/share/doc/longhaul/longhaul-sbom.spdx.json "$work/sbom"
(cd "$first" && tests/tools/sbom.py "$program" "$work/sbom")
in_root --purge longhaul
contents > "$work/after"
diff "$work/before" "$work/after" || fail "removal leaves files"
echo "installed, run and removed: no files are left"

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
    fail "the program of the tarball contains the path of its build folder"
fi
echo "the tarball runs in another folder, and prints the same: $(stat -c %s "$tarball") bytes"
