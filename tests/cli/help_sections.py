#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the sections of every command's help: help_sections.py PROGRAM.

Every option known to completion has a category, and exactly one place in help, man pages and the JSON listing. No
section has more than ten options, no line more than 80 columns. Help without --all shows the common options and the
number of others.
"""

import json
import os
import re
import subprocess
import sys

SECTION_MAX = 10
COMMON = "Common options"
failures = []


def check(holds, *said):
    if not holds:
        failures.append(" ".join(str(word) for word in said))


class Program:
    def __init__(self, path):
        self.path = path

    def say(self, *words, status=0, **environment):
        run = subprocess.run([self.path, *words], capture_output=True, text=True, check=False, timeout=60,
                             env={**os.environ, **environment})
        check(run.returncode == status, words, "ends with", run.returncode, run.stderr)
        return run.stdout if status == 0 else run.stderr

    def commands(self):
        return self.say("list", "commands", "--format", "names").split()

    def completed(self):
        """Options by command as completed by bash, unordered."""
        script = self.say("help", "completion", "bash")
        return {command: set(options.split()) - {"--help"}
                for command, options in re.findall(r"^    ([\w-]+):\*\) options='([^']*)'", script, re.MULTILINE)}


def sections_of(text):
    """[title, options] of each section of the help text."""
    sections = []
    for line in text.splitlines():
        title = re.fullmatch(r"(\S.*):", line)
        option = re.match(r"  (?:-\w, )?(--[\w-]+)", line)
        if title and not line.startswith("  "):
            sections.append((title[1], []))
        elif option and sections:
            sections[-1][1].append(option[1])
    return [section for section in sections if section[1]]


def pages_of(text):
    """The same for a man page."""
    sections = []
    for line in text.replace("\\-", "-").splitlines():
        title = re.fullmatch(r'\.SS "(.*)"', line)
        option = re.match(r"\\fB(?:-\w\\fR, \\fB)?(--[\w-]+)", line)
        if title:
            sections.append((title[1], []))
        elif option:
            sections[-1][1].append(option[1])
    return sections


def listed(options):
    """The same for the JSON listing."""
    sections = []
    for option in options:
        title = COMMON if option["common"] else option["section"]
        if not sections or sections[-1][0] != title:
            sections.append((title, []))
        sections[-1][1].append(option["option"])
    return sections


def flat(sections):
    return [option for _, options in sections for option in options]


def check_short(command, short, sections):
    """Checks the help without --all."""
    hidden = len(flat(sections)) - len(flat(sections_of(short)))
    last = short.splitlines()[-1]
    if len(flat(sections)) <= SECTION_MAX:
        check(hidden == 0 and "--all" not in last, command, "hides one of few options:", last)
        return
    check(sections_of(short) == sections[:1] and sections[0][0] == COMMON, command, "shows", sections_of(short))
    plural = "" if hidden == 1 else "s"
    check(last == f"{hidden} more option{plural}: longhaul help {command} --all", command, "ends with", last)


def check_command(program, command, options, completed):
    full = program.say("help", command, "--all")
    short = program.say("help", command)
    sections = sections_of(full)
    check(set(flat(sections)) == completed and len(flat(sections)) == len(completed),
          command, "has different options in help and completion:", set(flat(sections)) ^ completed)
    check(sections == listed(options), command, "has different sections in JSON:", sections, listed(options))
    check(sections == pages_of(program.say("help", command, "--format", "man")), command, "has a different man page")
    titles = [title for title, _ in sections]
    check(len(titles) == len(set(titles)), command, "has a section twice:", titles)
    for title, names in sections:
        check(len(names) <= SECTION_MAX, command, "has", len(names), "options in", title)
    for line in (full + short).splitlines():
        check(len(line) <= 80, command, "has a long line:", line)
    check_short(command, short, sections)
    if command != "help":
        check(program.say(command, "--help", "--all") == full, command, "--help --all is not its help")
        check(program.say(command, "--all", "-h") == full, command, "--all -h is not its help")
        check("--help" in program.say(command, "--all", status=2), command, "--all does not name --help")
    check(program.say(command, "--help") == short, command, "--help is not its help")
    for columns in ("20", "200"):
        check(program.say("help", command, "--all", COLUMNS=columns) == full, command, "depends on COLUMNS")


def check_categories(commands):
    """Every category has one title, and categories are in one order everywhere."""
    titles, before = {}, set()
    for command in commands:
        order = []
        for option in command["options"]:
            check(titles.setdefault(option["category"], option["section"]) == option["section"],
                  option["option"], "has the category", option["category"], "and the section", option["section"])
            if not option["common"] and option["category"] not in order:
                order.append(option["category"])
        before |= {(a, b) for i, a in enumerate(order) for b in order[i + 1:]}
    check(len(set(titles.values())) == len(titles), "categories with the same title:", titles)
    for a, b in before:
        check((b, a) not in before, a, "is both before and after", b)


def main():
    program = Program(sys.argv[1])
    commands = json.loads(program.say("help", "--format", "json"))["commands"]
    completed = program.completed()
    names = [command["name"] for command in commands]
    check(names == program.commands() and len(names) > 10, "commands are missing:", names)
    for command in commands:
        check_command(program, command["name"], command["options"], completed[command["name"]])
    check_categories(commands)
    everything = program.say("help", "--all")
    check(everything == program.say("--help", "--all"), "--help --all is not help --all")
    check(everything.startswith(program.say("help")), "help --all does not begin with help")
    for command in commands:
        check(program.say("help", command["name"], "--all") in everything, "help --all lacks", command["name"])
    print(f"{len(commands)} commands, {sum(len(command['options']) for command in commands)} options")
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
