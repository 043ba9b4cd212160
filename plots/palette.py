#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives PNG files a palette, with which figures take less than half of the bytes: palette.py FILE.png...

Reads 8-bit RGB without interlacing, as gnuplot's pngcairo writes it. The 256 commonest colours stay as they are, the
others (edges of letters and areas) become the nearest of these.
"""

import collections
import pathlib
import struct
import sys
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS_MAX = 256
PIXEL_BYTES = {2: 3, 6: 4}  # by colour type: RGB, RGBA


def chunks(data):
    at = len(SIGNATURE)
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def paeth(left, above, corner):
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))


def unfiltered(line, above, kind, step):
    """A line of bytes from its differences to pixels to the left and above."""
    if kind == 2:
        return bytes((x + up) & 255 for x, up in zip(line, above))
    line = bytearray(line)
    for i in range(len(line) if kind else 0):
        left, corner = (line[i - step], above[i - step]) if i >= step else (0, 0)
        line[i] = (line[i] + (left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[kind - 1]) & 255
    return bytes(line)


def rows_of(path):
    """Width, and the RGB pixels of each row."""
    data = path.read_bytes()
    width, height, depth, colour, *_, interlaced = struct.unpack(">IIBBBBB", dict(chunks(data))[b"IHDR"])
    if not data.startswith(SIGNATURE) or depth != 8 or colour not in PIXEL_BYTES or interlaced:
        sys.exit(f"{path}: not an 8-bit RGB picture")
    step = PIXEL_BYTES[colour]
    packed = zlib.decompress(b"".join(body for kind, body in chunks(data) if kind == b"IDAT"))
    above, rows = bytes(width * step), []
    for y in range(height):
        start = y * (width * step + 1)
        above = unfiltered(packed[start + 1:start + 1 + width * step], above, packed[start], step)
        rows.append([above[x:x + 3] for x in range(0, width * step, step)])
    return width, rows


def indices(rows):
    """The palette, and the index of each colour."""
    common = [pixel for pixel, _ in collections.Counter(p for row in rows for p in row).most_common()]
    palette = common[:COLOURS_MAX]
    index = {pixel: i for i, pixel in enumerate(palette)}
    for pixel in common[COLOURS_MAX:]:
        index[pixel] = min(range(COLOURS_MAX), key=lambda i: sum((a - b) ** 2 for a, b in zip(pixel, palette[i])))
    return palette, index


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def store(path):
    width, rows = rows_of(path)
    palette, index = indices(rows)
    lines = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in rows)
    path.write_bytes(SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)) +
                     chunk(b"PLTE", b"".join(palette)) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        store(pathlib.Path(name))
