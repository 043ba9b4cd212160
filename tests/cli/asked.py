#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that `longhaul diff` names every input that differs: asked.py PROGRAM.

For every field of the scenario schema, which is generated from the program's own table, two cases that differ only in
it are simulated, and diff must name it with both values. The same holds for plan, for every file that a case reads,
and for every option that a result depends on. Stating a default explicitly is no difference, nor is an older document
without a field at its default. The partial output of an interrupted command is named, and no gate passes on it. With
LONGHAUL_TEST_DEEP all of this is also tested for compare and critical paths, and for all fields of plans.
"""

import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from random_lines import SENSIBLE
from tool import ROOT, Tool

DEEP = bool(os.environ.get("LONGHAUL_TEST_DEEP"))
MODULE = ["--cluster", "dgx-a100-80g", "--schedule", "ring", "--ranks", "4", "--seq-length", "4K"]
LINEAR = ["--cluster", "dgx-a100-80g", "--ranks", "4", "--seq-length", "4K", "--model", "tnl-1b"]
STEP = ["--cluster", "dgx-a100-80g", "--schedule", "ring", "--ranks", "8", "--seq-length", "4K", "--model", "gpt3-125m",
        "--step", "--framework", "megatron-lm"]
MUON = STEP + ["--optimizer", "muon"]
STAGES = STEP + ["--pipeline-model-parallel-size", "2", "--num-micro-batches", "4", "--context-parallel-size", "2"]
USP = ["--cluster", "dgx-a100-80g", "--ranks", "8", "--seq-length", "4K"]


def without(words, option):
    """The line without an option and its value."""
    return [word for i, word in enumerate(words) if option not in (word, words[i - 1] if i else "")]


def on(base, schedule):
    """The case with another schedule."""
    return without(base, "--schedule") + ["--schedule", schedule]


# Options with which a field has an effect, and two values of it; None: not given. Other fields take the first two
# values that they list, or none and true, in MODULE.
FIELDS = {
    "schedule": (MODULE[:2] + MODULE[4:], "ring", "zigzag"),
    "schedule_file": (MODULE[:2], "one.json", "two.json"),
    "unproven": (MODULE[:2] + ["--schedule-file", "one.json"], None, True),
    "cluster": (MODULE[2:], "dgx-a100-80g", "hgx-h100"),
    "nics": (["--cluster", "dgx-a100-80g:2"] + MODULE[2:], "4", "8"),
    "nic_rate": (["--cluster", "dgx-a100-80g:2"] + MODULE[2:], "200G", "400G"),
    "nvlink_rate": (MODULE, "200GB/s", "240GB/s"),
    "oversubscription": (["--cluster", "fat-tree-a100:8"] + MODULE[2:4], "2", "4"),
    "ranks": (MODULE, "2", "8"),
    "data_parallel_size": (MODULE, "1", "2"),
    "assume": (MODULE + ["--model", "model.json", "--ignore-key", "num_frobs"], "llama", "mistral"),
    "ignore_key": (MODULE + ["--model", "model.json"], "num_frobs", ["num_frobs", "rope_theta"]),
    "model": (MODULE, "llama-7b", "llama-3-8b"),
    "seq_length": (MODULE, "4K", "8K"),
    "num_attention_heads": (MODULE, "8", "16"),
    "num_query_groups": (MODULE + ["--num-attention-heads", "16"], "8", "16"),
    "kv_channels": (MODULE + ["--num-attention-heads", "16"], "64", "128"),
    "micro_batch_size": (MODULE, "1", "2"),
    "window_size": (on(MODULE, "usp"), "0", "256"),
    "document_lengths": (on(MODULE, "usp"), "one.txt", "two.txt"),
    "document_distribution": (STEP, "exponential:512", "exponential:1024"),
    "attention": (MODULE[:2] + MODULE[4:], "softmax", "linear"),
    "linear_decay": (LINEAR + ["--schedule", "lasp"], "0.5", "0.9"),
    "cost": (MODULE, "device", "unit"),
    "collectives": (on(MODULE, "ulysses"), "ring", "pairwise"),
    "step": (["--cluster", "dgx-a100-80g", "--schedule", "ring", "--ranks", "4", "--seq-length", "4K", "--model",
              "gpt3-125m"], None, True),
    "framework": (STEP[:-1], "megatron-lm", "pytorch-fsdp"),
    "attention_kernel": (["--cluster", "hgx-h100", "--schedule", "ring", "--ranks", "4"], None, "fa3"),
    "tensor_model_parallel_size": (STEP, "1", "2"),
    "context_parallel_size": (STEP, "2", "4"),
    "pipeline_model_parallel_size": (STEP + ["--context-parallel-size", "2", "--num-micro-batches", "4"], "1", "2"),
    "num_layers_per_virtual_pipeline_stage": (STAGES, "2", "3"),
    "account_for_embedding_in_pipeline_split": (STAGES + ["--account-for-loss-in-pipeline-split"], None, True),
    "account_for_loss_in_pipeline_split": (STAGES + ["--account-for-embedding-in-pipeline-split"], None, True),
    "pipeline_schedule": (STAGES, "1f1b", "gpipe"),
    "num_micro_batches": (STEP, "1", "2"),
    "shard": (STEP, "zero1", "fsdp"),
    "checkpoint": (STEP, "none", "layer"),
    "recompute_modules": (STEP, "mlp", "core_attn,layernorm"),
    "recompute_method": (STEP + ["--checkpoint", "layer", "--recompute-num-layers", "2"], "block", "every"),
    "recompute_num_layers": (STEP + ["--checkpoint", "layer", "--recompute-method", "block"], "2", "3"),
    "loss": (STEP, "eager", "chunked:64"),
    "tiled_mlp": (STEP, "64", "auto"),
    "main_params_dtype": (STEP, "fp32", "none"),
    "main_grads_dtype": (STEP, "fp32", "bf16"),
    "exp_avg_dtype": (STEP, "fp32", "8bit"),
    "optimizer": (STEP, "adam", "muon"),
    "muon_num_ns_steps": (MUON, "5", "6"),
    "muon_tp_mode": (MUON + ["--tensor-model-parallel-size", "2"], "duplicated", "blockwise"),
    "muon_momentum": (MUON, "0.9", "0.95"),
    "muon_nesterov": (MUON, None, True),
    "muon_scale_mode": (MUON, "spectral", "unit_rms_norm"),
    "muon_extra_scale_factor": (MUON, "1", "0.2"),
    "muon_coefficient_type": (MUON, "simple", "quintic"),
    "cpu_offloading_num_layers": (STEP, "1", "all"),
    "optimizer_cpu_offload": (STEP, None, True),
    "optimizer_offload_fraction": (STEP + ["--optimizer-cpu-offload"], "0.5", "0.9"),
    "overlap_cpu_optimizer_d2h_h2d": (STEP + ["--optimizer-cpu-offload"], None, True),
    "offload_param": (STEP + ["--shard", "fsdp"], None, True),
    "lora_rank": (STEP, "8", "16"),
    "lora_targets": (STEP + ["--lora-rank", "8"], "linear_qkv", "linear_fc1"),
    "pad": (STEP + ["--tensor-model-parallel-size", "8"], "heads", "width"),
    "jitter": (MODULE, "0.05", "0.1"),
    "seed": (MODULE + ["--jitter", "0.1"], "1", "2"),
    "straggler": (MODULE, "0:2", "1:2"),
    "link_fault": (MODULE, "nvlink:0:0.5", "nvlink:0:0.25"),
    "profile": (MODULE, "one-profile.json", "two-profile.json"),
    "published_code": (on(MODULE, "zigzag"), None, True),
    "gradient_wire": (MODULE, "fp32", "16bit"),
    "inner_ring": (USP + ["--schedule", "double-ring"], "2", "4"),
    "pad_heads": (USP + ["--schedule", "ulysses", "--num-attention-heads", "12"], None, True),
    "te_version": (on(MODULE, "te-p2p"), "2.15", "2.8"),
    "hierarchical_context_parallel_sizes": (USP + ["--schedule", "te-a2a-p2p"], "2,4", "4,2"),
    "gather_groups": (on(MODULE, "te-all-gather"), "1", "2"),
    "grid": (USP + ["--schedule", "attention2d-no"], "2x4", "4x2"),
    "pad_width": (USP, None, True),
    "recompute_granularity": (USP, "none", "full"),
    "scan_blocks": (USP, "2", "4"),
}
NOT_ASKED = {"schema", "description", "sweep"}
OPTIONS = {"compare": {"--within": ("2x", "3x"), "--synth": (None, True), "--budget": ("1", "2"), "--set": None},
           "sim": {"--set": None},
           "plan": {"--cluster": ("dgx-a100-80g:1", "hgx-h100:1"), "--global-batch-size": ("1", "2"),
                    "--max-seq-length": None, "--min-gpus": None, "--pareto": (None, True), "--top": ("1", "2"),
                    "--days-for": ("1e12", "2e12"), "--cost-per-gpu-hour": ("1", "2"), "--watts": ("600", "700"),
                    "--fit": (None, True), "--no-remedies": (None, True), "--set": None}}


def words_of(option, value):
    if value is None:
        return []
    if isinstance(value, list):
        return [word for one in value for word in (option, one)]
    return [option] if value is True else [option, value]


def make_files(tool):
    """Writes two files of each kind that a field names."""
    for name, length in (("one", "1K"), ("two", "2K")):
        tool.call("show", "ring", "--ranks", "2", "--seq-length", length, "--num-attention-heads", "2", "--kv-channels",
                  "16", "--format", "json", "-o", f"{name}.json")
        profile = {"schema": "longhaul.profile/2", "name": "p", "source": "s",
                   "kernel_launch": "2us" if name == "one" else "3us"}
        (tool.folder / f"{name}-profile.json").write_text(json.dumps(profile))
    (tool.folder / "one.txt").write_text("1K 1K 2K\n")
    (tool.folder / "two.txt").write_text("2K 2K\n")
    (tool.folder / "model.json").write_text(json.dumps(
        {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
         "intermediate_size": 1024, "vocab_size": 1000, "num_key_value_heads": 8, "num_frobs": 2, "rope_theta": 10000}))


def result_of(tool, name, words):
    """Writes the result of the line; returns None if it is refused."""
    (tool.folder / name).unlink(missing_ok=True)
    done = tool.run(*words, "--format", "json", "-o", name)
    written = done.returncode in (0, 1) and (tool.folder / name).exists()
    return None if written else done.stderr or "no word"


def otherwise(tool, a, b):
    """Returns the input differences that diff reports."""
    tool.call("diff", a, b, "--format", "json", "-o", "diff.json")
    return {item["field"]: (item["a"], item["b"]) for item in tool.json("diff.json")["not_asked_alike"]}


def check_pair(tool, what, name, first, second):
    """Tests two lines that differ in @name; returns None if they ran, else the reason."""
    refused = result_of(tool, "a.json", first) or result_of(tool, "b.json", second)
    if refused:
        return refused
    if tool.json("a.json")["schema"] != tool.json("b.json")["schema"]:  # out of memory: there is no critical path
        return "two kinds of documents"
    found = otherwise(tool, "a.json", "b.json")
    names = {name, f"SHA-256 of {name}"} & set(found)
    assert names, f"{what}: diff names no difference of {first} and {second}: {found}"
    for one in names:
        assert found[one][0] != found[one][1], (what, found)
    if DEEP:
        result_of(tool, "again.json", first)
        assert otherwise(tool, "a.json", "again.json") == {}, (what, first)
    return None


def case_of(name, schema):
    if name in FIELDS:
        return FIELDS[name]
    if schema.get("type") == "boolean":
        return MODULE, None, True
    values = schema.get("enum") or SENSIBLE.get("--" + name.replace("_", "-"))
    assert values, f"{name}: no values for this field; add a row to FIELDS"
    return MODULE, values[0], values[1]


# A schedule that reads the option, for options of schedules not in the rows above.
def schedules(tool):
    return tool.call("list", "schedules", "--format", "names").stdout.split()


def check_field(tool, name, schema):
    base, first, second = case_of(name, schema)
    option = "--" + name.replace("_", "-")
    base = without(base, option)
    pair = words_of(option, first), words_of(option, second)
    refused = check_pair(tool, name, name, ["sim", *base, *pair[0]], ["sim", *base, *pair[1]])
    for schedule in schedules(tool) if refused else ():
        there = on(base, schedule)
        refused = check_pair(tool, name, name, ["sim", *there, *pair[0]], ["sim", *there, *pair[1]])
        if not refused:
            base = there
            break
    assert not refused, f"{name}: no case runs: {refused}"
    if not DEEP:
        return
    assert not check_pair(tool, name, name, ["compare", *base, *pair[0]], ["compare", *base, *pair[1]]), name
    check_pair(tool, name, name, ["sim", "--critical-path", *base, *pair[0]], ["sim", "--critical-path", *base, *pair[1]])


PLAN = ["--model", "gpt3-125m", "--cluster", "dgx-a100-80g:1", "--ranks", "4", "--seq-length", "16K", "--schedule",
        "zigzag", "--checkpoint", "layer", "--shard", "fsdp", "--micro-batch-size", "1", "--top", "1"]


def check_plans(tool, properties):
    named = 0
    for index, (name, schema) in enumerate(properties.items()):
        if name == "step" or (not DEEP and index % 4 != 1):  # every plan is of a step
            continue
        _, first, second = case_of(name, schema)
        option = "--" + name.replace("_", "-")
        base = ["plan", *without(PLAN, option)]
        as_name = "--cluster" if name == "cluster" else name
        named += not check_pair(tool, "plan " + name, as_name, base + words_of(option, first), base + words_of(option, second))
    assert named > (20 if DEEP else 5), f"only {named} fields make different plans"


def check_options(tool):
    """The options that affect a result are those that results list."""
    bases = {"sim": MODULE, "compare": MODULE, "plan": PLAN}
    for command, base in bases.items():
        assert result_of(tool, "a.json", [command, *base]) is None
        listed = {"--" + key.replace("_", "-") for key in tool.json("a.json")["asked"]["options"]}
        assert listed == set(OPTIONS[command]), f"{command}: {listed} listed, {set(OPTIONS[command])} tried here"
        for option, values in OPTIONS[command].items():
            if values is None:
                continue
            rest = without(base, option) + (["--synth"] if option == "--budget" else [])
            refused = check_pair(tool, f"{command} {option}", option, [command, *rest, *words_of(option, values[0])],
                                 [command, *rest, *words_of(option, values[1])])
            assert not refused, f"{command} {option}: {refused}"


def check_defaults(tool):
    """Stating a default explicitly is no difference."""
    assert result_of(tool, "a.json", ["sim", *MODULE]) is None
    given = ["--dtype", "bf16", "--mask", "causal", "--pass", "both", "--micro-batch-size", "1", "--network", "fair",
             "--cost", "device", "--data-parallel-size", "1", "--jitter", "0", "--seed", "0", "--model", "llama-7b",
             "--gradient-wire", "default", "--nics", "8"]
    assert result_of(tool, "b.json", ["sim", *MODULE, *given]) is None
    assert otherwise(tool, "a.json", "b.json") == {}
    assert result_of(tool, "a.json", ["plan", *without(PLAN, "--top")]) is None
    assert result_of(tool, "b.json", ["plan", *without(PLAN, "--top"), "--top", "5", "--global-batch-size", "1"]) is None
    found = otherwise(tool, "a.json", "b.json")
    assert set(found) <= {"--global-batch-size"}, found


def check_inputs(tool):
    """Another file of the same name differs; the same file of another name does not."""
    topology = json.loads((ROOT / "topologies/dgx-a100-80g.json").read_text())
    device = json.loads((ROOT / "devices/a100-sxm-80g.json").read_text())
    for name, data in (("one", device), ("two", dict(device, kernel_launch="9us"))):
        folder = tool.folder / name
        folder.mkdir()
        (folder / "device.json").write_text(json.dumps(data))
        (folder / "topology.json").write_text(json.dumps(dict(topology, device="./device.json")))
    base = ["sim", *without(MODULE, "--cluster")]
    refused = check_pair(tool, "device", "device", [*base, "--cluster", "one/topology.json"],
                         [*base, "--cluster", "two/topology.json"])
    assert not refused, refused
    files = {"profile": "one-profile.json", "document_lengths": "one.txt", "schedule_file": "one.json",
             "cluster": "one/topology.json"}
    for field, name in files.items():
        option = "--" + field.replace("_", "-")
        words = MODULE if field != "schedule_file" else MODULE[:2]
        words = ["sim", *without(on(words, "usp") if field == "document_lengths" else words, option), option]
        assert result_of(tool, "a.json", [*words, name]) is None, field
        copy = str(pathlib.Path(name).with_name(f"copy-{pathlib.Path(name).name}"))
        (tool.folder / copy).write_bytes((tool.folder / name).read_bytes())
        assert result_of(tool, "b.json", [*words, copy]) is None, field
        found = otherwise(tool, "a.json", "b.json")
        assert set(found) <= {"model", "model_notes"}, f"{field}: the same file at another path differs: {found}"
        (tool.folder / copy).write_text((tool.folder / name).read_text().rstrip("\n") + " \n")
        assert result_of(tool, "b.json", [*words, copy]) is None, field
        found = otherwise(tool, "a.json", "b.json")
        assert f"SHA-256 of {field}" in found or field in found, f"{field}: another file is no difference: {found}"


def check_old(tool):
    """A document from before a field existed, and from before results listed all inputs."""
    assert result_of(tool, "a.json", ["sim", *MODULE, "--no-overlap", "--straggler", "1:2"]) is None
    old = json.loads((tool.folder / "a.json").read_text())
    del old["asked"]
    for item in old["inputs"]:
        del item["of"]
    for key in ("nics", "nic_bytes_per_s", "nvlink_bytes_per_s", "oversubscription"):
        del old["case"][key]
    (tool.folder / "old.json").write_text(json.dumps(old))
    assert otherwise(tool, "old.json", "a.json") == {}
    assert "earlier version" in tool.call("diff", "old.json", "a.json").stdout
    assert result_of(tool, "b.json", ["sim", *MODULE, "--no-overlap", "--straggler", "1:2", "--nvlink-rate",
                                      "100GB/s"]) is None
    assert set(otherwise(tool, "old.json", "b.json")) == {"nvlink_rate"}
    old["asked"] = {"scenario": {"no_such_field": "1"}, "options": {}}
    (tool.folder / "later.json").write_text(json.dumps(old))
    assert "later version" in tool.call("diff", "later.json", "a.json", status=3).stderr


def check_partial(tool):
    for command, base in (("compare", MODULE), ("plan", PLAN)):
        assert result_of(tool, "a.json", [command, *base]) is None
        partial = json.loads((tool.folder / "a.json").read_text())
        partial["interrupted"] = True
        (tool.folder / "partial.json").write_text(json.dumps(partial))
        assert "B is partial" in tool.call("diff", "a.json", "partial.json").stdout
        for pair in (("a.json", "partial.json"), ("partial.json", "a.json")):
            assert "interrupted" in tool.call("diff", *pair, "--tolerance", "50%", status=3).stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(sys.argv[1], pathlib.Path(folder))
        make_files(tool)
        properties = json.loads(tool.call("help", "schema", "scenario").stdout)["properties"]
        properties = {name: schema for name, schema in properties.items() if name not in NOT_ASKED}
        assert not set(FIELDS) - set(properties), "rows of unknown fields"
        for name, schema in properties.items():
            check_field(tool, name, schema)
        check_plans(tool, properties)
        check_options(tool)
        check_defaults(tool)
        check_inputs(tool)
        check_old(tool)
        check_partial(tool)
    print(f"{len(properties)} fields of scenarios, and other inputs, are distinguished")


main()
