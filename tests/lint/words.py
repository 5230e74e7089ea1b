"""The project speaks of itself only: no workplace, no registry's host, no licence that nobody chose."""

import re

FORBIDDEN = {  # written so that this file does not match itself
    r"/[w]ork/[a-z]": "a path of one machine",
    r"(?<![\w}])/([h]ome|[r]oot)/\w": "a path of one machine",
    r"[.]lib[r]ary\b": "a tool of the workplace",
    r"(?i)sub-?agen[t]|helper[ ]session|before-sto[p]": "the workplace",
    r"\bA[I]\b|\bLL[M]\b|(?i:\bcla[u]de\b|\bchatgp[t]\b|\bcopilo[t]\b)": "a tool that wrote it",
    r"[.]debia[n][.]org|registry[.]npm[j]s|pyp[i][.]org|snapsho[t][.]debian": "a registry's host",
    r"SPD[X]-": "a licence, and none has been chosen",
}
BINARY = (".png", ".jpg", ".svg", ".csv", ".gz", ".pdf")


def check(tree):
    for path in tree.files:
        if re.match(r"(?i)(.*/)?(licen[cs]e|copying)\b", path):
            yield f"{path}: a licence, and none has been chosen"
        if path.endswith(BINARY):
            continue
        for number, line in tree.lines(path):
            for pattern, what in FORBIDDEN.items():
                found = re.search(pattern, line)
                if found:
                    yield f"{path}:{number}: `{found[0]}`: {what}"
