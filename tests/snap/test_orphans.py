"""No picture outlives its test."""

from __future__ import annotations

import pytest
from tests.conftest import SNAPSHOTS, snapshot_file


def test_every_picture_belongs_to_a_test(request: pytest.FixtureRequest) -> None:
    if request.config.option.keyword or any("::" in argument for argument in request.config.args):
        pytest.skip("only some tests were collected")
    collected = {snapshot_file(item.nodeid) for item in request.session.items}
    pictures = {path for path in SNAPSHOTS.rglob("*.svg") if not path.name.endswith(".actual.svg")}
    assert not pictures - collected
