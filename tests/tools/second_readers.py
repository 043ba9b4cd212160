#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the readers of TOML and CSV with their standards and with Python's tomllib and csv.

second_readers.py PRINT_READ [--count N] [--seed N]. Every document of toml_cases.py and csv_cases.py must be read, or
rejected at the given place. Then random documents are composed of pieces of these, or damaged, and both readers must
agree whether they are valid, and on their content. Without tomllib (Python before 3.11), TOML is checked by the cases
alone.
"""

import argparse
import csv
import datetime
import io
import json
import math
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import csv_cases
import toml_cases

try:
    import tomllib
except ImportError:
    tomllib = None

# Errors for valid TOML beyond the limits of longhaul.
BEYOND = re.compile(r"nested too deeply|too long|more than 10000|a NUL, which|64 bits")
failures = []


def check(holds, *said):
    if not holds:
        failures.append(" ".join(str(word) for word in said))


def to_bytes(document):
    return document if isinstance(document, bytes) else document.encode()


def ours(program, kind, documents):
    """The answers of PRINT_READ, one per document."""
    told = b"".join(b"%d\n%s" % (len(document), document) for document in documents)
    out = subprocess.run([program, kind], input=told, stdout=subprocess.PIPE, check=True).stdout
    answers = [json.loads(line) for line in out.decode().splitlines()]
    assert len(answers) == len(documents), (len(answers), len(documents))
    return answers


def check_refusals(kind, cases, answers):
    for (document, place, words), answer in zip(cases, answers):
        message = answer.get("error", "it is read")
        start = f"f:{place}: error: " if place else "f: error: "
        check(message.startswith(start) and words in message, f"{kind}: {document!r} at {place}, {words}: {message}")


# --- TOML ---

def key_of(word):
    if word and not re.search(r'[.\[\]"]', word):
        return word
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def flat_list(path, values, out):
    tables = [value for value in values if isinstance(value, dict)]
    # [[a]] is not a setting; a = [{}] is a setting without values.
    if len(tables) != len(values) or not values:
        out[path] = [value for value in values if not isinstance(value, (dict, list))]
    for i, value in enumerate(values):
        if isinstance(value, dict):
            flat_table(f"{path}[{i}].", value, out)
        elif isinstance(value, list):
            flat_list(f"{path}[{i}]", value, out)


def flat_table(start, table, out):
    for word, value in table.items():
        path = start + key_of(word)
        if isinstance(value, dict):
            flat_table(path + ".", value, out)
        elif isinstance(value, list):
            flat_list(path, value, out)
        else:
            out[path] = value


def is_same(text, value):
    """Whether @text, longhaul's form of a value, equals Python's @value."""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int):
        return int(text) == value
    if isinstance(value, float):
        return math.isnan(value) and "nan" in text or float(text) == value
    if isinstance(value, datetime.datetime):
        return datetime.datetime.fromisoformat(text.upper()) == value
    if isinstance(value, datetime.date):
        return datetime.date.fromisoformat(text) == value
    if isinstance(value, datetime.time):
        return datetime.time.fromisoformat(text) == value
    return text == value


def differs(read, document):
    """Difference between longhaul's settings and those of tomllib; "": none."""
    wanted = {}
    flat_table("", tomllib.loads(document.decode()), wanted)
    found = {path: (kind, values) for path, kind, *values in read}
    if len(found) != len(read):
        return "duplicate path"
    found = {path: entry for path, entry in found.items() if entry != ("list", []) or path in wanted}
    if found.keys() != wanted.keys():
        return f"paths {sorted(found.keys() ^ wanted.keys())}"
    for path, (kind, values) in found.items():
        value = wanted[path]
        of_kind = "list" if isinstance(value, list) else "word" if isinstance(value, str) else "plain"
        several = value if isinstance(value, list) else [value]
        if kind != of_kind or len(values) != len(several) or not all(map(is_same, values, several)):
            return f"{path} is {kind} {values} and should be {value!r}"
    return ""


def second_reads(document):
    try:
        tomllib.loads(document.decode())
    except (ValueError, RecursionError) as error:  # invalid TOML, dates, UTF-8
        return str(error)
    return None


def agree(document, answer):
    message = answer.get("error")
    if message is None and re.search(rb"^\xef\xbb\xbf|:60|\b0000-", document):
        return
    if message is not None:
        check(re.match(r"f:[1-9]\d*:[1-9]\d*: error: ", message), f"no place: {document!r}: {message}")
    if message is not None and BEYOND.search(message):
        return
    refused = second_reads(document)
    check((message is None) == (refused is None),
          f"{document!r}: longhaul: {message or 'read'}; tomllib: {refused or 'read'}")
    if message is None and refused is None:
        wrong = differs(answer["read"], document)
        check(not wrong, f"{document!r}: {wrong}")


def toml_lines(cases):
    """Documents that can be concatenated."""
    return [case for case in cases if isinstance(case, str) and 0 < len(case) < 200 and case[0] != "\ufeff"]


def other_keys(rng, text):
    """Renames keys, so that concatenated documents do not collide."""
    return re.sub(r"\b[abc]\b", lambda word: word[0] + rng.choice("abcd") if rng.random() < 0.5 else word[0], text)


PIECES = ["'", '"', "'''", '"""', "\\", "\n", "\r\n", "\r", " ", "\t", "#", "=", ".", ",", "[", "]", "[[", "]]", "{",
          "}", "_", "-", "+", "0", "1", "9", "e", "x", "o", "b", ":", "T", "Z", "inf", "nan", "true", "a", "b", "\\u",
          "\x01", "\x7f", "\u00e4", "\ufeff", "1979-05-27", "07:32:00", "0x", "a = 1\n", "[a]\n"]


def damage(rng, text):
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.choice([0, 0, 1, 1, 2, 5]))
        text = text[:at] + (rng.choice(PIECES) if rng.random() < 0.7 else "") + text[end:]
    return text


def make_toml(rng, valid, invalid):
    lines = [other_keys(rng, rng.choice(valid)) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.1:
        lines.append(rng.choice(invalid))
    text = "\n".join(lines)
    return to_bytes(damage(rng, text) if rng.random() < 0.6 else text)


def try_toml(program, rng, count):
    valid = [to_bytes(case) for case in toml_cases.VALID + toml_cases.VALID_HERE]
    for document, answer in zip(valid, ours(program, "toml", valid)):
        check("read" in answer, f"toml: {document!r}: {answer.get('error')}")
        if tomllib:
            agree(document, answer)
    refused = toml_cases.INVALID + toml_cases.REFUSED_HERE
    answers = ours(program, "toml", [to_bytes(case[0]) for case in refused])
    check_refusals("toml", refused, answers)
    if not tomllib:
        print("without tomllib: TOML is checked by the cases alone")
        return
    for case, answer in zip(toml_cases.INVALID, answers):
        agree(to_bytes(case[0]), answer)
    lines = toml_lines(toml_cases.VALID), toml_lines(case[0] for case in toml_cases.INVALID)
    documents = [make_toml(rng, *lines) for _ in range(count)]
    answers = ours(program, "toml", documents)
    for document, answer in zip(documents, answers):
        agree(document, answer)
    read = sum("read" in answer for answer in answers)
    check(count < 100 or count // 10 < read < count - count // 10, f"toml: {read} of {count} documents are read")
    print(f"toml: {len(valid)} documents read, {len(refused)} refused; {count} at random, {read} read")


# --- CSV ---

def second_rows(document):
    """Rows read by Python's csv, without empty lines; the error message if it rejects the document."""
    try:
        return [row for row in csv.reader(io.StringIO(document.decode(), newline=""), strict=True) if row]
    except (csv.Error, ValueError) as error:
        return str(error)


CELLS = ["", "x", "1.5", " y ", "\u00e4", '""', '"x"', '"x,y"', '"x\ny"', '"x\r\ny"', '"x""y"', '""""', '" "', "-",
         "a'b", "\t"]
CSV_PIECES = ['"', '""', ",", "\n", "\r\n", "\r", "x", " ", ";", "\x01", "\u00e4", "\ufeff", '"x"', '\n"']


def make_csv(rng):
    width = rng.randint(1, 4)
    rows = [[f"c{i}" for i in range(width)]]
    rows += [[rng.choice(CELLS) for _ in range(width)] for _ in range(rng.randint(0, 4))]
    end = rng.choice(["\n", "\r\n"])
    text = end.join(",".join(row) for row in rows) + rng.choice(["", end])
    for _ in range(rng.choice([0, 0, 1, 2])):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(CSV_PIECES) + text[at + rng.choice([0, 1]):]
    return to_bytes(text)


# Errors of longhaul for documents that csv accepts.
STRICTER = re.compile(r"a quote inside a cell|carriage return that does not end|control character|columns have names|"
                      r"has no name|both called|no line with the names")


def agree_csv(document, answer):
    rows = second_rows(document)
    if "read" in answer:
        check(answer["read"] == rows, f"csv: {document!r}: longhaul: {answer['read']}; csv: {rows}")
        return
    message = answer["error"]
    check(message.startswith("f:"), f"csv: no place: {document!r}: {message}")
    check(STRICTER.search(message) or isinstance(rows, str), f"csv: {document!r}: longhaul: {message}; csv: {rows}")


def try_csv(program, rng, count):
    valid = [(to_bytes(text), rows) for text, rows in csv_cases.VALID + csv_cases.VALID_HERE]
    answers = ours(program, "csv", [document for document, _ in valid])
    for (document, rows), answer in zip(valid, answers):
        check(answer.get("read") == rows, f"csv: {document!r}: {answer}, and should be {rows}")
    for (text, _), answer in zip(csv_cases.VALID, answers):
        agree_csv(to_bytes(text), answer)
    check_refusals("csv", csv_cases.INVALID, ours(program, "csv", [to_bytes(case[0]) for case in csv_cases.INVALID]))
    documents = [make_csv(rng) for _ in range(count)]
    documents = [document for document in documents if not document.startswith(b"\xef\xbb\xbf")]
    answers = ours(program, "csv", documents)
    for document, answer in zip(documents, answers):
        agree_csv(document, answer)
    read = sum("read" in answer for answer in answers)
    check(count < 100 or count // 10 < read < count - count // 10, f"csv: {read} of {count} tables are read")
    print(f"csv: {len(valid)} tables read, {len(csv_cases.INVALID)} refused; {len(documents)} at random, {read} read")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    try_toml(options.program, rng, options.count)
    try_csv(options.program, rng, options.count)
    for failure in failures[:40]:
        print(failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
