#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on one core, which no other command of this tool has: one-core.py COMMAND...

A build with coverage counts the lines of all threads in the same memory. On several cores, threads wait for each
other's counters and get nothing done sooner; each test on a core of its own takes half the time. If no core is
free, the command runs where it would without this tool.
"""
import fcntl
import os
import signal
import sys


def take(core):
    """Whether this process and those that it starts have the core from now on."""
    held = os.open(f"/sys/devices/system/cpu/cpu{core}", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return False
    os.set_inheritable(held, True)
    os.sched_setaffinity(0, {core})
    return True


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: one-core.py COMMAND...")
    any(take(core) for core in sorted(os.sched_getaffinity(0)))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and what it starts would, too
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
