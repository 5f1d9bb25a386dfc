"""A plan as one shell script that does the same with plain tools, without mpiwizard."""

from __future__ import annotations

from mpiwizard.core.configure.model import Plan
from mpiwizard.core.configure.steps import KEPT, quoted
from mpiwizard.core.i18n import _


def script(plan: Plan) -> str:
    """The plan as a bash script that ends at the first failure."""
    lines = [
        "#!/usr/bin/env bash",
        f"# {_single_line(plan.choice.title)} -> {_single_line(plan.prefix)}",
        "# " + _("Written by mpiwizard; needs bash, a C compiler, make and perl."),
        "set -euo pipefail",
        "",
        "# " + _("Of your variables only these reach the build, as when mpiwizard builds."),
        "for name in $(compgen -e); do",
        f'  case " {" ".join(KEPT)} " in *" $name "*) ;; *) unset "$name" 2>/dev/null || true ;; esac',
        "done",
    ]
    for step in plan.steps:
        body = step.script
        if step.id in ("tune", "validate"):
            body = (f"echo {quoted(_('Next: {command}').format(command=' '.join(step.script)))}",)
        lines += ["", f"# {step.id}: {_single_line(step.title)}", *body]
    return "\n".join(lines) + "\n"


def _single_line(text: str) -> str:
    """Text that cannot end a comment."""
    return " ".join(text.split())
