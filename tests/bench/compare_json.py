"""Runs `compare --quick` and holds its JSON and CSV to their shape.

Mistake that would live without it: a result that the plots and the tables cannot read, or a
contender that returns before its deadline and is praised for its lateness.
Noise is never judged here: the machine may be busy.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

FIGURES = """waits min_ns p50_ns p90_ns p95_ns p99_ns p999_ns max_ns later_1us later_10us later_100us
    cpu_ns voluntary involuntary""".split()
MACHINE = "cpu cores virtual kernel architecture clock_source slack_ns policy compiler month".split()
MAY_BE_EARLY = {"last-frame", "max-decay"}  # by design, and where the counter's rate is a little off
PEERS = """std kernel kernel-slack1 timerfd spin fixed-125us fixed-125us-pause fixed-1ms percent dxvk
    mean-sigma in-call-max staged mean-ema max-decay peak-hold last-frame""".split()


def check(condition, message):
    if not condition:
        sys.exit(f"compare --quick: {message}")


def check_figures(figures, where):
    for name in FIGURES:
        check(isinstance(figures.get(name), (int, float)), f"{where}: no {name}")
    if figures["waits"] == 0:
        return
    order = [figures[n] for n in "min_ns p50_ns p90_ns p95_ns p99_ns p999_ns max_ns".split()]
    check(order == sorted(order), f"{where}: quantiles out of order: {order}")
    shares = [figures[n] for n in "later_1us later_10us later_100us".split()]
    check(all(0 <= share <= 1 + 1e-9 for share in shares), f"{where}: a share outside 0 to 1")
    check(shares == sorted(shares, reverse=True), f"{where}: shares out of order: {shares}")


def check_length(length):
    where = f"{length['length_ns']} ns"
    kept = length["repetitions_made"] - length["repetitions_discarded"]
    check(length["repetitions_made"] >= 2, f"{where}: fewer repetitions than asked for")
    check(len(length["controls"]) == length["repetitions_made"], f"{where}: controls missing")
    agreeing = sum(control["agrees"] for control in length["controls"])
    check(agreeing == kept, f"{where}: {agreeing} controls agree, {kept} repetitions kept")
    names = [c["name"] for c in length["contenders"]]
    check(len(set(names)) == len(names), f"{where}: a contender twice")
    missing = ({"punctual", "spin-again"} | set(PEERS)) - set(names)
    check(not missing, f"{where}: {', '.join(sorted(missing))} did not run")
    for contender in length["contenders"]:
        name = f"{where}, {contender['name']}"
        check(contender["early"] == 0 or contender["name"] in MAY_BE_EARLY, f"{name}: returned early")
        check(contender["median"]["waits"] == contender["pooled"]["waits"], f"{name}: waits differ")
        check(contender["pooled"]["waits"] == 5 * kept, f"{name}: not 5 waits a repetition")
        check_figures(contender["median"], name + ", median")
        check_figures(contender["pooled"], name + ", pooled")
        counted = sum(count for _, count in contender["histogram"])
        check(counted == contender["pooled"]["waits"], f"{name}: the histogram counts {counted}")
        for quantity in ("p50_ns", "later_10us", "cpu_ns") if contender["name"] != "punctual" else ():
            low, high = contender["minus_punctual_95"][quantity]
            check(low <= high, f"{name}: an interval upside down")


def main():
    with tempfile.TemporaryDirectory() as folder:
        data, table = pathlib.Path(folder, "compare.json"), pathlib.Path(folder, "compare.csv")
        subprocess.run([sys.argv[1], "--quick", "--json", data, "--csv", table], check=True)
        result = json.loads(data.read_text(encoding="utf-8"))
        rows = list(csv.DictReader(table.open(encoding="utf-8")))
    for name in MACHINE:
        check(result["machine"].get(name) not in (None, ""), f"the machine's {name} is missing")
    check(result["load"] == "idle", "the load is not named")
    check([x["length_ns"] for x in result["lengths"]] == [100000, 1000000, 4000000], "other lengths")
    for length in result["lengths"]:
        check_length(length)
    contenders = sum(len(length["contenders"]) for length in result["lengths"])
    check(len(rows) == contenders, f"{len(rows)} rows in the table, {contenders} in the JSON")
    for wrong in (["--bogus"], ["--lengths", "x"], ["--load", "heavy"], ["--only", "nobody"]):
        answer = subprocess.run([sys.argv[1], *wrong], capture_output=True, text=True, check=False)
        check(answer.returncode == 2, f"{wrong}: ends with {answer.returncode}, not 2")
        check(len(answer.stderr.splitlines()) == 1, f"{wrong}: not one line: {answer.stderr}")
    print(f"{contenders} results hold their shape; nobody but {', '.join(sorted(MAY_BE_EARLY))} is early")


main()
