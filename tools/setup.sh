#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages: tools/setup.sh quickstart|check|ci
#
# Each line below has a Debian package, a probe for its content, whatever its source, and its purpose. If
# nothing is missing, nothing is installed and no network is needed.
set -euo pipefail

has() { command -v "$1" > /dev/null 2>&1; }
has_daemon() { PATH=$PATH:/usr/sbin has "$1"; }
library() { has pkg-config && pkg-config --exists "$1"; }
python_module() { /usr/bin/python3 -c "import $1" 2> /dev/null; }
header() { echo "#include <$1>" | cc -E -x c - > /dev/null 2>&1; }
sanitizers() { echo 'int main(void){return 0;}' |
    clang -fsanitize=address -x c - -o /dev/null 2> /dev/null; }

quickstart="
gcc                  has cc                        the C compiler
libc6-dev            header stdio.h                the C library
meson                has meson                     builds the program
ninja-build          has ninja                     builds the program
pkg-config           has pkg-config                finds the libraries
libglib2.0-dev       library glib-2.0>=2.72        containers, errors, option parsing
libcjson-dev         library libcjson>=1.7.15      documents in JSON
gnuplot-nox          has gnuplot                   draws the figures
"
check="$quickstart
check                library check                 unit tests
libyaml-dev          library yaml-0.1              configurations in YAML
zlib1g-dev           library zlib                  longhaul import of packed traces
libsqlite3-dev       library sqlite3>=3.31         longhaul import of databases of Nsight Systems
libxml2-utils        has xmllint                   checks that figures are well-formed
python3              has python3                   counts the results
libopenmpi-dev       library ompi-c                longhaul run --backend mpi
openmpi-bin          has mpirun                    its tests
iproute2             has ip                        hosts in network namespaces
"
ci="$check
git                  has git                       lists the files to check
mandoc               has mandoc                    checks the man pages
zsh                  has zsh                       tests its completion
fish                 has fish                      tests its completion
chromium             has chromium                  renders and prints pages of longhaul report
python3-jsonschema   python_module jsonschema      checks the data files against their schemas
clang                has clang                     the second compiler
libclang-rt-14-dev   sanitizers                    its sanitizers and fuzzer
clang-format         has clang-format              layout
clang-tidy           has clang-tidy                static analysis
cppcheck             has cppcheck                  static analysis
libsimgrid-dev       header simgrid/engine.h       an independent simulator for comparison
hyperfine            has hyperfine                 timing
valgrind             has valgrind                  counts instructions for the limits of bench/
dpkg-dev             has dpkg-buildpackage         builds the Debian package
debhelper            has dh                        likewise
fakeroot             has fakeroot                  installs it in a folder
lintian              has lintian                   checks it
binutils             has readelf                   lists the linked libraries
munge                has_daemon munged             authentication of Slurm
slurmctld            has_daemon slurmctld          Slurm, for jobs over hosts in network namespaces
slurmd               has_daemon slurmd             likewise
slurm-client         has sbatch                    likewise
"

case "${1:-}" in
quickstart) wanted=$quickstart ;;
check) wanted=$check ;;
ci) wanted=$ci ;;
*)
    echo "usage: tools/setup.sh quickstart|check|ci" >&2
    exit 2
    ;;
esac

missing=()
while read -r package probe argument purpose; do
    if [ -z "$package" ]; then
        continue
    fi
    if [ "$probe" = sanitizers ]; then
        purpose="$argument $purpose"
        argument=
    fi
    # pkg-config needs spaces around a comparison.
    if ! "$probe" ${argument:+"${argument/>=/ >= }"}; then
        missing+=("$package")
        echo "missing: $package ($purpose)" >&2
    fi
done <<< "$wanted"

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
if ! has apt-get; then
    echo "Please install the contents of these Debian packages, then run this again:" >&2
    echo "    ${missing[*]}" >&2
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! has sudo; then
        echo "Please run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
