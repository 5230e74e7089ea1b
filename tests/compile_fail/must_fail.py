#!/usr/bin/env python3
"""A program that must not compile, and why not. Usage: must_fail.py COMPILER FILE

The file's first line is `// expects: <regexp>`, which the compiler's errors must match.
"""

import pathlib
import re
import subprocess
import sys

compiler, file = sys.argv[1], pathlib.Path(sys.argv[2])
include = pathlib.Path(__file__).resolve().parents[2] / "include"
expects = re.match(r"// expects: (.+)", file.read_text())
if not expects:
    sys.exit(f"{file}: the first line is not `// expects: <regexp>`")
done = subprocess.run(
    [compiler, "-std=c++20", f"-I{include}", "-fsyntax-only", str(file)], capture_output=True, text=True
)
errors = "\n".join(line for line in done.stderr.splitlines() if "error:" in line)
if done.returncode == 0:
    sys.exit(f"{file}: compiles")
if not re.search(expects[1], errors):
    sys.exit(f"{file}: no error matches `{expects[1]}`:\n{errors}")
print(errors)
