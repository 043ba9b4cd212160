#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every number that several commands report: shared.py PROGRAM.

Random cases, --cases N of them (default 20) from --seed N (default 1): attention modules and steps, with pipelines,
experts and layers of two kinds, on GPUs with much memory and with little. `sim` reports one; `compare`, `sweep`,
`plan`, `show`, `verify`, `report` and `diff` must agree to the last digit. A failed case prints its command.
"""

import argparse
import html
import json
import pathlib
import random
import re
import shlex
import sys
import tempfile

from totals import D, Program, Wrong, check, rounded

# For several schedules, or for one.
OF_ALL = {"vs_best": None, "vs_best_good_to": None}
# Checked by totals.py.
NOT_IN_SWEEPS = {"per_rank", "peak_bytes_by_tensor", "peak", "out_of_memory", "options"}
LAYOUT = ("tensor_model_parallel_size", "context_parallel_size", "pipeline_model_parallel_size",
          "virtual_pipeline_model_parallel_size", "pipeline_schedule", "num_micro_batches",
          "micro_batch_size", "shard", "checkpoint", "data_parallel_size")
MODELS = ("llama-7b", "llama-3-8b", "llama-gqa", "gpt3-1.3b", "llama-13b", "llama-2-70b", "qwen3-8b")
EXPERTS = ("mixtral-8x7b",)
HYBRID = {"schema": "longhaul.model/1", "name": "hybrid", "source": "made up", "num_layers": 8,
          "layers": [{"attention": "linear", "count": 3, "output_gate": True}, {"attention": "softmax"}],
          "hidden_size": 2048, "num_attention_heads": 16, "num_query_groups": 8, "kv_channels": 128,
          "ffn_hidden_size": 5632, "gated_mlp": True, "vocab_size": 32000, "tied_embeddings": False}
LINEAR = ("lasp", "lasp2", "zeco")
CLUSTERS = ("dgx-a100-80g", "dgx-a100-40g", "hgx-h100", "dfa-2node:2", "pcie-l40s", "fat-tree-a100:2")


def check_equal(one, other, what):
    """Compares two rows in their common members."""
    for key in one.keys() & other.keys():
        check(one[key] == other[key], f"{what} has a different {key}", one[key], other[key])


class Case:
    def __init__(self, program, arguments, folder):
        self.program, self.arguments, self.folder = program, arguments, folder
        self.document = program.document(["sim", *arguments])
        if self.document is not None:
            (self.row,) = self.document["results"]

    def is_answered(self):
        return self.document is not None and self.row["makespan_s"] is not None

    def check_compare(self, others):
        """Beside other schedules, in any order."""
        arguments = [*(word for name in others for word in ("--schedule", name)), *self.arguments]
        if "--step" not in arguments: # other schedules may not support this one's options
            arguments += ["--attention", self.document["case"]["attention"]]
        document = self.program.document(["compare", *arguments])
        check(document is not None, "compare fails", arguments)
        (row,) = [row for row in document["results"] if row["schedule"] == self.row["schedule"]]
        check_equal({**row, **OF_ALL}, {**self.row, **OF_ALL}, "compare")
        check_equal(document["case"], self.document["case"], "compare's case")
        check({*map(str, document["inputs"])} >= {*map(str, self.document["inputs"])},
              "compare reads different files")
        if document["winner"] == self.row["schedule"]:
            for key in ("winner_critical_path", "winner_with_10_percent_more"):
                check(self.document[key] in ([], document[key]), f"compare has a different {key}")

    def check_sweep(self):
        """One point of a sweep over the length."""
        length = self.document["case"]["seq_length"]
        scenario = self.folder / "sweep.json"
        scenario.write_text(json.dumps({
            "schema": "longhaul.scenario/1", "description": "one point", "sweep": {"seq_length": [length]},
        }))
        arguments = list(self.arguments)
        at = arguments.index("--seq-length")
        del arguments[at:at + 2]
        result = self.program.run(["sweep", str(scenario), *arguments, "--format", "json"])
        rows = json.loads(result.stdout, parse_float=str, parse_int=str)["rows"]
        (row,) = [row for row in rows if row["schedule"] == self.row["schedule"]]
        mine = {**self.document["case"], **self.row, **OF_ALL}
        for key in ("straggler", "link_fault"):
            del mine[key]
        check_equal({key: value for key, value in {**row, **OF_ALL}.items() if key not in NOT_IN_SWEEPS},
                    mine, "sweep")

    def check_plan(self):
        """The only configuration left if all options are given, except for the chunks of pipeline stages and for
        options of the schedule."""
        case = self.document["case"]
        pipeline = case["pipeline_model_parallel_size"] != "1"
        arguments = list(self.arguments)
        arguments.remove("--step")
        for name in LAYOUT:
            option = "--" + name.replace("_", "-")
            if option not in arguments and name != "virtual_pipeline_model_parallel_size" and (
                    pipeline or name != "pipeline_schedule"):
                arguments += [option, case[name]]
        if "--framework" not in arguments:
            arguments += ["--framework", case["framework"]]
        sequences = (int(case["micro_batch_size"]) * int(case["num_micro_batches"]) *
                     int(case["data_parallel_size"]))
        result = self.program.run(["plan", *arguments, "--global-batch-size", str(sequences), "--top",
                                   "100", "--format", "json"])
        check(result.stdout, "plan fails", result.stderr)
        (cluster,) = json.loads(result.stdout, parse_float=str, parse_int=str)["clusters"]
        fits = self.row["state"] == "ok"
        ways = [way for way in cluster["best"] if all(way[name] == case[name] for name in LAYOUT)]
        check(bool(ways) == fits, "plan and sim disagree on what fits", self.row["state"],
              shlex.join(arguments))
        if not fits: # plan lists the nearest misses
            least = min(int(miss["peak_bytes"]) for miss in cluster["nearest_misses"])
            check(least <= int(self.row["peak_bytes_max"]), "missing in plan's nearest misses",
                  self.row["peak_bytes_max"], cluster["nearest_misses"])
            return
        mine = {theirs: self.row[key] for theirs, key in
                (("iteration_s", "iteration_s"), ("tokens_per_s", "tokens_per_s"), ("mfu", "mfu"),
                 ("peak_bytes", "peak_bytes_max"))}
        # Configurations with other option values of the schedule are named by these.
        same = [way for way in ways if way["iteration_s"] == self.row["iteration_s"]]
        same = same or [way for way in ways if "," not in way["schedule"]]
        if not same:
            return
        (way, *_) = same
        check_equal(way, mine, "plan")
        bar = D(self.row["time_high_s"]) / D(self.row["makespan_s"]) - 1
        check(abs(bar - D(way["time_error"])) < D("1e-9"), "plan has a different error bar", bar,
              way["time_error"])
        mine = [{key: row[key] for key in ("of", "critical_path_fraction", "saved_fraction")}
                for row in self.document["winner_with_10_percent_more"]]
        check(way != cluster["best"][0] or mine in ([], cluster["best_with_10_percent_more"]),
              "plan has different savings", mine, cluster["best_with_10_percent_more"])

    def check_show(self):
        """Closed forms, per rank; `show` does not support data parallelism."""
        case, arguments = self.document["case"], list(self.arguments)
        at = arguments.index("--schedule")
        del arguments[at:at + 2]
        if case["data_parallel_size"] != "1":
            return
        result = self.program.run(["show", self.row["schedule"], *arguments, "--format", "json"])
        if not result.stdout:
            check("has no effect" in result.stderr, "show fails", result.stderr)
            return
        forms = json.loads(result.stdout, parse_float=str, parse_int=str)["closed_form"]
        each = self.row["per_rank"]
        # In trees some members send more than in rings and others less.
        if case["collectives"] != "tree":
            check(forms["bytes_sent"] == each["sent_bytes"], "show has different bytes", forms["bytes_sent"])
        check(forms["flops"] == each["flops"], "show has different flops", forms["flops"])
        check(forms["peak_bytes"] == each["peak_bytes"], "show has a different peak", forms["peak_bytes"])

    def check_verify(self):
        """The proof of the same program."""
        case = self.document["case"]
        arguments = ["--schedule", self.row["schedule"], "--model", case["model"]]
        for name in ("ranks", "seq_length", "num_attention_heads", "num_query_groups", "kv_channels",
                     "micro_batch_size", "mask", "dtype", "pass"):
            arguments += ["--" + name.replace("_", "-"), case[name]]
        if case["window_size"] != "0":
            arguments += ["--window-size", case["window_size"]]
        result = self.program.run(["verify", *arguments, "--format", "json"])
        document = json.loads(result.stdout, parse_float=str, parse_int=str)
        (row,) = document["results"]
        if row["programs"] != "1":
            return # all values of options that are not given are tried
        check(row["flops"] == self.row["flops_sum"], "verify has different flops", row["flops"])
        check(row["bytes"] == self.row["sent_bytes_sum"], "verify has different bytes", row["bytes"])

    def check_page(self):
        """Each number of the table is in the row of the page."""
        page = self.folder / "page.html"
        self.program.run(["report", *self.arguments, "--output", str(page)])
        lines = self.program.run(["compare", *self.arguments, "--format", "md"]).stdout.split("\n")
        text = re.sub(r"<(/?t[dh])[^>]*>", r"<\1>", page.read_text(encoding="utf-8"))
        of = [line for line in lines if line.startswith(f"| {self.row['schedule']} ")]
        check(len(of) == 1, "no row in Markdown", self.row["schedule"])
        cells = [cell.strip() for cell in of[0].strip("|").split(" | ")]
        rows = [[html.unescape(cell) for cell in re.findall("<td>(.*?)</td>", row)]
                for row in re.findall("<tr>(<td>.*?)</tr>", text)]
        check([cell for cell in cells[:-1]] in [row[:len(cells) - 1] for row in rows],
              "row missing on the page", cells)
        makespan = D(self.row["makespan_s"])
        check(any(rounded(makespan * unit, decimals) == D(cells[1]) for unit in (1, 10**3, 10**6)
                  for decimals in range(4)), "wrong time", cells)

    def check_diff(self):
        """diff finds no difference in results or inputs. compare without names tries all pairs, which is another
        question than a single pair; the order of its schedules is not."""
        one, other = self.folder / "one.json", self.folder / "other.json"
        again = list(self.arguments)
        places = [i + 1 for i, word in enumerate(again) if word == "--schedule"]
        again[places[0]], again[places[-1]] = again[places[-1]], again[places[0]]
        for path, words in ((one, ["sim", *self.arguments]),
                            (other, ["compare" if len(places) == 1 else "sim", *again])):
            self.program.run([*words, "--output", str(path)])
        said = self.program.run(["diff", str(one), str(other)])
        check(said.returncode == 0 and "different input" not in said.stdout, "diff finds a difference",
              said.stdout, said.stderr)


def module_case(rng, schedules):
    ranks = rng.choice((2, 3, 4, 8, 16))
    arguments = ["--schedule", rng.choice(schedules), "--ranks", str(ranks), "--seq-length",
                 str(ranks * 2**rng.randrange(6, 16)), "--cluster", rng.choice(CLUSTERS)]
    for option in (["--micro-batch-size", "2"], ["--dtype", "fp16"], ["--mask", "full"],
                   ["--window-size", str(rng.randrange(1, 4096))], ["--pass", rng.choice(("fwd", "bwd"))],
                   ["--collectives", rng.choice(("ring", "tree", "direct"))], ["--jitter", "0.1"],
                   ["--straggler", "1:1.5"], ["--link-fault", "nvlink:0:0.5"],
                   ["--model", rng.choice(MODELS)], ["--nics", "4"], ["--cost", "flops"],
                   ["--network", "alpha-beta"]):
        if rng.random() < 0.2:
            arguments += option
    return arguments


def step_case(rng, schedules):
    tensor, pipeline, data = rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2))
    context = rng.choice((1, 2, 4))
    ranks = tensor * pipeline * data * context
    batches = pipeline * rng.choice((1, 2)) if pipeline > 1 else rng.choice((1, 1, 2))
    arguments = ["--step", "--schedule", rng.choice(schedules), "--ranks", str(ranks), "--seq-length",
                 str(context * tensor * 2**rng.randrange(9, 16)), "--cluster", rng.choice(CLUSTERS),
                 "--model", rng.choice(MODELS + EXPERTS), "--num-micro-batches", str(batches),
                 "--tensor-model-parallel-size", str(tensor), "--pipeline-model-parallel-size",
                 str(pipeline), "--data-parallel-size", str(data)]
    for option in (["--micro-batch-size", "2"], ["--checkpoint", rng.choice(("layer", "selective", "none"))],
                   ["--shard", rng.choice(("ddp", "zero1", "fsdp"))],
                   ["--framework", rng.choice(("megatron-lm", "deepspeed", "torchtitan"))],
                   ["--pipeline-schedule", "gpipe"], ["--straggler", "0:1.5"], ["--dtype", "fp16"],
                   ["--nic-rate", "200G"], ["--window-size", "4096"]):
        if rng.random() < 0.25:
            arguments += option
    return arguments


def hybrid_case(rng, schedules):
    """For layers of two kinds: a schedule for each, in either order."""
    tensor, context, data = rng.choice((1, 2)), rng.choice((2, 4)), rng.choice((1, 2))
    pair = [rng.choice(LINEAR), rng.choice([name for name in schedules if name not in LINEAR])]
    rng.shuffle(pair)
    arguments = ["--step", "--schedule", pair[0], "--schedule", pair[1], "--model", "./hybrid.json", "--ranks",
                 str(tensor * context * data), "--seq-length", str(context * 2**rng.randrange(11, 18)),
                 "--cluster", rng.choice(CLUSTERS), "--tensor-model-parallel-size", str(tensor),
                 "--data-parallel-size", str(data)]
    for option in (["--checkpoint", "layer"], ["--micro-batch-size", "2"], ["--shard", "ddp"]):
        if rng.random() < 0.25:
            arguments += option
    return arguments


def check_case(program, arguments, schedules, folder, rng):
    """Returns the state of the case: None if there is none."""
    case = Case(program, arguments, folder)
    if not case.is_answered():
        return None if case.document is None else case.row["state"]
    step = "--step" in arguments
    case.check_compare(rng.sample([name for name in schedules if name not in case.row["schedule"]], 2))
    case.check_sweep()
    case.check_page()
    case.check_diff()
    if step:
        case.check_plan()
    else:
        case.check_show()
        case.check_verify()
    return ("step " if step else "module ") + case.row["state"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    options = parser.parse_args()
    program = Program(str(pathlib.Path(options.program).resolve()))
    schedules = [row["name"] for row in program.rows(["list", "schedules"])]
    states = {}
    for i in range(options.cases):
        rng = random.Random(options.seed * 1000003 + i)
        arguments = rng.choice((module_case, step_case, step_case, hybrid_case))(rng, schedules)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "hybrid.json").write_text(json.dumps(HYBRID), encoding="utf-8")
            arguments = [str(path / "hybrid.json") if word == "./hybrid.json" else word for word in arguments]
            try:
                state = check_case(program, arguments, schedules, path, rng)
            except Exception as error:
                print(f"longhaul sim {shlex.join(arguments).replace(folder, '.')}", file=sys.stderr)
                if not isinstance(error, Wrong):
                    raise
                print(f"  {error}", file=sys.stderr)
                state = "WRONG"
        states[state] = states.get(state, 0) + 1
    print(f"seed {options.seed}:", ", ".join(f"{n} {state or 'no case'}"
                                             for state, n in sorted(states.items(), key=str)))
    return "WRONG" in states


if __name__ == "__main__":
    sys.exit(main())
