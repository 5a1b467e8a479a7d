"""Attempts per second through a keeper against a bare Popen loop, in the same run, rounds in turn. Not a test.

python tests/keeper/bench.py [ROUNDS] [ATTEMPTS] [IN_FLIGHT]

The bare loop does what a caller without a keeper would: own session, environment, umask, a new output file for each.
"""

import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from nereus_cli.destinations.keeper_client import KeeperClient, StartRequest
from nereus_cli.destinations.keeper_facts import Ended

ARGV = (b"/bin/true",)
ENV = ((b"LANG", b"C.UTF-8"), (b"PATH", b"/usr/bin:/bin"))
BATCH = 8


def bare(store: str, attempts: int, in_flight: int) -> None:
    running: set[int] = set()
    for number in range(attempts):
        while len(running) >= in_flight:
            running.discard(os.wait4(-1, 0)[0])
        out = os.open(f"{store}/{number:08x}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        child = subprocess.Popen(
            ARGV, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/", env=dict(ENV), umask=0o022,
            start_new_session=True,
        )  # fmt: skip
        child.returncode = 0
        running.add(child.pid)
        os.close(out)
    while running:
        running.discard(os.wait4(-1, 0)[0])


def kept(store: str, attempts: int, in_flight: int) -> None:
    client = KeeperClient(store, bytes(16), idle_s=0.1)
    client.connect()
    sent = ended = 0
    while ended < attempts:
        room = min(attempts - sent, in_flight - (sent - ended))
        if room >= min(BATCH, attempts - sent) and room:
            client.start([request(number) for number in range(sent, sent + room)])
            sent += room
        select.select([client], [], [], 10)
        ended += sum(isinstance(said, Ended) for said in client.pump())
    client.close()


def request(number: int) -> StartRequest:
    return StartRequest(attempt_id=f"{number:08x}", directory=number // 4096, argv=ARGV, cwd=b"/", env=ENV)


def rate(form: Callable[[str, int, int], None], attempts: int, in_flight: int) -> float:
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        form(store, attempts, in_flight)
        took = time.perf_counter() - began
        time.sleep(0.3)
    return attempts / took


def main() -> None:
    rounds, attempts, in_flight = (int(text) for text in (*sys.argv[1:], "6", "1500", "32")[:3])
    rates: dict[str, list[float]] = {"bare": [], "kept": []}
    forms = {"bare": bare, "kept": kept}
    for turn in range(rounds):
        for name in sorted(forms, reverse=bool(turn % 2)):
            rates[name].append(rate(forms[name], attempts, in_flight))
    ratios = [kept_rate / bare_rate for kept_rate, bare_rate in zip(rates["kept"], rates["bare"], strict=True)]
    for name, measured in rates.items():
        sys.stdout.write(
            f"{name}: median {statistics.median(measured):.0f}/s, {min(measured):.0f} to {max(measured):.0f}\n"
        )
    sys.stdout.write(f"ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}\n")


if __name__ == "__main__":
    main()
