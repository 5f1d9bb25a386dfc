"""One line about what configure or make did, from its log."""

from __future__ import annotations

import re
from pathlib import Path

from mpiwizard.core.build.progress import Progress
from mpiwizard.core.i18n import _, ngettext

_TRANSPORT = re.compile(
    rb"^(Shared memory/Linux CMA|TCP|Open UCX|OpenFabrics OFI Libfabric): (yes|no)\b", re.M | re.I
)
_NAMES = {
    b"Shared memory/Linux CMA": "shared memory with CMA",
    b"TCP": "TCP",
    b"Open UCX": "UCX",
    b"OpenFabrics OFI Libfabric": "libfabric",
}


def summarize(step: str, log: Path) -> str:
    """The line for a finished step; empty when there is nothing to tell or no log."""
    try:
        content = log.read_bytes()
    except OSError:
        return ""
    if step == "configure":
        found = dict(_TRANSPORT.findall(content))
        words = {b"yes": _("yes"), b"no": _("no")}
        return " · ".join(f"{_(_NAMES[name])} {words[found[name]]}" for name in _NAMES if name in found)
    if step == "make":
        progress = Progress()
        progress.feed(content)
        compiled = _("{count:,} files compiled").format(count=progress.compiled)
        warnings = ngettext("{count} warning", "{count} warnings", progress.warnings)
        return f"{compiled}, {warnings.format(count=progress.warnings)}"
    return ""
