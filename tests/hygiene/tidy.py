"""clang-tidy 14 and clang 14's own warnings find nothing in any header, nor in a use of every name.

Usage: tidy.py BUILD_FOLDER
"""

import concurrent.futures
import pathlib
import sys

from common import ROOT, WARNINGS, finish, headers, need, run

tool = need("clang-tidy-14")


def unit_of(name, includes):
    unit = pathlib.Path(sys.argv[1]) / f"{name}.cpp"
    unit.write_text("".join(f"#include <{header}>\n" for header in includes))
    return unit


# The headers of the processors fill one seam, so they define the same names: one unit each.
processors = [header for header in headers() if "/platform/cpu/" in header]
units = [unit_of("every_header", [header for header in headers() if header not in processors])]
units += [unit_of(pathlib.Path(header).stem, [header]) for header in processors]
units += [*(ROOT / "tests/contract").glob("api_surface.cpp"), *sorted((ROOT / "examples").glob("*.cpp"))]


def tidy(unit):
    code, output, errors = run(tool, "--quiet", unit, "--", "-std=c++20", "-Iinclude", "-Itests", *WARNINGS)
    lines = [line for line in output.splitlines() if ": error:" in line or ": warning:" in line]
    return lines or ([f"{unit}: {errors}"] if code else [])


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = dict.fromkeys(line for lines in pool.map(tidy, units) for line in lines)
finish(list(found), f"{len(units)} files are tidy")
