"""Nereus: a durable scheduler for delayed commands and webhooks.

Importing this package must cost next to nothing, because every `nereus` command pays for it: it holds
the version and imports no other module. `tests/tidy/test_startup.py` keeps it so.
"""

__version__ = "0.1.0"
