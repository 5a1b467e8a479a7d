"""The pages that are drawn from the code: ``python -m tests.docs.drawing`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from nereus_cli.domain import judge, retry
from nereus_cli.domain.facts import Verdict
from nereus_cli.domain.limits import PRODUCTION
from nereus_cli.domain.message import TABLE, TERMINAL, Cell, Kind, State
from nereus_cli.domain.outcome import Reason
from nereus_cli.domain.records import Evidence, Expire, MessageCommand, Mutation, Replay, Resolve, Retire
from tests.domain.states import MAKERS, publishing, publishing_again, scheduled, stopping, uncertain_publishing
from tests.domain.story import ENDS, Story, told

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_BY: Final = "<!-- Drawn from the code by tests/docs/drawing.py; `python -m tests.docs.drawing` writes it anew. -->"

_LEADS_TO: Final = {
    Cell.CANCEL: ("CANCELED",),
    Cell.NEW_GENERATION: ("SCHEDULED",),
    Cell.HOLD: ("HELD",),
    Cell.RELEASE: ("SCHEDULED", "RETRY_WAIT"),
    Cell.ADMIT: ("PUBLISHING",),
    Cell.EXPIRE: ("EXPIRED",),
}
_MEANING: Final = {
    Cell.CONFLICT: "refused: the id already means another message; a message is never replaced by accident",
    Cell.CANCEL: "the message ends CANCELED",
    Cell.NEW_GENERATION: "a new generation with a fresh budget, SCHEDULED",
    Cell.HOLD: "kept until somebody releases it",
    Cell.RELEASE: "goes on where it was held",
    Cell.ALREADY: "nothing to do; exit status 0",
    Cell.CLOSE: "the attempt in progress goes on, none follows it: NOT_PUBLISHED then ends DEAD_LETTER(STOPPED) or "
    "EXPIRED, UNKNOWN ends UNCERTAIN with work NONE; of two closings the first counts",
    Cell.ADMIT: "permission for one exact attempt, once it is read back",
    Cell.AGAIN: "the same for a retry beside an attempt whose effect is unknown: the state stays UNCERTAIN",
    Cell.SETTLE: "see [outcomes.md](outcomes.md)",
    Cell.LEARN: "only duplicate risk and open attempts change, never the decision",
    Cell.EXPIRE: "the message ends EXPIRED",
    Cell.RETIRE: "the message becomes a tombstone",
    Cell.VERDICT: "what the named person says, kept with the evidence",
    Cell.STALE: "no attempt, no count, no effect",
    Cell.NOT_DEAD: "refused: only a dead letter can be replayed",
}
_TOO_LATE: Final = (
    "| `TOO_LATE_…` | refused, naming the attempt that made it so; exit status 11 while one is in progress or its "
    "effect unknown, else 12 |"
)


def pages() -> dict[str, str]:
    """Every drawn page by name."""
    return {"lifecycle.md": lifecycle(), "outcomes.md": outcomes()}


def lifecycle() -> str:
    """States, what moves them, and the table of every record in every state."""
    return "\n".join(
        [
            "# The life of a message",
            "",
            _BY,
            "",
            "A message has one state and one work. Records move it and nothing else does; the table has a cell for",
            "every state and every kind of record that names a message.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *_diagram(),
            "```",
            "",
            "| state | terminal | possible work |",
            "|---|---|---|",
            *(f"| {state} | {'yes' if state in TERMINAL else 'no'} | {_works(state)} |" for state in State),
            "",
            "## Every record in every state",
            "",
            _row("", (state.value for state in State)),
            "|---" * (len(State) + 1) + "|",
            *(_row(_title(kind), (_word(TABLE[kind][state]) for state in State)) for kind in Kind),
            "",
            "\\* laid down in the format and not taken yet: people's commands of this kind are refused with `LIMIT`,",
            "owner records of this kind change nothing.",
            "",
            "| in the table | means |",
            "|---|---|",
            *(f"| {_word(cell)} | {meaning} |" for cell, meaning in _MEANING.items()),
            _TOO_LATE,
            "",
        ]
    )


def outcomes() -> str:
    """What may happen to a shell attempt, what that proves, and what follows."""
    codes = ", ".join(_ranges(sorted(judge.PERMANENT_CODES)))
    signals = f"{judge.SHELL_SIGNALS.start} to {judge.SHELL_SIGNALS.stop - 1}"
    spared = ", ".join(f"`{code}`" for code in sorted(retry.NOT_BEGUN))
    return "\n".join(
        [
            "# Outcomes",
            "",
            _BY,
            "",
            "An outcome says what is known of one attempt's effect, on what basis, and what it asks for next.",
            "",
            "## Shell",
            "",
            "| what happened | side effect | basis | disposition | code |",
            "|---|---|---|---|---|",
            *(
                f"| {happened.value} | {row.side_effect} | {row.basis or ''} | {row.disposition} | `{row.code}` |"
                for happened, row in judge.SHELL_TABLE.items()
            ),
            "",
            f"- Permanent unless the policy says otherwise: exit codes {codes}. Listed by `--ok`, `--fail-on`,",
            "  `--retry-on`: what is listed counts, in this order. What `--ok` lists keeps the code `EXIT_NONZERO`.",
            f"- Under `--shell` the codes {signals} are 128 + a signal: the shell tells of a child that was ended.",
            f"- {spared}: the attempt never began for a reason of ours. It is not counted, at most",
            f"  {PRODUCTION.uncounted_attempts_max} times a generation.",
            f"- Without `--max-attempts` a shell command has {retry.SHELL_ATTEMPTS} attempt.",
            "",
            "## What follows",
            "",
            "| the attempt was | from | leads to |",
            "|---|---|---|",
            *(f"| {how} | {source} | {', '.join(targets)} |" for (how, source), targets in _follows().items()),
            "",
        ]
    )


def _diagram() -> Iterator[str]:
    yield "    [*] --> SCHEDULED: Schedule"
    edges: dict[tuple[str, str], list[str]] = {}
    for kind, row in TABLE.items():
        for state, cell in row.items():
            for target in _LEADS_TO.get(cell, ()):
                edges.setdefault((state.value, target), []).append(kind.value)
    for (_, source), targets in _follows().items():
        for target in targets:
            if source != target.partition("(")[0]:
                edges.setdefault((source, target.partition("(")[0]), ["Outcome"])
    for (source, target), kinds in edges.items():
        yield f"    {source} --> {target}: {', '.join(kinds)}"
    for state in State:
        if state in TERMINAL:
            yield f"    {state} --> [*]"


def _follows() -> dict[tuple[str, str], list[str]]:
    """Where each end of an attempt leads, by trying: under budgets spent and not spent, closed and open."""
    found: dict[tuple[str, str], list[str]] = {}
    for how in ENDS:
        for make in (publishing, publishing_again, stopping, _expiring, _retrying, uncertain_publishing):
            story = make()
            source = story.message().state.value
            message = story.end(how)
            ending = getattr(message.condition, "ending", "")
            target = f"{message.state}({ending})" if ending else message.state.value
            targets = found.setdefault((_NAMES[how], source), [])
            if target not in targets:
                targets.append(target)
    return found


_NAMES: Final = {
    "published": "PUBLISHED",
    "retriable": "NOT_PUBLISHED, retriable",
    "permanent": "NOT_PUBLISHED, permanent",
    "door": "NOT_PUBLISHED, never begun",
    "unknown": "UNKNOWN",
    "lost": "UNKNOWN, no evidence",
}


def _retrying() -> Story:
    """Two attempts, and unknown effects are tried again; the second is in progress."""
    story = told(policy={"max_attempts": 2})
    story.attempt("retriable")
    story.admit()
    return story


def _expiring() -> Story:
    """In progress when its last instant passed."""
    story = publishing()
    story.do(Expire("m", 0, story.message().expire_at or 0))
    return story


def _works(state: State) -> str:
    return ", ".join(sorted({make().message().work.value for make in MAKERS[state.value]}))


def _row(title: str, cells: Iterable[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |"


def _word(cell: Cell) -> str:
    return f"`{cell.value}`" if cell.value.isupper() else cell.value


def _title(kind: Kind) -> str:
    return f"{kind.value} \\*" if kind in _UNTAKEN and not _UNTAKEN[kind]() else kind.value


def _is_taken(stated: MessageCommand) -> bool:
    return scheduled().say(stated).reason is not Reason.LIMIT


def _has_effect(mutation: Mutation) -> bool:
    story = MAKERS["PUBLISHED"][0]()
    before = story.message()
    return story.do(mutation) is not Verdict.TAKEN or story.message() != before


_UNTAKEN: Final[dict[Kind, Callable[[], bool]]] = {
    Kind.RESOLVE: lambda: _is_taken(Resolve("m", 1, "published", "seen")),
    Kind.REPLAY: lambda: _is_taken(Replay("m")),
    Kind.EVIDENCE: lambda: _has_effect(Evidence("m", "a", ENDS["published"]["side_effect"], "x")),
    Kind.RETIRE: lambda: _has_effect(Retire(("m",))),
}


def _ranges(numbers: list[int]) -> Iterator[str]:
    """``64-70, 76-78`` for what is sorted."""
    first = last = numbers[0]
    for number in [*numbers[1:], numbers[-1] + 2]:
        if number != last + 1:
            yield str(first) if first == last else f"{first}-{last}"
            first = number
        last = number


if __name__ == "__main__":
    for name, page in pages().items():
        (DOCS / name).write_text(page, encoding="utf-8")
