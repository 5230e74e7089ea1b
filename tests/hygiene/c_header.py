"""punctual.h is good C99, C11, C23 and C++ alone and twice; it declares what is defined, and no macro but
PUNCTUAL_*."""

import re
import shutil
import sys

from common import SKIPPED, finish, run, tree

INCLUDED = "#include <punctual/punctual.h>\n"
STRICT = "-pedantic -Werror -Wall -Wextra -Wundef".split()
IN_C = ["-Wstrict-prototypes", "-Wmissing-prototypes"]
STANDARDS = {"C99": ["c99"], "C11": ["c11"], "C23": ["c23", "c2x"]}  # C23: its older name last
USE = """
int main(void) {
  punctual_receipt receipt = PUNCTUAL_RECEIPT_INIT;
  punctual_beat beat = PUNCTUAL_BEAT_INIT;
  return (int)(receipt.late_ns + beat.late_ns);
}
"""


def compiles(compiler, *flags, source):
    code, _, errors = run(compiler, *flags, "-Iinclude", "-fsyntax-only", "-", stdin=source)
    return "" if code == 0 else errors


def judge(compiler, standards):
    for standard in standards:
        if compiles(compiler, "-x", "c", "-std=" + standard, source="int x;\n"):
            continue
        wrong = compiles(compiler, "-x", "c", "-std=" + standard, *STRICT, *IN_C, source=2 * INCLUDED + USE)
        return wrong and f"{compiler} -std={standard}: {wrong}"
    return f"{compiler} knows none of {' '.join(standards)}"


compilers = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)]
if not compilers:
    print("SKIPPED: no C compiler")
    sys.exit(SKIPPED)
problems = [judge(compiler, names) for compiler in compilers for names in STANDARDS.values()]
problems += [compiles(c, "-x", "c++", "-std=c++11", *STRICT, source=2 * INCLUDED + USE) for c in compilers]

header = re.sub(r"//.*", "", tree().read("include/punctual/punctual.h"))
definitions = tree().read("include/punctual/c/punctual.ipp")
declared = set(re.findall(r"\b(punctual_\w+)\(", header))
defined = set(re.findall(r"^\w[\w *]*?\b(punctual_\w+)\(", definitions.split('extern "C" {')[1], re.M))
problems += [f"{name} is declared and not defined" for name in sorted(declared - defined)]
problems += [f"{name} is defined and not declared" for name in sorted(defined - declared)]
macros = re.findall(r"^\s*#\s*define\s+(\w+)", header, re.M)
problems += [f"the macro {name} is left behind" for name in macros if not name.startswith("PUNCTUAL_")]
if len(declared) < 60:
    problems.append(f"only {len(declared)} functions were found: this check is blind")
finish([p for p in problems if p], f"{len(declared)} functions, {' and '.join(compilers)}")
