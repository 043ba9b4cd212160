# SPDX-License-Identifier: Apache-2.0
"""Reads GOAL and simulates it by the LogGP model, for the tests beside this file.

A calculation takes its time. A message of s bytes leaves when its processor and its NIC are free,
takes L + (s - 1) G, and holds its NIC for g + (s - 1) G; sending and receiving hold a processor for
o. A receive ends when it is posted and its message, the next of its source and tag, has arrived.
"""

import collections
import heapq
import re

WORD = r"[a-zA-Z][a-zA-Z0-9_]*"
STATEMENT = re.compile(
    rf"(?:(?P<label>{WORD}): )?(?:"
    r"calc (?P<ns>\d+)|"
    r"(?P<kind>send|recv) (?P<bytes>\d+)b (?P<way>to|from) (?P<peer>\d+)(?: tag (?P<tag>\d+))?)"
    r"(?: cpu (?P<cpu>\d+))?(?: nic (?P<nic>\d+))?")
REQUIRES = re.compile(rf"({WORD}) requires ({WORD})")
KEYWORDS = {"calc", "send", "recv", "rank", "to", "from", "tag", "cpu", "nic", "b", "requires"}


class Op:
    def __init__(self, rank, match):
        self.rank, self.label = rank, match["label"]
        self.kind = match["kind"] or "calc"
        self.ns, self.size = int(match["ns"] or 0), int(match["bytes"] or 0)
        self.peer, self.tag = int(match["peer"] or 0), int(match["tag"] or 0)
        self.cpu, self.nic = int(match["cpu"] or 0), int(match["nic"] or 0)
        self.after, self.behind, self.start, self.end = [], [], None, None
        assert self.kind == "calc" or self.size >= 1
        assert self.kind == "calc" or (self.kind == "send") == (match["way"] == "to")
        assert self.cpu <= 255 and self.nic <= 255 and self.tag < 1 << 32


class Reader:
    def __init__(self, lines):
        self.ranks, self.labels = [], None
        lines = (line.strip() for line in lines)
        lines = (line for line in lines if line and not line.startswith("//"))
        self.count = int(re.fullmatch(r"num_ranks (\d+)", next(lines))[1])
        for line in lines:
            self.line(line)
        assert self.labels is None and len(self.ranks) == self.count

    def line(self, line):
        if self.labels is None:
            begins = re.fullmatch(r"rank (\d+) \{", line)
            assert int(begins[1]) == len(self.ranks)
            self.ranks.append([])
            self.labels = {}
        elif line == "}":
            self.labels = None
        elif requires := REQUIRES.fullmatch(line):
            later, earlier = (self.labels[word] for word in requires.groups())
            assert earlier not in later.after and earlier is not later
            later.after.append(earlier)
            earlier.behind.append(later)
        else:
            op = Op(len(self.ranks) - 1, STATEMENT.fullmatch(line))
            assert op.kind == "calc" or 0 <= op.peer < self.count and op.peer != op.rank
            assert op.label not in self.labels and op.label not in KEYWORDS
            self.labels[op.label] = op
            self.ranks[-1].append(op)


def read(lines):
    """Ops by rank."""
    return Reader(lines).ranks


class Replay:
    def __init__(self, ranks, L=0, o=0, g=0, G=0):
        self.costs = L, o, g, G
        self.cpus, self.nics = collections.Counter(), collections.Counter()
        self.arrived = collections.defaultdict(collections.deque)  # messages or receives, whichever is first
        self.left = {op: len(op.after) for ops in ranks for op in ops}
        self.due, self.serial, self.ended = [], 0, 0
        for op in self.left:
            if not op.after:
                self.push(0, self.begin, op)
        while self.due:
            time, _, call, op = heapq.heappop(self.due)
            call(time, op)
        assert self.ended == len(self.left), "deadlock"
        self.finish = [max((op.end for op in ops), default=0) for ops in ranks]

    def push(self, time, call, op):
        self.serial += 1
        heapq.heappush(self.due, (time, self.serial, call, op))

    def begin(self, time, op):
        cpu, nic = (op.rank, op.cpu), (op.rank, op.nic)
        L, o, g, G = self.costs
        free = max(self.cpus[cpu], self.nics[nic] if op.kind == "send" else 0)
        if op.kind != "recv" and free > time:
            self.push(free, self.begin, op)
            return
        op.start = time
        if op.kind == "calc":
            self.cpus[cpu] = time + op.ns
            self.push(time + op.ns, self.end, op)
        elif op.kind == "send":
            self.cpus[cpu] = time + o
            self.nics[nic] = time + g + (op.size - 1) * G
            self.push(time + o, self.end, op)
            self.push(time + o + L + (op.size - 1) * G, self.arrive, op)
        else:
            self.meet(time, op, (op.peer, op.rank, op.tag))

    def arrive(self, time, op):
        self.meet(time, op, (op.rank, op.peer, op.tag))

    def meet(self, time, op, key):
        waiting = self.arrived[key]
        if not waiting or waiting[0].kind == op.kind:
            waiting.append(op)
            return
        other = waiting.popleft()
        assert other.size == op.size, (other.label, op.label)
        self.push(time + self.costs[1], self.end, op if op.kind == "recv" else other)

    def end(self, time, op):
        op.end = time
        self.ended += 1
        for later in op.behind:
            self.left[later] -= 1
            if self.left[later] == 0:
                self.push(time, self.begin, later)
