# Read by the scripts of this folder that run a program over hosts in namespaces, with that program and the
# wire as their first arguments. Exit status 77 where MPI is absent.
# shellcheck shell=bash

program=$(realpath "$1")
WIRE=$(realpath "$2")
tests=$(dirname "$(realpath "$0")")
cluster=$tests/cluster.sh
root=$(realpath "${LONGHAUL_SOURCE_DIR:-$tests/../..}")
folder=$(mktemp -d)
export program WIRE cluster root folder
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99
# shellcheck source=tests/mpi/setup.sh
. "$tests/../mpi/setup.sh"
need_mpi "$program"
# cluster.sh has its own
unset OMPI_MCA_btl OMPI_MCA_btl_tcp_if_include OMPI_MCA_orte_tmpdir_base OMPI_MCA_btl_vader_backing_directory
