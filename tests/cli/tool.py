# SPDX-License-Identifier: Apache-2.0
"""Runs the program in a folder of its own, for the tests beside this file."""

import decimal
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Tool:
    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), folder
        self.environment = dict(os.environ, LC_ALL="C", LONGHAUL_DATA_DIR=str(ROOT))

    def run(self, *words):
        return subprocess.run([self.program, *words], env=self.environment, check=False, text=True,
                              capture_output=True, cwd=self.folder, stdin=subprocess.DEVNULL)

    def call(self, *words, status=0):
        done = self.run(*words)
        assert done.returncode == status, (words, done.returncode, done.stderr)
        return done

    def json(self, name):
        return json.loads((self.folder / name).read_text(), parse_float=decimal.Decimal)
