#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reserves ports of this machine for a test until standard input ends.

    ports.py COUNT             prints COUNT ports, one per line
    ports.py COUNT --slurm     first prints the number of a Slurm job whose port
                               (src/runtime/process/launcher_env.c) is reserved too

Each port is bound here, so the system assigns it to nobody else. Only a process that requests
this very port with SO_REUSEADDR, as servers do, can listen there.
"""

import random
import socket
import sys

SLURM_PORT_FIRST, SLURM_PORTS, SLURM_STEPS = 15000, 15000, 16


def take(port):
    """A socket bound to the port, 0 for any; exclusive until bound."""
    taken = socket.socket()
    taken.bind(("", port))
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return taken


def take_job():
    """Returns a job number, of which this is step 0, and the socket of its port."""
    while True:
        job = random.randrange(1, 1 << 20)
        try:
            return job, take(SLURM_PORT_FIRST + job * SLURM_STEPS % SLURM_PORTS)
        except OSError:
            pass  # in use


def main():
    told, job_taken = [], None
    if "--slurm" in sys.argv:
        job, job_taken = take_job()
        told.append(job)
    taken = [take(0) for _ in range(int(sys.argv[1]))]
    told += [one.getsockname()[1] for one in taken]
    print(*told, sep="\n", flush=True)
    sys.stdin.read()
    del taken, job_taken


if __name__ == "__main__":
    main()
