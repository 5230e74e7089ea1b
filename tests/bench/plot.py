"""Draws the pictures of committed results anew, and holds plot.py to what it says of results that it cannot read.

Usage: plot.py PLOT. Ends with 77 where there is no matplotlib.
Mistake that would live without it: a traceback for a result that was cut off, or a picture that is not drawn.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

plot = pathlib.Path(sys.argv[1])
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


def python():
    for each in (sys.executable, shutil.which("python3") or sys.executable, "/usr/bin/python3"):
        if pathlib.Path(each).exists() and subprocess.run([each, "-c", "import matplotlib"], capture_output=True).returncode == 0:
            return each
    print("no matplotlib here")
    sys.exit(77)


def draw(folder):
    return subprocess.run([interpreter, plot, "--results", folder], capture_output=True, text=True, timeout=100)


interpreter = python()
with tempfile.TemporaryDirectory() as scratch:
    results = pathlib.Path(scratch, "results")
    did = draw(results)
    check(did.returncode != 0 and did.stderr.count("\n") == 1, f"no folder: {did.stderr!r}")
    check(not results.exists(), "a folder of results is made where there is none")

    results.mkdir()
    idle = results / "idle.json"
    for broken in ("{", "{}", "[]", '{"lengths":[]}', "7"):
        idle.write_text(broken, encoding="utf-8")
        did = draw(results)
        check(did.returncode != 0, f"{broken}: exit {did.returncode}")
        check(did.stderr.count("\n") == 1 and "idle.json" in did.stderr, f"{broken}: not one line: {did.stderr!r}")

    idle.unlink()
    shutil.copy(plot.parent / "results" / "headline.json", results)
    did = draw(results)
    check(did.returncode == 0, f"committed results: {did.stderr}")
    for name in ("lateness", "front", "lengths", "wait"):
        picture = results / f"{name}.svg"
        check(picture.exists() and picture.stat().st_size > 3000, f"no {name}.svg")

print("\n".join(problems) or "plot.py: as promised")
sys.exit(len(problems) > 0)
