#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on one core that no other command of this tool uses: one-core.py COMMAND...

In a build with coverage all threads count lines in the same memory, so threads on several cores wait for each
other's counters. Tests that run on one core each take half the time. If no core is free, the command runs
unrestricted.
"""
import fcntl
import os
import signal
import sys


def take(core):
    """Reserves the core for this process and its children; returns whether that succeeded."""
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
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and its children would inherit that
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
