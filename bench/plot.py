#!/usr/bin/env python3
"""Draws the pictures from measured results, and from nothing else.

    bench/plot.py [--results bench/results] [--out FOLDER] [--format svg|png]

idle.json (or headline.json) gives lateness.svg, front.svg, lengths.svg, wait.svg; soak.json gives
minute.svg. A picture whose result is not there is left out. Needs matplotlib.
"""

import argparse
import json
import pathlib
import re
import sys
from math import log10

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py needs matplotlib: apt install python3-matplotlib, or pip install matplotlib")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

OURS = "punctual"
INK, SOFT, GRID, MARK = "#222222", "#8a8f98", "#e6e8eb", "#d1495b"
# One colour a family of ways to wait: what the system offers, spins with a margin, ourselves.
COLOURS = {
    "punctual": MARK, "spin": "#222222", "std": "#30638e", "kernel": "#30638e", "kernel-slack1": "#00798c",
    "fixed-125us": "#edae49", "fixed-1ms": "#b07d1a", "in-call-max": "#7b5ea7", "mean-ema": "#5b8c5a",
}
SHOWN = ["punctual", "spin", "kernel-slack1", "std", "fixed-125us", "fixed-1ms", "in-call-max", "mean-ema"]
NAMED = {*SHOWN, "dxvk", "staged", "max-decay"}
HIDDEN = {"spin-again", "kernel-again", "kernel", "fixed-125us-pause"}  # controls, and twins of what is shown

plt.rcParams.update({
    "font.size": 10, "font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "punctual",
    "axes.edgecolor": SOFT, "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": GRID, "axes.axisbelow": True, "xtick.color": INK, "ytick.color": INK,
    "axes.titlesize": 11, "axes.titlelocation": "left", "figure.dpi": 100,
})


def colour(name):
    return COLOURS.get(name, SOFT)


def short(ns):
    """A length for an axis: 50 ns, 10 us, 1 ms."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def time_axis(axis, low, high):
    ticks = [10.0**k for k in range(0, 12) if low <= 10.0**k <= high]
    axis.set_ticks(ticks, [short(t) for t in ticks])
    axis.set_ticks([], minor=True)


def where(result):
    m = result["machine"]
    guest = ", guest" if m["virtual"] else ""
    return f"{m['cpu']}{guest}, {m['cores']} cores, {m['kernel']}, {m['clock_source']}, {m['policy']}, {m['month']}"


def contenders(result, ms):
    for length in result["lengths"]:
        if abs(length["length_ns"] / 1e6 - ms) < 1e-6:
            return {c["name"]: c for c in length["contenders"] if c["median"]["waits"]}
    return {}


def save(figure, given, name, note):
    figure.text(0.01, 0.005, note, fontsize=7, color=SOFT)
    path = given.out / f"{name}.{given.format}"
    metadata = {"Date": None, "Creator": None} if given.format == "svg" else {}
    figure.savefig(path, metadata=metadata)
    plt.close(figure)
    if given.format == "svg":
        path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")
    print(path)


def smaller(svg):
    """The same picture in fewer bytes: coordinates to a tenth of a point, no comments, no indentation."""
    svg = re.sub(r"<!--.*?-->\n?|<metadata>.*?</metadata>\n?", "", svg, flags=re.S)
    svg = re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), svg)
    return re.sub(r"\n\s*", "\n", svg)


def spread(positions, least):
    """Moves label positions apart, in order, until neighbours are `least` from each other."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    moved = list(positions)
    for _ in range(300):
        for low, high in zip(order, order[1:]):
            gap = moved[high] - moved[low]
            if gap < least:
                moved[low] -= (least - gap) / 2
                moved[high] += (least - gap) / 2
    return moved


def draw_lateness(result, given):
    """How many waits are later than x: the whole distribution and its tail, on log axes."""
    all_ = contenders(result, 16.667) or contenders(result, 4)
    ms = 16.667 if contenders(result, 16.667) else 4
    names = [n for n in SHOWN if n in all_]
    if OURS not in names:
        return
    figure, axes = plt.subplots(figsize=(7.6, 4.4))
    ends = []
    for name in names:
        counted = all_[name]["histogram"]
        total = sum(count for _, count in counted)
        left, xs, ys = total, [20.0], [100.0]
        for start, count in counted:
            x = max(float(start), 20.0)
            xs += [x, x]
            ys += [100 * left / total, 100 * (left - count) / total if left > count else 50 / total]
            left -= count
        axes.plot(xs, ys, color=colour(name), lw=2.4 if name == OURS else 1.4, zorder=3 if name == OURS else 2)
        ends.append((name, all_[name]["median"]["cpu_ns"]))
    axes.set(xscale="log", yscale="log", xlim=(20, 2e7), ylim=(40 / total, 130))
    time_axis(axes.xaxis, 20, 2e7)
    ticks = [t for t in (100, 10, 1, 0.1) if t > 40 / total]
    axes.yaxis.set_ticks(ticks, [f"{t:g} %" for t in ticks])
    axes.yaxis.set_ticks([], minor=True)
    axes.set_xlabel("later than")
    axes.set_title(f"Share of {ms:g} ms waits that end later than …", pad=12)
    handles = [plt.Line2D([], [], color=colour(n), lw=2.4 if n == OURS else 1.4) for n, _ in ends]
    axes.legend(handles, [f"{n}  ({cpu / 1e3:,.0f} us of CPU)" for n, cpu in ends], frameon=False,
                loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.5)
    figure.subplots_adjust(left=0.09, right=0.7, top=0.9, bottom=0.17)
    save(figure, given, "lateness", where(result))


def front_of(points):
    """The points that no other beats in both coordinates, from left to right."""
    best, front = float("inf"), []
    for x, y, name in sorted(points):
        if y < best:
            front.append((x, y, name))
            best = y
    return front


def draw_front(result, given):
    """Lateness against CPU: down and left is better; the line joins what nobody beats in both."""
    wanted = [ms for ms in (1, 4, 16.667) if contenders(result, ms)]
    if not wanted:
        return
    figure, grid = plt.subplots(2, len(wanted), figsize=(4.2 * len(wanted), 8.6), squeeze=False)
    unnamed, early = set(), set()
    for column, ms in enumerate(wanted):
        all_ = {n: c for n, c in contenders(result, ms).items() if n not in HIDDEN and c["median"]["cpu_ns"] > 0}
        # Who returns before the deadline does not wait for it: shown hollow, and on no front.
        early |= {n for n, c in all_.items() if c["pooled"]["min_ns"] < 0 and c["early"] > 0.01 * c["pooled"]["waits"]}
        for row, (quantity, floor, label) in enumerate((("p50_ns", 20, "median lateness"),
                                                        ("later_10us", 0, "share later than 10 us"))):
            axes = grid[row][column]
            points = [(c["median"]["cpu_ns"], max(c["median"][quantity], floor), n) for n, c in all_.items()]
            front = front_of([p for p in points if p[2] not in early])
            axes.plot([p[0] for p in front], [p[1] for p in front], color=GRID, lw=6, zorder=1,
                      solid_capstyle="round")
            for x, y, name in points:
                axes.plot([x], [y], "o", ms=8 if name == OURS else 5, color=colour(name),
                          mfc="white" if name in early else colour(name), zorder=4 if name == OURS else 3)
            axes.set_xscale("log")
            low, high = min(p[0] for p in points), max(p[0] for p in points)
            axes.set_xlim(low / 1.5, high * 9)
            time_axis(axes.xaxis, low / 1.5, high * 1.5)
            if row == 0:
                top = max(3e5, 3 * max(p[1] for p in points))
                axes.set_yscale("log")
                axes.set_ylim(12, top)
                time_axis(axes.yaxis, 12, top)
            else:
                axes.set_ylim(-0.12, 1.16)
                axes.yaxis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
            named = {p[2] for p in front} | NAMED
            unnamed |= set(all_) - named
            label_points(axes, [p for p in points if p[2] in named], points)
            axes.set_title(f"{ms:g} ms: {label}")
            if row == 1:
                axes.set_xlabel("CPU a wait")
    note = "Down and left is better; the grey line joins what nobody beats in both."
    if early:
        note += f" Hollow: returns early ({', '.join(sorted(early))})."
    if unnamed:
        note += f" Grey dots without a name: {', '.join(sorted(unnamed - {'spin-again'}))}."
    figure.text(0.01, 0.03, note, fontsize=8, color=INK)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.96, bottom=0.1, hspace=0.2, wspace=0.22)
    save(figure, given, "front", where(result))


def label_points(axes, named, points):
    """Names beside the points, moved up or down to where there is room, inside the axes."""
    figure = axes.get_figure()
    figure.subplots_adjust(left=0.06, right=0.99, top=0.96, bottom=0.1, hspace=0.2, wspace=0.22)
    place, back = axes.transData.transform, axes.transData.inverted().transform
    frame = axes.get_window_extent()
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in (place(p[:2]) for p in points)]
    for x, y, name in sorted(named, key=lambda p: (p[2] != OURS, -p[0])):
        at_x, at_y = place((x, y))
        width = 6.4 * len(name)
        for step in range(120):
            down = (step + 1) // 2 * 6 * (1 if step % 2 == 0 else -1)
            box = (at_x + 9, at_y + down - 6, at_x + 9 + width, at_y + down + 6)
            inside = box[1] > frame.y0 + 2 and box[3] < frame.y1 - 2
            if inside and all(box[2] < t[0] or box[0] > t[2] or box[3] < t[1] or box[1] > t[3] for t in taken):
                break
        taken.append(box)
        to = back((at_x + 10, at_y + down))
        axes.text(*to, name, fontsize=8.5, va="center", color=colour(name) if name in COLOURS else INK,
                  fontweight="bold" if name == OURS else "normal", clip_on=False)
        if abs(down) > 8:
            axes.plot([x, back((at_x + 8, 0))[0]], [y, to[1]], color=SOFT, lw=0.5, zorder=2)


def draw_lengths(result, given):
    """Lateness against the length of the wait: the median as a line, from p50 to p99 as a band."""
    names = [n for n in ("punctual", "std", "kernel-slack1", "fixed-125us", "mean-ema", "spin")
             if any(n in contenders(result, x["length_ns"] / 1e6) for x in result["lengths"])]
    figure, axes = plt.subplots(figsize=(7.6, 4.4))
    labels = []
    for name in names:
        series = [(x["length_ns"], c["median"]) for x in result["lengths"]
                  for n, c in contenders(result, x["length_ns"] / 1e6).items() if n == name]
        xs = [ns for ns, _ in series]
        middle = [max(m["p50_ns"], 10) for _, m in series]
        high = [max(m["p90_ns"], 10) for _, m in series]
        axes.fill_between(xs, middle, high, color=colour(name), alpha=0.16, lw=0)
        axes.plot(xs, middle, "o-", ms=4, color=colour(name), lw=2.4 if name == OURS else 1.4)
        labels.append((middle[-1], name))
    if len(xs) < 2:
        plt.close(figure)
        return
    axes.set(xscale="log", yscale="log", xlim=(min(xs) / 1.3, max(xs) * 1.3), ylim=(10, 1e7))
    axes.xaxis.set_ticks(xs, [short(x) for x in xs])
    axes.xaxis.set_ticks([], minor=True)
    time_axis(axes.yaxis, 10, 1e7)
    for (_, name), y in zip(labels, spread([log10(v) for v, _ in labels], 0.24)):
        axes.annotate(name, (max(xs) * 1.3, 10**y), xytext=(6, 0), textcoords="offset points", va="center",
                      color=colour(name), fontsize=9, fontweight="bold" if name == OURS else "normal",
                      annotation_clip=False)
    axes.set_xlabel("length of the wait")
    axes.set_title("Lateness by length: median, and up to p90 as a band", pad=12)
    figure.subplots_adjust(left=0.1, right=0.84, top=0.9, bottom=0.17)
    save(figure, given, "lengths", where(result))


def draw_wait(result, given):
    """One real wait, to scale around its end: blocked, woken late by the kernel, spun to the deadline."""
    found = [x for x in result["lengths"] if "one_wait" in x and x["length_ns"] >= 1e6]
    if not found:
        return
    length = min(found, key=lambda x: abs(x["length_ns"] - 4e6))
    wait, total = length["one_wait"], length["length_ns"]
    if wait["spun_ns"] <= 0 or wait["overshoot_ns"] <= 0:
        return
    woke = -wait["spun_ns"] / 1e3  # us before the deadline
    asked = woke - wait["overshoot_ns"] / 1e3
    left = asked - 1.1 * (-asked)
    right = 0.35 * -asked
    figure, axes = plt.subplots(figsize=(7.6, 2.5))
    axes.axvspan(left, asked, ymin=0.35, ymax=0.6, color="#9db4c0", lw=0)
    axes.axvspan(asked, woke, ymin=0.35, ymax=0.6, color="#edae49", lw=0)
    axes.axvspan(woke, 0, ymin=0.35, ymax=0.6, color=MARK, lw=0)
    axes.axvline(0, ymin=0.2, ymax=0.78, color=INK, lw=1.5)
    axes.axvline(asked, ymin=0.3, ymax=0.78, color=INK, lw=0.8)
    for x, text in (((left + asked) / 2, "blocked in the kernel,\nno CPU"),
                    ((asked + woke) / 2, f"overshoot\n{wait['overshoot_ns'] / 1e3:.0f} us"),
                    (woke / 2, f"spin\n{wait['spun_ns'] / 1e3:.0f} us")):
        axes.text(x, 0.475, text, ha="center", va="center", fontsize=8, transform=axes.get_xaxis_transform(),
                  color="white" if x == woke / 2 else INK)
    axes.text(asked, 0.81, "handover: what the\nkernel was asked for", ha="center", va="bottom", fontsize=8,
              transform=axes.get_xaxis_transform())
    axes.text(0, 0.81, f"deadline; returned\n{wait['late_ns']} ns after it", ha="center", va="bottom", fontsize=8,
              transform=axes.get_xaxis_transform())
    axes.text(left, 0.65, f"called {total / 1e6:g} ms before", ha="left", va="bottom", fontsize=8, color=SOFT,
              transform=axes.get_xaxis_transform())
    axes.set(xlim=(left, right), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.grid(False)
    axes.set_xlabel("us before and after the deadline")
    axes.set_title("The last part of one wait", pad=22)
    figure.subplots_adjust(left=0.03, right=0.97, top=0.76, bottom=0.27)
    save(figure, given, "wait", where(result))


def draw_minute(result, given):
    """A pacer's lateness over its first minute, second by second."""
    late = result["first_minute_late_ns"]
    rate = result["num"] / result["den"]
    figure, axes = plt.subplots(figsize=(7.6, 3.4))
    step = max(1, round(rate))
    seconds = [sorted(late[i:i + step]) for i in range(0, len(late), step) if late[i:i + step]]
    xs = [i + 0.5 for i in range(len(seconds))]
    at = lambda s, q: max(20, s[min(len(s) - 1, int(q * len(s)))])  # noqa: E731
    axes.vlines(xs, [at(s, 0) for s in seconds], [at(s, 1) for s in seconds], color=SOFT, lw=0.8)
    axes.vlines(xs, [at(s, 0.1) for s in seconds], [at(s, 0.9) for s in seconds], color=MARK, lw=4)
    axes.plot(xs, [at(s, 0.5) for s in seconds], "_", color=INK, ms=7, mew=1.6)
    top = max(1e6, 2 * max(late))
    axes.set(yscale="log", ylim=(20, top), xlim=(0, max(len(seconds), 1)))
    axes.axhline(1e9 / rate, color=INK, lw=0.8, ls=":")
    axes.text(0.2, 1e9 / rate * 0.8, "one period", fontsize=8, va="top", color=INK)
    time_axis(axes.yaxis, 20, top)
    axes.set_xlabel("seconds since the first beat")
    axes.set_title(f"Lateness of a pacer at {rate:.4g} Hz: each second's median, 10 to 90 %, and extremes", pad=12)
    figure.subplots_adjust(left=0.1, right=0.97, top=0.87, bottom=0.2)
    save(figure, given, "minute", where(result))


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=here / "results")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    given = parser.parse_args()
    given.out = given.out or given.results
    drawn = 0
    for names, pictures in ((("idle", "headline"), (draw_lateness, draw_front, draw_lengths, draw_wait)),
                            (("soak",), (draw_minute,))):
        path = next((p for n in names if (p := given.results / f"{n}.json").exists()), None)
        if path is None:
            continue
        given.out.mkdir(parents=True, exist_ok=True)
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            for draw in pictures:
                draw(result, given)
                drawn += 1
        except (ValueError, LookupError, TypeError, AttributeError, UnboundLocalError) as wrong:
            sys.exit(f"{path} is not what bench/measure writes: {type(wrong).__name__}: {wrong}")
    if drawn == 0:
        sys.exit(f"no results in {given.results}; bench/measure takes them")


main()
