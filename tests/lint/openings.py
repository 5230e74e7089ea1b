"""The first lines of a file say what it is; a test's name is a sentence and has a subject."""

import re

COLUMNS = 100
PROMISE = re.compile(r"G\d+$")


def check(tree):
    for path in tree.under("", ".hpp", ".h", ".ipp", ".cpp", ".c", ".mutant", ".cmake", "CMakeLists.txt"):
        for number, line in tree.lines(path):
            if len(line) > COLUMNS and not path.endswith(".mutant"):
                yield f"{path}:{number}: {len(line)} columns; the most is {COLUMNS}"
    for path in tree.under("include", ".hpp", ".h", ".ipp"):
        text = tree.read(path)
        if not re.match(r"(//|/\*) ?\S", text):
            yield f"{path}: does not open by saying what it is"
        if path.endswith(".hpp") and "\n#pragma once\n" not in text:
            yield f"{path}: no #pragma once"
    for path in tree.under("tests", ".test.cpp"):
        text = tree.read(path)
        opening = re.match(r"(//.*\n)+", text)
        if not opening or "Mistake that would live without it:" not in opening[0]:
            yield f"{path}: does not open with the mistake that would live without it"
        for name, tags in re.findall(r'TEST_CASE\(\s*((?:"[^"]*"\s*)+)(?:,\s*((?:"[^"]*"\s*)+))?', text):
            yield from judge(path, "".join(re.findall(r'"([^"]*)"', name)), tags)


def judge(path, name, tags):
    if re.search(r"\b(tests?|should|tested|testing)\b", name, re.I):
        yield f"{path}: `{name}` speaks of testing; say what the code does"
    if ";" in name:
        yield f"{path}: `{name}` has a semicolon, which parts CMake's lists; use a comma"
    subjects = [tag for tag in re.findall(r"\[([\w!.-]+)\]", tags) if not PROMISE.match(tag)]
    if not subjects:
        yield f"{path}: `{name}` has no subject's tag, such as [spinner]"
