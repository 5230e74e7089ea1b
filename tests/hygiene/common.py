"""What the hygiene scripts share: where things are, running a compiler, saying that a tool is missing."""

import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))

from tree import Tree  # noqa: E402

SKIPPED = 77
WARNINGS = """-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
    -Wdouble-promotion -Wundef""".split()


def tree():
    return Tree(ROOT)


def headers():
    """Every public header as one writes it in an include, but for those of the C face."""
    return [f.removeprefix("include/") for f in tree().under("include/punctual", ".hpp")]


def need(*names):
    """The first of these tools that is installed; without one the check is skipped, and says so."""
    for name in names:
        if shutil.which(name):
            return name
    print(f"SKIPPED: {names[0]} is not installed; tests/run installs it")
    sys.exit(SKIPPED)


def run(*command, stdin=""):
    done = subprocess.run(
        [str(word) for word in command], input=stdin, capture_output=True, text=True, errors="replace", cwd=ROOT
    )
    return done.returncode, done.stdout, done.stderr


def finish(problems, otherwise):
    print("\n".join(problems) if problems else otherwise)
    sys.exit(bool(problems))
