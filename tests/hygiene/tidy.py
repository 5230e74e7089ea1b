"""clang-tidy 14 and clang 14's own warnings find nothing in any header, nor in a use of every name.

With PUNCTUAL_LONG in the environment, nor in any example. Usage: tidy.py BUILD_FOLDER
"""

import concurrent.futures
import os
import pathlib
import sys

from common import ROOT, WARNINGS, finish, headers, need, run

tool = need("clang-tidy-14")
folder = pathlib.Path(sys.argv[1])


def unit_of(name, includes):
    unit = folder / f"{name}.cpp"
    unit.write_text("".join(f"#include <{header}>\n" for header in includes))
    return unit


def tidy(unit):
    config = f"--config-file={ROOT}/.clang-tidy"
    flags = ["-std=c++20", f"-I{ROOT}/include", f"-I{ROOT}/tests", f"-I{folder}/include", *WARNINGS]
    code, output, errors = run(tool, "--quiet", config, unit, "--", *flags)
    lines = [line for line in output.splitlines() if ": error:" in line or ": warning:" in line]
    return lines or ([f"{unit}: {errors}"] if code else [])


# A fault in a header, which must be seen, or nothing would be.
fault = folder / "include/punctual/fault.hpp"
fault.parent.mkdir(parents=True, exist_ok=True)
fault.write_text("inline double half(int x) { return x / 2; }\n")
if not any("bugprone-integer-division" in line for line in tidy(unit_of("fault", ["punctual/fault.hpp"]))):
    finish([f"{tool} does not find a fault that was put there"], "")

# The headers of the processors fill one seam, so they define the same names: one unit each.
processors = [header for header in headers() if "/platform/cpu/" in header]
units = [unit_of("every_header", [header for header in headers() if header not in processors])]
units += [unit_of(pathlib.Path(header).stem, [header]) for header in processors]
units += [ROOT / "tests/contract/api_surface.cpp"]
if "PUNCTUAL_LONG" in os.environ:
    units += sorted((ROOT / "examples").glob("*.cpp"))

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = dict.fromkeys(line for lines in pool.map(tidy, units) for line in lines)
finish(list(found), f"{len(units)} files are tidy")
