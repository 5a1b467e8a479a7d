"""What has to be true of a store behind a fault: of what was said, of what was done, of what is found."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from nereus_cli.store import open_store
from tests.crash.scenes import Scene
from tests.crash.warm import Called, Warm

_SAID: Final = frozenset({"QUEUED", "APPLIED", "REJECTED"})
# What a call may end with at which a single system call failed: 70, a damaged store or a signal are never right.
TRUE: Final = frozenset({0, 3, 15, 73, 74, 75, 77})
SETTLED: Final = frozenset({0, 30})
_OWNERS_MAX: Final = 4


class Judge:
    """Judges one point in one store. Each complaint is a sentence."""

    def __init__(self, call: Warm, store: Path, scene: Scene) -> None:
        self.call = call
        self.store = store
        self.scene = scene

    def line(self) -> list[str]:
        """The scene's line as it is called."""
        words = [str(self.store.parent / "batch") if word == "batch" else word for word in self.scene.line]
        return ["--store", str(self.store), "--json", *words]

    def complaints(self, faulted: Called) -> Iterator[str]:
        """Everything that is not as promised behind this call."""
        if b"Traceback" in faulted.err or faulted.status == 70:
            yield f"it broke: {faulted.err.decode(errors='replace')[-300:]}"
        if self.scene.effects:
            yield from self._settled()
        else:
            yield from self._again(faulted)
        verified = self._ask("verify")
        if verified.status:
            yield f"verify says {verified.status}: {verified.out.decode()[:500]}"
        for name in self.scene.ids:
            shown = self._ask("show", name)
            if shown.status or (shown.documents[0]["state"] != self.scene.state and not self.scene.effects):
                yield f"{name} is not {self.scene.state}: {shown.status}, {shown.out.decode()[:300]}"

    def _again(self, faulted: Called) -> Iterator[str]:
        """The same line, without a fault: it ends well and tells the truth about the first."""
        again = self.call(*self.line(), segment=self.scene.segment)
        if again.status:
            yield f"the same line again: {again.status}, {again.out.decode()[:300]}{again.err.decode()[-300:]}"
            return
        before = {one["command_id"]: one for one in _receipts(faulted)}
        for now in _receipts(again):
            then = before.get(now["command_id"])
            said = then is not None and then["outcome"] in _SAID
            if said and not now["duplicate"]:
                yield f"{now['command_id']} was said to be in the log, and is new to it"
            if now["duplicate"] and not said and not self.scene.repeats and _denied(faulted, then):
                yield f"{now['command_id']} was said not to be in the log, and is ({faulted.status})"
        yield from self._stand([*_receipts(faulted), *_receipts(again)])

    def _stand(self, receipts: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Every position that was told holds the command it was told for."""
        with open_store(str(self.store)) as store:
            for one in receipts:
                command = store.command_at(one["position"]) if one["outcome"] in _SAID else None
                if one["outcome"] in _SAID and (command is None or command.command_id != one["command_id"]):
                    yield f"position {one['position']} does not hold {one['command_id']}"

    def _settled(self) -> Iterator[str]:
        """Owners without a fault bring it to an end: one effect, or a doubt where its door was opened."""
        status = 75
        for _ in range(_OWNERS_MAX):
            status = self.call(*self.line()).status
            if status in SETTLED:
                break
        if status not in SETTLED:
            yield f"no owner gets on: {status}"
            return
        yield from effects_once(self.store, self._ask("show", "kill-x").documents[0])

    def _ask(self, *words: str) -> Called:
        return self.call("--store", str(self.store), "--json", *words)


def effects_once(store: Path, message: dict[str, Any]) -> Iterator[str]:
    """Each attempt at most once, one in all unless an attempt is in doubt, and doubt only where a door was opened."""
    file = store.parent / "effects"
    effects = file.read_text().split() if file.exists() else []
    attempts = {one["attempt_id"]: one for one in message["attempts"]}
    unknown = [name for name, one in attempts.items() if one["side_effect"] == "UNKNOWN"]
    if len(effects) != len(set(effects)) or not set(effects) <= attempts.keys():
        yield f"effects {effects} of the attempts {list(attempts)}"
    if message["state"] == "PUBLISHED" and (len(effects) < 1 or len(effects) > 1 + len(unknown)):
        yield f"published with {len(effects)} effects and {len(unknown)} attempts in doubt"
    if message["state"] not in {"PUBLISHED", "UNCERTAIN"}:
        yield f"ended {message['state']}: {[(one['code'], one['evidence']) for one in attempts.values()]}"
    for name in unknown:
        doors = [path for path in (store / "attempts").rglob(name) if stat.S_ISREG(path.lstat().st_mode)]
        if not doors:
            yield f"attempt {name} is in doubt, and its door was never opened: {attempts[name]['evidence']}"
    for name, one in attempts.items():
        if one["side_effect"] == "NOT_PUBLISHED" and name in effects:
            yield f"attempt {name} is said not to have happened, and did: {one['code']}"


def _receipts(called: Called) -> list[dict[str, Any]]:
    return [one for one in called.documents if one["schema"] == "nereus.receipt/1" and one.get("command_id")]


def _denied(faulted: Called, then: dict[str, Any] | None) -> bool:
    """It was said that nothing of it is in the log."""
    if then is not None:
        return bool(then["outcome"] == "NOT_QUEUED")
    return faulted.status in {1, 73, 74, 75, 77, 130}
