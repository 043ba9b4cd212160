#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests Slurm over hosts in namespaces (cluster.sh): a controller, a daemon per host, and munge, all
# private to this script. Jobs by sbatch: tools/validate.sbatch over four hosts; srun and mpirun,
# with shared memory within a host and TCP between hosts; the program's own rendezvous (--bootstrap
# slurm and torchrun); cancelled jobs.
#
#     slurm.sh PROGRAM WIRE [STANDIN NCCL]
#
# STANDIN is longhaul on the stand-in for CUDA, NCCL the library that replaces NCCL. SLURM_KEEP, if
# set, is a folder that gets the output of the validate.sbatch job. Exit status 77, with a reason,
# if Slurm, munge or MPI are absent, or the machine does not allow such hosts or daemons.
set -u
PATH=$PATH:/usr/sbin
for tool in slurmctld slurmd sbatch srun scancel munged; do
    command -v $tool > /dev/null || { echo "skipped: no Slurm here: no $tool" && exit 77; }
done
standin=${3:+$(realpath "$3")}
LONGHAUL_NCCL=${4:+$(realpath "$4")}
export PATH LONGHAUL_NCCL standin
[ -n "$LONGHAUL_NCCL" ] || unset LONGHAUL_NCCL
# shellcheck source=tests/net/setup.sh
. "$(dirname "$(realpath "$0")")/setup.sh"
chmod 755 "$folder"

cat > inside.sh <<'END'
# ---- the daemons ----

skip() {
    echo "skipped: no Slurm in namespaces here: $(tr '\n' ' ' <<< "$*")"
    tail -n 5 "$folder"/*.log 2> /dev/null
    exit 77
}

export SLURM_CONF=$folder/slurm.conf
cat > slurm.conf <<CONF
ClusterName=longhaul
SlurmctldHost=node0
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
NodeName=node[0-3] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
# Of version 1, which touches no groups unless it is asked to limit jobs: not every machine has groups.
printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s\n' "$folder/cgroup" > cgroup.conf
# PMIx has names in a folder that are the same on all hosts: each has one of its own.
echo "PMIxCliTmpDirBase=$folder/pmix" > mpi.conf
mkdir pmix pmix.{0,1,2,3} cgroup state spool.node{0,1,2,3}
head -c 1024 /dev/urandom > munge.key
chmod 400 munge.key
"$cluster" on 0 munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
    --seed-file="$folder/munge.seed" --log-file="$folder/munged.log" || skip 'munged does not start'
"$cluster" on 0 slurmctld -D 2> /dev/null &
for node in 0 1 2 3; do
    "$cluster" on $node unshare --mount sh -c 'mount --bind "$0" pmix && exec "$@"' pmix.$node \
        slurmd -D -N node$node 2> /dev/null &
done
slurm() { "$cluster" on 0 "$@"; }
for _ in $(seq 300); do
    [ "$(slurm sinfo -h -t idle -o %D 2> /dev/null)" = 4 ] && break
    sleep 0.1
done
[ "$(slurm sinfo -h -t idle -o %D 2> /dev/null)" = 4 ] || skip "not all hosts are idle: $(slurm sinfo 2>&1)"

# ---- jobs ----

failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
# As an administrator sets it: shared memory in a host, TCP between, by the cluster's own network.
export OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_orte_tmpdir_base=$folder OMPI_MCA_btl_tcp_eager_limit=8388608
export OMPI_MCA_hwloc_base_binding_policy=none
sent() { sed -n 's/^ *port0: *\([0-9]*\) .*/\1/p' /proc/net/dev; }
left() { pgrep -f "^($program|${standin:-$program}) " || true; }
# job NAME SBATCH-WORDS...: waits for it; its output is NAME.out
job() {
    local name=$1
    shift
    slurm timeout 500 sbatch --wait --job-name "$name" --output "$folder/$name.out" "$@" > "$name.sbatch" 2>&1
}

shape='--schedule zigzag --ranks 8 --seq-length 512 --num-attention-heads 8 --kv-channels 64 --format json'
before=$(sent)
job mpirun --nodes 4 --ntasks-per-node 2 --wrap "mpirun $program run --backend mpi $shape -o $folder/mpirun.json" ||
    fail "mpirun: $(cat mpirun.*)"
[ $(($(sent) - before)) -gt 65536 ] || fail 'mpirun: nothing has crossed the network'
job srun --nodes 4 --ntasks-per-node 2 --wrap \
    "srun --mpi=pmix $program run --backend mpi $shape -o $folder/srun.json" || fail "srun: $(cat srun.*)"
digest() { sed -n 's/.*"outputs_sha256": "\(.*\)".*/\1/p' "$1"; }
[ -n "$(digest mpirun.json)" ] && [ "$(digest mpirun.json)" = "$(digest srun.json)" ] ||
    fail 'mpirun and srun: other results'
# Without TCP it is shared memory or nothing.
OMPI_MCA_btl=self,vader job shared --nodes 1 --ntasks-per-node 4 --wrap \
    "srun --mpi=pmix $program run --backend mpi ${shape/ranks 8/ranks 4} -o $folder/shared.json" ||
    fail "shared memory in a host: $(cat shared.*)"

started=$SECONDS
job validate --nodes 4 --ntasks-per-node 2 --partition all "$root/tools/validate.sbatch" "$program" "$folder/files" \
    --quick --repeat 1 -- --schedule ring --schedule zigzag --seq-length 512 --num-attention-heads 8 \
    --kv-channels 64 --pass fwd --repeat 2 --tolerance 100%
status=$?
# 1 is the program's judgement of predictions, on a machine that others use.
[ $status -le 1 ] || fail "validate.sbatch: status $status: $(cat validate.*)"
echo "validate.sbatch over 4 hosts: $((SECONDS - started)) s"
[ $((SECONDS - started)) -lt 300 ] || fail 'validate.sbatch has taken five minutes'
grep '^==' validate.out
for file in doctor.node{0,1,2,3}.json profile.json cluster.json validation.json report.md; do
    [ -s "files/$file" ] || fail "validate.sbatch has not written $file"
done
[ -z "${SLURM_KEEP:-}" ] || { mkdir -p "$SLURM_KEEP" && cp -r files/. validate.out "$SLURM_KEEP"; }

# The same over TCP: no MPI on two of the hosts.
LONGHAUL_BACKEND=tcp job tcp --nodes 2 --ntasks-per-node 1 "$root/tools/validate.sbatch" "$program" "$folder/tcp" \
    --quick --repeat 1 -- --schedule ring --seq-length 128 --num-attention-heads 8 --kv-channels 64 --pass fwd \
    --repeat 1 --tolerance 100%
status=$?
[ $status -le 1 ] || fail "validate.sbatch over TCP: status $status: $(cat tcp.*)"
grep -q '"backend": "tcp"' tcp/validation.json || fail 'validate.sbatch over TCP: no validation of the backend'
LONGHAUL_BACKEND=pigeons job pigeons --nodes 1 "$root/tools/validate.sbatch" "$program" "$folder/no" &&
    fail 'validate.sbatch: status 0 with a backend that there is not'
grep -q 'LONGHAUL_BACKEND: pigeons; allowed: mpi, tcp, nccl' pigeons.out || fail "$(cat pigeons.out)"

# It says what is wrong, and its status does, too.
job nowhere --nodes 2 --ntasks-per-node 1 "$root/tools/validate.sbatch" /nowhere/longhaul "$folder/no" &&
    fail 'validate.sbatch: status 0 without a program'
grep -q '/nowhere/longhaul: not the full path of a program' nowhere.out || fail "$(cat nowhere.out)"
job refused --nodes 2 --ntasks-per-node 1 "$root/tools/validate.sbatch" "$program" "$folder/no" --quick --repeat 0 &&
    fail 'validate.sbatch: status 0 after a step that failed'
grep -q 'FAILED in calibrate, with status' refused.out || fail "$(cat refused.out)"

# A job that is cancelled leaves nobody and no file.
slurm sbatch --nodes 4 --ntasks-per-node 1 --job-name cancelled --output "$folder/cancelled.out" --wrap \
    "srun --mpi=pmix $program run --backend mpi ${shape/ranks 8/ranks 4} --inject stall:1 -o $folder/cancelled.json" > /dev/null
for _ in $(seq 300); do
    [ "$(left | wc -l)" -ge 4 ] && break
    sleep 0.1
done
[ "$(left | wc -l)" -ge 4 ] || fail "the job to be cancelled does not run: $(cat cancelled.out)"
slurm scancel --name cancelled
for _ in $(seq 300); do
    [ -z "$(left)" ] && break
    sleep 0.1
done
[ -z "$(left)" ] || fail "processes are left: $(left)"
[ ! -e cancelled.json ] || fail 'a job that is cancelled has written its result'

# ---- the program's own way to meet ----

# by_hand PROGRAM FILE OPTIONS...: a process on each host, with torchrun's environment.
by_hand() {
    local rank
    for rank in 0 1 2 3; do
        "$cluster" on $rank env RANK=$rank LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=4 MASTER_ADDR=node0 MASTER_PORT=29500 \
            "$1" "${@:3}" -o "$folder/$2" 2> "$2.$rank.err" &
        pids[rank]=$!
    done
    for rank in 0 1 2 3; do
        wait ${pids[rank]} || fail "torchrun's environment, $2, rank $rank: $(cat "$2.$rank.err")"
    done
}
by_hand "$program" tcp.json run --backend tcp ${shape/ranks 8/ranks 4}
[ "$(digest shared.json)" = "$(digest tcp.json)" ] || fail 'torchrun and shared memory: other results'

if [ -n "$standin" ]; then
    gpus='run --backend nccl --schedule ring --ranks 4 --num-attention-heads 4 --kv-channels 32 --seq-length 64'
    STANDIN_DEVICES=4 "$standin" $gpus --format json > threads.json || fail 'in one process'
    job gpus --nodes 4 --ntasks-per-node 1 --wrap \
        "srun --mpi=none $standin $gpus --bootstrap slurm -o $folder/gpus.json" || fail "slurm: $(cat gpus.*)"
    [ "$(digest threads.json)" = "$(digest gpus.json)" ] || fail 'bootstrap slurm: other results'
    by_hand "$standin" hand.json $gpus --bootstrap torchrun
    [ "$(digest threads.json)" = "$(digest hand.json)" ] || fail 'bootstrap torchrun: other results'
else
    echo 'not tried: run --backend nccl, without the stand-in for CUDA'
fi
exit $failed
END
"$cluster" make 4 100mbit 200 -- bash inside.sh
