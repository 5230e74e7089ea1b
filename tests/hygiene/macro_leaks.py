"""Whoever includes a header of ours gets no macro but PUNCTUAL_*. Usage: macro_leaks.py COMPILER"""

import re
import sys

from common import finish, headers, run


def leaks(compiler, header):
    """Names that files of ours define and do not undefine, from the preprocessor's own account."""
    flags = ["-std=c++20", "-Iinclude", "-E", "-dD", "-x", "c++", "-"]
    code, output, errors = run(compiler, *flags, stdin=f"#include <{header}>\n")
    if code:
        return [f"{header}: {errors}"]
    ours, found = False, {}
    for line in output.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker[1].startswith("include/punctual/")
            continue
        directive = re.match(r"#(define|undef) (\w+)", line)
        if directive and ours:
            found[directive[2]] = directive[1] == "define"
    names = [name for name, defined in found.items() if defined and not name.startswith("PUNCTUAL_")]
    return [f"{header}: leaves the macro {name} behind" for name in names]


everything = headers()
# A sound preprocessor names at least these, or the check sees nothing at all.
code, output, _ = run(sys.argv[1], "-Iinclude", "-E", "-dD", "-x", "c++", "-", stdin="#include <punctual/version.hpp>\n")
if "#define PUNCTUAL_VERSION_MAJOR" not in output:
    finish(["the preprocessor does not tell what is defined"], "")
finish([line for header in everything for line in leaks(sys.argv[1], header)], f"{len(everything)} headers")
