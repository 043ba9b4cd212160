#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the program's JSON reader with Python's, on cases known to divide readers and on random
documents.

    like_python.py READ_JSON [--documents N] [--seed N]

Python's json module in strict mode, with the limits of src/base/json, decides which documents
are accepted and what their values are. The reader also reports the position of each value:
Python must read the same value there.
"""
import argparse
import itertools
import json
import random
import re
import subprocess
import sys

DEPTH_MAX = 64
NUMBER_LENGTH_MAX = 60
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

# Documents that JSON readers disagree on, by subject. Accepted by every reader:
TAKEN = {
    "space": [b" [] ", b"[\t\n\r 1\t\n\r ]", b"\n\n{\r\n}\n", b'{ "a" : 1 , "b" : 2 }'],
    "scalars": [b"0", b"-0", b"true", b"false", b"null", b'""', b' "x" ', b"1.5"],
    "numbers": [b"[0,-0,0.0,-0.0,0e0,0E+1,0e-1]", b"[1e5,1E5,1e+05,1e-00005,1.0e5]", b"[123456789012345678901234567890]",
                b"[18446744073709551615,18446744073709551616,-9223372036854775808]", b"[1e308,-1.7976931348623157e308]",
                b"[5e-324,1e-999,-1e-400]", b"[9007199254740993]", b"[0.1,0.30000000000000004]", b"[1" + b"0" * 59 + b"]",
                b"[-0." + b"1" * 57 + b"]"],
    "strings": [b'["\\"\\\\\\/\\b\\f\\n\\r\\t"]', b'["\\u0041\\u00e9\\u20ac\\uFFFF\\uabCD"]', b'["\\ud83d\\ude00"]',
                b'["\\uDBFF\\uDFFF"]', b'["\\u0001\\u001f\\u007f"]', b'["\x7f"]', '["é€😀\U0010ffff"]'.encode(),
                b'["\\\\u0041"]', b'["\\\\"]', b'["\\\\\\""]', b'["/"]', b'["a\\u2028b\xe2\x80\xa8"]', b'["\\ufeff\xef\xbb\xbf"]',
                b'["[{,:}]"]', b'["\\u0022\\u005c"]', b'["true","NaN","null"]'],
    "containers": [b"[]", b"{}", b"[[]]", b"[{}]", b'{"":{}}', b'{"a":[]}', b"[[],[[]],{}]", b'[{"a":{"b":[{"c":[]}]}}]',
                   b"[null,true,false,0,\"\",[],{}]", b"[" * DEPTH_MAX + b"]" * DEPTH_MAX,
                   b"[" + b"[]," * DEPTH_MAX + b"{}]"],
    "keys": [b'{"":0}', b'{"a":1,"A":2}', b'{"a":1,"a ":2}', b'{"a\\u0062":1,"a\\\\u0062":2}', b'{"a":{"a":{"a":1}}}',
             b'[{"a":1},{"a":1}]', b'{"\\"":1,"\\\\":2,"\\\\\\"":3}', b'{"a.b":1,"a[0]":2}', b'{"":1," ":2}',
             '{"é":1,"e\u0301":2}'.encode(), b'{"a:":1,"b\\":":2}'],
}
# Rejected by every strict reader, or by longhaul's limits:
REFUSED = {
    "nothing": [b"", b" ", b"\n", b"\x00", b"\xef\xbb\xbf", b"\xef\xbb\xbf[]", b"\xef\xbb\xbf1", b"\xfe\xff\x00[\x00]", b"[\x00\x00]"],
    "space": [b"\x0b[]", b"[\x0c]", b"[\xc2\xa01]", b"[\xe2\x81\xa0]", b"\x00[]", b"[1]\x00", b"[1\x01]", b"[\x1f1]", b"{\x08}",
              b'{"a"\x07:1}', b"[1,\x0b2]", b"\x85[]"],
    "behind": [b"[] []", b"[]]", b"{}}", b"1 2", b"true false", b"[],", b"{},", b"[]x", b"null;", b"[]#", b"1,", b'""""'],
    "words": [b"nul", b"nulll", b"True", b"[truefalse]", b"tru e", b"[fals]", b"[nullx]", b"[true1]", b"undefined", b"[NULL]"],
    "numbers": [b"01", b"-01", b"00", b"-", b"--1", b"+1", b"[+1]", b"1.", b"-1.", b".5", b"-.5", b"[1.e1]", b"1e", b"1e+", b"1E-",
                b"1.5.5", b"1e5.5", b"1e5e5", b"1-1", b"1+1", b"0x1", b"0b1", b"1_000", b"1,000", b"- 1", b"1 .5", b"1e 5", b"1a",
                b"[1e999]", b"-1e999", b"0e", b"0.", b"[0.e1]", b"1e1.0", b"1f", b"1L", b"[1" + b"0" * 60 + b"]",
                "[１]".encode(), "[٣]".encode(), b"[-0.0.0]", b"[2.e3]", b"[0e+-1]", b"[0-]", b"[1\x00]", b"0123e1"],
    "python": [b"NaN", b"[Infinity]", b"[-Infinity]", b'{"a":NaN}', b"[-NaN]", b"[inf]", b"[nan]", b"[NaN1]", b"[Infinit]"],
    "strings": [b'"', b'"a', b'["a]', b'["\\"]', b'"\\', b'["\\x41"]', b'["\\0"]', b'["\\a"]', b'["\\\'"]', b'["\\u"]', b'["\\u1"]',
                b'["\\u12"]', b'["\\u123"]', b'["\\u123"', b'["\\u00g0"]', b'["\\u+041"]', b'["\\u 041"]', b'["\\U0041"]',
                b'["\\u0000"]', b'{"\\u0000":1}', b"['a']", b"[a]", b'["a\nb"]', b'["a\tb"]', b'["\x00"]', b'["\x1f"]', b'["a\rb"]',
                b'["a\x00b"]', b'["\\\n"]', b'["\\\xc3\xa9"]', b'["a" "b"]', b'"a"b"', b'["\\u004\xc3\xa9"]'],
    "surrogates": [b'["\\ud800"]', b'["\\udc00"]', b'["\\ud800\\ud800"]', b'["\\udc00\\ud800"]', b'["\\ud800x"]', b'["\\ud800\\n"]',
                   b'["\\ud800\\u0041"]', b'["\\ud83d\\\\ude00"]', b'["\\ud83d\\u"]', b'["\\uDBFF\\uE000"]', b'["\\ud83d \\ude00"]'],
    "utf-8": [b'["\x80"]', b'["\xc0\xaf"]', b'["\xc1\xbf"]', b'["\xe0\x80\xaf"]', b'["\xed\xa0\x80"]', b'["\xed\xbf\xbf"]',
              b'["\xf0\x80\x80\xaf"]', b'["\xf4\x90\x80\x80"]', b'["\xf8\x88\x80\x80\x80"]', b'["\xff"]', b'["\xfe"]', b'["\xc3"]',
              b'["\xc3', b'["\xe2\x82"]', b'["\xf0\x9f\x98"]', b'{"\xe9":1}', b"[\xe9]", b"\xe9", b'["\xc3\xa9\xa9"]'],
    "arrays": [b"[", b"]", b"[1", b"[1,", b"[1,]", b"[,1]", b"[,]", b"[1,,2]", b"[1 2]", b"[1:2]", b"[1;2]", b"[1}", b"[[1]", b"[]]]",
               b"(1)", b"[1,2", b"[[", b"[{", b'["a",', b"[1]]"],
    "objects": [b"{", b"}", b"{,}", b'{"a"}', b'{"a":}', b'{"a":1', b'{"a":1,', b'{"a":1,}', b'{"a":1,,"b":2}', b'{"a" 1}', b'{"a"::1}',
                b"{a:1}", b"{'a':1}", b"{1:1}", b"{null:1}", b"{[]:1}", b"{{}:1}", b'{"a":1 "b":2}', b'{"a":1]', b'{"a",1}', b'{:1}',
                b'{"a":1;"b":2}', b'{"a"=1}', b'{"a":1:2}', b'{"a":"b":1}', b'{"a', b'{"a"', b'{"a":', b"{]", b'{"a":[}'],
    "keys": [b'{"a":1,"a":1}', b'{"a":1,"b":2,"a":3}', b'{"a":1,"\\u0061":2}', b'{"":1,"":2}', b'[{"x":{"a":1,"a":2}}]',
             '{"é":1,"\\u00e9":2}'.encode(), b'{"\\/":1,"/":2}', b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":2}'],
    "comments": [b"// a\n1", b"1 // a", b"/* a */ 1", b"[1, # a\n2]", b"[1 /**/]", b"<!-- --> 1", b'{"a":1 /*b*/}'],
    "depth": [b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), b'{"a":' * (DEPTH_MAX + 1) + b"1" + b"}" * (DEPTH_MAX + 1),
              b"[" * 100000, b'[{"a":' * 50000],
}


class Refused(Exception):
    """The document is not accepted."""


class Number(str):
    """A number as text."""


def number(text):
    if len(text) > NUMBER_LENGTH_MAX or abs(float(text)) == float("inf"):
        raise Refused
    return Number(text)


def constant(text):
    raise Refused


def pairs(members):
    if len(dict(members)) != len(members):
        raise Refused
    return dict(members)


def check_limits(value, depth=0):
    """Strings that are not valid text, and nesting beyond the limit."""
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
        raise Refused
    if isinstance(value, (dict, list)):
        if depth == DEPTH_MAX:
            raise Refused
        for inner in itertools.chain(value, value.values()) if isinstance(value, dict) else value:
            check_limits(inner, depth + 1)


def read(document, constants=constant):
    """The value of a document, or Refused."""
    try:
        text = document.decode("utf-8")
        value = json.loads(text, parse_int=number, parse_float=number, parse_constant=constants, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as wrong:
        raise Refused from wrong
    check_limits(value)
    return value


def value_of(document, words):
    """Takes the words of one value from the front and returns the value, which must also be at the
    reported position."""
    word = words.pop(0)
    kind, first, end, text = re.fullmatch(r"(.)@(\d+)-(\d+)(?::(.*))?", word).groups()
    if kind == "{":
        value = {}
        while words[0] != ")":
            at, key = re.fullmatch(r"k@(\d+):(.*)", words.pop(0)).groups()
            key = bytes.fromhex(key).decode()
            written = STRING.match(document, int(at)).group()
            assert json.loads(written) == key, (word, written, key)
            value[key] = value_of(document, words)
        words.pop(0)
    elif kind == "[":
        value = []
        while words[0] != ")":
            value.append(value_of(document, words))
        words.pop(0)
    else:
        value = {"s": lambda: bytes.fromhex(text).decode(), "t": lambda: True, "f": lambda: False, "n": lambda: None}.get(
            kind, lambda: Number(document[int(first):int(end)].decode()))()
    there = read(document[int(first):int(end)], Number)
    assert there == value and isinstance(there, type(value)), (word, there, value)
    return value


def check(document, answer, constants):
    """What is wrong with the reader's answer; None if nothing."""
    try:
        expected = read(document, constants)
    except Refused:
        return None if answer.startswith("no t:") else "is taken"
    words = answer.split()
    if words.pop(0) != "yes":
        return "is refused"
    try:
        value = value_of(document, words)
    except (AssertionError, Refused, ValueError, AttributeError) as wrong:
        return f"has something else where it says: {wrong!r}"
    return None if value == expected and not words else f"is read as {value}"


def random_string(rng):
    pieces = [b"a", b"b", b" ", b"[", b"{", b",", b":", b"\\\"", b"\\\\", b"\\/", b"\\n", b"\\u0041", b"\\u00e9", b"\\ud83d\\ude00",
              "é".encode(), "😀".encode(), b"\\ufeff", b"NaN", b"Infinity"]
    return b'"' + b"".join(rng.choices(pieces, k=rng.choice([0, 1, 1, 2, 5]))) + b'"'


def random_number(rng):
    text = rng.choice(["", "-"]) + rng.choice(["0", str(rng.randrange(1, 10)), str(rng.getrandbits(rng.choice([8, 54, 64, 70])) + 1)])
    text += rng.choice(["", "", "." + str(rng.randrange(1000)), ".0"])
    return (text + rng.choice(["", "", rng.choice("eE") + rng.choice(["", "+", "-"]) + str(rng.randrange(300))])).encode()


def random_value(rng, depth, constants):
    space = lambda: rng.choice([b"", b"", b"", b" ", b"\n", b"\t \r\n"])
    kind = rng.randrange(8 if depth < 5 else 5)
    if kind < 2:
        return random_number(rng) if not constants or rng.random() < 0.5 else rng.choice([b"NaN", b"Infinity", b"-Infinity"])
    if kind < 4:
        return random_string(rng)
    if kind == 4:
        return rng.choice([b"true", b"false", b"null"])
    inner = [space() + (random_string(rng) + space() + b":" + space() if kind == 5 else b"") + random_value(rng, depth + 1, constants)
             + space() for _ in range(rng.choice([0, 1, 2, 3, 6]))]
    return (b"{" if kind == 5 else b"[") + (b",".join(inner) or space()) + (b"}" if kind == 5 else b"]")


def damaged(rng, document):
    """Changes, removes or repeats a few bytes."""
    marks = b'[]{},:"\\ \t\n\x00\x1f\x7f\x80\xc3\xff0123456789+-.eEuntfNI/'
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(document) + 1)
        document = rng.choice([document[:at] + bytes([rng.choice(marks)]) + document[at + 1:],
                               document[:at] + bytes([rng.choice(marks)]) + document[at:], document[:at] + document[at + 1:],
                               document[:at], document[:at] + document[max(at - 3, 0):]])
    return document


def random_documents(seed, count, constants):
    rng = random.Random(seed)
    for _ in range(count):
        document = random_value(rng, 0, constants)
        yield document
        yield damaged(rng, document)


def run(program, documents, constants):
    """Wrong answers of the reader to the documents."""
    lines = "".join(document.hex() + "\n" for document in documents)
    python = ["python"] if constants is Number else []
    done = subprocess.run([program, *python], input=lines, capture_output=True, text=True, check=True, errors="surrogateescape")
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(documents), (len(answers), len(documents))
    for document, answer in zip(documents, answers):
        wrong = check(document, answer, constants)
        if wrong is not None:
            yield f"{document[:200]!r} {wrong}; the reader says: {answer[:300]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--documents", type=int, default=5000, help="random ones, each also damaged")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    taken, refused = [sum(cases.values(), []) for cases in (TAKEN, REFUSED)]
    complaints = []
    for document, expected in [(d, True) for d in taken] + [(d, False) for d in refused]:
        try:
            read(document)
            is_taken = True
        except Refused:
            is_taken = False
        if is_taken != expected:
            complaints.append(f"{document[:200]!r}: Python thinks otherwise")
    for constants in (constant, Number):
        documents = taken + refused + list(random_documents(arguments.seed, arguments.documents, constants is Number))
        complaints += run(arguments.program, documents, constants)
    print(f"{len(taken)} documents to be taken, {len(refused)} to be refused, {4 * arguments.documents} by chance")
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
