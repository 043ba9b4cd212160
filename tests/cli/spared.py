#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs are never overwritten: spared.py PROGRAM.

Every command is called with each option (or argument) that reads a file and each that writes one, on the same file: by
its own path, by another path, through a symbolic link and by a hard link; and with standard output appended to it. The
options are those of `longhaul help --format json`, so new ones are tried without a change here. The program must
refuse the line (status 2), name both options, and leave every byte in the folder unchanged. The same holds for files
that no option names: those in a folder, in a file or in the shipped data. Prints a table of the cases.

LONGHAUL_TEST_DEEP tries all four ways with each pair of options; otherwise they alternate.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from tool import ROOT

DEEP = bool(os.environ.get("LONGHAUL_TEST_DEEP"))
WAYS = ["same path", "other path", "symbolic link", "hard link"]
STDOUT = "standard output"
FILE_WORDS = re.compile(r"FILE|FOLDER|PATH|PLACE|RESULT")  # in the placeholders of options that take a file name
SCENARIO = {"schema": "longhaul.scenario/1", "ranks": 2, "schedule": ["ring"], "seq_length": "1K"}
CONFIG = "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 " \
    "--vocab-size 256 --global-batch-size 2\n"
CONFIG_JSON = {"train_batch_size": 2, "sequence_parallel_size": 2}
SMALL = ["--ranks", "2", "--schedule", "ring", "--seq-length", "1K", "--model", "gpt3-125m"]
PROFILE = {"schema": "longhaul.profile/1", "name": "p", "source": "s", "kernel_launch": "2us"}
TINY = ["--num-attention-heads", "2", "--kv-channels", "16"]
DATA = ["topologies", "devices", "models", "frameworks", "scenarios"]


def ending_of(option):
    """A value that the option accepts."""
    found = re.search(r"(?<!\w)\.[a-z]+\b", option["description"])
    return found.group() if found else ".json"


def contents(folder):
    """Everything in it: contents of files and targets of links."""
    return {str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()}


class Test:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), folder
        self.environment = dict(os.environ, LC_ALL="C", LONGHAUL_DATA_DIR=str(ROOT))
        listing = json.loads(self.run(["help", "--format", "json"], 0).stdout)
        self.commands = listing["commands"]
        self.turn, self.rows = 0, {}

    def run(self, words, *statuses, stdout=subprocess.PIPE):
        done = subprocess.run([self.program, *words], env=self.environment, check=False, text=True, stdout=stdout,
                              stderr=subprocess.PIPE, cwd=self.folder, stdin=subprocess.DEVNULL)
        assert done.returncode in statuses, (words, done.returncode, done.stderr)
        return done

    def count(self, command, read, written):
        key = (command, read)
        self.rows.setdefault(key, {})
        self.rows[key][written] = self.rows[key].get(written, 0) + 1

    def ways(self):
        self.turn += 1
        return WAYS if DEEP else [WAYS[self.turn % len(WAYS)]]

    def name_again(self, path, way, ending):
        """Another name of the file at @path, relative to its folder."""
        if way == "same path":
            return path
        if way == "other path":
            return os.path.join("sub", "..", path)
        name = ("symbolic" if way == "symbolic link" else "hard") + ending
        if way == "symbolic link":
            (self.folder / name).symlink_to(path)
        else:
            (self.folder / name).hardlink_to(self.folder / path)
        return "./" + name

    def refuse(self, words, expected, stdout=None):
        """The line is refused with these words and changes nothing."""
        before = contents(self.folder)
        if stdout is None:
            done = self.run(words, 2)
        else:
            with open(self.folder / stdout, "ab") as stream:
                done = self.run(words, 2, stdout=stream)
        assert all(word in done.stderr for word in ["would overwrite", *expected]), (words, expected, done.stderr)
        after = contents(self.folder)
        assert before == after, (words, [name for name in before.keys() | after.keys()
                                         if before.get(name) != after.get(name)])

    # --- files that options name ------------------------------------------------------------------------

    def fresh(self, name, text):
        shutil.rmtree(self.folder)
        (self.folder / "sub").mkdir(parents=True)
        (self.folder / name).write_text(text)

    def inputs(self, command):
        """(name, words for a path, words in messages, text by the file's suffix)."""
        plain = lambda ending: "{}\n"
        if command["scenario"]:
            yield ("SCENARIO", lambda path: [path], "the scenario", lambda ending: json.dumps(SCENARIO))
        if command.get("file") == "read":
            yield ("ARGUMENT", lambda path: [path], "the argument", plain)
        for option in command["options"]:
            name = option["option"]
            assert "file" in option or not FILE_WORDS.search(option.get("placeholder", "")), option
            if option.get("file") != "read":
                continue
            # The scenario is built from it before anything else. DeepSpeed's file, which .json stands for, has no
            # place for a model.
            config = lambda ending: json.dumps(CONFIG_JSON) if ending == ".json" else CONFIG
            model = lambda path, name=name: (
                ["--model", "gpt3-125m"] if name == "--from-config" and path.endswith(".json") else [])
            yield (name, lambda path, name=name, model=model: [name, path, *model(path)], name,
                   config if name == "--from-config" else plain)

    def pair(self, command, read, option, way):
        called, words, expected, text = read
        ending = ending_of(option)
        path = "./in" + ending
        self.fresh(path, text(ending))
        again = self.name_again(path, way, ending)
        self.refuse([command["name"], *words(path), option["option"], again], [option["option"], expected])
        self.count(command["name"], called, option["option"])

    def stream(self, command, read):
        called, words, expected, text = read
        self.fresh("in.json", text(".json"))
        self.refuse([command["name"], *words("./in.json")], ["standard output", expected], "in.json")
        self.count(command["name"], called, STDOUT)

    def matrix(self):
        for command in self.commands:
            outputs = self.outputs(command["name"])
            for read in self.inputs(command):
                for option in outputs:
                    for way in self.ways():
                        self.pair(command, read, option, way)
                if outputs:
                    self.stream(command, read)

    def outputs(self, name):
        command = next(command for command in self.commands if command["name"] == name)
        return [option for option in command["options"] if option.get("file") in ("written", "updated")]

    # --- files that no option names ---------------------------------------------------------------------

    def within(self, words, files):
        """Runs @words, which read @files; each of these is tried for each output."""
        name = words[0]
        # Without it, these commands fail and read nothing.
        needed = lambda name, option: (["--output", "made"] if name in ("synth", "report") and
                                       option["option"] != "--output" else [])
        for file in files:
            assert (self.folder / file).is_file(), file
            for option in self.outputs(name):
                for way in self.ways():
                    ending = ending_of(option)
                    # By its own path, if the option accepts its suffix.
                    if option["placeholder"] == "FILE" and not file.endswith(ending) and "link" not in way:
                        way = "symbolic link"
                    again = self.name_again(file, way, ending)
                    self.refuse([*words, *needed(name, option), option["option"], again], [option["option"]])
                    for made in ("symbolic" + ending, "hard" + ending):
                        (self.folder / made).unlink(missing_ok=True)
                    self.count(name, "data/" + file.split("/")[1] if file.startswith("data/") else file,
                               option["option"])

    def stamped(self, words):
        """The input files of the result of @words."""
        answer = json.loads(self.run([*words, "--format", "json"], 0, 1).stdout)  # validate may say no
        assert answer["inputs"], words
        return ["data/" + read["path"] for read in answer["inputs"] if (self.folder / "data" / read["path"]).is_file()]

    def named_within(self):
        self.fresh("lengths", "512 512\n")
        for kind in DATA:
            shutil.copytree(ROOT / kind, self.folder / "data" / kind)
        self.environment["LONGHAUL_DATA_DIR"] = str(self.folder / "data")
        (self.folder / "sweep.json").write_text(json.dumps(
            SCENARIO | {"sweep": {"document_lengths": ["lengths"], "model": ["llama-7b"]}}))
        (self.folder / "again.json").write_text(json.dumps(SCENARIO))
        (self.folder / "profile.json").write_text(json.dumps(PROFILE))
        (self.folder / "traces").mkdir()
        self.run(["sim", *SMALL, "--trace", "traces/run.json"], 0)
        self.run(["compare", "again.json", "--format", "json", "--output", "saved.json"], 0)
        compared = self.stamped(["compare", *SMALL])
        for words in (["synth", *SMALL, "--budget", "1"], ["report", *SMALL]):
            self.within(words, compared)
        for words in (["sim", *SMALL, "--step", "--framework", "megatron-lm"], ["compare", *SMALL], ["plan", *SMALL, "--pareto"],
                      ["import", *SMALL, "--from", "traces"],
                      ["run", *SMALL, *TINY], ["validate", *SMALL, *TINY, "--profile", "profile.json"]):
            self.within(words, self.stamped(words))
        self.within(["import", *SMALL, "--from", "traces"], ["traces/run.json"])
        self.within(["sweep", "sweep.json"], ["lengths", "data/models/llama-7b.json"])
        self.within(["report", "--from", "saved.json"], ["again.json", "data/models/llama-7b.json"])
        papers = "data/scenarios/papers/ring_flash_attention"
        self.within(["reproduce", "ring_flash_attention"], [papers + ".json", papers + ".csv"])
        self.within(["reproduce", "ring_flash_attention", "--rows", "data/scenarios/papers"], [papers + ".csv"])

    # --- outputs that no option names -------------------------------------------------------------------

    def derived(self):
        """Files written beside the one that an option names."""
        sweep = json.dumps(SCENARIO | {"sweep": {"dtype": ["bf16", "fp32"]}})
        for option, path, read in (("--figure", "out.svg", "out.gp"), ("--memory-timeline", "out.svg", "out.gp"),
                                   ("--export", "out.et", "out.1.et"), ("--export", "out.et", "out.groups.json")):
            self.fresh(read, json.dumps(PROFILE))
            self.refuse(["sim", *SMALL, "--profile", read, option, path], ["the file of --profile"])
            self.count("sim", read, option)
        self.fresh("out.1-of-2", sweep)
        self.refuse(["sweep", "./out.1-of-2", "--points", "out", "--shard-of", "1/2"], ["the scenario"])
        self.count("sweep", "out.1-of-2", "--points")
        # Files of other shards are continued and must not hold the answer.
        self.fresh("sweep.json", sweep)
        self.run(["sweep", "sweep.json", "--points", "out", "--shard-of", "1/2"], 0)
        words = ["sweep", "sweep.json", "--points", "out", "--shards", "2"]
        self.refuse([*words, "--output", "out.1-of-2"], ["--output"])
        self.count("sweep", "out.1-of-2", "--output")
        self.run(words, 0)

    def print_table(self):
        written = sorted({option for row in self.rows.values() for option in row})
        print(f"{'command':<10} {'reads':<18}" + "".join(f" {option.lstrip('-'):>15}" for option in written))
        for (command, read), row in self.rows.items():
            print(f"{command:<10} {read:<18}" + "".join(f" {row.get(option, '-'):>15}" for option in written))
        print(f"spared: {sum(sum(row.values()) for row in self.rows.values())} lines refused, and nothing changed")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(os.path.realpath(folder), "work"))
        test = Test(sys.argv[1], pathlib.Path(folder).resolve() / "work")
        test.matrix()
        test.derived()
        test.named_within()
        test.print_table()


main()
