"""support/catch.hpp chooses between Catch2's versions: where version 3 is there, all of it and nothing of version 2.

Usage: catch_bridge.py COMPILER. Debian 12 has version 2 only, so that version 3 is a folder of headers that have its
names and no contents: which of them are included, and who brings main, is what can be shown there.
"""

import pathlib
import re
import sys
import tempfile

from common import ROOT, finish, run

COMPILER = sys.argv[1]
VERSION_3 = {  # the headers of version 3 that have what the tests use, and a stand-in for that
    "catch_test_macros.hpp": "#define TEST_CASE(...) static void a_case()\n#define SECTION(...) if (true)\n"
    "#define CHECK(...) static_cast<void>(__VA_ARGS__)\n#define REQUIRE(...) CHECK(__VA_ARGS__)",
    "catch_template_test_macros.hpp": "#define TEMPLATE_TEST_CASE(...) template <class TestType> void of_types()",
    "catch_message.hpp": "#define INFO(...)\n#define CAPTURE(...)",
    "catch_approx.hpp": "namespace Catch { struct Approx { explicit Approx(double) {} }; }",
    "catch_tostring.hpp": "namespace Catch { template <class> struct StringMaker; }",
    "generators/catch_generators_all.hpp": "#define GENERATE(first, ...) (first)",
}
USE = """#include "support/catch.hpp"
TEST_CASE("a", "[b]") {
  SECTION("c") { CHECK(GENERATE(1, 2) > 0); }
  INFO("d");
  CAPTURE(1);
  REQUIRE(true);
  static_cast<void>(Catch::Approx(1.0));
}
"""
problems = []


def included(*flags):
    """The Catch2 headers that the bridge brings, each as below catch2/; one folder deep at most."""
    code, output, errors = run(COMPILER, "-std=c++20", "-Itests", *flags, "-M", "-x", "c++", "-", stdin=USE)
    if code:
        finish([errors], "")
    return set(re.findall(r"/catch2/((?:generators/)?\w+[.]hpp)", output))


def brings_main(*flags):
    source = ROOT / "tests/support/catch_main.cpp"
    code, output, errors = run(COMPILER, "-std=c++20", "-w", "-Itests", *flags, "-E", source)
    if code:
        finish([errors], "")
    return re.search(r"\bint main\s*\(", output) is not None


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name) / "catch2"
    (folder / "generators").mkdir(parents=True)
    for header, contents in VERSION_3.items():
        (folder / header).write_text("#pragma once\n" + contents + "\n")
    there = f"-I{name}"
    missing = set(VERSION_3) - included(there)
    if missing:
        problems.append(f"of version 3, {' '.join(sorted(missing))} is not included")
    if "catch.hpp" in included(there):
        problems.append("version 2 is included beside version 3")
    if brings_main(there):
        problems.append("there are two mains with version 3, whose library has its own")
    code, _, errors = run(COMPILER, "-std=c++20", "-Itests", there, "-fsyntax-only", "-x", "c++", "-", stdin=USE)
    if code:
        problems.append(errors)

said = "version 3 is chosen where it is there"
code, _, _ = run(COMPILER, "-E", "-x", "c++", "-", stdin="#include <catch2/catch.hpp>")
if code == 0:
    said += ", version 2 elsewhere"
    if "catch.hpp" not in included() or not brings_main():
        problems.append("version 2, which is installed, is not included, or brings no main")
finish(problems, said)
