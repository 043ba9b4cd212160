#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that all ranks of a job name the rank at fault (hosts: cluster.sh).

    blame.py PROGRAM WIRE [--backend tcp|mpi] [--first N] [--count N]

There is one rank on each of four hosts. Ranks meet over TCP as under torchrun, or are started by
mpirun, which starts all of them and itself reports a killed one. One rank is stopped, killed, ended
by SIGTERM, cut off, starts late or never, or has a different option. Every other rank must name it,
with its host if known, in the first line it prints, and exit with the same status. The default is 40
faults. Exit status 77 if the machine does not allow such hosts.
"""
import argparse
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CLUSTER = str(pathlib.Path(__file__).resolve().parent / "cluster.sh")
RANKS = 4
PORT = 29500
DEADLINE_S = 4
LIMIT_S = 60  # the deadline, the time of the verdict, and slack for a loaded machine
START_S = 8  # time that mpirun and MPI take to start
WORDS = ["run", "--ranks", str(RANKS), "--seq-length", "512", "--num-attention-heads", "4",
         "--kv-channels", "64", "--check-tokens", "4", "--repeat", "100000", "--deadline", f"{DEADLINE_S}s"]
SCHEDULES = ("ring", "zigzag", "te-a2a", "attention2d-no")
OPTIONS = (["--seed", "7"], ["--repeat", "99999"], ["--kernels", "reference"], ["--inputs", "key60"],
           ["--deadline", "5s"], ["--schedule", "striped"], ["--no-overlap"], ["--seq-length", "1024"])
FAULTS = {"tcp": ("stop", "kill", "term", "cable", "late", "never", "option", "stop", "cable", "term"),
          "mpi": ("stop", "term", "cable", "option")}


def cluster(*words):
    return subprocess.run([CLUSTER, *map(str, words)], check=True, capture_output=True, text=True).stdout


class Job:
    """Processes over TCP."""

    backend = "tcp"

    def __init__(self, program, schedule):
        self.program, self.schedule = program, schedule
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.ranks = {}

    def words(self, options):
        """The command line of a rank; its own options override those of all."""
        words = WORDS + ["--backend", self.backend, "--schedule", self.schedule]
        for option in options[:1]:
            if option in words:
                at = words.index(option)
                words = words[:at] + words[at + 2:]
        return [self.program, *words, *options]

    def start_all(self, options):
        """@options: individual options of ranks; None: the rank does not start."""
        for rank in range(RANKS):
            if options.get(rank, ()) is not None:
                self.start(rank, options.get(rank, ()))

    def start(self, rank, options=()):
        environment = ["env", f"RANK={rank}", "LOCAL_RANK=0", f"WORLD_SIZE={RANKS}", "MASTER_ADDR=node0",
                       f"MASTER_PORT={PORT - 1}"]
        with open(self.folder / f"{rank}.err", "w", encoding="utf-8") as err:
            self.ranks[rank] = subprocess.Popen([CLUSTER, "on", str(rank), *environment, *self.words(options)],
                                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)

    def pids(self, rank):
        """Ids of the program's processes on the rank's host."""
        found = []
        for pid in cluster("pids", rank).split():
            try:
                if os.readlink(f"/proc/{pid}/exe") == self.program:
                    found.append(int(pid))
            except OSError:
                pass  # gone
        return found

    def wait_until_met(self):
        """Waits until every rank has a data port, which it opens after the rendezvous."""
        end = time.monotonic() + LIMIT_S
        while any(len(cluster("on", rank, "ss", "-Hltn").splitlines()) < 1 for rank in range(1, RANKS)):
            if time.monotonic() > end:
                break
            time.sleep(0.05)

    def finish(self):
        """The exit status of each rank; None if it hangs."""
        status = {}
        end = time.monotonic() + LIMIT_S
        for rank, process in self.ranks.items():
            try:
                status[rank] = process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                status[rank] = None
                process.kill()
        return status

    def said(self, rank):
        return (self.folder / f"{rank}.err").read_text(encoding="utf-8")

    def clear(self):
        for rank in range(RANKS):
            for pid in self.pids(rank):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)


class MpiJob(Job):
    """Processes of one mpirun on the first host, which forwards their output."""

    backend = "mpi"

    def start_all(self, options):
        cases = " ".join(f"{rank}) exec {shlex.join(self.words(own))} ;;" for rank, own in options.items())
        script = f"case $OMPI_COMM_WORLD_RANK in {cases} *) exec {shlex.join(self.words(()))} ;; esac"
        with open(self.folder / "err", "w", encoding="utf-8") as err:
            self.ranks[0] = subprocess.Popen([CLUSTER, "mpirun", "1", "--tag-output", "sh", "-c", script],
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)

    def wait_until_met(self):
        """MPI's listening ports do not show whether ranks have met."""
        time.sleep(START_S)

    def said(self, rank):
        lines = (self.folder / "err").read_text(encoding="utf-8").splitlines()
        mark = f"[1,{rank}]<stderr>:"
        return "\n".join(line.removeprefix(mark) for line in lines if line.startswith(mark))


def hit(job, rank, number):
    for pid in job.pids(rank):
        os.kill(pid, number)


def begin(job, fault, guilty, rng):
    """Starts the ranks and injects the fault."""
    if fault in ("late", "never"):
        job.start_all({guilty: None})
    else:
        job.start_all({guilty: rng.choice(OPTIONS)} if fault == "option" else {})
    if fault == "late":
        time.sleep(DEADLINE_S + 4)
        job.start(guilty)
    if fault in ("late", "never", "option"):
        return
    job.wait_until_met()
    time.sleep(rng.uniform(0, 2))
    if fault == "cable":
        cluster("cut", guilty)
    else:
        hit(job, guilty, {"stop": signal.SIGSTOP, "kill": signal.SIGKILL, "term": signal.SIGTERM}[fault])


def wrong_words(fault, guilty, rank, words):
    """What is wrong with a rank's output; "" if nothing."""
    lines = [line for line in words.splitlines() if line.startswith("longhaul: error: ")]
    if len(lines) != 1:
        return f"rank {rank} prints {len(lines)} verdicts: {words}"
    line = lines[0]
    accused = re.match(r"longhaul: error: rank (\d+)\b", line)
    if fault == "option":
        right = re.search(rf"differs: rank {guilty} has ", line)
    elif fault in ("late", "never") and rank == guilty:
        right = f"rank {guilty} started too late" in line or re.search(rf"rank {guilty} on host node{guilty}: no other rank connected", line)
    elif fault in ("late", "never") and guilty == 0:
        right = "for rank 0, which does not listen at node0" in line
    elif fault in ("late", "never"):
        right = accused and int(accused[1]) == guilty and "has not connected" in line
    else:
        right = accused and int(accused[1]) == guilty and f" on host node{guilty}" in line
    return "" if right else f"rank {rank}: {words}"


def judge(job, fault, guilty, status):
    silent = ["kill", "term", "never"]  # the guilty rank prints nothing ...
    if job.backend == "mpi":
        silent += ["cable", "stop"]  # ... or its output is lost
    wrong = [f"rank {rank} hangs" for rank, code in status.items() if code is None]
    ranks = range(RANKS) if job.backend == "mpi" else status
    wrong += [text for rank in ranks if not (rank == guilty and fault in silent)
              for text in [wrong_words(fault, guilty, rank, job.said(rank))] if text]
    codes = {code for rank, code in status.items() if rank != guilty or job.backend == "mpi"}
    if len(codes) != 1 or codes & {0, None}:
        wrong.append(f"statuses {status}")
    return wrong


def try_fault(program, backend, number):
    rng = random.Random(number)
    faults = FAULTS[backend]
    fault, guilty = faults[number % len(faults)], number // len(faults) % RANKS
    if backend == "mpi" and fault == "cable":
        guilty = 1 + guilty % (RANKS - 1)  # all output comes through the first host
    job = (MpiJob if backend == "mpi" else Job)(program, rng.choice(SCHEDULES))
    began = time.monotonic()
    begin(job, fault, guilty, rng)
    if fault == "stop":
        time.sleep(DEADLINE_S + 12)  # all others have ended by then, or hang
        hit(job, guilty, signal.SIGCONT)
    status = job.finish()
    wrong = judge(job, fault, guilty, status)
    if fault == "cable":
        cluster("join", guilty)
    print(f"{number:3} {fault:6} rank {guilty} {job.schedule:14} {time.monotonic() - began:5.1f} s "
          f"{'FAILED' if wrong else 'named by all'}", flush=True)
    for text in wrong:
        print("    " + text.replace("\n", "\n    "), flush=True)
    job.clear()
    return not wrong


def inside(program, backend, first, count):
    named = sum(try_fault(program, backend, number) for number in range(first, first + count))
    print(f"{named} of {count} faults are named by all")
    return 0 if named == count else 1


def main():
    if sys.argv[1:2] == ["--inside"]:
        return inside(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("wire")
    parser.add_argument("--backend", choices=FAULTS, default="tcp")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    args = parser.parse_args()
    os.environ["WIRE"] = os.path.realpath(args.wire)
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    words = [CLUSTER, "make", str(RANKS), "1gbit", "100", "--", sys.executable, __file__, "--inside",
             os.path.realpath(args.program), args.backend, str(args.first), str(args.count)]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
