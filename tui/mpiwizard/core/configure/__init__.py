"""Stage 3, configure: a choice becomes a plan, every option with its reason, every command in full."""

from mpiwizard.core.configure.plan import make_plan
from mpiwizard.core.configure.preflight import check_plan
from mpiwizard.core.configure.script import script

__all__ = ["check_plan", "make_plan", "script"]
