#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A cluster of hosts on one machine, in network namespaces: each has a name and an address of its own and
# one adapter, and all hang on one switch (tcp_channel.c), which gives them rates and delay. Nothing of it is seen from
# outside, and nothing is left when COMMAND ends.
#
#     cluster.sh make NODES RATE DELAY [NODE=RATE...] -- COMMAND...   runs COMMAND beside the hosts
#
# RATE is as 100mbit or 1gbit, DELAY one way in microseconds, 0 for none; NODE=RATE gives one host
# another adapter. COMMAND may call, with WIRE set to the program made of tcp_channel.c:
#
#     cluster.sh on NODE COMMAND...           COMMAND on a host (node0, node1, ..)
#     cluster.sh mpirun PER_NODE COMMAND...   COMMAND with so many ranks on each host
#     cluster.sh rate NODE RATE               from now on
#     cluster.sh lose NODE PERMILLE SEED      from now on, so many of a thousand frames of its cable, both ways
#     cluster.sh cut NODE                     all of them: the cable is cut, and no adapter is told
#     cluster.sh join NODE                    as it was
#     cluster.sh pids NODE                    the processes of a host
#
# Exit status 77 where the machine does not allow it, with a line that begins with "skipped: ".
set -u
self=$(realpath "$0")

skip() {
    echo "skipped: no cluster in namespaces here: $(tr '\n' ' ' <<< "$*")"
    exit 77
}

# In bits per second.
bits() { # RATE
    case $1 in
    *gbit) echo "${1%gbit}000000000" ;;
    *mbit) echo "${1%mbit}000000" ;;
    *) skip "no rate: $1" ;;
    esac
}

# How many bytes an adapter may get at once: what passes in 0.7 ms, but no more than 60 KB, which every system takes.
# The fewer frames, the less the switch has to do: for four hosts that all send at 1 Gb/s it took 0.9 of a core with
# frames of 15 KB where it took 0.6 with those of 60 KB.
at_once() { # RATE
    local bytes=$(($(bits "$1") / 11000))
    echo $((bytes < 3100 ? 3100 : bytes > 60000 ? 60000 : bytes))
}

# What a connection may have under way: what passes an adapter while it goes there and back and in 2 ms more. A real
# adapter takes no more than 128 KB from a connection (TCP small queues), 1 ms at 1 Gb/s; these take whatever they are
# given, and a host would copy all of a message to one before another gets its first byte. The other millisecond is for
# frames, which take up to 0.7 ms.
under_way() { # RATE DELAY
    local bytes=$(($(bits "$1") / 8 * (2 * $2 + 2000) / 1000000))
    echo $((bytes < 262144 ? 262144 : bytes))
}

# Buffers to receive are those of hosts that were set up for a fast network: by default a connection begins with a
# window of 64 KB, which several that share an adapter do not fill it with.
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

# Within the namespaces of make.
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
agent) # what mpirun calls: HOST COMMAND, to be read by a shell
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
    export OMPI_MCA_orte_tmpdir_base=$NET_FOLDER # another cluster may have hosts of these names, too
    # So that its daemons notice a host that is gone; tcp_retries2 above is for those that have words under way.
    export OMPI_MCA_oob_tcp_keepalive_time=3 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=8
    # Beyond 4 KiB a message starts when both its ends are there, as in the simulator; by default, of up to 64 KiB
    # are sent before. What asks and answers is small then, and waits for little.
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
