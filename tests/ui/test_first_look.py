"""A busy machine: the first look at a run comes before its first step, the next one when some are done."""

from __future__ import annotations

from tests.ui.fixed import RUN, FixedStages, run_at
from tests.ui.pilot import screen, until
from tests.ui.test_wizard import shown, stage

from mpiwizard.ui.app import WizardApp


async def test_the_highlight_follows_a_run_that_was_first_seen_before_any_step() -> None:
    stages = FixedStages(run=run_at("fetch", "waiting", run_state="running"))
    app = WizardApp(stages, RUN)
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, "fetch", "to do")
        stages.run = run_at("configure", "running")
        await until(pilot, lambda: "▸ ● configure" in screen(app))
        stages.run = run_at("tune", "running")
        await until(pilot, lambda: stage(app) == "tune")
