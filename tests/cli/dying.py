"""A writer that dies at the worst moment: its frames are in the log, and nobody synced them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nereus_cli.clock import HostClock
from nereus_cli.disk import SystemDisk
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.log.files import FileLog
from nereus_cli.ports import EnqueueUncertainError
from nereus_cli.testing import Fault, FaultDisk
from nereus_cli.testing.fault_disk import CrashedError


def die_before_the_sync(store: Path, payloads: Sequence[bytes]) -> None:
    """Writes them as one batch into the log of a store that is there, and syncs nothing."""
    disk = FaultDisk(SystemDisk(), faults=(Fault(at=1, only="sync_data"),))
    log = FileLog(f"{store}/log", disk=disk, clock=HostClock(), limits=PRODUCTION)
    with pytest.raises(EnqueueUncertainError) as died:
        log.append(payloads)
    assert isinstance(died.value.__cause__, CrashedError)
    disk.forget()
