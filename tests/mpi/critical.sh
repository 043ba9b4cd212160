#!/bin/bash
# The critical path of runs with one rank a process.
#
#     critical.sh PROGRAM
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
tests=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
program=$(realpath "$1")
cd "$folder" || exit 99
# shellcheck source=tests/mpi/setup.sh
. "$tests/setup.sh"
need_mpi "$program"
python3 "$tests/../cli/critical.py" "$program" mpirun -n 4
