"""What the compiler predefines about system, processor and itself is read in platform/ only."""

import re

from tree import code_only

NAMES = re.compile(r"\b(_[A-Z]\w*|__\w+|__\w+__|unix|linux|WIN32|_M_\w+)\b")
ALLOWED = re.compile(r"__(cplusplus|cpp_\w+|has_\w+|VA_ARGS__|VA_OPT__|LINE__|FILE__|func__|STDC_\w+)$")


def check(tree):
    for path in tree.under("include/punctual"):
        if path.startswith("include/punctual/platform/"):
            continue
        for number, line in enumerate(code_only(tree.read(path)).splitlines(), 1):
            if re.match(r"\s*#\s*include\b", line):
                continue
            for word in NAMES.findall(line):
                if not ALLOWED.match(word):
                    yield f"{path}:{number}: {word} belongs in include/punctual/platform/"
