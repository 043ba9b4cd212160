#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes longhaul-VERSION-SYSTEM-MACHINE.tar.gz into a folder: tools/tarball.sh [FOLDER]
#
# The tarball can be unpacked anywhere: the program finds its data relative to itself (../share/longhaul). It needs the
# machine's GLib, cJSON and C library, and has neither MPI nor kernels for GPUs. The same sources and compiler give the
# same bytes.
set -euo pipefail
target=$(realpath "${1:-.}")
cd "$(dirname "$0")/.."

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
# Assertions contain file names, which must not depend on the build folder.
CFLAGS=-ffile-prefix-map=$(realpath --relative-to="$work/build" .)/=
export CFLAGS CCACHE_DISABLE=1

meson setup "$work/build" --buildtype=release --prefix=/usr/local -Dstrip=true -Drelocatable=true -Dtests=disabled \
    -Dmpi=disabled -Dcuda=disabled -Dnccl=disabled -Dcudnn=disabled -Dsimgrid=disabled > "$work/log" ||
    { cat "$work/log" >&2; exit 1; }
ninja -C "$work/build" > "$work/log" || { cat "$work/log" >&2; exit 1; }
version=$(meson introspect --projectinfo "$work/build" | sed 's/.*"version": "\([^"]*\)".*/\1/')
name=longhaul-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)

DESTDIR=$work/root meson install -C "$work/build" --no-rebuild > "$work/log"
mv "$work/root/usr/local" "$work/$name"
install -m 644 LICENSE README.md "$work/$name/share/doc/longhaul/"
tar -C "$work" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --mode=u+rwX,go+rX,go-w -cf "$work/tar" "$name"
gzip -9 -n -c "$work/tar" > "$target/.$name.tar.gz"
mv "$target/.$name.tar.gz" "$target/$name.tar.gz"
echo "$target/$name.tar.gz"
