#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares plans by several processes with the plan of one.

    plan.py PROGRAM HELD_CLOCK_LIBRARY

The question is a short one, unless LONGHAUL_TEST_DEEP is set. Processes started by MPI, or with
torchrun's environment, must produce the same bytes of answers and of point files. A process that is
killed, stopped, or asked a different question must end all of them with an error that names it, and
the points written must be reusable.
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
if not os.environ.get("LONGHAUL_TEST_DEEP"):
    QUESTION += ["--schedule", "zigzag"]  # a tenth of the points
DEADLINE_S = 10  # for processes to answer after one of them was stopped
LIMIT_S = 300  # for them to end
PORTS = pathlib.Path(__file__).resolve().parent / "ports.py"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}


def sanitizers_without_leaks():
    """Ignores leaks of Open MPI and of killed processes, and allows a preloaded library."""
    return {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:verify_asan_link_order=0"}


class Plans:
    """Starts plans in a common folder."""

    def __init__(self, program, held_clock, folder, ports):
        self.program = program
        self.held_clock = held_clock
        self.folder = folder
        self.ports = ports

    def alone(self, points):
        done = subprocess.run([self.program, "plan", *QUESTION, "--points", points], cwd=self.folder,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def by_mpi(self, count, points):
        return subprocess.run(["mpirun", "-n", str(count), self.program, "plan", *QUESTION, "--points", points],
                              cwd=self.folder, capture_output=True, text=True, timeout=600,
                              env={**os.environ, **MPI, **sanitizers_without_leaks(),
                                   "OMPI_MCA_orte_tmpdir_base": str(self.folder)})

    @contextlib.contextmanager
    def by_tcp(self, count, *words, of_rank=None, held_until=None):
        """Processes with torchrun's environment; `of_rank` gives further arguments of some.
        Deadlines begin when the file `held_until` exists."""
        port = int(self.ports.readline())
        held = {"LD_PRELOAD": self.held_clock, "CLOCK_HELD_UNTIL": str(held_until)} if held_until else {}
        processes = []
        for rank in range(count):
            env = {**os.environ, **sanitizers_without_leaks(), **held, "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port - 1), "WORLD_SIZE": str(count), "RANK": str(rank),
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
    """Status and output, within the time limit."""
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
    """Whether MPI is available."""
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
    """A process that is killed or stopped makes the others end and name it; then two continue the
    plan."""
    path, lost = plans.folder / f"{how.name}.jsonl", plans.folder / f"{how.name}.lost"
    with plans.by_tcp(3, "--points", path.name, "--deadline", f"{DEADLINE_S}s", held_until=lost) as processes:
        wait_for_lines(path, 5)
        processes[rank].send_signal(how)
        lost.touch()
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
    with plans.by_tcp(2, "--deadline", f"{LIMIT_S}s", of_rank={1: ["--top", "4"]}) as processes:
        told = [ends(process) for process in processes]
    assert all(status == 2 for status, _, _ in told), told
    assert all("--top differs: rank 1 has 4, and rank 0 has none" in err for _, _, err in told), told


def main():
    program, held_clock = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="longhaul-plans-") as name, \
         subprocess.Popen([PORTS, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ports:
        plans = Plans(program, held_clock, pathlib.Path(name), ports.stdout)
        whole = plans.alone("alone.jsonl")
        points = (plans.folder / "alone.jsonl").read_bytes()
        check_same(plans, whole, points)
        mpi = check_mpi(plans, whole, points)
        check_lost(plans, whole, points, signal.SIGKILL, 1)
        check_lost(plans, whole, points, signal.SIGSTOP, 2)
        check_other_question(plans)
        ports.stdin.close()
    print(f"plans of several processes are that of one{'' if mpi else '; MPI was not tried, it is not here'}")
    return 0


sys.exit(main())
