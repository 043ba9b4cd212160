# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder that run a program over hosts in namespaces; their first
# arguments are that program and wire. Exit status 77 if MPI is absent.
# shellcheck shell=bash

# shellcheck source=tests/mpi/setup.sh
. "$(dirname "$0")/../mpi/setup.sh"
WIRE=$(realpath "$2")
cluster=$tests/cluster.sh
root=$(realpath "${LONGHAUL_SOURCE_DIR:-$tests/../..}")
begin "$1"
export program WIRE cluster root folder
# cluster.sh sets its own
unset OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include OMPI_MCA_orte_tmpdir_base OMPI_MCA_btl_vader_backing_directory
