#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A cluster of hosts on one machine, in network namespaces. Each host has a name, an address and one
# adapter; all are connected to one switch (wire.c), which sets rates and delay. The cluster is
# invisible from outside and is removed when COMMAND ends.
#
#     cluster.sh make NODES RATE DELAY [NODE=RATE...] -- COMMAND...   runs COMMAND beside the hosts
#
# RATE is written as 100mbit or 1gbit, DELAY one way in microseconds, 0 for none; NODE=RATE gives
# one host another rate. With WIRE set to the program built from wire.c, COMMAND may call:
#
#     cluster.sh on NODE COMMAND...           runs COMMAND on a host (node0, node1, ..)
#     cluster.sh mpirun PER_NODE COMMAND...   runs COMMAND with PER_NODE ranks on each host
#     cluster.sh rate NODE RATE               changes the rate from now on
#     cluster.sh lose NODE PERMILLE SEED      drops PERMILLE of 1000 frames from now on, both directions
#     cluster.sh cut NODE                     drops all: the cable is cut without notification
#     cluster.sh join NODE                    restores the cable
#     cluster.sh pids NODE                    lists the processes of a host
#
# Exit status 77 if the machine does not allow it, with a line that begins with "skipped: ".
set -u
self=$(realpath "$0")

skip() {
    echo "skipped: no cluster in namespaces here: $(tr '\n' ' ' <<< "$*")"
    exit 77
}

# Converts a rate to bits per second.
bits() { # RATE
    case $1 in
    *gbit) echo "${1%gbit}000000000" ;;
    *mbit) echo "${1%mbit}000000" ;;
    *) skip "no rate: $1" ;;
    esac
}

# Maximum segment that an adapter gets at once: what passes in 0.7 ms, but at most 60 KB, which
# every system accepts. Fewer frames cost the switch less: for four hosts that all send at 1 Gb/s it
# used 0.9 of a core with frames of 15 KB and 0.6 with 60 KB.
at_once() { # RATE
    local bytes=$(($(bits "$1") / 11000))
    echo $((bytes < 3100 ? 3100 : bytes > 60000 ? 60000 : bytes))
}

# Bytes in flight per connection: what passes an adapter in the round-trip time plus 2 ms. A real
# adapter accepts at most 128 KB from a connection (TCP small queues), 1 ms at 1 Gb/s; these accept
# everything, so that a host would copy a whole message to one adapter before another gets its first
# byte. The other millisecond is for frames, which take up to 0.7 ms.
under_way() { # RATE DELAY
    local bytes=$(($(bits "$1") / 8 * (2 * $2 + 2000) / 1000000))
    echo $((bytes < 262144 ? 262144 : bytes))
}

# Receive buffers are set as on hosts configured for a fast network: by default a connection begins
# with a window of 64 KB, which cannot fill an adapter shared by several.
add_node() { # NODE RATE DELAY
    local sent
    sent=$(under_way "$2" "$3")
    ip netns add "node$1" &&
        ip link add "port$1" type veth peer name eth0 netns "node$1" &&
        ip -n "node$1" link set lo up &&
        ip -n "node$1" addr add "10.77.0.$(($1 + 1))/24" dev eth0 &&
        ip -n "node$1" link set eth0 up &&
        ip -n "node$1" link set eth0 gso_max_size "$(at_once "$2")" &&
        ip netns exec "node$1" sysctl -qw net.ipv4.tcp_congestion_control=reno net.ipv4.tcp_retries2=6 \
            net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_rmem="4096 8388608 16777216" \
            net.ipv4.tcp_wmem="4096 $sent $sent" &&
        ip link set "port$1" up &&
        echo "10.77.0.$(($1 + 1)) node$1" >> "$NET_FOLDER/hosts"
}

# Runs within the namespaces of make.
make_within() { # NODES RATE DELAY [NODE=RATE...] -- COMMAND...
    local nodes=$1 rate=$2 delay=$3 node status ports=()
    declare -A own
    shift 3
    while [ "$1" != -- ]; do
        own[${1%%=*}]=${1#*=}
        shift
    done
    shift
    mkdir -p /run/netns
    mount -t tmpfs none /run/netns && mount -t tmpfs none /dev/shm || skip "no mount"
    echo '127.0.0.1 localhost' > "$NET_FOLDER/hosts"
    sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2> /dev/null
    for ((node = 0; node < nodes; node++)); do
        add_node $node "${own[$node]:-$rate}" "$delay" || skip "no host $node"
        ports+=("port$node=$(bits "${own[$node]:-$rate}")")
    done
    mount --bind "$NET_FOLDER/hosts" /etc/hosts || skip "no names"
    mkfifo "$NET_FOLDER/wire" || skip "no commands for the switch"
    coproc switch { exec "${WIRE:?}" "$delay" "${ports[@]}" <> "$NET_FOLDER/wire"; }
    read -r -u "${switch[0]}" || skip "no switch"
    export NET_NODES=$nodes
    "$@"
    status=$?
    exit "$status" # this is the first process of its namespace: the switch ends with it
}

case ${1:-} in
make)
    for tool in unshare ip; do
        command -v $tool > /dev/null || skip "no $tool"
    done
    NET_FOLDER=$(mktemp -d)
    export NET_FOLDER
    trap 'rm -rf "$NET_FOLDER"' EXIT
    ways=(--net --mount --pid --fork --kill-child --mount-proc)
    [ "$(id -u)" = 0 ] || ways+=(--map-root-user)
    unshare "${ways[@]}" true 2> "$NET_FOLDER/why" || skip "$(cat "$NET_FOLDER/why")"
    unshare "${ways[@]}" "$self" within "${@:2}"
    ;;
within)
    make_within "${@:2}"
    ;;
on)
    # shellcheck disable=SC2016
    exec ip netns exec "node$2" unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$2" "${@:3}"
    ;;
agent) # called by mpirun: HOST COMMAND, for a shell
    exec "$self" on "${2#node}" sh -c "${*:3}"
    ;;
mpirun)
    hosts=node0:$2
    for ((node = 1; node < NET_NODES; node++)); do
        hosts+=,node$node:$2
    done
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_MCA_plm_rsh_agent="$self agent" OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_hwloc_base_binding_policy=none
    export OMPI_MCA_orte_tmpdir_base=$NET_FOLDER # another cluster may have hosts with the same names
    # Lets Open MPI's daemons detect a lost host; tcp_retries2 above is for those with data in
    # flight.
    export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=8
    # Messages above 4 KiB start by rendezvous, as in the simulator; by default up to 64 KiB are
    # sent eagerly. The rendezvous messages are then small and wait little.
    export OMPI_MCA_btl_tcp_eager_limit=4096 OMPI_MCA_btl_tcp_rndv_eager_limit=4096
    exec "$self" on 0 mpirun --oversubscribe -n $((NET_NODES * $2)) -H "$hosts" "${@:3}"
    ;;
rate)
    echo "rate port$2 $(bits "$3")" > "$NET_FOLDER/wire"
    ;;
lose)
    echo "lose port$2 $3 $4" > "$NET_FOLDER/wire"
    ;;
cut)
    exec "$self" lose "$2" 1000 0
    ;;
join)
    exec "$self" lose "$2" 0 0
    ;;
pids)
    exec ip netns pids "node$2"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$self"
    exit 2
    ;;
esac
