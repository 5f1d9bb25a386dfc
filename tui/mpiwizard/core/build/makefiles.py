"""How much there is to compile: counted in the Makefiles that configure wrote.

`make -n` would tell too, but takes as long as a tenth of the build. Automake's Makefiles are
regular enough to be read: `LTLIBRARIES`, `LIBRARIES` and `PROGRAMS` name what `make all` builds in
a folder, `<target>_OBJECTS` what each is made of, and `SUBDIRS` where to go on.
"""

from __future__ import annotations

import re
from pathlib import Path

_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*) *[:?]?= *(.*)$")
_REFERENCE = re.compile(r"\$[({]([A-Za-z_][A-Za-z0-9_]*)[)}]")
_SUBSTITUTION = re.compile(r"\$[({]([A-Za-z_][A-Za-z0-9_]*):(\.\w+)=(\.\w+)[)}]")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_@]")


def count_compilations(build_folder: Path) -> int:
    """The number of files that `make all` will compile below a configured folder; 0 when unknown."""
    return _count(build_folder, set())


def _count(folder: Path, visited: set[Path]) -> int:
    if folder in visited:
        return 0
    visited.add(folder)
    try:
        text = (folder / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    variables = _variables(text)
    objects: set[str] = set()
    for kind in ("LTLIBRARIES", "LIBRARIES", "PROGRAMS"):
        for target in _words(variables, kind):
            name = _NOT_IN_NAMES.sub("_", target)
            objects.update(
                word for word in _words(variables, f"{name}_OBJECTS") if word.endswith((".o", ".lo"))
            )
    below = (word for word in _words(variables, "SUBDIRS") if word != ".")
    return len(objects) + sum(_count((folder / word).resolve(), visited) for word in below)


def _variables(text: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if match := _ASSIGNMENT.match(line):
            variables[match[1]] = match[2]
    return variables


def _words(variables: dict[str, str], name: str, depth: int = 0) -> list[str]:
    """The words of a variable with all references followed."""
    if depth > 20:
        return []
    words: list[str] = []
    for word in variables.get(name, "").split():
        if match := _SUBSTITUTION.fullmatch(word):
            inner = _words(variables, match[1], depth + 1)
            words += [item.removesuffix(match[2]) + match[3] for item in inner]
        elif match := _REFERENCE.fullmatch(word):
            words += _words(variables, match[1], depth + 1)
        else:
            words.append(_REFERENCE.sub(lambda found: variables.get(found[1], ""), word))
    return words
