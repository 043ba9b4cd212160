#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads back what `--export` writes for other simulators: export.py PROGRAM.

GOAL is read and simulated by goal.py, which is checked against the times that ATLAHS gives for an example. Every op
has the time and bytes of the simulation's timeline, every message has a matching end of the same size, and without a
network the makespan equals the simulated one.

Chakra's nodes are decoded by protobuf.py, and by protoc where it is installed, and compared with the same timeline;
executed node by node as dependencies allow, every message and collective is matched.

MSCCL's XML is executed, too: threadblocks step by step, each connection in order, until every rank has every chunk.
"""

import collections
import decimal
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import goal
from protobuf import fields, varint
from tool import Tool
from trace import messages_of, ps

SHAPE = ["--seq-length", "16K", "--num-attention-heads", "16", "--num-query-groups", "16",
         "--kv-channels", "64"]
CASES = [  # schedule, cluster, further arguments
    ("ring", "dfa-2node:2", ["--pass", "fwd"]),
    ("zigzag", "dfa-2node:2", []),
    ("dfa-balanced", "azure-nc96-a100:2", []),
    ("te-a2a-p2p", "dfa-2node:2", ["--collectives", "pairwise"]),
    ("te-p2p", "dgx-a100-80g:1", ["--jitter", "0.2", "--straggler", "3:1.5"]),
    ("usp", "azure-nc96-a100:2", []),
    ("ulysses", "dfa-2node:2", ["--collectives", "ring"]),
    ("allgather-kv", "dfa-2node:2", ["--collectives", "ring"]),
    ("allgather-kv", "dfa-2node:2", ["--collectives", "fluid"]),
    ("allgather-kv", "azure-nc96-a100:2", ["--collectives", "closed-form"]),
    ("te-allgather", "dfa-2node:2", ["--collectives", "direct"]),
    ("megatron-tp-sp", "dgx-a100-80g:1", []),
    ("attention2d-o", "dfa-2node:2", ["--collectives", "ring"]),
    ("lasp2", "dgx-a100-80g:1", ["--collectives", "ring"]),
]
STEPS = [  # training steps also have all-reduces
    ["--step", "--schedule", "lasp", "--cluster", "lasp-dgx:1", "--model", "tnl-1b", "--seq-length",
     "16K", "--framework", "fairscale", "--collectives", collectives]
    for collectives in ("ring", "tree", "direct", "nccl")
]

# Both hosts' times by ATLAHS with L 2500, o 0, g 0, G 1.
ORACLE = """num_ranks 2

rank 0 {
c0: calc 1500 cpu 0
s0: send 1048576b to 1 tag 7 cpu 1 nic 0
r0: recv 1048576b from 1 tag 8 cpu 1 nic 0
c1: calc %u cpu 0
c1 requires c0
c1 requires r0
}

rank 1 {
c0: calc 1500 cpu 0
s0: send 1048576b to 0 tag 8 cpu 1 nic 0
r0: recv 1048576b from 0 tag 7 cpu 1 nic 0
c1: calc %u cpu 0
c1 requires c0
c1 requires r0
}
"""
ORACLE_NS = {1500: 1052575, 1500000: 2551075}


def hold_oracle():
    for calculation, ns in ORACLE_NS.items():
        ranks = goal.read((ORACLE % (calculation, calculation)).splitlines())
        assert goal.Replay(ranks, L=2500, G=1).finish == [ns, ns]


# --- GOAL ----------------------------------------------------------------------------------------

def number_of(label):
    """Returns the op that a statement belongs to."""
    return int(label[1:].split("_")[0])


def hold_goal_ops(ranks, timeline, exact):
    """Every op has the time and bytes of the timeline. @exact: no SMs are shared."""
    streams = {}
    sent, taken, cpus = (collections.Counter() for _ in range(3))
    for rank, ops in enumerate(ranks):
        for op in ops:
            key = rank, number_of(op.label)
            sent[key] += op.size if op.kind == "send" else 0
            taken[key] += op.ns
            assert cpus.setdefault(key, op.cpu) == op.cpu
    assert cpus.keys() == {(op["rank"], op["op"]) for op in timeline}
    for op in timeline:
        key = op["rank"], op["op"]
        assert sent[key] == op["bytes"], (op, sent[key])
        assert streams.setdefault(cpus[key], op["stream"]) == op["stream"]
        duration = ps(op["end_s"]) - ps(op["start_s"])
        if op["kind"] == "compute" and exact:
            assert abs(taken[key] * 1000 - duration) <= 500, (op, taken[key])
        elif op["kind"] == "compute":
            assert taken[key] * 1000 <= duration + 500, (op, taken[key])
        else:
            assert taken[key] == 0
    return sum(sent.values())


def hold_pairs(ranks, messages):
    """Messages of exchanges have the program's senders and receivers."""
    found = collections.defaultdict(list)
    for rank, ops in enumerate(ranks):
        for op in ops:
            if op.kind == "send" and op.tag < 256 << 16:
                found[rank, op.peer].append((op.tag, number_of(op.label)))
    ends = collections.Counter((rank, op, peer) for (rank, peer), sends in found.items()
                               for _, op in sends)
    assert ends == messages, (ends, messages)
    for sends in found.values():
        assert len({tag for tag, _ in sends}) == len(sends)


def goal_of(tool, words):
    tool.call("sim", *words, "-o", os.devnull, "--export", "p.goal", "--timeline", "timeline.json")
    with open(tool.folder / "p.goal", encoding="ascii") as file:
        return goal.read(file), tool.json("timeline.json")["ops"]


def hold_goal(tool, schedule, cluster, words):
    case = ["--schedule", schedule, "--cluster", cluster, *SHAPE, *words]
    ranks, timeline = goal_of(tool, case)
    count = hold_goal_ops(ranks, timeline, exact=False)
    replay = goal.Replay(ranks, L=2500, G=decimal.Decimal("0.01"))
    assert min(replay.finish) > 0 and count > 0
    tool.call("show", schedule, *SHAPE, "--cluster", cluster, "--ranks", str(len(ranks)),
              *(words[:2] if "--pass" in words else []), "--format", "json", "-o", "p.json")
    ends = collections.Counter()
    for ((rank, op), (peer, _)), number in messages_of(tool.json("p.json")).items():
        ends[rank, op, peer] += number
    hold_pairs(ranks, ends)
    if "--collectives" in words:
        at = case.index("--collectives")
        case = case[:at] + case[at + 2:]
    for cost in ("unit", "flops"):
        hold_free(tool, case, cost)
    return sum(op.kind == "send" for ops in ranks for op in ops)


def hold_free(tool, case, cost):
    """With a free network the makespan is the simulated one, or smaller if kernels overlap, since these share SMs in
    the simulation."""
    ranks, timeline = goal_of(tool, case + ["--cost", cost])
    shared = len({op["stream"] for op in timeline if op["kind"] == "compute"}) > 1
    hold_goal_ops(ranks, timeline, exact=not shared)
    finish = max(goal.Replay(ranks).finish) * 1000
    simulated = max(ps(op["end_s"]) for op in timeline)
    rounding = 500 * max(map(len, ranks)) if cost == "flops" else 0
    assert finish <= simulated + rounding, (case, finish, simulated)
    assert shared or finish >= simulated - rounding, (case, finish, simulated)


def hold_goal_files(tool):
    case = ["sim", "--schedule", "ring", "--ranks", "4", "--pass", "fwd", "-o", os.devnull]
    contents = set()
    for _ in range(2):
        tool.call(*case, "--export", "same.goal")
        contents.add((tool.folder / "same.goal").read_bytes())
    assert len(contents) == 1
    done = tool.call(*case, "--export", "p.txt", status=2)
    assert "p.txt" in done.stderr and ".goal" in done.stderr
    tool.call("sim", "--schedule", "megatron-tp-sp", "--ranks", "7", "--export", "no.goal",
              status=1)
    assert not (tool.folder / "no.goal").exists()


# --- Chakra --------------------------------------------------------------------------------------

COMP, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7
PROTO = """syntax = "proto3";
message AttributeProto { string name = 1; oneof value { int32 int32_val = 7; int64 int64_val = 9;
  bool bool_val = 27; string string_val = 29; } }
message Node { uint64 id = 1; string name = 2; int32 type = 3; repeated uint64 data_deps = 5;
  uint64 duration_micros = 7; repeated AttributeProto attr = 10; }
"""
# A kernel of 12 us, then 1 MiB to rank 1 with tag 7, with fields in the order of ASTRA-sim's examples.
CHAKRA_EXAMPLE = bytes.fromhex(
    "070a05302e302e341a120474696c651804380c520e0a0969735f6370755f6f70d801004d080112076b762073656e64"
    "18052a0100520e0a0969735f6370755f6f70d80100520f0a09636f6d6d5f73697a6548808040520c0a08636f6d6d5f"
    "6473743801520c0a08636f6d6d5f7461673807")


def messages_in(data):
    """Messages between length prefixes."""
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        assert length > 0 and at + length <= len(data)
        yield data[at:at + length]
        at += length


def packed(chunks):
    values = []
    for data in chunks:
        at = 0
        while at < len(data):
            value, at = varint(data, at)
            values.append(value)
    return values


def one(values, default):
    assert len(values) <= 1
    return values[0] if values else default


class Node:
    TYPES = {"is_cpu_op": 27, "stream": 9, "comm_size": 9, "comm_type": 9, "comm_src": 7,
             "comm_dst": 7, "comm_tag": 7, "pg_name": 29}

    def __init__(self, data):
        node = fields(data)
        assert not node.keys() - {1, 2, 3, 5, 7, 10}
        self.id, self.type = one(node[1], 0), one(node[3], 0)
        self.name, self.us = one(node[2], b"").decode(), one(node[7], 0)
        self.parents, self.values = packed(node[5]), {}
        for attribute in map(fields, node[10]):
            name = one(attribute[1], b"").decode()
            assert attribute.keys() == {1, self.TYPES[name]} and name not in self.values
            self.values[name] = attribute[self.TYPES[name]][0]
        assert self.values["is_cpu_op"] == 0
        self.size = self.values.get("comm_size", 0)


def read_chakra(data):
    version, *nodes = messages_in(data)
    assert fields(version)[1] == [b"0.0.4"]
    nodes, seen = [Node(node) for node in nodes], set()
    for node in nodes:
        assert node.id not in seen and seen.issuperset(node.parents)
        assert len(set(node.parents)) == len(node.parents)
        seen.add(node.id)
    assert not nodes or any(not node.parents for node in nodes)
    return nodes


def hold_example():
    kernel, send = read_chakra(CHAKRA_EXAMPLE)
    assert (kernel.id, kernel.type, kernel.us, kernel.parents) == (0, COMP, 12, [])
    assert (send.id, send.type, send.parents, send.size) == (1, SEND, [0], 1 << 20)
    assert (send.values["comm_dst"], send.values["comm_tag"]) == (1, 7)


def decode_with_protoc(path):
    """Some nodes without length prefixes."""
    if shutil.which("protoc") is None:
        return
    (path.parent / "et.proto").write_text(PROTO)
    for node in list(messages_in(path.read_bytes()))[1:50]:
        done = subprocess.run(["protoc", "--decode=Node", "et.proto"], input=node, check=True,
                              capture_output=True, cwd=path.parent)
        # Unnamed fields would be printed as numbers.
        assert b"attr {" in done.stdout and b"\n1: " not in done.stdout


def sent_in_collective(node, size):
    """Bytes sent by a member: rings, direct messages to every other, or a chain in which all but the last send."""
    kind = node.values["comm_type"]
    piece = node.size if kind in (ALL_GATHER, BROADCAST) else node.size // size
    return {ALL_REDUCE: 2 * (size - 1), ALL_GATHER: size - 1, REDUCE_SCATTER: size - 1,
            ALL_TO_ALL: size - 1, BROADCAST: 1}[kind] * piece


def play(ranks, groups):
    """Executes nodes as their dependencies allow; message ends and members of collectives must match."""
    done, left = [set() for _ in ranks], sum(map(len, ranks))
    waiting, turns = collections.defaultdict(list), collections.Counter()
    todo = [list(nodes) for nodes in ranks]
    while left:
        before = left
        for rank, nodes in enumerate(todo):
            later = []
            for node in nodes:
                if not done[rank].issuperset(node.parents):
                    later.append(node)
                    continue
                if node.type == COMP:
                    done[rank].add(node.id)
                    left -= 1
                    continue
                if node.type == COLLECTIVE:
                    group = node.values["pg_name"].decode()
                    assert rank in groups[group]
                    turns[rank, group] += 1
                    key, ends = (group, turns[rank, group]), len(groups[group])
                    like = node.values["comm_type"], node.size
                else:
                    key = (node.values["comm_src"], node.values["comm_dst"],
                           node.values["comm_tag"])
                    assert key[0 if node.type == SEND else 1] == rank and key[0] != key[1]
                    ends, like = 2, node.size
                waiting[key].append((rank, node, like))
                if len(waiting[key]) == ends:
                    met = waiting.pop(key)
                    assert len({like for _, _, like in met}) == 1
                    assert len({(r, n.type) for r, n, _ in met}) == ends
                    for r, n, _ in met:
                        done[r].add(n.id)
                    left -= ends
            todo[rank] = later
        assert left < before or not left, "deadlock"
    assert not waiting


def hold_chakra(tool, words, equal=True):
    """@equal: the simulation sends as many bytes as rings."""
    for old in tool.folder.glob("p.*"):
        old.unlink()
    tool.call("sim", *words, "-o", os.devnull, "--export", "p.et", "--timeline", "timeline.json")
    timeline, ranks = tool.json("timeline.json")["ops"], []
    while (path := tool.folder / f"p.{len(ranks)}.et").exists():
        ranks.append(read_chakra(path.read_bytes()))
    assert len(ranks) == len({op["rank"] for op in timeline})
    assert len(list(tool.folder.glob("p.*.et"))) == len(ranks)
    decode_with_protoc(tool.folder / "p.0.et")
    groups = tool.folder / "p.groups.json"
    groups = json.loads(groups.read_text()) if groups.exists() else {}
    assert sorted(map(int, groups)) == list(range(1, len(groups) + 1))
    by_rank = collections.defaultdict(list)
    for op in timeline:
        by_rank[op["rank"]].append(op)
    for rank, nodes in enumerate(ranks):
        hold_nodes(nodes, by_rank[rank], groups, equal)
    play(ranks, groups)
    return sum(map(len, ranks))


def hold_nodes(nodes, ops, groups, equal):
    kernels = [op for op in ops if op["kind"] == "compute"]
    assert [n.name for n in nodes if n.us or n.name in {op["kernel"] for op in kernels}] == \
        [op["kernel"] for op in sorted(kernels, key=lambda op: op["op"])]
    assert sum(n.us for n in nodes) * 10**6 <= \
        sum(ps(op["end_s"]) - ps(op["start_s"]) + 10**6 for op in kernels)
    sent = sum(n.size for n in nodes if n.type == SEND)
    assert sent == sum(op["bytes"] for op in ops if op["kind"] == "exchange")
    moved = sum(sent_in_collective(n, len(groups[n.values["pg_name"].decode()]))
                for n in nodes if n.type == COLLECTIVE)
    chained = any(n.values.get("comm_type") == BROADCAST for n in nodes)
    simulated = sum(op["bytes"] for op in ops if op["kind"] == "collective")
    assert not equal or moved == simulated or chained and moved >= simulated, (moved, simulated)


def hold_chakra_files(tool):
    """If one rank's file cannot be written, none is."""
    (tool.folder / "q.2.et").mkdir()
    done = tool.call("sim", "--schedule", "ring", "--ranks", "4", "--pass", "fwd", "-o", os.devnull,
                     "--export", "q.et", status=4)
    assert "q.2.et" in done.stderr
    assert [path.name for path in tool.folder.glob("q.*")] == ["q.2.et"]


# --- MSCCL ---------------------------------------------------------------------------------------

GATHERS = [("ring", []), ("zigzag", []), ("striped", []), ("double-ring", []), ("burst", []),
           ("te-p2p", []), ("dfa-unbalanced", ["--mask", "full"])]
REFUSED = [  # schedule, further arguments, message
    ("ring", [], "twice"),
    ("lasp", ["--pass", "fwd"], "computed"),
    ("allgather-kv", ["--pass", "fwd"], "collective"),
    ("dfa-unbalanced", ["--pass", "fwd"], "never receives kv"),
    ("dfa-balanced", ["--pass", "fwd"], "one buffer"),
]
MSCCL_EXAMPLE = """<algo name="ring2" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2"
 coll="allgather" inplace="1" outofplace="0" minBytes="0" maxBytes="0">
<gpu id="0" i_chunks="0" o_chunks="2" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
<gpu id="1" i_chunks="0" o_chunks="2" s_chunks="0"><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu></algo>"""


def hold_gather(text):
    """Returns the number of chunks moved."""
    algo = xml.etree.ElementTree.fromstring(text)
    chunks, gpus = int(algo.get("nchunksperloop")), list(algo)
    assert algo.get("coll") == "allgather" and int(algo.get("ngpus")) == len(gpus)
    assert (algo.get("inplace"), algo.get("outofplace")) == ("1", "0")
    assert [int(gpu.get("id")) for gpu in gpus] == list(range(len(gpus)))
    own = chunks // len(gpus)
    has = [set(range(g * own, (g + 1) * own)) for g in range(len(gpus))]
    at, on_the_way = collections.Counter(), collections.defaultdict(collections.deque)
    for g, gpu in enumerate(gpus):
        assert int(gpu.get("o_chunks")) == chunks and len(gpu) <= 32
        for number, tb in enumerate(gpu):
            hold_threadblock(gpu, g, number, tb)
    moved, going = 0, True
    while going:
        going = False
        for g, gpu in enumerate(gpus):
            for b, tb in enumerate(gpu):
                while at[g, b] < len(tb) and \
                        step_runs(tb[at[g, b]], g, tb, has[g], at, on_the_way):
                    moved += int(tb[at[g, b]].get("cnt")) * (tb[at[g, b]].get("type") == "r")
                    at[g, b] += 1
                    going = True
    assert all(at[g, b] == len(tb) for g, gpu in enumerate(gpus) for b, tb in enumerate(gpu))
    assert not any(on_the_way.values())
    assert has == [set(range(chunks))] * len(gpus)
    return moved


def hold_threadblock(gpu, g, number, tb):
    assert int(tb.get("id")) == number and g not in (int(tb.get("send")), int(tb.get("recv")))
    assert len(tb) < 64
    awaited = {(int(s.get("depid")), int(s.get("deps"))) for other in gpu for s in other}
    for s, step in enumerate(tb):
        assert int(step.get("s")) == s and int(step.get("cnt")) < 72
        assert (step.get("hasdep") == "1") == ((number, s) in awaited)


def step_runs(step, g, tb, has, at, on_the_way):
    """Whether the step can run; runs it if so."""
    depid, deps = int(step.get("depid")), int(step.get("deps"))
    if depid >= 0 and at[g, depid] <= deps:
        return False
    first, count = int(step.get("srcoff")), int(step.get("cnt"))
    assert step.get("srcoff") == step.get("dstoff")
    chunks = tuple(range(first, first + count))
    if step.get("type") == "s":
        assert has.issuperset(chunks), (g, chunks)
        on_the_way[g, int(tb.get("send")), tb.get("chan")].append(chunks)
    elif step.get("type") == "r":
        waiting = on_the_way[int(tb.get("recv")), g, tb.get("chan")]
        if not waiting:
            return False
        assert waiting.popleft() == chunks and not has.intersection(chunks)
        has.update(chunks)
    else:
        assert step.get("type") == "nop" and count == 0
    return True


def hold_msccl(tool):
    assert hold_gather(MSCCL_EXAMPLE) == 2
    moved = 0
    for schedule, words in GATHERS:
        for ranks in (2, 4, 16):
            tool.call("sim", "--schedule", schedule, "--ranks", str(ranks), "--pass", "fwd", *SHAPE,
                      *words, "-o", os.devnull, "--export", "p.xml")
            moved += hold_gather((tool.folder / "p.xml").read_text())
            if shutil.which("xmllint") is not None:
                subprocess.run(["xmllint", "--noout", "p.xml"], check=True, cwd=tool.folder)
            (tool.folder / "p.xml").unlink()
    for schedule, words, said in REFUSED:
        done = tool.call("sim", "--schedule", schedule, "--ranks", "4", *words, "--export", "p.xml",
                         status=1)
        assert said in done.stderr and not (tool.folder / "p.xml").exists(), done.stderr
    done = tool.call("sim", "--schedule", "ring", "--ranks", "65", "--cluster", "dgx-a100-80g:9",
                     "--pass", "fwd", "--export", "p.xml", status=1)
    assert "63 steps" in done.stderr
    return moved


def main():
    program = os.path.realpath(sys.argv[1])
    hold_oracle()
    hold_example()
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, pathlib.Path(folder))
        count = sum(hold_goal(tool, *case) for case in CASES)
        for words in STEPS:
            ranks, timeline = goal_of(tool, words)
            hold_goal_ops(ranks, timeline, exact=False)
            goal.Replay(ranks, L=2500, G=1)
        hold_goal_files(tool)
        nodes = sum(hold_chakra(tool, ["--schedule", schedule, "--cluster", cluster, *SHAPE, *words])
                    for schedule, cluster, words in CASES)
        nodes += hold_chakra(tool, STEPS[0])
        hold_chakra_files(tool)
        chunks = hold_msccl(tool)
    print(f"{len(CASES)} programs as GOAL, {count} messages, and Chakra, {nodes} nodes: as "
          f"simulated; {chunks} chunks gathered by MSCCL")


if __name__ == "__main__":
    main()
