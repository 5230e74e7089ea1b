#!/usr/bin/env python3
"""Shows that each lint speaks up: small trees with one fault each, and one tree without a fault."""

import importlib
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from tree import Tree  # noqa: E402

TEST = "// Mistake that would live without it: x.\n"
SOUND = {
    "README.md": "| G1 | **Never early.** |\n",
    "include/punctual/time.hpp": "// Time.\n#pragma once\n#include <punctual/platform/config.hpp>\n#include <chrono>\n",
    "include/punctual/platform/config.hpp": "// Facts.\n#pragma once\n#include <unistd.h>\n#ifdef __linux__\n#endif\n",
    "include/punctual/interrupt.hpp": "// Stops.\n#pragma once\n#include <stop_token>\n// #include <iostream>, _WIN32\n",
    "tests/unit/time.test.cpp": TEST + '#include "x"\nTEST_CASE("time moves", "[time][G1]") {}\n',
    "tests/mutants/late.mutant": "bug: x\ntags: [G1]\n",
}
FAULTS = [  # lint, file, what is put there, what the lint must say
    ("layers", "include/punctual/time.hpp", "#include <punctual/sleeper.hpp>", "goes up, from L1 to L3"),
    ("layers", "include/punctual/time.hpp", '#include "punctual/pacer.hpp"', "goes up, from L1 to L4"),
    ("layers", "include/punctual/spin/spinner.hpp", "#include <punctual/estimate/margin.hpp>", "never see"),
    ("layers", "include/punctual/estimate/margin.hpp", "#include <punctual/spin/spinner.hpp>", "never see"),
    ("layers", "include/punctual/sleep.hpp", "#include <stop_token>", "only interrupt.hpp"),
    ("layers", "include/punctual/sleep.hpp", "# include <condition_variable>", "only interrupt.hpp"),
    ("layers", "include/punctual/pacer.hpp", "#include <thread>", "only platform/portable.hpp"),
    ("layers", "include/punctual/interrupt.hpp", "#include <iostream>", "no header may"),
    ("layers", "include/punctual/platform/windows.hpp", "#include <windows.h>", "no header may"),
    ("layers", "include/punctual/host.hpp", "#include <sched.h>", "belongs in platform/"),
    ("layers", "include/punctual/odd.hpp", "// Odd.", "has no layer"),
    ("layers", "include/punctual/sleep.hpp", "#include <punctual/testing/kernels.hpp>", "but itself"),
    ("layers", "include/punctual/sleep.hpp", "#include HEADER", "by macro"),
    ("layers", "include/punctual/punctual.h", "#include <chrono>", "belongs in platform/"),
    ("predefined", "include/punctual/time.hpp", "#ifdef __linux__", "__linux__ belongs"),
    ("predefined", "include/punctual/time.hpp", "#  if defined(_WIN32)", "_WIN32 belongs"),
    ("predefined", "include/punctual/time.hpp", "int a = __builtin_clz(b);", "__builtin_clz belongs"),
    ("predefined", "include/punctual/time.hpp", "#if __SIZEOF_INT128__", "__SIZEOF_INT128__ belongs"),
    ("words", "README.md", "see /wo" + "rk/main", "a path of one machine"),
    ("words", "README.md", "A" + "I made it", "a tool that wrote it"),
    ("words", "README.md", "by a sub" + "agent", "the workplace"),
    ("words", "tests/unit/x.cpp", "// SPD" + "X-License-Identifier: x", "a licence"),
    ("words", "LICENSE", "do as you like", "a licence"),
    ("promises", "README.md", "| G1 | a |\n| G2 | b |", "G2 has no test"),
    ("promises", "README.md", "| G1 | a |\n| G2 | b |", "G2 has no mutant"),
    ("promises", "README.md", "| G1 | a |\n| G1 | b |", "promised twice"),
    ("promises", "README.md", "nothing is promised", "no table row"),
    ("promises", "tests/unit/a.test.cpp", 'TEST_CASE("b", "[c]"\n  "[G9]") {', "[G9] is no promise"),
    ("promises", "tests/mutants/a.mutant", "tags: [G9]", "[G9] is no promise"),
    ("openings", "include/punctual/time.hpp", "#pragma once\n", "saying what it is"),
    ("openings", "include/punctual/time.hpp", "// Time.\n", "no #pragma once"),
    ("openings", "examples/a.cpp", "//" + "x" * 99, "101 columns"),
    ("openings", "tests/unit/a.test.cpp", "// Time.\n", "the mistake that would live"),
    ("openings", "tests/unit/a.test.cpp", TEST + 'TEST_CASE("it should be", "[x]") {', "speaks of testing"),
    ("openings", "tests/unit/a.test.cpp", TEST + 'TEST_CASE("a; b", "[x]") {', "has a semicolon"),
    ("openings", "tests/unit/a.test.cpp", TEST + 'TEST_CASE("it is", "[G1]") {', "no subject's tag"),
    ("openings", "tests/unit/a.test.cpp", TEST + 'TEST_CASE("it is") {', "no subject's tag"),
]


def problems(lint, files):
    with tempfile.TemporaryDirectory(prefix="punctual-lint-") as folder:
        for path, text in files.items():
            target = pathlib.Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return list(importlib.import_module(lint).check(Tree(folder)))


def main():
    wrong = []
    for lint in sorted({fault[0] for fault in FAULTS}):
        wrong += [f"{lint} on a sound tree: {line}" for line in problems(lint, SOUND)]
    for lint, path, text, expected in FAULTS:
        if not any(path in line and expected in line for line in problems(lint, {**SOUND, path: text})):
            wrong.append(f"{lint} lets pass, in {path}: {text}")
    print("\n".join(wrong) if wrong else f"{len(FAULTS)} faults, each found")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
