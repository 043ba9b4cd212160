#!/usr/bin/env python3
"""Plans by several processes, held against the plan of one.

    plan.py PROGRAM

Processes that MPI starts, or that have torchrun's environment, come to the same bytes, of answers and of
files of points. One that is killed, stopped, or asked something else ends all of them by name, and what
was written is gone on from.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

QUESTION = ["--model", "gpt3-125m", "--cluster", "dfa-2node:1", "--ranks", "4", "--seq-length", "16K",
            "--global-batch-size", "2", "--checkpoint", "selective", "--shard", "fsdp", "--pareto"]
DEADLINE_S = 4  # for processes to answer
LIMIT_S = 100  # for them to end, on a machine that has other things to do
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}


def sanitizers_without_leaks():
    """Of Open MPI's own, and of processes that are ended by others."""
    return {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


class Plans:
    """Starts plans in a folder, which all share."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.port = 20000 + os.getpid() % 10000

    def alone(self, points):
        done = subprocess.run([self.program, "plan", *QUESTION, "--points", points], cwd=self.folder,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def by_mpi(self, count, points):
        return subprocess.run(["mpirun", "-n", str(count), self.program, "plan", *QUESTION, "--points", points],
                              cwd=self.folder, capture_output=True, text=True, timeout=600,
                              env={**os.environ, **MPI, **sanitizers_without_leaks()})

    @contextlib.contextmanager
    def by_tcp(self, count, *words, of_rank=None):
        """Processes with torchrun's environment; `of_rank` has further words of some."""
        self.port += 2
        processes = []
        for rank in range(count):
            env = {**os.environ, **sanitizers_without_leaks(), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(self.port), "WORLD_SIZE": str(count), "RANK": str(rank),
                   "LOCAL_RANK": str(rank)}
            more = (of_rank or {}).get(rank, [])
            processes.append(subprocess.Popen([self.program, "plan", *QUESTION, *words, *more],
                                              cwd=self.folder, env=env, text=True,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        try:
            yield processes
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                process.communicate()


def ends(process):
    """Status and what it said, in time."""
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def check_same(plans, whole, points):
    with plans.by_tcp(3, "--points", "tcp.jsonl") as processes:
        told = [ends(process) for process in processes]
    assert [status for status, _, _ in told] == [0, 0, 0], told
    assert told[0][1] == whole, "three processes come to another answer"
    assert told[1][1] == told[2][1] == "", "processes beside the first one print"
    assert (plans.folder / "tcp.jsonl").read_bytes() == points, "three processes find other points"


def check_mpi(plans, whole, points):
    """Whether there is MPI."""
    if shutil.which("mpirun") is None:
        return False
    done = plans.by_mpi(3, "mpi.jsonl")
    if "without MPI" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    assert done.stdout == whole, "processes of MPI come to another answer"
    assert (plans.folder / "mpi.jsonl").read_bytes() == points, "processes of MPI find other points"
    return True


def wait_for_lines(path, lines):
    until = time.monotonic() + LIMIT_S
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < until, "the plan does not begin"
        time.sleep(0.005)


def check_lost(plans, whole, points, how, rank):
    """A process that is killed or stopped ends the others by name; then two go on."""
    path = plans.folder / f"{how.name}.jsonl"
    with plans.by_tcp(3, "--points", path.name, "--deadline", f"{DEADLINE_S}s") as processes:
        wait_for_lines(path, 5)
        processes[rank].send_signal(how)
        others = [ends(process) for i, process in enumerate(processes) if i != rank]
    assert all(status == 4 for status, _, _ in others), others
    assert any(f"rank {rank}" in err for _, _, err in others), others
    assert all(out == "" for _, out, _ in others), others
    assert path.read_bytes() != points, "the plan was over before"
    with plans.by_tcp(2, "--points", path.name) as processes:
        told = [ends(process) for process in processes]
    assert told[0][:2] == (0, whole), told
    assert path.read_bytes() == points, "what was gone on from comes to other points"


def check_other_question(plans):
    with plans.by_tcp(2, "--deadline", "60s", of_rank={1: ["--top", "4"]}) as processes:
        told = [ends(process) for process in processes]
    assert all(status == 4 for status, _, _ in told), told
    assert any("rank 1 has another question" in err for _, _, err in told), told


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="longhaul-plans-") as name:
        plans = Plans(program, pathlib.Path(name))
        whole = plans.alone("alone.jsonl")
        points = (plans.folder / "alone.jsonl").read_bytes()
        check_same(plans, whole, points)
        mpi = check_mpi(plans, whole, points)
        check_lost(plans, whole, points, signal.SIGKILL, 1)
        check_lost(plans, whole, points, signal.SIGSTOP, 2)
        check_other_question(plans)
    print(f"plans of several processes are that of one{'' if mpi else '; MPI was not tried, it is not here'}")
    return 0


sys.exit(main())
