"""Section D: many that wait."""

from __future__ import annotations

import time

from tests.cases.world import Case, lateness_ms, memory_kib

PENDING = 5_000
MEMORY_MAX_KIB = 72 * 1_024


def test_b049_memory_and_start_up_do_not_grow_with_what_waits(case: Case) -> None:
    """The bound leaves no room for eleven KiB a message; the full size of the case took 45 MB."""
    case.batch({"id": f"m{n:05d}", "in": "30d", "argv": ["true"]} for n in range(PENDING))
    assert case.run("--once") == 0
    begun = time.monotonic()
    daemon = case.daemon()
    assert time.monotonic() - begun < 10
    names = [f"soon{n}" for n in range(10)]
    case.batch({"id": name, "in": "1s", "argv": ["true"]} for name in names)
    assert case.call("wait", *names, "--timeout", "30s").status == 0
    assert max(lateness_ms(case.show(name)) for name in names) < 5_000
    assert 0 < memory_kib(daemon.pid) < MEMORY_MAX_KIB
    counts = case.call("status").document()["counts"]
    assert (counts["SCHEDULED"], counts["PUBLISHED"]) == (PENDING, 10)
    assert case.owner() == daemon.pid


def test_b047_without_a_key_what_is_due_first_is_first_and_ties_are_in_order(case: Case) -> None:
    due = int(time.time()) - 10
    tick = f"echo $NEREUS_MESSAGE_ID >> {case.effects}"
    tied = [{"id": f"t{n:02d}", "at": f"@{due}", "allow_past": True, "shell": tick} for n in range(50)]
    later = {"id": "zlast", "at": f"@{due}.5", "allow_past": True, "shell": tick}
    case.batch([later, *tied])
    assert case.run("--until-idle", "--concurrency", "1") == 0
    assert case.seen() == [*(str(one["id"]) for one in tied), "zlast"]
