"""The code is as clang-format 14 leaves it."""

from common import finish, need, run, tree

tool = need("clang-format-14")
files = tree().under("", ".hpp", ".h", ".ipp", ".cpp", ".c")
code, _, errors = run(tool, "--dry-run", "-Werror", *files)
wrong = sorted({line.split(":")[0] for line in errors.splitlines() if ": error:" in line})
if code and not wrong:
    wrong = [errors]
if wrong:
    wrong.append(f"mend it with: {tool} -i " + " ".join(wrong))
finish(wrong, f"{len(files)} files are formatted")
