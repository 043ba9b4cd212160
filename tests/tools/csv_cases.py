# SPDX-License-Identifier: Apache-2.0
"""Test tables for every rule of RFC 4180, and for longhaul's own: named columns, rows with as many cells as names.

Written for longhaul from the text of the RFC. INVALID has the place and a part of the error message.
"""

# Valid tables with their cells.
VALID = [
    ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]), ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
    ("a,b\n1,2", [["a", "b"], ["1", "2"]]), ("a", [["a"]]), ("a,b\r\n1,2\n3,4", [["a", "b"], ["1", "2"], ["3", "4"]]),
    ("a,b\n1,\n", [["a", "b"], ["1", ""]]), ("a,b\n,\n", [["a", "b"], ["", ""]]),
    ("a,b\n,2\n", [["a", "b"], ["", "2"]]), ("a,b,c\n,,", [["a", "b", "c"], ["", "", ""]]),
    ("a\n\"\"\n", [["a"], [""]]), ("a,b\n\"\",\"\"", [["a", "b"], ["", ""]]),
    ("\"a\",\"b\"\n\"1\",\"2\"\n", [["a", "b"], ["1", "2"]]), ("a,b\n\"1,2\",3\n", [["a", "b"], ["1,2", "3"]]),
    ("a,b\n\"x\"\"y\",3\n", [["a", "b"], ["x\"y", "3"]]), ("a\n\"\"\"\"\n", [["a"], ["\""]]),
    ("a\n\"\"\"\"\"\"\n", [["a"], ["\"\""]]),
    ("a\n\"\"\"x\"\"\"\n", [["a"], ["\"x\""]]), ("a,b\n\"x\ny\",3\n", [["a", "b"], ["x\ny", "3"]]),
    ("a,b\n\"x\r\ny\",3\r\n", [["a", "b"], ["x\r\ny", "3"]]), ("a,b\n\"x\ry\",3\n", [["a", "b"], ["x\ry", "3"]]),
    ("a\n\"\n\n\"\n", [["a"], ["\n\n"]]),
    ("\"a\nb\",c\n1,2", [["a\nb", "c"], ["1", "2"]]), ("a,b\n 1 , 2 \n", [["a", "b"], [" 1 ", " 2 "]]),
    ("a b,c\n1,2", [["a b", "c"], ["1", "2"]]), ("a\n\t\n", [["a"], ["\t"]]),
    ("a\n\u00e4\u20ac\U0001f600\n", [["a"], ["\u00e4\u20ac\U0001f600"]]),
    ("a\n\u00a0\n", [["a"], ["\u00a0"]]), ("a\nx\u2028y\n", [["a"], ["x\u2028y"]]),
    ("a\n;'`\\|\n", [["a"], [";'`\\|"]]), ("a\n\" \"\n", [["a"], [" "]]), ("a,b\nx,\"y\"", [["a", "b"], ["x", "y"]]),
    ("a,b\n\"x\",y", [["a", "b"], ["x", "y"]]),
    ("a;b\n1;2\n", [["a;b"], ["1;2"]]), ("a,A\n1,2", [["a", "A"], ["1", "2"]]), ("a\n\"x\\\"\n", [["a"], ["x\\"]]),
    ("a\n\"# x\"\n", [["a"], ["# x"]]), ("a,b\nx,#y\n", [["a", "b"], ["x", "#y"]]),
    ("a\n\"x\n# y\"\n", [["a"], ["x\n# y"]]),
]

# Read by longhaul, and differently by Python's csv: a byte order mark, comments, empty lines.
VALID_HERE = [
    ("\ufeffa,b\n1,2\n", [["a", "b"], ["1", "2"]]), ("\ufeff\"a\",b\n", [["a", "b"]]),
    ("# x\na\n# y, \"z\n1\n", [["a"], ["1"]]), ("\n\r\na,b\n\n1,2\n\r\n\n", [["a", "b"], ["1", "2"]]),
    ("\ufeff# x\na\n", [["a"]]),
]

INVALID = [
    ("", "", "no line with the names"), ("\n\n", "", "no line with the names"), ("# a\n", "", "no line with the names"),
    ("\ufeff", "", "no line with the names"), ("a,\n", "1", "column 2 has no name"),
    ("\"\",a\n", "1", "column 1 has no name"), ("a,b,a\n", "1", "both called \"a\""),
    ("a,b\n1\n", "2", "1 cells"), ("a,b\n1,2,3\n", "2", "3 cells"), ("a,b\n1,2,\n", "2", "3 cells"),
    ("a,b\n1,2\n\"x\ny\"\n", "3", "1 cells"), ("a\n,\n", "2", "2 cells"), ("a,b\n1,2\n3;4\n", "3", "1 cells"),
    ("a\nx\"y\n", "2:2", "a quote inside a cell"), ("a\n \"x\"\n", "2:2", "a quote inside a cell"),
    ("a\n\"x\"y\n", "2:4", "text after a closing quote"), ("a\n\"x\" \n", "2:4", "text after a closing quote"),
    ("a,b\n\"x\"\"y,1\n", "2:1", "has no end"), ("a\n\"x\"\"\n", "2:1", "has no end"),
    ("a\n\"x", "2:1", "has no end"), ("a\n\"", "2:1", "has no end"), ("a,b\n1,\"2\n3,4\n", "2:3", "has no end"),
    ("a\n\"\"\"\n", "2:1", "has no end"), ("a\n\"\"x\n", "2:3", "text after a closing quote"),
    ("a\n\"x\"\"\"\"y\"z\n", "2:9", "text after a closing quote"), ("\"a\"b\n", "1:4", "text after"),
    ("a\r1\r", "1:2", "a carriage return that does not end a line"),
    ("a\n1\r", "2:2", "a carriage return that does not end a line"),
    ("a\n\"1\"\r", "2:4", "a carriage return that does not end a line"),
    ("a\r\r\n", "1:2", "a carriage return that does not end a line"), ("a\n\u00e4\r1\n", "2:2", "a carriage return"),
    ("a\nx\x01\n", "2:2", "control character 0x01"), ("a\n\"x\n\x1b[1m\"\n", "3:1", "control character 0x1b"),
    ("a\n\x7f\n", "2:1", "control character 0x7f"), ("a\x0b\n", "1:2", "control character 0x0b"),
    ("a\n\x0c\n", "2:1", "control character 0x0c"),
    (b"a\n\xff\n", "2:1", "not UTF-8"), (b"a\n1\n\xc3\xa4\xc3\n", "3:2", "not UTF-8"),
    (b"a\n\0\n", "2:1", "a NUL byte"), (b"\xff\xfea\0", "1:1", "not UTF-8"), (b"# \xff\na\n", "1:3", "not UTF-8"),
    (b"a\n\"\xed\xa0\x80\"\n", "2:2", "not UTF-8"),
]
