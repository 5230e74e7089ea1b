"""clang 14, the oldest that is promised, compiles every example and benchmark without a warning.

The test programs, too, in `tests/run --long` (preset `clang`): all of them take minutes.

Usage: clang.py BUILD_FOLDER, whose compile_commands.json says how each is compiled.
"""

import concurrent.futures
import json
import pathlib
import shlex
import sys

from common import ROOT, finish, need, run

OTHERS = ("-Winvalid-pch", "-fsanitize", "-fno-sanitize", "-c")  # words for the other compiler only

tool = need("clang++-14")
build = pathlib.Path(sys.argv[1])


def commands():
    """One command for each source of ours, to look at it and write nothing."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        ours = ROOT in source.parents and build not in source.parents
        ours = ours and not source.name.endswith(".test.cpp") and source.name != "catch_main.cpp"
        if not ours or source.suffix != ".cpp" or source in found:
            continue
        words = iter(shlex.split(entry["command"])[1:])
        kept = []
        for word in words:
            if word in ("-o", "-include"):
                next(words)
            elif not word.startswith(OTHERS):
                kept.append("-std=c++2b" if word == "-std=c++23" else word)
        found[source] = [tool, "-fsyntax-only", "-Werror", *kept]
    return found


def look(command):
    code, _, errors = run(*command)
    return [line for line in errors.splitlines() if "error:" in line] or ([errors] if code else [])


every = commands()
if not every:
    finish([f"{build}/compile_commands.json names no source of ours"], "")
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = dict.fromkeys(line for lines in pool.map(look, every.values()) for line in lines)
finish(list(found), f"{len(every)} files")
