"""meter's face: exit 2 and one line for a wrong argument, JSON and CSV that programs can read.

Usage: meter.py PROGRAM. Figures are never judged, but that no wait is early.
Mistake that would live without it: a result that is lost without a word, or that no program can read.
"""

import csv
import io
import json
import subprocess
import sys

PROGRAM = sys.argv[1]
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


def run(*arguments, out=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=out, stderr=subprocess.PIPE, text=True, timeout=100)


for wrong in (["--nonsense"], ["--seconds"], ["--seconds", "0"], ["--seconds", "nan"], ["--seconds", "1x"],
              ["--json", "--csv"]):
    did = run(*wrong)
    check(did.returncode == 2, f"{wrong}: exit {did.returncode}")
    check(did.stdout == "" and did.stderr.count("\n") == 1, f"{wrong}: not one line: {did.stderr!r}")
check("'0'" in run("--seconds", "0").stderr, "the value that is wrong is not named")

did = run("--seconds", "0.5", "--json")
found = json.loads(did.stdout)
for part in ("calibration", "kernel", "punctual", "privileges", "advice"):
    check(part in found, f"no {part} in the JSON: {list(found)}")
check(all(one["lateness"]["count"] > 0 for one in found["kernel"] + found["punctual"]), "a series is empty")

did = run("--seconds", "0.5", "--csv")
rows = list(csv.DictReader(io.StringIO(did.stdout)))
check({"kernel", "punctual"} <= {row["part"] for row in rows}, "a part is missing in the CSV")
check(all(float(row["min_us"]) >= 0 for row in rows if row["error"] == "0"), "an early wait in the CSV")

with open("/dev/full", "w", encoding="utf-8") as full:
    did = run("--seconds", "0.5", "--json", out=full)
check(did.returncode == 1 and did.stderr.count("\n") == 1, f"a full disk: exit {did.returncode}, {did.stderr!r}")

print("\n".join(problems) or "meter's face: as promised")
sys.exit(len(problems) > 0)
