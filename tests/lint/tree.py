"""The files that a lint looks at: those which git knows or would add, or all but build/ without git."""

import pathlib
import shutil
import subprocess

IGNORED = {"build", ".git", "__pycache__"}  # where git is not asked


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        names = self.known_to_git() if (self.root / ".git").exists() and shutil.which("git") else None
        if names is None:
            found = (path.relative_to(self.root) for path in self.root.rglob("*"))
            names = [str(path) for path in found if IGNORED.isdisjoint(path.parts)]
        self.files = sorted(name for name in set(names) if (self.root / name).is_file())

    def known_to_git(self):
        words = "ls-files -z --cached --others --exclude-standard .".split()
        listing = subprocess.run(["git", "-C", self.root, *words], capture_output=True, text=True)
        return listing.stdout.split("\0")[:-1] if listing.returncode == 0 else None

    def under(self, folder, *suffixes):
        """Paths below a folder ("" for the root), all or only those with one of the endings."""
        prefix = folder and folder.rstrip("/") + "/"
        return [f for f in self.files if f.startswith(prefix) and (not suffixes or f.endswith(suffixes))]

    def read(self, path):
        return (self.root / path).read_text(errors="replace")

    def lines(self, path):
        return enumerate(self.read(path).splitlines(), 1)


def code_only(text):
    """The text with comments blanked and strings emptied, line by line as before."""
    out, i, n = [], 0, len(text)
    while i < n:
        two = text[i : i + 2]
        if two == "//":
            end = text.find("\n", i)
            i = n if end < 0 else end
        elif two == "/*":
            end = text.find("*/", i + 2)
            end = n if end < 0 else end + 2
            out.append("\n" * text.count("\n", i, end))
            i = end
        elif text[i] == '"':
            end = i + 1
            while end < n and text[end] not in '"\n':
                end += 2 if text[end] == "\\" else 1
            out.append('""')
            i = end + 1
        else:
            out.append(text[i])
            i += 1
    return "".join(out)
