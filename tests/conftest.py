"""What every test stands on: no test sees a person's own store, and properties are tried the same way everywhere."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a loaded machine must not fail a test. In CI the cases are the same ones every time, so
# that a red run is about the change; a person's runs keep looking for new ones.
settings.register_profile("person", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("person"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "person")


@pytest.fixture(autouse=True)
def a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty home, and no setting of the person who runs it."""
    for name in [name for name in os.environ if name.startswith(("NEREUS_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
