#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads back traces for viewers: trace.py PROGRAM.

Both formats of `--trace` are decoded here from their public descriptions, and compared with `--timeline`,
`--memory-timeline` and `show --format json` of the same case. Every op is one slice with its times on the row of its
stream, or several if it waits for others in between. Slices of a row do not overlap. Every message of the program,
matched again here, is one arrow from the sending slice to the receiving one, and points forward in time. Memory is the
maximum and the last value of every nanosecond. The rates of links over time add up to the bytes that cross them.
"""

import collections
import decimal
import json
import os
import pathlib
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
from protobuf import fields
from tool import Tool

PS = decimal.Decimal(10) ** 12

SHAPE = ["--seq-length", "16K", "--num-attention-heads", "16", "--num-query-groups", "16",
         "--kv-channels", "64"]
RANKS = {"dfa-2node:2": 16, "azure-nc96-a100:2": 8, "dgx-a100-80g:1": 8}
CASES = [  # schedule, cluster, further arguments
    ("ring", "dfa-2node:2", ["--pass", "fwd"]),
    ("zigzag", "dfa-2node:2", []),
    ("dfa-balanced", "azure-nc96-a100:2", []),
    ("te-a2a-p2p", "dfa-2node:2", []),
    ("usp", "azure-nc96-a100:2", ["--jitter", "0.2"]),
    ("megatron-tp-sp", "dgx-a100-80g:1", []),
    ("attention2d-o", "dfa-2node:2", []),
    ("double-ring", "azure-nc96-a100:2", []),
    ("rsa", "azure-nc96-a100:2", ["--published-code"]),
    ("lasp", "dgx-a100-80g:1", []),
    ("tokenring", "azure-nc96-a100:2", ["--network", "fifo"]),
]
OF_PROGRAM = ["--pass", "fwd", "--published-code"]  # arguments that `show` supports, too
STEP = ["--step", "--schedule", "lasp", "--cluster", "lasp-dgx:1", "--model", "tnl-1b",
        "--seq-length", "16K", "--framework", "fairscale"]
PIPELINE = ["--step", "--schedule", "ring", "--cluster", "dfa-2node:2", "--model", "gpt3-125m", "--seq-length",
            "4K", "--framework", "megatron-lm", "--pipeline-model-parallel-size", "4", "--num-micro-batches", "2"]
RUN = ["run", "--schedule", "zigzag", "--ranks", "4", "--seq-length", "64",
       "--num-attention-heads", "2", "--num-query-groups", "2", "--kv-channels", "16"]

Slice = collections.namedtuple("Slice", "name start end args")


class Trace:
    """The common contents of both formats: times in whole nanoseconds."""

    def __init__(self):
        self.ranks = {}  # rank -> name
        self.tracks = {}  # (rank, number) -> name
        self.slices = collections.defaultdict(list)  # track -> of Slice, as they begin
        self.sent, self.received = {}, {}  # message -> (track, time)
        self.memory = collections.defaultdict(list)  # rank -> list of (time, bytes)
        self.network = None  # its process
        self.links = collections.defaultdict(list)  # name -> list of (time, GB/s)


# --- Chrome's JSON -------------------------------------------------------------------------------

def whole_ns(microseconds):
    ns = microseconds * 1000
    assert ns == int(ns), microseconds
    return int(ns)


def read_chrome(path):
    trace = Trace()
    document = json.loads(path.read_text(), parse_float=decimal.Decimal)
    assert document["otherData"]["schema"] == "longhaul.trace/1"
    asked = document["otherData"]["argv"]
    assert document["otherData"]["schedule"] == asked[asked.index("--schedule") + 1]
    for event in document["traceEvents"]:
        rank, track, kind = event["pid"], (event["pid"], event.get("tid")), event["ph"]
        if kind == "M":
            if event["name"] == "process_name" and event["args"]["name"] == "network":
                trace.network = rank
            elif event["name"] == "process_name":
                trace.ranks[rank] = event["args"]["name"]
            elif event["name"] == "thread_name":
                trace.tracks[track] = event["args"]["name"]
            continue
        time = whole_ns(decimal.Decimal(event["ts"]))
        if kind == "X":
            end = time + whole_ns(decimal.Decimal(event["dur"]))
            trace.slices[track].append(Slice(event["name"], time, end, event["args"]))
        elif kind == "C" and rank == trace.network:
            trace.links[event["name"]].append((time, float(event["args"]["GB/s"])))
        elif kind == "C":
            trace.memory[rank].append((time, event["args"]["bytes"]))
        else:
            ends = {"s": trace.sent, "f": trace.received}[kind]
            assert event["id"] not in ends and 0 < event["id"] < 1 << 53
            assert kind == "s" or event["bp"] == "e"
            ends[event["id"]] = (track, time)
    return trace


# --- Perfetto's protobuf -------------------------------------------------------------------------

class Sequence:
    """State of a sequence of packets."""

    def __init__(self):
        self.begun, self.track = False, None
        self.events, self.notes = {}, {}


class PerfettoReader:
    def __init__(self, data):
        self.trace, self.sequences, self.uuids = Trace(), {}, {}
        self.open, self.points, self.last = {}, {}, {}
        for packet in fields(data)[1]:
            self.packet(fields(packet))
        assert not self.open

    def packet(self, packet):
        [number], [flags] = packet[10], packet[13]
        sequence = self.sequences.setdefault(number, Sequence())
        assert flags == (2 if sequence.begun else 1)
        sequence.begun = True
        for track in packet[60]:
            self.describe(fields(track))
        for defaults in packet[59]:
            [event] = fields(defaults)[11]
            [sequence.track] = fields(event)[11]
        for names in packet[12]:
            for table, field in ((sequence.events, 2), (sequence.notes, 3)):
                for name in map(fields, fields(names)[field]):
                    assert name[1][0] not in table and name[1][0] > 0
                    table[name[1][0]] = name[2][0].decode()
        for event in packet[11]:
            self.event(sequence, fields(event), packet[8][0])

    def describe(self, track):
        [uuid], [name] = track[1], track[2]
        assert uuid not in self.uuids and uuid > 0
        if track[3]:
            rank = fields(track[3][0])[1][0] - 1
            if name == b"network":
                self.trace.network = rank
                self.uuids[uuid] = ("network", rank)
                return
            self.trace.ranks[rank] = name.decode()
            self.uuids[uuid] = ("rank", rank)
            return
        kind, value = self.uuids[track[5][0]]
        if kind == "network":
            assert fields(track[8][0])[6] == [b"GB/s"]
            self.uuids[uuid] = ("link", name.decode())
        elif track[8]:
            assert kind == "rank" and fields(track[8][0])[3] == [3]
            self.uuids[uuid] = ("memory", value)
        elif kind == "rank":
            assert track[11] == [3]
            self.uuids[uuid] = ("streams", value)
        else:
            assert kind == "streams" and track[15] == [2]
            self.uuids[uuid] = ("slices", (value, track[12][0]))
            self.trace.tracks[value, track[12][0]] = name.decode()

    def notes(self, sequence, event):
        values = {}
        for note in map(fields, event[4]):
            value = note[6][0].decode() if note[6] else note[3][0]
            values[sequence.notes[note[1][0]]] = value
        return values

    def event(self, sequence, event, time):
        kind, of = self.uuids[sequence.track]
        [what] = event[9]
        assert time >= self.last.get(of, 0) or kind == "memory"
        if kind == "link":
            assert what == 4
            [value] = struct.unpack("<d", event[44][0].to_bytes(8, "little"))
            self.trace.links[of].append((time, value))
            return
        if what == 4:
            assert kind == "memory"
            self.trace.memory[of].append((time, event[30][0]))
            return
        assert kind == "slices"
        self.last[of] = time
        for field, ends in ((47, self.trace.sent), (48, self.trace.received)):
            for message in event[field]:
                assert message not in ends
                ends[message] = (of, time)
        if what == 2:
            begun = self.open.pop(of)
            assert begun.start < time
            self.trace.slices[of].append(begun._replace(end=time))
            return
        name = sequence.events[event[10][0]]
        if what == 1:
            assert of not in self.open
            self.open[of] = Slice(name, time, None, self.notes(sequence, event))
        elif name == "arrive":
            assert what == 3 and self.open[of].start <= time and event[48]
        else:
            assert what == 3 and of not in self.open
            self.trace.slices[of].append(Slice(name, time, time, self.notes(sequence, event)))


def read(path):
    return read_chrome(path) if path.suffix == ".json" else PerfettoReader(path.read_bytes()).trace


# --- the case, by other ways ---------------------------------------------------------------------

def traces(tool, *words):
    """The case in both formats, and its timeline."""
    for ending in ("json", "pftrace"):
        tool.call(*words, "-o", os.devnull, "--trace", "t." + ending, "--timeline",
                  "timeline.json")
    yield read(tool.folder / "t.json")
    yield read(tool.folder / "t.pftrace")


def ps(seconds):
    value = decimal.Decimal(seconds) * PS
    assert value == int(value)
    return int(value)


def name_of(op):
    """Name of an op of a timeline; None if only the program has it."""
    return op["kernel"] if op["kind"] == "compute" else None


def hold_pieces(pieces, op):
    """The op's slices, some of which only wait, have its times and add up to its timeline, up to slices of less than a
    nanosecond."""
    start, end, waits = ps(op["start_s"]), ps(op["end_s"]), ps(op.get("waits_s", 0))
    moving = [s for s in pieces if s.name != "wait"]
    waiting = [s for s in pieces if s.name == "wait"]
    assert moving or waits == end - start, op
    assert (pieces[0].start, pieces[-1].end) == (start // 1000, end // 1000), (op, pieces)
    for before, after in zip(pieces, pieces[1:]):
        assert before.end == after.start and "wait" in (before.name, after.name), (op, pieces)
    for piece in pieces:
        low, length = piece.args["start_ps"], piece.args["duration_ps"]
        assert (piece.start, piece.end) == (low // 1000, (low + length) // 1000), piece
        assert start <= low and low + length <= end, (op, piece)
        assert piece.args["step"] == op["step"] and piece.args["phase"] == op["phase"], (op, piece)
        assert piece.name == "wait" or name_of(op) in (None, piece.name), (op, piece)
    assert sum(s.args["duration_ps"] for s in moving) == end - start - waits, (op, pieces)
    assert 0 <= waits - sum(s.args["duration_ps"] for s in waiting) < 1000 * (len(moving) + 1), op
    assert all(s.end > s.start and "bytes" not in s.args for s in waiting), (op, pieces)
    for key in ("bytes", "flops"):
        assert sum(s.args.get(key, 0) for s in moving) == op[key], (op, pieces)


def hold_ops(trace, ops):
    """Every op has one or more slices, and every slice belongs to an op. Returns the first slice of each op that is no
    wait, by rank and op."""
    slices = collections.defaultdict(list)
    for track, rows in trace.slices.items():
        for s in rows:
            slices[track[0], s.args["op"]].append((track, s))
    assert len(slices) == len(ops) > 0
    for op in ops:
        found = slices[op["rank"], op["op"]]
        assert {trace.tracks[track] for track, _ in found} == {op["stream"]}, (op, found)
        hold_pieces([s for _, s in found], op)
    for rows in trace.slices.values():
        for before, after in zip(rows, rows[1:]):
            assert before.end <= after.start, (before, after)
    return {key: ([row for row in found if row[1].name != "wait"] or found)[0]
            for key, found in slices.items()}


def messages_of(program):
    """Matches messages: the k-th message from one rank to another on a communicator is the k-th that the other
    receives. Returns a count of ((rank, op), (rank, op))."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    for rank, ops in enumerate(program["ranks"]):
        for number, op in enumerate(ops["ops"]):
            for message in op.get("messages", []):
                key = (op.get("communicator", 0),)
                if "to" in message:
                    sent[key + (rank, message["to"])].append((rank, number))
                else:
                    received[key + (message["from"], rank)].append((rank, number))
    assert sent.keys() == received.keys()
    return collections.Counter(pair for key in sent for pair in zip(sent[key], received[key]))


def slice_at(trace, track, time):
    """The op of the slice that an arrow's end is bound to. For empty slices that depends on the order, which is not
    checked here."""
    found = [s for s in trace.slices[track] if s.start <= time < s.end]
    assert len(found) <= 1
    return (track[0], found[0].args["op"]) if found else None


def hold_messages(trace, messages):
    assert trace.sent.keys() == trace.received.keys()
    assert len(trace.sent) == sum(messages.values()), (len(trace.sent), sum(messages.values()))
    seen = collections.Counter()
    for message, (source, left) in trace.sent.items():
        destination, came = trace.received[message]
        assert left <= came
        pair = slice_at(trace, source, left), slice_at(trace, destination, came)
        assert None in pair or pair in messages, pair
        seen[pair] += None not in pair
    assert all(seen[pair] <= count for pair, count in messages.items())
    return sum(seen.values())


def hold_memory(trace, records):
    held = collections.defaultdict(lambda: collections.defaultdict(list))
    for record in records:
        held[record["rank"]][ps(record["time_s"]) // 1000].append(record["total_bytes"])
    assert trace.memory.keys() == held.keys()
    for rank, points in trace.memory.items():
        wanted = [(ns, most) for ns, values in held[rank].items()
                  for most in ([max(values)] if max(values) > values[-1] else []) + values[-1:]]
        assert points == wanted, rank


# --- what is held --------------------------------------------------------------------------------

def hold_case(tool, schedule, cluster, words):
    case = ["--schedule", schedule, "--cluster", cluster, *SHAPE, *words]
    tool.call("sim", *case, "-o", os.devnull, "--memory-timeline", "memory.json")
    tool.call("show", *case[1:2], *case[4:4 + len(SHAPE)], "--ranks", str(RANKS[cluster]),
              *case[2:4], *(word for word in words if word in OF_PROGRAM), "--format", "json", "-o",
              "p.json")
    messages = messages_of(tool.json("p.json"))
    count = bound = 0
    for trace in traces(tool, "sim", *case):
        assert sorted(trace.ranks) == list(range(RANKS[cluster]))
        hold_ops(trace, tool.json("timeline.json")["ops"])
        bound += hold_messages(trace, messages)
        hold_memory(trace, tool.json("memory.json")["records"])
        count += len(trace.sent)
    assert bound == count, (bound, count)
    return count


def hold_step(tool):
    """For a step, too, files name the schedule."""
    tool.call("sim", *STEP, "-o", os.devnull, "--memory-timeline", "memory.json")
    assert tool.json("memory.json")["schedule"] == STEP[2]
    for trace in traces(tool, "sim", *STEP):
        assert tool.json("timeline.json")["schedule"] == STEP[2]
        slices = hold_ops(trace, tool.json("timeline.json")["ops"])
        assert {s.args["layer"] for _, s in slices.values()} >= {0, 1}
        assert trace.sent.keys() == trace.received.keys() and trace.sent
        hold_memory(trace, tool.json("memory.json")["records"])


def hold_pipeline(tool):
    """All ranks of all stages; the last stage waits for its first rows, but no receive takes longer than a message of
    that size."""
    for trace in traces(tool, "sim", *PIPELINE):
        assert sorted(trace.ranks) == list(range(16))
        hold_ops(trace, tool.json("timeline.json")["ops"])
        [waits, moves] = ([s.end - s.start for rows in trace.slices.values() for s in rows if s.name in names]
                          for names in (["wait"], ["receive", "send"]))
        assert max(waits) > 100 * max(moves) > 0, (max(waits), max(moves))
    tool.call("sim", *PIPELINE, "-o", os.devnull, "--trace", "t.json", "--ranks-shown", "0,15")
    assert sorted(read(tool.folder / "t.json").ranks) == [0, 15]


def hold_run(tool):
    """Every run has other times: a trace is compared with its own timeline."""
    tool.call("show", "zigzag", *RUN[3:], "--format", "json", "-o", "p.json")
    for ending in ("json", "pftrace"):
        tool.call(*RUN, "-o", os.devnull, "--trace", "t." + ending, "--timeline", "timeline.json")
        trace = read(tool.folder / ("t." + ending))
        hold_ops(trace, tool.json("timeline.json")["ops"])
        hold_messages(trace, messages_of(tool.json("p.json")))
        assert not trace.memory


def hold_parts(tool):
    """Some ranks and part of the time: a part of the whole, with arrows between these ranks only."""
    case = ["sim", "--schedule", "ring", "--cluster", "dfa-2node:2", "--pass", "fwd", *SHAPE]
    for whole, ending in zip(traces(tool, *case), ("json", "pftrace")):
        tool.call(*case, "-o", os.devnull, "--trace", "part." + ending, "--ranks-shown", "3-5,12")
        part = read(tool.folder / ("part." + ending))
        assert sorted(part.ranks) == [3, 4, 5, 12]
        assert part.slices == {t: rows for t, rows in whole.slices.items() if t[0] in part.ranks}
        assert part.sent.keys() == part.received.keys()
        inside = sum(whole.sent[m][0][0] in part.ranks and whole.received[m][0][0] in part.ranks
                     for m in whole.sent)
        assert 0 < len(part.sent) == inside < len(whole.sent)
        end = max(s.end for rows in whole.slices.values() for s in rows)
        low, high = end // 3, end // 2
        tool.call(*case, "-o", os.devnull, "--trace", "part." + ending, "--time-window",
                  f"{low}ns:{high}ns")
        part = read(tool.folder / ("part." + ending))
        wanted = {t: [s for s in rows if s.args["start_ps"] <= high * 1000 and
                      s.args["start_ps"] + s.args["duration_ps"] >= low * 1000]
                  for t, rows in whole.slices.items()}
        assert part.slices == {t: rows for t, rows in wanted.items() if rows}
        assert 0 < sum(map(len, part.slices.values())) < sum(map(len, whole.slices.values()))
        hold_level(part, whole, low, high)


def hold_level(part, whole, low, high):
    """Memory begins with its value before the window, and continues."""
    early = late = 0
    assert part.memory.keys() == whole.memory.keys()
    for rank, points in part.memory.items():
        before = [held for ns, held in whole.memory[rank] if ns < low]
        inside = [point for point in whole.memory[rank] if low <= point[0] <= high]
        assert points[:1] == ([(low, before[-1])] if before else inside[:1]), (rank, points[:2])
        assert points[1 if before else 0:] == inside, rank
        early, late = early + bool(before), late + bool(inside)
    assert early > 0 and late > 0, (early, late)


LINKS = [  # schedule, further arguments
    ("zigzag", []),
    ("zigzag", ["--network", "fifo"]),
    ("zigzag", ["--network", "alpha-beta"]),
    ("allgather-kv", ["--collectives", "ring"]),
    ("allgather-kv", ["--collectives", "fluid"]),
]


def hold_links(tool):
    """Rates over time add up to the bytes that cross a tier, in each direction, and no link exceeds its capacity; only
    changes and the end are listed."""
    for schedule, words in LINKS:
        case = ["sim", "--schedule", schedule, "--cluster", "dfa-2node:2", *SHAPE, *words]
        tool.call(*case, "--format", "json", "-o", "result.json")
        [result] = tool.json("result.json")["results"]
        crossing = int(result["sent_nic_bytes_sum"])
        inside = int(result["sent_nvlink_bytes_sum"])
        assert crossing > 0 and inside > 0
        for ending in ("json", "pftrace"):
            tool.call(*case, "-o", os.devnull, "--trace", "l." + ending, "--trace-links")
            trace = read(tool.folder / ("l." + ending))
            assert trace.network == RANKS["dfa-2node:2"] and len(trace.ranks) == trace.network
            end = max(s.end for rows in trace.slices.values() for s in rows)
            carried = collections.Counter()
            for name, points in trace.links.items():
                tier, way = name.split(",")[0].split()
                carried[tier, way] += hold_link(points, end)
                limit = {"nic": 24, "nvlink": 240}.get(tier, 1000)
                assert "alpha-beta" in words or max(rate for _, rate in points) <= limit * 1.000001
            for way in ("up", "down"):
                assert abs(carried["nic", way] / crossing - 1) < 1e-3, (carried, crossing)
                assert abs(carried["nvlink", way] / inside - 1) < 1e-2, (carried, inside)
    hold_window_of_links(tool, case)
    done = tool.call(*case, "--trace-links", status=2)
    assert "no effect without --trace" in done.stderr


def hold_link(points, end):
    """Bytes: GB/s times ns."""
    times = [time for time, _ in points]
    assert times == sorted(set(times)) and times[-1] <= end
    assert points[-1][1] == 0
    for (_, before), (time, after) in zip(points, points[1:]):
        assert before != after or time == end
    return sum(rate * (later - time) for (time, rate), (later, _) in zip(points, points[1:]))


def hold_window_of_links(tool, case):
    whole = read(tool.folder / "l.json").links
    end = max(time for points in whole.values() for time, _ in points)
    low, high = end // 3, end // 2
    tool.call(*case, "-o", os.devnull, "--trace", "w.json", "--trace-links", "--time-window",
              f"{low}ns:{high}ns")
    for name, points in read(tool.folder / "w.json").links.items():
        before = [point for point in whole[name] if point[0] <= low][-1:]
        inside = [point for point in whole[name] if low < point[0] <= high]
        wanted = [(low, rate) for _, rate in before] + inside
        assert points in (wanted, wanted + [(high, wanted[-1][1])]), (name, points, wanted)


def hold_files(tool):
    """Traces are reproducible; an error is given if nothing can be shown."""
    case = ["sim", "--schedule", "ring", "--ranks", "4", "--pass", "fwd", "-o", os.devnull]
    for ending in ("json", "pftrace"):
        path = tool.folder / ("same." + ending)
        contents = set()
        for _ in range(2):
            tool.call(*case, "--trace", path.name)
            contents.add(path.read_bytes())
            path.unlink()
        assert len(contents) == 1
        done = tool.call(*case, "--trace", path.name, "--time-window", "100s:200s", status=3)
        assert "--time-window" in done.stderr and not path.exists()
        tool.call("sim", "--schedule", "megatron-tp-sp", "--ranks", "7", "--trace", path.name,
                  status=1)
        assert not path.exists()
    done = tool.call(*case, "--trace", "t.txt", status=2)
    assert "t.txt" in done.stderr and ".pftrace" in done.stderr


def main():
    program = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, pathlib.Path(folder))
        count = sum(hold_case(tool, *case) for case in CASES)
        hold_step(tool)
        hold_pipeline(tool)
        hold_run(tool)
        hold_parts(tool)
        hold_links(tool)
        hold_files(tool)
    assert count > 0
    print(f"{len(CASES)} schedules, {count} arrows, steps, a run, parts of a run: equal")


if __name__ == "__main__":
    main()
