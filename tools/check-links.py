#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links of all Markdown pages. Run check-links.py at the top of the tree; it needs no build.

Every relative link leads to a file of the tree, and its anchor to a heading of that page. Every page of docs/ is
reached from docs/README.md in two steps. Pages of docs/ have at most WORDS_MAX words, not counting generated text
between <!-- longhaul ... --> or <!-- csv ... --> and <!-- end -->.
"""

import collections
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
PRINTED = re.compile(r"^<!-- (?:longhaul|csv) [^\n]*-->\n.*?^<!-- end -->$", re.M | re.S)
STEPS_MAX = 2
WORDS_MAX = 50_000
MAP = pathlib.Path("docs/README.md")


def pages():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], check=True,
                            capture_output=True, text=True).stdout.split("\n")
    return [pathlib.Path(name) for name in listed if name and pathlib.Path(name).exists()]


def anchor(heading):
    """The anchor that GitHub generates for a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    counts = collections.Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} (.*)$", FENCE.sub("", page.read_text()), re.M):
        name = anchor(heading)
        found.add(name if counts[name] == 0 else f"{name}-{counts[name]}")
        counts[name] += 1
    return found


def links(page):
    """The relative links of a page: target file, anchor, and the link itself."""
    for match in LINK.finditer(FENCE.sub("", page.read_text())):
        target, _, part = match[1].partition("#")
        if not re.match(r"[a-z]+:", match[1]):
            yield (page.parent / target if target else page), part, match[1]


def dead_links(page):
    for target, part, link in links(page):
        if not target.exists():
            yield f"{page}: {link}: no such file"
        elif part and target.suffix == ".md" and part not in anchors(target):
            yield f"{page}: {link}: the page has no such heading"


def reached():
    """The pages reached from MAP in at most STEPS_MAX steps."""
    found = {MAP.resolve()}
    last = set(found)
    for _ in range(STEPS_MAX):
        last = {target.resolve() for page in last for target, _, _ in links(page)
                if target.suffix == ".md" and target.exists()} - found
        found |= last
    return found


def main():
    wrong = [line for page in pages() for line in dead_links(page)]
    docs = [page for page in pages() if page.parts[0] == "docs"]
    found = reached()
    wrong += [f"{page}: not reached from {MAP} in {STEPS_MAX} steps" for page in docs if page.resolve() not in found]
    words = sum(len(PRINTED.sub("", page.read_text()).split()) for page in docs)
    if words > WORDS_MAX:
        wrong.append(f"docs: {words} words; at most {WORDS_MAX}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
