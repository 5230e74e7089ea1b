"""sleep.hpp stays light: neither <stop_token> nor <condition_variable>, however indirectly.

Usage: light_headers.py COMPILER
"""

import pathlib
import sys

from common import finish, run

HEAVY = {"stop_token", "condition_variable", "iostream"}


def heavy(header):
    code, output, errors = run(sys.argv[1], "-std=c++20", "-Iinclude", "-M", "-x", "c++", "-", stdin=f"#include <{header}>\n")
    if code:
        finish([errors], "")
    files = output.replace("\\\n", " ").split()
    return sorted({pathlib.Path(f).name for f in files} & HEAVY)


if heavy("stop_token") != ["stop_token"]:
    finish(["the compiler does not tell what it includes"], "")
finish([f"punctual/sleep.hpp includes <{name}>" for name in heavy("punctual/sleep.hpp")], "sleep.hpp is light")
