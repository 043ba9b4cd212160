# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: Open MPI on one machine, with more processes than cores.
# shellcheck shell=bash

# shellcheck disable=SC2034
tests=$(dirname "$(realpath "$0")") # the script's folder
# shellcheck source=tests/launch/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../launch/setup.sh"

# begin PROGRAM: changes to a folder of the script's own; sets `program` to the program's path.
begin() {
    program=$(realpath "$1")
    in_folder
    need_mpi "$program"
}

# skip REASON: prints the reason in one line and exits with status 77.
skip() {
    echo "skipped: $*"
    exit 77
}

# need_mpi PROGRAM: exits with status 77 if MPI is absent, in the build or on the machine.
need_mpi() {
    local tool
    for tool in mpirun pgrep; do
        command -v $tool >/dev/null || skip "there is no $tool here"
    done
    "$1" run --backend mpi --schedule ring --ranks 1 --seq-length 8 --num-attention-heads 1 \
        --kv-channels 64 >/dev/null 2>err || { grep -q 'without MPI' err && skip 'longhaul was built without MPI'; }
}

# need_module NAME: likewise for a Python module.
need_module() {
    /usr/bin/python3 -c "import $1" 2>/dev/null || skip "Python has no module $1 here"
}

# own_files FOLDER: places the files of mpirun and its ranks there. By default all jobs of a user
# share one folder, which the last job to end removes even while another one starts.
own_files() {
    export OMPI_MCA_orte_tmpdir_base=$1 OMPI_MCA_btl_vader_backing_directory=$1
}

# over tcp|shared: selects the transport of messages.
over() {
    case $1 in
    tcp) export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo ;;
    shared) export OMPI_MCA_btl=self,vader ;;
    esac
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# Concurrent jobs would all be bound to the same cores.
export OMPI_MCA_hwloc_base_binding_policy=none
# Open MPI's own leaks are ignored.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
over tcp
own_files "$PWD" # each test is in a folder of its own
