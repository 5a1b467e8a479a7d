"""The smallest circumstances under which a seed still fails: features are left out, one after the other."""

from __future__ import annotations

from tests.sim.run import Report, simulate
from tests.sim.trouble import SWITCHES


def smallest(report: Report) -> frozenset[str]:
    """The features that may be off while the seed still fails. Leaving one out changes what chance brings, so this
    finds few that matter, not always the fewest, and what fails first may be another face of the same fault."""
    off: frozenset[str] = frozenset()
    for name in SWITCHES:
        tried = off | {name}
        if simulate(report.seed, report.years, off=tried).failure:
            off = tried
    return off
