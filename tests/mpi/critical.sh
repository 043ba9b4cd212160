#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the critical path of runs with one rank per process.
#
#     critical.sh PROGRAM
#
# Exit status 77 if MPI is absent, in the build or on the machine.
set -u
# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/setup.sh"
begin "$1"
python3 "$tests/../cli/critical.py" "$program" mpirun -n 4
