"""tests/run on a bare machine: without rights it says what to install and stops; with rights it installs that.

A copy of it runs with a PATH of a few tools, as a user without rights, beside stand-ins for apt-get, sudo and cmake
that write down how they were called.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from common import ROOT, finish

TOOLS = "bash env dirname uname ls true false".split()
ALWAYS = {"g++", "cmake", "make", "python3", "pkg-config", "clang-14", "catch2", "libbenchmark-dev"}
NOBODY = 65534
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


def stand_in(folder, name, *lines):
    path = folder / name
    path.write_text("\n".join([f"#!{shutil.which('bash')}", f'echo "{name} $*" >>"{folder}/calls"', *lines, ""]))
    path.chmod(0o755)


def run(*arguments, apt=True, sudo=False):
    """(exit status, what it said, the stand-ins' calls)"""
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        home.chmod(0o777)
        (home / "tests").mkdir()
        shutil.copy(ROOT / "tests/run", home / "tests/run")
        tools = home / "bin"
        tools.mkdir(mode=0o777)
        tools.chmod(0o777)
        for tool in TOOLS:
            (tools / tool).symlink_to(shutil.which(tool))
        if apt:  # what it installs is a cmake that writes down how it was called
            written = f"#!{shutil.which('bash')}\necho \"cmake $*\" >>{tools}/calls\n"
            (tools / "cmake.new").write_text(written)
            (tools / "cmake.new").chmod(0o755)
            stand_in(tools, "apt-get", f"[[ $* != *install* ]] || ln -s {tools}/cmake.new {tools}/cmake")
            (tools / "ln").symlink_to(shutil.which("ln"))
        if sudo:
            stand_in(tools, "sudo", "shift", '"$@"')
        done = subprocess.run(
            [shutil.which("bash"), home / "tests/run", *arguments],
            env={"PATH": str(tools)},
            capture_output=True,
            text=True,
            timeout=60,
            user=NOBODY if os.geteuid() == 0 else None,
        )
        calls = (tools / "calls").read_text().splitlines() if (tools / "calls").exists() else []
        return done.returncode, done.stdout + done.stderr, calls


for rights in ({"apt": True}, {"apt": False}, {"apt": False, "sudo": True}):
    code, said, calls = run(**rights)
    check(code == 1, f"without rights ({rights}) it answers {code}: {said}")
    advice = re.search(r"^  apt-get install (.*)$", said, re.M)
    missing = set(advice[1].split()) if advice else set()
    check(missing >= ALWAYS, f"it does not say to install {' '.join(sorted(ALWAYS - missing))}: {said}")
    check("may not install" in said and len(said.splitlines()) == 2, f"it says: {said}")
    check(not any("install" in call or call.startswith("cmake") for call in calls), f"it went on: {calls}")

code, said, calls = run(apt=True, sudo=True)
check(code == 0, f"with sudo it answers {code}: {said}")
installs = [set(call.split()) for call in calls if call.startswith("apt-get") and " install " in call]
check(len(installs) == 1 and installs[0] >= ALWAYS, f"with sudo it installs {installs}")
check(calls[-1:] == ["cmake --workflow --preset test"], f"with sudo it ends with {calls[-1:]}")
check(any("apt-get -qq update" in call for call in calls), f"it does not update the lists first: {calls}")

code, said, calls = run("--long", apt=False)
check(code == 1 and "qemu-user-static" in said, f"--long does not ask for other processors: {said}")
for wrong in (["--lnog"], ["--long", "--long"], ["test"]):
    code, said, calls = run(*wrong)
    check((code, said, calls) == (2, "usage: tests/run [--long]\n", []), f"{wrong} answers {code}: {said}")
finish(problems, "without rights it says what to install, with rights it installs it, wrong arguments are refused")
