"""Signs and words for states: a sign is never alone, and never only a colour."""

from __future__ import annotations

from mpiwizard.core.i18n import _

STAGES = ("detect", "choose", "configure", "build", "tune", "validate")
RESUMABLE = ("interrupted", "stopped", "failed")  # states of a run

# Textual styles; blue for what is well, orange for what needs a look.
GOOD, LOOK = "$success", "bold $warning"

_SIGNS = {
    "waiting": "○",
    "ready": "○",
    "running": "●",
    "done": "✓",
    "outdated": "~",
    "stopped": "!",
    "interrupted": "!",
    "orphaned": "!",
    "failed": "✗",
}
_FACT_SIGNS = {"ok": "✓", "info": " ", "attention": "!", "problem": "✗", "unknown": "?"}
_STYLES = {
    "running": "bold $primary",
    "done": GOOD,
    "ok": GOOD,
    "outdated": LOOK,
    "stopped": LOOK,
    "interrupted": LOOK,
    "orphaned": LOOK,
    "failed": LOOK,
    "attention": LOOK,
    "problem": LOOK,
    "unknown": LOOK,
}


def stage_title(stage: str) -> str:
    """The stage's name on the rail."""
    return {
        "detect": _("Detect"),
        "choose": _("Choose"),
        "configure": _("Configure"),
        "build": _("Build"),
        "tune": _("Tune"),
        "validate": _("Validate"),
    }[stage]


def sign(state: str) -> str:
    """One cell for the state of a stage, a step or a fact."""
    return _SIGNS.get(state) or _FACT_SIGNS.get(state, " ")


def style(state: str) -> str:
    """The Textual style of a state; empty for an ordinary one."""
    return _STYLES.get(state, "")


def word(state: str) -> str:
    """The state in at most nine cells, so that the rail fits 80 columns."""
    return {
        "waiting": _("to do"),
        "ready": _("now"),
        "running": _("running"),
        "done": _("done"),
        "outdated": _("outdated"),
        "stopped": _("stopped"),
        "interrupted": _("cut off"),
        "orphaned": _("alone"),
        "failed": _("failed"),
    }.get(state, state)
