# Read by the scripts of this folder: Open MPI on one machine, with more processes than cores.
# shellcheck shell=bash

# need_mpi PROGRAM: ends with status 77 where MPI is absent, in the build or on the machine.
need_mpi() {
    command -v mpirun >/dev/null && command -v pgrep >/dev/null || exit 77
    "$1" run --backend mpi --schedule ring --ranks 1 --seq-length 8 --num-attention-heads 1 \
        --kv-channels 64 >/dev/null 2>err || { grep -q 'without MPI' err && exit 77; }
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
# Open MPI's own leaks are not ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
over tcp
