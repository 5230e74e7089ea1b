"""<punctual/sleep.hpp> costs a compiler at most 1.5 times what <chrono> alone costs.

Usage: compile_cost.py COMPILER. Processor time, not wall time; the least of several turns, taken in turn.
"""

import resource
import sys

from common import finish, run

MOST = 1.5
TURNS = 5


def cost(header):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    code, _, errors = run(
        sys.argv[1], "-std=c++20", "-Iinclude", "-fsyntax-only", "-x", "c++", "-", stdin=f"#include <{header}>\n"
    )
    if code:
        finish([errors], "")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


turns = [(cost("chrono"), cost("punctual/sleep.hpp")) for _ in range(TURNS)]
chrono, ours = (min(column) for column in zip(*turns))
said = f"<chrono> {chrono:.3f} s, <punctual/sleep.hpp> {ours:.3f} s: {ours / chrono:.2f} times, at most {MOST}"
finish([said] if ours > MOST * chrono else [], said)
