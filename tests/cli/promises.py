#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks predictions of faster links against edited files: promises.py PROGRAM.

For every shipped cluster and some others; on one node, on two, and on two groups of every level of switches; for
schedules that use links in different ways, and a step: the predicted time with 10 % more bandwidth equals the
simulated time of the file with that bandwidth edited in, and a fault on all nodes equals the file with links slower by
as much; both to a picosecond.

Twenty of the predictions have files in tests/data/promises: --update rewrites these, --choose first chooses twenty
others. --share N: only every N-th case of the others.
"""

import argparse
import collections
import csv
import decimal
import json
import pathlib
import re
import sys
import tempfile

from totals import ROOT, D, Program, Wrong, check

WORKS = ("te-p2p", "te-allgather", "ulysses", "usp", "dfa-balanced", "attention2d-no", "ulysses --step")
FASTER, SLOWER = D("1.1"), D("0.5")
# The object in "node" that has the rates of a tier, and the names of these.
PLACES = {"nvlink": ("scale_up", ("bandwidth",)), "pcie": ("pcie", ("bandwidth",)),
          "nic": ("nics", ("bandwidth", "pair_p2p", "pair_collective"))}
LATENCIES = (("node", "scale_up", "latency"), ("node", "pcie", "latency"), ("node", "nics", "latency"),
             ("node", "nics", "overhead"), ("fabric", "switch_latency"))
TIME_UNITS_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
FABRIC = "fabric"
TOPOLOGIES = ROOT / "topologies"
FILES, FILES_COUNT = ROOT / "tests/data/promises", 20
LEAST_CHANGE = D("0.001")


def rate_of(text):
    number, unit = re.fullmatch(r"([0-9.]+)([kMGT]?)B/s", text).groups()
    return D(number) * 1000 ** " kMGT".index(unit or " ")


def raise_tree(pcie, factor):
    """The tiers above the GPUs' own links."""
    rates = [(level, "up") for level in pcie.get("levels", [])]
    rates += [(pcie.get("host", {}), name) for name in ("per_gpu", "bandwidth")]
    for place, name in rates:
        if name in place:
            place[name] = f"{rate_of(place[name]) * factor:f}B/s"


def shortened(text):
    number, unit = re.fullmatch(r"([0-9.]+)([mun]?s|ps)", text).groups()
    shorter_ps = D(number) * TIME_UNITS_PS[unit] / FASTER
    return f"{shorter_ps.to_integral_value(decimal.ROUND_HALF_UP)}ps"


def shorten_latencies(topology):
    for level in topology["node"].get("pcie", {}).get("levels", []):
        if "latency" in level:
            level["latency"] = shortened(level["latency"])
    for *folders, name in LATENCIES:
        place = topology
        for folder in folders:
            place = place.get(folder, {})
        if name in place:
            place[name] = shortened(place[name])


def scale_tier(topology, tier, factor, is_fault):
    """Changes the rates of a tier; returns False if it has none."""
    place, names = PLACES[tier]
    links = topology["node"].get(place, {})
    if "bandwidth" not in links:
        return False
    if tier == "pcie":
        raise_tree(links, factor)
    for name in names:
        # The limit of a pair of GPUs over sockets belongs to no link: a fault leaves it unchanged.
        if name in links and not (is_fault and name != "bandwidth"):
            links[name] = f"{rate_of(links[name]) * factor:f}B/s"
        if name in links:
            links[name] = f"{min(rate_of(links[name]), rate_of(links['bandwidth'])):f}B/s"
    for node in links.get("slower", []) if is_fault and tier == "nic" else []:
        node["bandwidth"] = f"{rate_of(node['bandwidth']) * factor:f}B/s"
    if is_fault and tier == "nic" and "collectives" in topology["node"]:
        shared = topology["node"]["collectives"]
        shared["bandwidth"] = f"{rate_of(shared['bandwidth']) * factor:f}B/s"
    return True


def levels_of(topology):
    """Objects with the oversubscription of each level of switches, innermost first."""
    fabric = topology.get("fabric", {})
    return fabric.get("levels", [fabric]) if fabric.get("kind") == "fat-tree" else []


def nodes_of(level):
    return level.get("nodes", level.get("nodes_per_leaf"))


def scale_trunks(topology, factor, level=0):
    """Changes a level and all above. Returns False if there are none, or if they would be faster than those below."""
    levels = levels_of(topology)
    if level >= len(levels):
        return False
    oversubscription = D(str(levels[level].get("oversubscription", 1))) / factor
    levels[level]["oversubscription"] = float(oversubscription)
    return oversubscription >= 1


def edited(topology, tiers, factor, is_fault):
    """A copy of the file with other rates; None if there is none."""
    copy = json.loads(json.dumps(topology))
    is_fat_tree = copy.get("fabric", {}).get("kind") == "fat-tree"
    for tier in tiers:
        if tier == "latency":
            shorten_latencies(copy)
        elif tier in PLACES and not scale_tier(copy, tier, factor, is_fault):
            return None
        elif tier not in PLACES and tier != FABRIC:
            return None  # belongs to no link
    # The rate of a trunk is a share of the NICs' rate.
    trunks = (factor if FABRIC in tiers else 1) / (factor if "nic" in tiers else 1)
    return None if is_fat_tree and trunks != 1 and not scale_trunks(copy, trunks) else copy


def typed_in(topology, edit):
    """A copy of the file with the edits that the text names: "`A` and `B` to 52.8GB/s, `C` to 3us"."""
    copy = json.loads(json.dumps(topology))
    paths = []
    for path, value in re.findall(r"`([^`]+)`|\bto ([^ ,]+)", edit):
        if path:
            paths.append(path)
            continue
        for words in (re.findall(r"[a-z_0-9]+", path) for path in paths):
            place = copy
            for word in words[:-1]:
                place = place[int(word) if isinstance(place, list) else word]
            check(words[-1] in place, "not in the file", edit)
            place[words[-1]] = value if re.search("[a-z]", value) else float(value)
        paths = []
    return copy


class Case:
    def __init__(self, program, folder, path, work, nodes):
        self.program, self.file = program, folder / "edited.json"
        self.topology = json.loads(path.read_text(encoding="utf-8"))
        self.nodes = nodes
        ranks = nodes * min(self.topology["node"]["gpus"], 8)
        cluster = path.stem if path.parent == TOPOLOGIES else path
        self.arguments = ["--schedule", *work.split(), "--model", "llama-3-8b", "--seq-length", "64K",
                          "--ranks", str(ranks), "--cluster"]
        self.named = [*self.arguments, f"{cluster}:{nodes}"]

    def makespan_of(self, topology):
        self.file.write_text(json.dumps(topology), encoding="utf-8")
        document = self.program.document(["compare", *self.arguments, f"{self.file}:{self.nodes}"])
        check(document is not None, "the edited file fails", self.named)
        return D(document["results"][0]["makespan_s"])

    def check_same(self, one, other, what):
        check(abs(D(one) - D(other)) < D("1.5e-12"), f"{what} differs from the edited file", one, other,
              " ".join(self.named))

    def what_ifs(self):
        """Yields for each prediction: its name, the predicted makespan, the topology that has it."""
        document = self.program.document(["compare", *self.named])
        for what_if in document["winner_with_10_percent_more"] if document else ():
            topology = edited(self.topology, what_if["of"].split("+"), FASTER, False)
            if topology is None:
                continue
            check(D(what_if["saved_fraction_low"]) <= D(what_if["saved_fraction"]) <=
                  D(what_if["saved_fraction_high"]), "outside its interval", what_if)
            yield f"+10 % {what_if['of']}", what_if["makespan_s"], topology
            typed = typed_in(self.topology, what_if["edit"])
            if typed != topology:
                yield f"+10 % {what_if['of']}, typed in", what_if["makespan_s"], typed

    def faults_of_level(self, level):
        groups = -(-self.nodes // nodes_of(levels_of(self.topology)[level]))
        return [f"{FABRIC}:{group}:{SLOWER}:{level}" for group in range(groups if groups > 1 else 0)]

    def all_faults(self):
        """Yields for each fault: its name, the options, the topology with links as slow; None: there is none."""
        hosts, levels = self.topology["node"].get("hosts", 1), range(len(levels_of(self.topology)))
        for tier in PLACES:
            topology = edited(self.topology, [tier], SLOWER, True)
            yield f"fault of {tier}", [f"{tier}:{node}:{SLOWER}" for node in range(self.nodes)], topology
            if hosts > 1:
                yield (f"fault of {tier}, host by host",
                       [f"{tier}:{node}:{SLOWER}:{host}" for node in range(self.nodes)
                        for host in range(hosts)], topology)
        yield (f"fault of {FABRIC}", [fault for level in levels for fault in self.faults_of_level(level)],
               edited(self.topology, [FABRIC], SLOWER, True))
        for level in levels if len(levels) > 1 else ():
            topology = json.loads(json.dumps(self.topology))
            scale_trunks(topology, SLOWER, level)
            is_file = level + 1 == len(levels) or scale_trunks(topology, 1 / SLOWER, level + 1)
            yield f"fault of level {level}", self.faults_of_level(level), topology if is_file else None

    def faults(self, only):
        """Yields for each fault: its name, the makespan with it, the topology with links as slow."""
        for what, faults, topology in self.all_faults():
            if topology is None or not faults or only not in (None, what):
                continue
            words = [word for fault in faults for word in ("--link-fault", fault)]
            document = self.program.document(["compare", *self.named, *words])
            if document and document["results"][0]["makespan_s"] is not None:
                yield what, document["results"][0]["makespan_s"], topology

    def promises(self, only=None):
        """All of them, or those of one name."""
        if only is None or not only.startswith("fault of "):
            yield from self.what_ifs()
        if only is None or only.startswith("fault of "):
            yield from self.faults(only)

    def check_promise(self, what, makespan_s, topology):
        edited_s = self.makespan_of(topology)
        check(abs(D(makespan_s) - D(edited_s)) < D("1.5e-12"), f"{what} differs from the edited file",
              makespan_s, edited_s, " ".join(self.named))


def with_levels(topology):
    topology["fabric"] = {"kind": "fat-tree", "switch_latency": "300ns", "levels": [
        {"nodes": 1, "oversubscription": 2}, {"nodes": 2, "oversubscription": 2.5},
        {"nodes": 4, "oversubscription": 3}]}


def with_hosts(topology):
    topology["node"]["hosts"] = 4


def with_latencies(topology):
    levels = topology["node"]["pcie"]["levels"]
    levels[0]["latency"] = "700ns"
    levels.insert(0, {**levels[0], "name": "switch", "gpus": 2, "up": "23GB/s", "latency": "150ns"})


# Clusters that no shipped file has: the base and the changes.
MADE = (("fat-tree-a100", with_levels), ("hgx-h200", with_hosts), ("pcie4-2socket", with_latencies))


def paths(folder):
    yield from sorted(TOPOLOGIES.glob("*.json"))
    for name, change in MADE:
        topology = json.loads((TOPOLOGIES / f"{name}.json").read_text(encoding="utf-8"))
        path = folder / f"{name}.json"
        change(topology)
        path.write_text(json.dumps(topology), encoding="utf-8")
        yield path


def cases(folder):
    for path in paths(folder):
        topology = json.loads(path.read_text(encoding="utf-8"))
        counts = {1, 2} | {2 * nodes_of(level) for level in levels_of(topology)}
        for work in WORKS:
            for nodes in sorted(counts):
                if nodes <= topology.get("max_nodes", nodes):
                    yield path, work, nodes


def check_cases(program, folder, share):
    counts = collections.Counter()
    for path, work, nodes in list(cases(folder))[::share]:
        case = Case(program, folder, path, work, nodes)
        for promise in case.promises():
            case.check_promise(*promise)
            counts[promise[0]] += 1
    check(counts, "nothing was checked")
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")


def choose_files(program, folder):
    """Chooses FILES_COUNT relevant predictions with clusters and parameters as different as possible."""
    known, used, chosen = [], collections.Counter(), []
    for path, work, nodes in cases(folder):
        if path.parent != TOPOLOGIES:
            continue
        case = Case(program, folder, path, work, nodes)
        known += [(path.stem, work, nodes, what) for what, makespan_s, _ in case.promises()
                  if abs(D(makespan_s) / case.makespan_of(case.topology) - 1) > LEAST_CHANGE]
    for _ in range(FILES_COUNT):
        chosen.append(min(known, key=lambda row: sum(used[word] for word in row)))
        used.update(chosen[-1])
    return sorted(chosen)


def write_choice(program, folder):
    rows = [{"file": f"{i + 1:02}-{cluster}.json", "cluster": cluster, "schedule": work, "nodes": nodes,
             "promise": what}
            for i, (cluster, work, nodes, what) in enumerate(choose_files(program, folder))]
    for old in FILES.glob("*.json"):
        old.unlink()
    with open(FILES / "promises.csv", "w", encoding="utf-8", newline="") as index:
        writer = csv.DictWriter(index, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def check_files(program, folder, update):
    """Checks the predictions of FILES, whose topologies are files: each is an edited copy of the shipped one, and a
    run of it takes the time predicted from the shipped one."""
    with open(FILES / "promises.csv", encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index))
    check(len(rows) == FILES_COUNT, "promises.csv has rows", len(rows))
    for row in rows:
        case = Case(program, folder, TOPOLOGIES / f"{row['cluster']}.json", row["schedule"],
                    int(row["nodes"]))
        promises = {what: (makespan_s, topology) for what, makespan_s, topology in case.promises(row["promise"])}
        check(row["promise"] in promises, "no longer predicted", row)
        makespan_s, topology = promises[row["promise"]]
        text, file = json.dumps(topology, indent=1, ensure_ascii=False) + "\n", FILES / row["file"]
        if update:
            file.write_text(text, encoding="utf-8")
        check(file.read_text(encoding="utf-8") == text, "not the edited shipped file: promises.py "
              "--update", file)
        case.check_promise(row["promise"], makespan_s, json.loads(text))
    print(f"{len(rows)} predictions of tests/data/promises")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--choose", action="store_true")
    options = parser.parse_args()
    program = Program(str(pathlib.Path(options.program).resolve()))
    with tempfile.TemporaryDirectory() as folder:
        if options.choose:
            write_choice(program, pathlib.Path(folder))
        check_files(program, pathlib.Path(folder), options.update or options.choose)
        check_cases(program, pathlib.Path(folder), options.share)


if __name__ == "__main__":
    decimal.getcontext().prec = 60
    try:
        main()
    except Wrong as error:
        sys.exit(f"promises: {error}")
