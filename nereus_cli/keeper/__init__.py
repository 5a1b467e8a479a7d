"""The keeper: one small process per store that starts, watches and reaps shell children, and outlives the daemon.

It is never imported by the rest of the program; it is started as ``python -I -S nereus_cli/keeper/__main__.py
STORE_FD IDLE_MS BOOT_ID`` and imports nothing but the standard library and its own modules. A store has in ``keeper/``:

``lock``        held (flock) by the keeper that accepts starts; freed at once by ``drain``
``sock``        where that keeper listens
``NAME.sock``   where the keeper of this name listens for its whole life, also while it drains
``NAME.ev``     its evidence, held (flock) while the keeper that writes it lives; see ``evidence.py``
``keeper.log``  what it could not tell anybody else, bounded

**What a daemon sends** (``wire.py``) is a frame: u32 length, then fields, each u32 length and bytes, big-endian.
``start``, ``stop`` and ``drain`` are the first field; ``drain`` alone is a promise to every later version.

**What it hears** are checked lines (``lines.py``): first ``HELLO protocol name pid``, then the lines that are
written to the evidence, in the same order, each after the attempt to write it.

**The door** of an attempt is its output file ``attempts/DIRECTORY/ATTEMPT_ID``, created exclusively just before the
spawn. Whoever creates that name first has decided: the keeper makes a file and starts, a recovering owner makes
a symlink and the attempt never starts. Nothing is claimed of an attempt before its door was tried.

**Output** goes through one pipe a stream, so that it can be bounded without a limit that the child would feel. It is
lost from the moment a keeper dies, and a child that writes then gets SIGPIPE: the price of the bound.
"""

PROTOCOL = 1
