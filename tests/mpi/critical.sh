#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The critical path of runs with one rank a process.
#
#     critical.sh PROGRAM
#
# Exit status 77 where MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
python3 "$tests/../cli/critical.py" "$program" mpirun -n 4
