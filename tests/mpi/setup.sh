# SPDX-License-Identifier: Apache-2.0
# Read by the scripts of this folder: Open MPI on one machine, with more processes than cores.
# shellcheck shell=bash

# shellcheck disable=SC2034
tests=$(dirname "$(realpath "$0")") # the script's folder
# shellcheck source=tests/launch/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../launch/setup.sh"

# begin PROGRAM: the script goes on in a folder of its own, with the path of the program in `program`.
begin() {
    program=$(realpath "$1")
    in_folder
    need_mpi "$program"
}

# skip REASON: ends with status 77, and says why in one line.
skip() {
    echo "skipped: $*"
    exit 77
}

# need_mpi PROGRAM: ends with status 77 where MPI is absent, in the build or on the machine.
need_mpi() {
    local tool
    for tool in mpirun pgrep; do
        command -v $tool >/dev/null || skip "there is no $tool here"
    done
    "$1" run --backend mpi --schedule ring --ranks 1 --seq-length 8 --num-attention-heads 1 \
        --kv-channels 64 >/dev/null 2>err || { grep -q 'without MPI' err && skip 'longhaul was built without MPI'; }
}

# need_module NAME: likewise, of Python.
need_module() {
    /usr/bin/python3 -c "import $1" 2>/dev/null || skip "Python has no module $1 here"
}

# own_files FOLDER: from now on mpirun and ranks have their files there. By default those of all jobs of a user are in
# one folder, which whoever ends last removes, also while another one begins.
own_files() {
    export OMPI_MCA_orte_tmpdir_base=$1 OMPI_MCA_btl_vader_backing_directory=$1
}

# over tcp | shared: how messages travel.
over() {
    case $1 in
    tcp) export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo ;;
    shared) export OMPI_MCA_btl=self,vader ;;
    esac
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# Jobs that run at a time would all be bound to the same cores.
export OMPI_MCA_hwloc_base_binding_policy=none
# Open MPI's own leaks are not ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
over tcp
own_files "$PWD" # each test is in a folder of its own
