#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""longhaul run --backend tcp on a network with strangers (hosts: cluster.sh).

    strangers.py PROGRAM WIRE HELD_LISTEN_LIBRARY

Four hosts have one rank each, and a fifth host opens 5,000 silent connections: to the start port
before other ranks arrive, or to a rank's data port before others connect; also with ranks limited
to 256 descriptors. Results must equal those of a run without strangers. Further cases: ranks with a
wrong secret or none, which are rejected by name, also as guests of a job whose ranks have not
arrived yet; and a rank that listens at one interface only. Exit status 77 if the machine does not
allow such hosts, or has too few descriptors.
"""
import json
import os
import pathlib
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time

CLUSTER = str(pathlib.Path(__file__).resolve().parent / "cluster.sh")
RANKS = 4
STRANGERS = 5000
BACKLOG = 4000  # minimum number of them connected to a listener that does not accept
FEW_FILES = 256
PORT = 29500
PATIENCE_S = 120
SECRET, OTHER = "a-secret-of-32-characters-at-least", "another-one-of-32-characters-or-so"
WORDS = ["--schedule", "zigzag", "--seq-length", "512", "--num-attention-heads", "4", "--kv-channels", "64", "--check-tokens",
         "4", "--ranks", str(RANKS), "--format", "json"]


def until(what, ready):
    end = time.monotonic() + PATIENCE_S
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}: not in {PATIENCE_S} s")
        time.sleep(0.02)


class Job:
    """A process on each host, in a folder of its own."""

    def __init__(self, program, files=None, deadline_s=60):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir="."))
        self.words = [program, "run", "--backend", "tcp", *WORDS, "--deadline", f"{deadline_s}s"]
        self.limit = f"ulimit -n {files}; " if files else ""
        self.ranks = {}

    def start(self, rank, *variables):
        say = ["env", f"RANK={rank}", "LOCAL_RANK=0", f"WORLD_SIZE={RANKS}", "MASTER_ADDR=node0", f"MASTER_PORT={PORT - 1}"]
        words = [CLUSTER, "on", str(rank), *say, *variables, "sh", "-c", self.limit + 'exec "$@"', "sh", *self.words]
        with open(self.folder / f"{rank}.out", "w", encoding="utf-8") as out, \
             open(self.folder / f"{rank}.err", "w", encoding="utf-8") as err:
            self.ranks[rank] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def finish(self):
        """The exit status of each rank."""
        return {rank: process.wait(PATIENCE_S) for rank, process in self.ranks.items()}

    def said(self, rank):
        return (self.folder / f"{rank}.err").read_text(encoding="utf-8")

    def sha256(self):
        status = self.finish()
        if any(status.values()):
            return f"statuses {status}: {[self.said(rank) for rank in self.ranks]}"
        return json.loads((self.folder / "0.out").read_text(encoding="utf-8"))["outputs_sha256"]


def visit(address, port, wanted):
    """Opens STRANGERS connections from this host; prints their number once `wanted` are
    established."""
    strangers = []
    for _ in range(STRANGERS):
        stranger = socket.socket()
        stranger.setblocking(False)
        stranger.connect_ex((address, port))
        strangers.append(stranger)
        if len(strangers) % 100 == 0:
            time.sleep(0.002)  # connection errors are not under test
    waiting = select.poll()
    for stranger in strangers:
        waiting.register(stranger, select.POLLOUT)
    end = time.monotonic() + PATIENCE_S
    left = STRANGERS
    while left > STRANGERS - wanted and time.monotonic() < end:
        for number, _ in waiting.poll(100):
            waiting.unregister(number)
            left -= 1
    print(STRANGERS - left, flush=True)
    sys.stdin.read()


class Strangers:
    """Strangers on the last host, connected until the end of a with statement."""

    def __init__(self, address, port, wanted):
        words = [CLUSTER, "on", str(RANKS), sys.executable, __file__, "--visit", address, str(port), str(wanted)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.connected = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


def listeners(rank, *files):
    """The listening addresses and ports of a host, as the kernel prints them."""
    text = subprocess.run([CLUSTER, "on", str(rank), "cat", *(files or ("/proc/net/tcp", "/proc/net/tcp6"))],
                          check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.split("\n")]
    return {words[1] for words in lines if len(words) > 3 and words[3] == "0A"}


def start_port_is_there():
    return any(int(where.split(":")[1], 16) == PORT for where in listeners(0))


def at_the_start(program, files):
    job = Job(program, files)
    job.start(0)
    until("rank 0 listens", start_port_is_there)
    with Strangers("node0", PORT, STRANGERS) as strangers:
        for rank in range(1, RANKS):
            job.start(rank)
        return strangers.connected, job.sha256()


def at_a_data_port(program, files, held_listen):
    job = Job(program, files)
    go, port = job.folder.resolve() / "go", job.folder.resolve() / "port"
    for rank in range(RANKS):
        held = [f"LD_PRELOAD={held_listen}", f"LISTEN_HELD_UNTIL={go}", f"LISTEN_HELD_PORT={port}"] if rank == 1 else []
        job.start(rank, *held)
    until("rank 1 listens", port.exists)
    with Strangers("node1", int(port.read_text()), BACKLOG) as strangers:
        go.touch()
        return strangers.connected, job.sha256()


def refused(program, variables, told):
    """Failures: each rank named must have printed this."""
    job = Job(program, deadline_s=3)
    for rank in range(RANKS):
        job.start(rank, *variables[rank])
    job.finish()
    return [f"rank {rank} does not say \"{words}\": {job.said(rank)}" for rank, words in told.items() if words not in job.said(rank)]


def try_secrets(program):
    ours, other = [f"LONGHAUL_SECRET={SECRET}"], [f"LONGHAUL_SECRET={OTHER}"]
    wrong, none = "rank 1 on host node1 has a wrong secret", "rank 1 on host node1 has no secret"
    lacks = "rank 1 on host node1 has a secret, and the process it connects to has none"
    from_node1 = "1 connection was rejected: 1 from 10.77.0.2 "
    failures = refused(program, [ours, other, ours, ours], {0: f"{from_node1}({wrong})", 1: wrong, 2: wrong})
    failures += refused(program, [ours, [], ours, ours], {0: f"{from_node1}({none}", 1: none, 3: none})
    failures += refused(program, [[], ours, [], []], {0: f"{from_node1}({lacks})", 1: lacks})
    # A guest under rank 1's name, without the secret, arrives before rank 1, which keeps its place.
    job = Job(program)
    job.start(0, *ours)
    until("rank 0 listens", start_port_is_there)
    job.start(1, *other)
    if job.ranks[1].wait(PATIENCE_S) != 4:
        failures.append(f"one under the name of rank 1: {job.said(1)}")
    for rank in range(1, RANKS):
        job.start(rank, *ours)
    status = job.finish()
    if any(status.values()):
        failures.append(f"the right rank 1 is kept out: {status}, {job.said(0)}")
    return failures


def try_interfaces(program):
    """The addresses rank 0 listens at while it waits for others, given its interface."""
    job = Job(program)
    job.start(0, "LONGHAUL_SOCKET_IFNAME=eth0")
    until("rank 0 listens", start_port_is_there)
    found = {where for where in listeners(0) if int(where.split(":")[1], 16) == PORT}
    for rank in range(1, RANKS):
        job.start(rank, "LONGHAUL_SOCKET_IFNAME=eth0")
    status = job.finish()
    wanted = {f"{int.from_bytes(bytes([10, 77, 0, 1]), sys.byteorder):08X}:{PORT:04X}"}
    if any(status.values()) or found != wanted:
        return [f"interface eth0: listens at {found}, not {wanted}; {status}: {job.said(0)}"]
    return []


def inside(program, held_listen):
    quiet = Job(program)
    for rank in range(RANKS):
        quiet.start(rank)
    sha256 = quiet.sha256()
    failures = try_secrets(program) + try_interfaces(program)
    for files in (None, FEW_FILES):
        for kind, (connected, found) in (("start", at_the_start(program, files)),
                                         ("data", at_a_data_port(program, files, held_listen))):
            what = f"{connected} of {STRANGERS} strangers at the {kind} port, {files or 'many'} descriptors"
            print(f"{what}: {'right' if found == sha256 else 'WRONG'}", flush=True)
            if found != sha256:
                failures.append(f"{what}: {found}, not {sha256}")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


def main():
    if sys.argv[1] == "--visit":
        return visit(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    if sys.argv[1] == "--inside":
        return inside(*sys.argv[2:])
    program, os.environ["WIRE"], held_listen = map(os.path.realpath, sys.argv[1:4])
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < STRANGERS + 100:
        print(f"skipped: a process has {hard} descriptors at most")
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (STRANGERS + 100, hard))
    with tempfile.TemporaryDirectory() as folder:
        words = [CLUSTER, "make", str(RANKS + 1), "1gbit", "200", "--", sys.executable, os.path.realpath(__file__), "--inside",
                 program, held_listen]
        return subprocess.run(words, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
