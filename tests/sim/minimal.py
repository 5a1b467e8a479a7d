"""The smallest circumstances under which a seed still fails: features are left out, one after the other."""

from __future__ import annotations

from tests.sim.run import Report, simulate
from tests.sim.trouble import SWITCHES


def smallest(report: Report) -> frozenset[str]:
    """The features that may be off without the failure going away. Leaving one out changes what chance brings, so
    this finds a small set, not always the smallest."""
    off: frozenset[str] = frozenset()
    kind = report.failure.partition(":")[0]
    for name in SWITCHES:
        tried = off | {name}
        again = simulate(report.seed, report.years, off=tried)
        if again.failure.partition(":")[0] == kind:
            off = tried
    return off
