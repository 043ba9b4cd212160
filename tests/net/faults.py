#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""longhaul run over hosts whose network or processes fail during the run (hosts: cluster.sh, cables: wire.c).

    faults.py PROGRAM WIRE HELD_CLOCK_LIBRARY [--seeds N] [--first SEED] [--jobs N] [--fault NAME]
              [--backend mpi|tcp]

A seed draws the schedule, the host, and the moment: from the start of the processes to the end of a
run without faults. Messages use MPI with even seeds and TCP with odd ones, unless --backend is
given. Each run must end in time, with the results of a run without faults or with the name of the
rank or host that does not answer; deadlines begin with the fault. It must leave no process of
longhaul on any host, and leave every file unchanged or complete. Exit status 77 if MPI is absent,
or the machine does not allow such hosts.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

CLUSTER = str(pathlib.Path(__file__).resolve().parent / "cluster.sh")
HOSTS = 4
RATE = "100mbit"
SLOW_RATE = "10mbit"
LOST_PERMILLE = 50
SCHEDULES = ("ring", "zigzag", "te-a2a")
BACKENDS = ("mpi", "tcp")
BEFORE = "as it was before\n"
HANG_S = 90  # the deadline, Open MPI's shutdown, and slack for a loaded machine
ORPHAN_S = 30  # likewise, for a host that cannot learn that the run has ended
STOP_S, GO_S = 0.09, 0.01  # of each tenth of a second of a slow host


def cluster(*words):
    return subprocess.run([CLUSTER, *map(str, words)], check=True, capture_output=True, text=True).stdout


def processes_of(program, among=None):
    """Ids of the processes that execute the program, limited to those in among if given."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or (among is not None and folder.name not in among):
            continue
        try:
            if os.readlink(folder / "exe") == program:
                found.append(int(folder.name))
        except OSError:
            pass  # gone, or a kernel thread
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Run:
    """One run in a folder of its own, with or without a fault."""

    def __init__(self, program, backend, schedule, deadline_s, held_clock=None):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.begun = self.folder / "begun"  # starts the clock of deadlines, if it is held
        held = ["env", f"LD_PRELOAD={held_clock}", f"CLOCK_HELD_UNTIL={self.begun}"] if held_clock else []
        self.files = [self.folder / "result.json", self.folder / "timeline.json"]
        for file in self.files:
            file.write_text(BEFORE)
        words = [CLUSTER, "mpirun", "1", *held, program, "run", "--backend", backend, "--ranks", str(HOSTS),
                 "--schedule", schedule, "--seq-length", "512", "--num-attention-heads", "4", "--kv-channels", "64",
                 "--check-tokens", "4", "--repeat", "6", "--deadline", f"{deadline_s}s",
                 "-o", str(self.files[0]), "--timeline", str(self.files[1])]
        self.over = threading.Event()
        with open(self.folder / "out", "w", encoding="utf-8") as out, \
             open(self.folder / "err", "w", encoding="utf-8") as err:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.began = time.monotonic()

    def wait_for_ranks(self):
        """Waits until all ranks have started, or the run has ended."""
        while self.process.poll() is None and len(processes_of(self.program)) < HOSTS:
            if time.monotonic() - self.began > HANG_S:
                break
            time.sleep(0.02)

    def finish(self):
        """The exit status; None if it hangs."""
        try:
            status = self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            status = None
        self.over.set()
        self.seconds = time.monotonic() - self.began
        self.words = (self.folder / "err").read_text(encoding="utf-8", errors="replace")
        return status

    def sha256(self):
        return json.loads(self.files[0].read_text())["outputs_sha256"]

    def broken_files(self):
        """Files that are neither unchanged nor complete, and unexpected files."""
        broken = [str(path.name) for path in self.folder.iterdir()
                  if path not in self.files and path.name not in ("out", "err", "begun")]
        for file in self.files:
            text = file.read_text() if file.exists() else ""
            if text == BEFORE:
                continue
            try:
                json.loads(text)
            except ValueError:
                broken.append(f"{file.name} ({len(text)} bytes)")
        return broken

    def orphans(self):
        """Number of processes of longhaul left after the time they have to end."""
        until = time.monotonic() + ORPHAN_S
        while (left := processes_of(self.program)) and time.monotonic() < until:
            time.sleep(0.05)
        return len(left)

    def clear(self):
        """Kills what is left on the hosts: Open MPI's daemons behind a cut cable."""
        for host in range(HOSTS):
            send(map(int, cluster("pids", host).split()), signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder)


# ---- faults ----


def slow_down(run, host):
    """Stops a host's ranks for nine tenths of the time."""
    while not run.over.is_set():
        ranks = processes_of(run.program, set(cluster("pids", host).split()))
        if not ranks:
            return
        send(ranks, signal.SIGSTOP)
        time.sleep(STOP_S)
        send(ranks, signal.SIGCONT)
        time.sleep(GO_S)


def begin_slow(run, host, _seed):
    threading.Thread(target=slow_down, args=(run, host)).start()


def kill_ranks(run, host, _seed):
    send(processes_of(run.program, set(cluster("pids", host).split())), signal.SIGKILL)


def lose_power(run, host, seed):
    """What other hosts observe of a power loss: no more frames, and no closed connection."""
    cluster("cut", host)
    kill_ranks(run, host, seed)


def kill_launcher(run, _host, _seed):
    send([run.process.pid], signal.SIGKILL)


class Fault(typing.NamedTuple):
    begin: typing.Callable  # arguments: run, host, seed
    end: typing.Callable  # argument: host
    deadline_s: int  # of the run; long enough on a loaded machine for faults that only slow it down
    passes: bool  # the run only has to wait and must succeed


FAULTS = {
    "cut": Fault(lambda run, host, seed: cluster("cut", host), lambda host: cluster("join", host), 4, False),
    "loss": Fault(lambda run, host, seed: cluster("lose", host, LOST_PERMILLE, seed),
                  lambda host: cluster("join", host), 20, False),
    "rate": Fault(lambda run, host, seed: cluster("rate", host, SLOW_RATE),
                  lambda host: cluster("rate", host, RATE), 20, True),
    "killed": Fault(kill_ranks, lambda host: None, 4, False),
    "power": Fault(lose_power, lambda host: cluster("join", host), 4, False),
    "mpirun": Fault(kill_launcher, lambda host: None, 4, False),
    "slow": Fault(begin_slow, lambda host: None, 20, True),
}


def waiting_ranks(words):
    """Those that say that they have waited for others until the deadline."""
    return {int(rank) for rank in re.findall(r"rank (\d+)(?:: MPI has not| has waited| timed out|, op \d)", words)}


def names(words, host):
    """Whether the output names a host that does not answer, or its rank (each host has one).
    Without a name, the host is the one rank missing from the ranks reported as waiting. For
    node0, where mpirun runs, node0 itself must report: the others' output is lost."""
    waiting = waiting_ranks(words)
    if (host == 0 and 0 in waiting) or waiting == set(range(HOSTS)) - {host}:
        return True
    return re.search(rf"(for|from|to) ranks? (\d+, )*{host}\b|on node node{host}\b|Peer host: +node{host}\b",
                     words) is not None


def judge(run, status, fault, host, sha256):
    """The outcome of a run, and the list of what is wrong with it."""
    wrong = []
    whole = not run.broken_files()
    right = status == 0 and whole and run.sha256() == sha256
    # All output of ranks goes through mpirun.
    named = status not in (0, None) and (fault == "mpirun" or names(run.words, host))
    if status is None:
        wrong.append("it hangs")
    elif status == 0 and not right:
        wrong.append("other results than without a fault")
    elif status != 0 and not named:
        wrong.append(f"status {status}, and nobody says which host does not answer")
    elif FAULTS[fault].passes and not right:
        wrong.append(f"status {status}, where it only had to wait")
    if status is None:
        send([run.process.pid], signal.SIGKILL)
    left = run.orphans()
    if left:
        wrong.append(f"{left} processes are left")
    if not whole:
        wrong.append("files: " + ", ".join(run.broken_files()))
    return "right" if right else "named" if named else "wrong", wrong


def try_fault(program, held_clock, fault, seed, backend, healthy):
    """Prints a line: fault, seed, backend, host, moment, outcome, seconds, failures."""
    rng = random.Random(f"{fault} {seed}")
    schedule, host = rng.choice(SCHEDULES), rng.randrange(HOSTS)
    sha256, seconds = healthy[backend, schedule]
    moment_s = rng.uniform(0, seconds)
    run = Run(program, backend, schedule, FAULTS[fault].deadline_s, held_clock)
    run.wait_for_ranks()
    time.sleep(moment_s)
    FAULTS[fault].begin(run, host, seed)
    run.begun.touch()
    status = run.finish()
    outcome, wrong = judge(run, status, fault, host, sha256)
    FAULTS[fault].end(host)
    run.clear()
    if wrong and FAULTS[fault].passes and "ORTE has lost communication" in run.words:
        wrong.append("mpirun's own daemons took the network for one that is gone")
    print(f"{fault:6} seed {seed:2} {backend} {schedule:6} host {host} after {moment_s:4.1f} s: {outcome} in "
          f"{run.seconds:.1f} s{''.join('; ' + text for text in wrong)}", flush=True)
    if wrong:
        print("    " + run.words[-3000:].replace("\n", "\n    "), flush=True)


def inside(program, held_clock, cases):
    healthy = {}
    cases = [case.split(":") for case in cases.split()]
    for backend in sorted({backend for _, _, backend in cases}):
        for schedule in SCHEDULES:
            run = Run(program, backend, schedule, HANG_S)
            run.wait_for_ranks()
            there = time.monotonic()
            status = run.finish()
            if status != 0 or run.broken_files():
                sys.exit(f"{backend}, {schedule}: status {status} without any fault: {run.words}")
            healthy[backend, schedule] = run.sha256(), time.monotonic() - there
            run.clear()
    for fault, seed, backend in cases:
        try_fault(program, held_clock, fault, int(seed), backend, healthy)


# ---- all faults ----


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def need_mpi(program):
    if shutil.which("mpirun") is None:
        skip("there is no mpirun here")
    words = [program, "run", "--backend", "mpi", "--schedule", "ring", "--ranks", "1", "--seq-length", "8",
             "--num-attention-heads", "1", "--kv-channels", "64"]
    if "without MPI" in subprocess.run(words, capture_output=True, text=True, check=False).stderr:
        skip("longhaul was built without MPI")


def start_cluster(program, held_clock, cases):
    words = [CLUSTER, "make", str(HOSTS), RATE, "200", "--", sys.executable, __file__, "--inside", program, held_clock,
             " ".join(cases)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def summarise(lines, cases):
    failed = False
    for fault in FAULTS:
        of = [re.search(r": (\w+) in ([\d.]+) s(; .*)?$", line) for line in lines if line.split(" ")[0] == fault]
        wanted = sum(case.startswith(fault + ":") for case in cases)
        if wanted == 0:
            continue
        wrong = sum(match[3] is not None for match in of) + wanted - len(of)
        outcomes = [match[1] for match in of]
        longest = max((float(match[2]) for match in of), default=0)
        print(f"{fault:6} {wanted} seeds: {outcomes.count('right')} right, {outcomes.count('named')} named, "
              f"{wrong} FAILED; the longest took {longest:.1f} s")
        failed = failed or wrong > 0
    return failed


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("wire")
    parser.add_argument("held_clock")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--backend", choices=BACKENDS)
    args = parser.parse_args()
    program = os.path.realpath(args.program)
    os.environ["WIRE"] = os.path.realpath(args.wire)
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:verify_asan_link_order=0"  # Open MPI's
    need_mpi(program)
    cases = [f"{fault}:{seed}:{args.backend or BACKENDS[seed % len(BACKENDS)]}"
             for seed in range(args.first, args.first + args.seeds) for fault in FAULTS
             if args.fault in (None, fault)]
    clusters = [start_cluster(program, os.path.realpath(args.held_clock), cases[i::args.jobs]) for i in range(args.jobs)]
    lines = []
    for process in clusters:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    statuses = [process.wait() for process in clusters]
    if 77 in statuses:
        return 77
    failed = summarise(lines, cases)
    return 1 if failed or any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
