#!/usr/bin/env python3
"""Holds what is promised of faster links against files that have them: promises.py PROGRAM.

Of every cluster that is shipped, on one node and on two, and of schedules that use links in different
ways: "10 % more bandwidth would take so long" is what the file takes with that bandwidth typed in, and a
fault of all nodes what the file takes with links that are slower by as much; both to a picosecond.
--share N: every N-th case only.
"""

import argparse
import decimal
import json
import pathlib
import re
import sys
import tempfile

from totals import ROOT, D, Program, Wrong, check

SCHEDULES = ("te-p2p", "te-allgather", "ulysses", "usp", "dfa-balanced", "attention2d-no")
FASTER, SLOWER = D("1.1"), D("0.5")
# The object of a node whose rates a tier has, and their names.
PLACES = {"nvlink": ("scale_up", ("bandwidth",)), "pcie": ("pcie", ("bandwidth",)),
          "nic": ("nics", ("bandwidth", "pair_p2p", "pair_collective"))}


def rate_of(text):
    number, unit = re.fullmatch(r"([0-9.]+)([kMGT]?)B/s", text).groups()
    return D(number) * 1000 ** " kMGT".index(unit or " ")


def edited(topology, tiers, factor):
    """A copy of the file with other rates; None if it has limits that are not those of links."""
    copy = json.loads(json.dumps(topology))
    for tier in tiers:
        place, names = PLACES[tier]
        links = copy["node"].get(place, {})
        if "bandwidth" not in links or "slower" in links or (
                tier == "nic" and ("collectives" in copy["node"] or "fabric" in copy)):
            return None
        for name in names:
            if name not in links:
                continue
            rate = rate_of(links[name])
            # What a pair of GPUs reaches over sockets is no link's: a fault leaves it.
            if name == "bandwidth" or factor > 1:
                rate *= factor
            if name != "bandwidth":
                rate = min(rate, rate_of(links["bandwidth"]))
            links[name] = f"{rate:f}B/s"
    return copy


class Case:
    def __init__(self, program, folder, path, schedule, nodes):
        self.program, self.file = program, folder / "edited.json"
        self.topology = json.loads(path.read_text(encoding="utf-8"))
        self.nodes = nodes
        ranks = nodes * min(self.topology["node"]["gpus"], 8)
        self.arguments = ["--schedule", schedule, "--model", "llama-3-8b", "--seq-length", "64K",
                          "--ranks", str(ranks), "--cluster"]
        self.named = [*self.arguments, f"{path.stem}:{nodes}"]

    def makespan_of(self, topology):
        self.file.write_text(json.dumps(topology), encoding="utf-8")
        document = self.program.document(["compare", *self.arguments, f"{self.file}:{self.nodes}"])
        check(document is not None, "the edited file does not run", self.named)
        return D(document["results"][0]["makespan_s"])

    def check_same(self, one, other, what):
        check(abs(D(one) - D(other)) < D("1.5e-12"), f"{what} is not the edited file's", one, other,
              " ".join(self.named))

    def check_what_ifs(self):
        count = 0
        document = self.program.document(["compare", *self.named])
        if document is None:
            return 0
        for what_if in document["winner_with_10_percent_more"]:
            tiers = what_if["of"].split("+")
            topology = edited(self.topology, tiers, FASTER) if {*tiers} <= {*PLACES} else None
            if topology is None:
                continue
            self.check_same(what_if["makespan_s"], self.makespan_of(topology), what_if["of"] + " +10 %")
            count += 1
        return count

    def check_faults(self):
        count = 0
        for tier in PLACES:
            topology = edited(self.topology, [tier], SLOWER)
            faults = [word for node in range(self.nodes)
                      for word in ("--link-fault", f"{tier}:{node}:{SLOWER}")]
            document = self.program.document(["compare", *self.named, *faults])
            if topology is None or document is None or document["results"][0]["makespan_s"] is None:
                continue
            self.check_same(document["results"][0]["makespan_s"], self.makespan_of(topology),
                            f"a fault of {tier}")
            count += 1
        return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--share", type=int, default=1)
    options = parser.parse_args()
    program = Program(str(pathlib.Path(options.program).resolve()))
    cases = [(path, schedule, nodes) for path in sorted((ROOT / "topologies").glob("*.json"))
             for schedule in SCHEDULES for nodes in (1, 2)]
    what_ifs = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, schedule, nodes in cases[::options.share]:
            case = Case(program, pathlib.Path(folder), path, schedule, nodes)
            if nodes > case.topology.get("max_nodes", nodes):
                continue
            what_ifs += case.check_what_ifs()
            faults += case.check_faults()
    check(what_ifs > 0 and faults > 0, "nothing was checked", what_ifs, faults)
    print(f"{what_ifs} questions of what if, {faults} faults")


if __name__ == "__main__":
    decimal.getcontext().prec = 60
    try:
        main()
    except Wrong as error:
        sys.exit(f"promises: {error}")
