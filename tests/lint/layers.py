"""An include goes to a lower layer or a neighbour, never up; system headers stay where they belong."""

import re

from tree import code_only

LAYERS = [
    ("L0", r"version[.]hpp|platform/.*"),
    ("L1", r"(conversion|time|time_left|receipt|tuning|statistics|published|rate|grid|phase|beat|schedule|shared_sum)[.]hpp"),
    ("L2", r"(estimate|spin)/.*"),
    ("L3", r"(sleeper|waker|calibration)[.]hpp"),
    ("L4", r"(sleep|pacer|limiter|interrupt|host)[.]hpp"),
    ("umbrella", r"punctual[.]hpp"),
]
NAMES = [name for name, _ in LAYERS]
SIDE = {  # what stands beside the layers, and the highest layer that it may see
    "testing": (r"testing/.*", "L3"),
    "C face": (r"punctual[.]h", "L0"),
    "C definitions": (r"c/.*", "umbrella"),
}
STRANGERS = [("estimate/", "spin/"), ("spin/", "estimate/")]  # neighbours that never see each other

ONLY_IN = {  # a standard header that costs much or starts threads: the only files that may include it
    "stop_token": ["interrupt.hpp"],
    "condition_variable": ["interrupt.hpp", "platform/portable.hpp"],
    "thread": ["platform/portable.hpp"],
    "iostream": [],
    "windows.h": [],
}
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath compare complex concepts condition_variable coroutine csetjmp csignal
    cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution
    expected filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd
    iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric
    optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
    source_location span sstream stack stdexcept stop_token streambuf string string_view strstream syncstream
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
    variant vector version""".split()
)
C_STANDARD = {"stdint.h", "stddef.h", "stdbool.h", "inttypes.h", "limits.h"}


def place(header):
    """(layer or side name, highest layer it may include), or None."""
    for name, pattern in LAYERS:
        if re.fullmatch(pattern, header):
            return name, name
    for name, (pattern, highest) in SIDE.items():
        if re.fullmatch(pattern, header):
            return name, highest
    return None


def check(tree):
    for path in tree.under("include/punctual"):
        header = path.removeprefix("include/punctual/")
        where = place(header)
        if where is None:
            yield f"{path}: has no layer; say which in tests/lint/layers.py"
            continue
        name, highest = where
        text = code_only(re.sub(r'"([^"\n]*)"', r"<\1>", tree.read(path)))
        for number, line in enumerate(text.splitlines(), 1):
            include = re.match(r"\s*#\s*include\s*(.*)", line)
            if not include:
                continue
            target = re.match(r"<([^>]*)>", include[1])
            if not target:
                yield f"{path}:{number}: an include by macro cannot be checked"
                continue
            for problem in judge(header, name, highest, target[1]):
                yield f"{path}:{number}: <{target[1]}>: {problem}"


def judge(header, name, highest, target):
    if target.startswith("punctual/"):
        target = target.removeprefix("punctual/")
        there = place(target)
        if there is None:
            yield "no such place in the layers"
        elif there[0] in SIDE:
            if there[0] != name and not (there[0] == "C face" and name == "C definitions"):
                yield f"nothing includes the {there[0]} but itself"
        elif NAMES.index(there[0]) > NAMES.index(highest):
            yield f"goes up, from {name} to {there[0]}"
        for here, stranger in STRANGERS:
            if header.startswith(here) and target.startswith(stranger):
                yield f"{here} and {stranger} never see each other"
        return
    if target in ONLY_IN and header not in ONLY_IN[target]:
        yield "only " + (" and ".join(ONLY_IN[target]) or "no header") + " may include it"
    known = C_STANDARD if name == "C face" else STANDARD
    if target not in known and target not in ONLY_IN and not header.startswith("platform/"):
        yield "a header of an operating system or compiler belongs in platform/"
