"""Every ```cpp and ```c block of the documents compiles. Usage: snippets.py COMPILER

A block with includes stands as it is; one without gets the whole library. It must compile as a file, or,
where it has no main, as the body of a function.
"""

import re
import sys

from common import ROOT, finish, run, tree

FLAGS = {"cpp": ["-std=c++20", "-x", "c++"], "c": ["-std=c99", "-pedantic-errors", "-x", "c"]}
LIBRARY = {"cpp": "#include <punctual/punctual.hpp>\n", "c": "#include <punctual/punctual.h>\n"}


def forms(language, block):
    lines = block.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    rest = [line for line in lines if not line.startswith("#include")]
    head = "\n".join(includes) if includes else LIBRARY[language]
    yield f"{head}\n" + "\n".join(rest)
    if not re.search(r"\bmain\s*\(", block):
        yield f"{head}\nvoid snippet(void);\nvoid snippet(void) {{\n" + "\n".join(rest) + "\n}"


def compiles(language, block):
    said = []
    for text in forms(language, block):
        code, _, errors = run(sys.argv[1], *FLAGS[language], "-Iinclude", "-fsyntax-only", "-", stdin=text + "\n")
        if code == 0:
            return None
        said.append(errors)
    return "\n".join(said[-1].splitlines()[:12])


problems, count = [], 0
for path in tree().under("", ".md"):
    text = tree().read(path)
    for match in re.finditer(r"^```(cpp|c)\n(.*?)^```", text, re.M | re.S):
        count += 1
        errors = compiles(match[1], match[2])
        if errors:
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: does not compile:\n{errors}")
if not (ROOT / "README.md").is_file() or "```cpp\n" not in (ROOT / "README.md").read_text():
    problems.append("README.md: missing, or without a line of C++")
finish(problems, f"{count} snippets compile")
