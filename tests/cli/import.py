#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recovers constants from traces: import.py PROGRAM.

Runs are simulated with invented constants, written as traces and imported without knowledge of them: every constant
that the traces determine must be recovered within 1 %, and a simulation with the result must take as long. Traces are
longhaul's own, and in the formats of PyTorch's profiler and Nsight Systems: one file per rank, each on its own clock,
with many layers and steps, other kernels in between, and perhaps compressed. Traces of another case, and broken ones,
are refused.
"""

import contextlib
import gzip
import json
import os
import pathlib
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import ROOT, Tool

SHAPE = ["--cluster", "dfa-2node:2", "--model", "llama-7b", "--seq-length", "64K"]
KERNELS = {"attention": 180, "attention_fwd": 150, "attention_block": 170, "attention_bwd": 120,
           "attention_bwd_o": 110}  # TFLOP/s
HALF = {"full": 150, "causal": 450}
LINKS = {"nvlink": (200, 9.8, 32), "nic": (9, 14, 2)}  # GB/s, us, ctas
# Schedule, further arguments, and the constants to be determined.
CASES = [
    ("ring", [], {"attention_block", "attention_bwd_o", "nvlink", "nic"}),
    ("zigzag", ["--jitter", "0.02"], {"attention_block", "attention_bwd_o", "nic"}),
    ("dfa-balanced", [], {"attention_fwd", "attention_bwd_o", "nvlink", "nic"}),
    ("te-p2p", [], {"attention_block", "attention_bwd_o", "nvlink", "nic"}),
    ("usp", ["--pass", "fwd"], {"attention_block", "nvlink", "nic"}),
    ("ulysses", [], {"attention", "attention_bwd_o", "nic"}),
]
NAMES = {"attention": "void cutlass::device_kernel<flash::FlashAttnFwdSm90<X> >(P)",
         "attention_block": "void pytorch_flash::flash_fwd_kernel<X>(Flash_fwd_params)",
         "attention_bwd_o": "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<X>(P)"}


def profile(half):
    link = {"provenance": "fitted", "source": "made up"}
    return {
        "schema": "longhaul.profile/2", "name": "truth", "source": "made up",
        "kernels": [
            {"kernel": kernel, "mask": mask, "head_dim": 128, "rate": f"{rate}TFLOP/s",
             "half_length": half[mask], "provenance": "fitted", "source": "made up"}
            for kernel, rate in KERNELS.items() for mask in ("full", "causal")],
        **{name: {"bandwidth": f"{rate}GB/s", "latency": f"{latency}us", "ctas": ctas, **link}
           for name, (rate, latency, ctas) in LINKS.items()}}


class Test:
    def __init__(self, program, folder):
        self.tool, self.folder = Tool(program, folder), folder
        (folder / "truth.json").write_text(json.dumps(profile(HALF)))
        # Constants that the importer starts from: other rates and links, but the same half-rate lengths and latencies,
        # which runs with blocks of a single length do not determine.
        start = profile(HALF)
        for curve in start["kernels"]:
            curve["rate"] = "200TFLOP/s"
        start["nvlink"]["bandwidth"], start["nic"]["bandwidth"] = "260GB/s", "15GB/s"
        (folder / "start.json").write_text(json.dumps(start))

        self.packs = self.reads("probe.json.gz", gzip.compress(b"[]"))
        self.has_sqlite = self.reads("probe.sqlite", b"SQLite format 3" + bytes(100))

    def reads(self, name, data):
        """Whether the build supports such a file, tested with an empty one."""
        (self.folder / name).write_bytes(data)
        return "was built without" not in self.result("ring", [], [name], status=3).stderr

    def simulate(self, schedule, words, trace):
        self.tool.call("sim", *SHAPE, "--schedule", schedule, *words, "--profile", "truth.json",
                       "--trace", trace)

    def result(self, schedule, words, sources, status=0):
        sources = [word for source in sources for word in ("--from", source)]
        return self.tool.call("import", *SHAPE, "--schedule", schedule, *words, "--profile",
                              "start.json", *sources, "-o", "found.json", "--format", "json",
                              status=status)

    def peak(self, *words):
        """Returns the error for rejected traces, and the peak memory of the process."""
        program = subprocess.Popen([self.tool.program, "import", *SHAPE, "--schedule", "ring", *words],
                                   env=self.tool.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with program.stderr as messages:
            said = messages.read()
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        assert program.returncode == 3, (words, program.returncode, said)
        return said, usage.ru_maxrss << 10

    def check(self, schedule, words, sources, wanted, tolerance=0.01):
        """Imports, and compares the result with the truth."""
        found = json.loads(self.result(schedule, words, sources).stdout)
        determined = set()
        for constant in found["constants"]:
            if not constant["determined"]:
                assert constant["value"] == constant["before"], constant
                continue
            name = constant.get("kernel", constant.get("link"))
            if constant["constant"] == "rate":
                truth = KERNELS[name] * 1e12
            elif constant["constant"] == "bandwidth":
                truth = LINKS[name][0] * 1e9
            elif constant["constant"] == "latency":
                truth = LINKS[name][1] * 1e-6
            else:
                truth = HALF[constant["mask"]]
            assert abs(constant["value"] / truth - 1) <= tolerance, (schedule, constant, truth)
            determined.add(name)
        assert wanted <= determined, (schedule, wanted - determined)
        # The profile can be used, and the run takes as long as before.
        times = []
        for name in ("truth.json", "found.json"):
            out = self.tool.call("sim", *SHAPE, "--schedule", schedule, *words, "--profile", name,
                                 "--format", "json").stdout
            times.append(json.loads(out)["results"][0]["makespan_s"])
        assert abs(times[1] / times[0] - 1) <= tolerance, (schedule, times)
        return found

    # --- Nsight Systems --------------------------------------------------------------------------

    def nsys(self, schedule, layers, steps):
        """Databases as written by `nsys export --type sqlite`, of the same run. Steps are ranges of the host, which is
        ahead of the GPU; kernels belong to them by their launches. Ranks follow from NCCL's ranges. Tables may have
        a number appended to their names."""
        events = json.loads((self.folder / f"{schedule}.json").read_text())["traceEvents"]
        by_rank = {}
        for event in events:
            if event["ph"] == "X":
                by_rank.setdefault(event["pid"], []).append(event)
        span = round(1200 * max(e["ts"] + e["dur"] for e in events if e["ph"] == "X"))
        (self.folder / "nsys").mkdir(exist_ok=True)
        paths = []
        for rank, ops in by_rank.items():
            paths.append(f"nsys/report{15 - rank:02}.sqlite")
            with contextlib.closing(sqlite3.connect(self.folder / paths[-1])) as db:
                self.nsys_rank(db, rank, sorted(ops, key=lambda op: op["args"]["op"]), span,
                               layers, steps)
                db.commit()
        return paths

    @staticmethod
    def nsys_rank(db, rank, ops, span, layers, steps):
        version = "_V2" if rank % 2 else ""
        pid, tid = (500 + rank) << 24, ((500 + rank) << 24) | (500 + rank)
        db.executescript(f"""
            CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL{version}(start INT, end INT, deviceId INT,
                streamId INT, correlationId INT, globalPid INT, demangledName INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT,
                correlationId INT, nameId INT);
            CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT,
                globalTid INT, domainId INT, binaryData TEXT);
            INSERT INTO StringIds VALUES (1, 'void at::native::elementwise_kernel<X>(int)'),
                (2, 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)');""")
        names = {}
        for number, (kernel, name) in enumerate(NAMES.items(), 3):
            names[kernel] = number
            db.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name))
        head = struct.pack("<4Q", 1, 1 << 24, 24, 32)
        for size, place in ((4, rank % 4), (16, rank)):  # of the smaller communicator, and of all
            db.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'ncclCommInitRank', NULL, ?, 1, ?)",
                       (tid, head + struct.pack("<Qiiii", 0xdeadbeef + size, size, place, 0, 0)))
        # A kernel that ran before the profiler started.
        db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL{version} VALUES (-5, -1, 0, 7, 1, ?, 2)",
                   (pid,))
        host, clock, correlation = 1000, 5_000_000, 10
        for step in range(steps):
            begin = host
            for _ in range(layers // 2 if step in (0, steps - 1) else layers):
                for op in ops:
                    correlation, host = correlation + 1, host + 10
                    name = 2 if op["cat"] == "exchange" else names.get(op["name"], 1)
                    start = clock + round(op["ts"] * 1000)
                    db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL{version} VALUES "
                               "(?, ?, 0, ?, ?, ?, ?)", (start, start + round(op["dur"] * 1000),
                                                         op["tid"], correlation, pid, name))
                    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)",
                               (host, host + 5, tid, correlation))
                clock += span
            host += 10
            text = None if step % 2 else f"ProfilerStep#{step}"
            db.execute("INSERT OR IGNORE INTO StringIds VALUES (?, ?)",
                       (100 + step, f"iteration {step}"))
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?, 0, NULL)",
                       (begin, host, text, 100 + step, tid))

    # --- a profiler ------------------------------------------------------------------------------

    def kineto(self, schedule, layers, steps, seed):
        """Files as PyTorch's profiler would have written them for this run, made from longhaul's trace of one module.
        Kernels of a layer follow each other; times of each repetition differ slightly."""
        draw = random.Random(seed)
        events = json.loads((self.folder / f"{schedule}.json").read_text())["traceEvents"]
        by_rank = {}
        for event in events:
            if event["ph"] == "X":
                by_rank.setdefault(event["pid"], []).append(event)
        span = max(event["ts"] + event["dur"] for event in events if event["ph"] == "X")
        paths = []
        for rank, ops in by_rank.items():
            ops.sort(key=lambda event: event["args"]["op"])
            lines, clock, correlation = [], draw.uniform(0, 1e9), 100
            for step in range(steps):
                begin = clock
                # The profiler started during the first step, and stopped before the end of the last.
                cut = layers // 2 if step in (0, steps - 1) else layers
                for _ in range(cut):
                    for op in ops:
                        correlation += 1
                        self.event(lines, op, clock, correlation, draw)
                    clock += span * 1.2
                lines.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}",
                              "pid": 4711, "tid": 4711, "ts": round(begin, 3),
                              "dur": round(clock - begin - 1, 3), "args": {}})
            draw.shuffle(lines)
            document = {"schemaVersion": 1, "baseTimeNanoseconds": 17 * 10 ** 17,
                        "traceEvents": lines,
                        "distributedInfo": {"backend": "nccl", "rank": rank,
                                            "world_size": len(by_rank)}}
            text = json.dumps(document, indent=2)
            text = text.replace('"traceEvents": [', '"traceEvents": [\n  {"ph": "X", "cat": "cpu_op",'
                                ' "name": "a "name" with quotes, "pid": 1, "args": {"x": "}\n },', 1)
            packed = self.packs and rank % 2
            name = f"kineto/rank{rank}.json" + (".gz" if packed else "")
            (self.folder / "kineto").mkdir(exist_ok=True)
            data = text.encode()
            (self.folder / name).write_bytes(gzip.compress(data) if packed else data)
            paths.append(name)
        return paths

    @staticmethod
    def event(lines, op, clock, correlation, draw):
        kind, args = op["cat"], {"stream": op["tid"] + 6, "device": 0, "correlation": correlation}
        if kind == "exchange":
            name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        elif op["name"] in NAMES:
            name = NAMES[op["name"]]
        else:
            name = "void at::native::elementwise_kernel<128, 4, X>(int)"
            lines.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711,
                          "tid": 4711, "ts": round(clock, 3), "dur": 3.5,
                          "args": {"correlation": correlation}})
        noise = draw.uniform(0.998, 1.002)
        lines.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": op["tid"] + 6,
                      "ts": round(clock + op["ts"], 3), "dur": round(op["dur"] * noise, 3),
                      "args": args})
        if kind == "compute" and "bwd" in op["name"]:
            lines.append({"ph": "X", "cat": "kernel", "name": "void flash_bwd_dot_do_o_kernel<X>(P)",
                          "pid": 0, "tid": op["tid"] + 6, "ts": round(clock + op["ts"], 3),
                          "dur": 9.0, "args": args})


def check_nsys(test):
    folder = test.folder
    paths = test.nsys("zigzag", 4, 5)
    found = test.check("zigzag", [], paths, {"attention_block", "attention_bwd_o", "nic"})
    assert found["ranks_seen"] == 16 and found["steps"] == 3 and found["calls"] == 4, found
    for trace in found["traces"]:
        assert trace["path"] == f"nsys/report{15 - trace['rank']:02}.sqlite", trace
    assert {trace["dropped"] for trace in found["traces"]} == {1}
    odd = "nsys/report08.sqlite"  # rank 7
    with contextlib.closing(sqlite3.connect(folder / odd)) as db:
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL_V2 RENAME COLUMN streamId TO stream")
    refused = test.result("zigzag", [], paths, status=3).stderr
    assert f"{odd}: error: table CUPTI_ACTIVITY_KIND_KERNEL_V2 has no column streamId" in \
        refused, refused
    data = (folder / paths[0]).read_bytes()
    for name, spoilt in (("short", data[:3000]), ("zeros", data[:100] + bytes(len(data) - 100))):
        (folder / f"{name}.sqlite").write_bytes(spoilt)
        refused = test.result("zigzag", [], [f"{name}.sqlite"], status=3).stderr
        assert refused.startswith(f"{name}.sqlite: error: "), refused


def check_documented(test):
    """Tables and rows as documented by NVIDIA: kernels of its example are skipped, and three of the five added steps
    count."""
    with contextlib.closing(sqlite3.connect(test.folder / "documented.sqlite")) as db:
        db.executescript((ROOT / "tests/data/import/nsys-2021.5.sql").read_text())
        db.commit()
    found = json.loads(test.tool.call("import", "--cluster", "dgx-a100-80g:1", "--ranks", "1", "--seq-length", "16K",
                                      "--pass", "fwd", "--schedule", "ring", "--from", "documented.sqlite",
                                      "--format", "json").stdout)
    [trace] = found["traces"]
    assert (trace["kernels"], trace["steps"], trace["broken"], trace["dropped"]) == (5, 5, 0, 0), trace
    assert found["steps"] == 3 and found["calls"] == 1, found
    [part] = found["parts"]
    assert part["measured_s"] == 0.011 and part["seen"] == 3, part


def check_overlaps(test):
    """Overlapping ranges put each of many launches into many steps: this is detected before all pairs are examined."""
    steps, launches, process = 20000, 11000, 500 << 24
    with contextlib.closing(sqlite3.connect(test.folder / "overlaps.sqlite")) as db:
        db.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, streamId INT, correlationId INT,
                                                     demangledName INT, globalPid INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, correlationId INT, globalTid INT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT);""")
        db.execute("INSERT INTO StringIds VALUES (1, ?)", (NAMES["attention_block"],))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 5, 7, 1, 1, ?)", (process,))
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?)",
                       ((i, i, process) for i in range(launches)))
        db.executemany("INSERT INTO NVTX_EVENTS VALUES (0, ?, ?, ?)",
                       ((launches, f"step {i}", process) for i in range(steps)))
        db.commit()
    refused = test.result("ring", [], ["overlaps.sqlite"], status=3).stderr
    assert f"overlaps.sqlite: error: {steps} ranges have names of steps" in refused, refused


def bomb(path, pieces, times):
    """A compressed trace that repeats its pieces; gzip may restart anywhere. Little of it is in memory at a time: a
    child's peak memory includes its parent's."""
    packed = b"".join(gzip.compress(piece.encode()) for piece in pieces)
    path.write_bytes(gzip.compress(b'{"traceEvents": [\n') + packed * times + gzip.compress(b"{}]}"))


def check_bombs(test):
    """Decompressed size and memory are bounded for any input."""
    event = '{"ph": "X", "cat": "%s", "name": "%s", "ts": 1, "dur": 1},\n'
    kinds = {
        "events": ([event % ("cpu_op", "aten::empty") * 16384], 1024),
        "names": ((event % ("kernel", f"{i}" + "x" * 100000) for i in range(700)), 1),
    }
    for kind, (pieces, times) in kinds.items():
        path = test.folder / f"{kind}.json.gz"
        bomb(path, pieces, times)
        refused, peak_bytes = test.peak("--from", path.name)
        assert (f"{path.name}: error: the first " in refused and "more than 64 MiB" in refused
                and "raise the limit with --max-unpacked SIZE" in refused), refused
        assert peak_bytes < 48 << 20, (kind, peak_bytes)
    # A user's limit applies: all of the file is read, in as little memory.
    read, peak_bytes = test.peak("--from", "names.json.gz", "--max-unpacked", "1GiB")
    assert "no attention kernel" in read and peak_bytes < 48 << 20, (read, peak_bytes)
    refused, _ = test.peak("--from", "names.json.gz", "--max-unpacked", "1MiB")
    assert "more than 1 MiB" in refused and "allowed: the value of --max-unpacked" in refused, refused
    # Uncompressed files have no limit.
    (test.folder / "long.json").write_text('{"traceEvents": [\n' + " " * (2 << 20) + "{}]}")
    read, _ = test.peak("--from", "long.json", "--max-unpacked", "1MiB")
    assert "no attention kernel" in read, read


def main():
    with tempfile.TemporaryDirectory(prefix="longhaul-import-") as name:
        folder = pathlib.Path(name)
        test = Test(sys.argv[1], folder)
        for schedule, words, wanted in CASES:
            test.simulate(schedule, words, f"{schedule}.json")
            test.check(schedule, words, [f"{schedule}.json"], wanted)

        # As a profiler writes it; the folder is given, and every file states its rank.
        test.simulate("zigzag", [], "zigzag.json")
        paths = test.kineto("zigzag", 4, 5, 1)
        found = test.check("zigzag", [], ["kineto"], {"attention_block", "attention_bwd_o", "nic"})
        assert found["ranks_seen"] == 16 and found["steps"] == 3 and found["calls"] == 4, found
        assert {trace["broken"] for trace in found["traces"]} == {1}, found["traces"]
        assert {trace["rank"] for trace in found["traces"]} == set(range(16))
        # Half of the ranks are enough for what they contain.
        test.check("zigzag", [], paths[::2], {"attention_block", "attention_bwd_o"})
        # Importing the same files twice gives the same bytes.
        first = (folder / "found.json").read_bytes()
        test.result("zigzag", [], paths[::2])
        assert (folder / "found.json").read_bytes() == first

        if test.has_sqlite:
            check_nsys(test)
            check_documented(test)
            check_overlaps(test)

        if test.packs:
            check_bombs(test)

        # Another schedule has other kernels; fewer heads imply rates above any device's peak.
        refused = test.result("ring", ["--pass", "fwd"], ["usp.json"], status=3).stderr
        assert "schedule ring has" in refused and "allowed: a multiple" in refused, refused
        lines = json.loads((folder / "zigzag.json").read_text())
        for event in lines["traceEvents"]:
            if event["ph"] == "X":
                event["dur"] /= 8
        (folder / "fast.json").write_text(json.dumps(lines))
        refused = test.result("zigzag", [], ["fast.json"], status=1).stderr
        assert "above the peak" in refused, refused
        (folder / "none.json").write_text('{"traceEvents": []}')
        refused = test.result("zigzag", [], ["none.json"], status=3).stderr
        assert "no attention kernel" in refused, refused
        refused = test.result("zigzag", [], ["zigzag.json", "missing.json"], status=3).stderr
        assert "missing.json" in refused, refused


main()
