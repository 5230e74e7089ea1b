"""README's promises, the tests' tags and the mutants name each other: each number has all three."""

import re


def tags_of(tree, folder, suffix, pattern):
    found = {}
    for path in tree.under(folder, suffix):
        for line in re.findall(pattern, tree.read(path), re.M | re.S):
            for tag in re.findall(r"\[(G\d+)\]", line):
                found.setdefault(tag, path)
    return found


def check(tree):
    if "README.md" not in tree.files:
        yield "README.md: missing; the promises are numbered there"
        return
    rows = re.findall(r"^\|\s*\**(G\d+)\**\s*\|", tree.read("README.md"), re.M)
    if not rows:
        yield "README.md: no table row begins with a promise's number, | G1 | ... |"
    for number in sorted({row for row in rows if rows.count(row) > 1}):
        yield f"README.md: {number} is promised twice"
    test_case = r"TEST_CASE\(.*?\)\s*\{"
    tests = tags_of(tree, "tests", ".test.cpp", test_case)
    mutants = tags_of(tree, "tests/mutants", ".mutant", r"^tags:.*?$")
    for number in dict.fromkeys(rows):
        if number not in tests:
            yield f"README.md: {number} has no test; tag one [{number}]"
        if number not in mutants:
            yield f"README.md: {number} has no mutant; give one the line `tags: [{number}]`"
    for number, path in {**mutants, **tests}.items():
        if number not in rows:
            yield f"{path}: [{number}] is no promise of README.md"
