"""nanoslap's face: exit 2 and one line for a wrong argument, its CSV, its table, progress on a terminal only.

Usage: nanoslap.py PROGRAM. Under PUNCTUAL_LONG all 82 rows, too. Figures are never judged, but that no wait is early.
"""

import os
import pty
import re
import subprocess
import sys

PROGRAM = sys.argv[1]
COLUMNS = (
    "requested_ns,nanosleep_ns,nanosleep_excess_ns,nanosleep_cpu_ns,punctual_ns,punctual_excess_ns,punctual_cpu_ns"
)
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=100)


def on_terminal(*arguments):
    """What the program writes to a terminal."""
    controller, terminal = pty.openpty()
    with subprocess.Popen([PROGRAM, *arguments], stdout=terminal) as running:
        os.close(terminal)
        written = b""
        try:
            while piece := os.read(controller, 65536):
                written += piece
        except OSError:  # the other end was closed
            pass
        running.wait(100)
    return written.decode()


def csv_rows(done, *requested):
    lines = done.stdout.splitlines()
    check(done.returncode == 0 and done.stderr == "", f"--csv answers {done.returncode}: {done.stderr}")
    check(lines[:1] == [COLUMNS], f"--csv has the columns {lines[:1]}")
    rows = [[int(field) for field in line.split(",")] for line in lines[1:]]
    check(all(len(row) == 7 for row in rows), f"--csv has rows of other than 7 fields: {rows}")
    if requested:
        check([row[0] for row in rows] == list(requested), f"--csv has the requests {[row[0] for row in rows]}")
    for length, theirs, excess, cpu, ours, our_excess, our_cpu in rows:
        check(excess == theirs - length and our_excess == ours - length, f"{length} ns: an excess does not add up")
        check(ours >= length and theirs >= length, f"{length} ns: early")
        check(0 <= cpu <= 10**9 and 0 <= our_cpu <= 10**9, f"{length} ns: CPU time of {cpu} and {our_cpu} ns")
    return rows


for wrong in ("abc", "-1", "-0.001", "100.5", "1e9", "nan", "inf", "", "1s", "0.1ms", "1,5", "0x10", "--cvs", "-h"):
    for arguments in ((wrong,), ("0.5", "--csv", wrong), (wrong, "0.5")):
        done = run(*arguments)
        check(done.returncode == 2, f"{arguments} answers {done.returncode}, not 2")
        check(done.stdout == "", f"{arguments} writes {done.stdout!r}")
        one_line = re.fullmatch(r"nanoslap: '(.*)' .*\n", done.stderr)
        check(one_line and one_line[1] == wrong, f"{arguments} says {done.stderr!r}")

csv_rows(run("--csv", "0", "0.000001", "0.001", "1e-2"), 0, 1000, 1_000_000, 10_000_000)
csv_rows(run("0.001", "--csv"), 1_000_000)
rows = csv_rows(run("--csv", "--short"))
wanted = [0] + [k * 10**j for j in range(9) for k in (1, 2, 5)]
check([row[0] for row in rows] == wanted, f"--short has the requests {[row[0] for row in rows]}")
if os.environ.get("PUNCTUAL_LONG"):
    rows = csv_rows(run("--csv"))
    wanted = [0] + [k * 10**j for j in range(9) for k in range(1, 10)]
    check([row[0] for row in rows] == wanted, f"without lengths, the requests are {[row[0] for row in rows]}")

done = run("0", "0.001")
lines = done.stdout.splitlines()
check(done.returncode == 0 and "\r" not in done.stdout, f"progress in a pipe: {done.stdout!r}")
check(lines[1].split("|")[1].split() == ["Experienced", "Excess", "Error", "CPU", "us"], f"the header is {lines[1]!r}")
check("nanosleep" in lines[0] and "punctual" in lines[0], f"the header begins with {lines[0]!r}")
check(len(lines[2].split()) == 11 and lines[2].split()[4] == "---", f"the row of 0 is {lines[2]!r}")
check(re.match(r" *0\.001000000 \| +0\.00\d{7} +0\.00\d{7} ", lines[3]), f"the row of 1 ms is {lines[3]!r}")

written = on_terminal("0.001", "0.002")
steps = re.findall(r"(\d\.\d{9}) \| row (\d) of 2, (\d+) of 25\r", written)
wanted = [(length, row, str(i)) for length, row in (("0.001000000", "1"), ("0.002000000", "2")) for i in range(1, 26)]
check(steps == wanted, f"progress on a terminal is {steps}")
check(re.search(r"25 of 25\r *0\.001000000 \|", written), f"a row does not overwrite its progress: {written!r}")
check("\r0" not in on_terminal("--csv", "0") and "row" not in on_terminal("--csv", "0"), "progress inside CSV")

print("\n".join(problems) if problems else "arguments, CSV, table and progress are as they are described")
sys.exit(bool(problems))
