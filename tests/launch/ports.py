#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine that are a test's own until standard input ends.

    ports.py COUNT             prints so many, one a line
    ports.py COUNT --slurm     before them, the number of a job of Slurm whose port (src/runtime/process/launcher_env.c) is one, too

Each is bound here, so that the system gives it to nobody, and nobody listens there but who asks for this very
port and, as servers do, for one that is in use (SO_REUSEADDR).
"""

import random
import socket
import sys

SLURM_PORT_FIRST, SLURM_PORTS, SLURM_STEPS = 15000, 15000, 16


def take(port):
    """A socket with the port, 0 for any; alone until it has been bound."""
    taken = socket.socket()
    taken.bind(("", port))
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return taken


def take_job():
    """The job, of which this is step 0, and the socket."""
    while True:
        job = random.randrange(1, 1 << 20)
        try:
            return job, take(SLURM_PORT_FIRST + job * SLURM_STEPS % SLURM_PORTS)
        except OSError:
            pass  # somebody else's


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
