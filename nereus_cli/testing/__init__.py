"""What tests stand on, ours and our users': the ports in memory, and a disk that fails when told to.

Nothing the product does at run time imports this package.
"""

from nereus_cli.testing.fault_disk import CrashedError, Fault, FaultDisk
from nereus_cli.testing.medium import Everything, Medium, Nothing, Some
from nereus_cli.testing.memory_log import MemoryLog
from nereus_cli.testing.memory_parts import ManualClock, MemoryDestination, MemoryLease

__all__ = [
    "CrashedError",
    "Everything",
    "Fault",
    "FaultDisk",
    "ManualClock",
    "Medium",
    "MemoryDestination",
    "MemoryLease",
    "MemoryLog",
    "Nothing",
    "Some",
]
