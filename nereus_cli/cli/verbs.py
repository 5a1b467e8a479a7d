"""The one table of verbs: parser, help and documents are made of it."""

from __future__ import annotations

from typing import Final

from nereus_cli.cli.options import (
    AGAIN,
    ANSWERING,
    AT,
    COMMAND_ID,
    FOLD,
    GAP,
    IDENTITY,
    IF_VERSION,
    IN,
    LATER,
    POLICY,
    REASON,
    SHELL,
    SHOW_SECRETS,
    TAG,
    TIMES,
    TZ,
    VERDICT,
    Argument,
    Option,
    Verb,
)

_ID: Final = Argument("ID")
_IDS: Final = Argument("ID", many=True)
_CONTROL: Final = (IF_VERSION, COMMAND_ID, REASON, *ANSWERING)
_LIMIT: Final = Option("--limit", "At most so many; the last line then has a cursor.", "N")
_CURSOR: Final = Option("--cursor", "Go on where a limited list ended.", "CURSOR")
_ALL: Final = Option("--all", "Also those of messages that have ended.")
_FOLLOW: Final = Option("--follow", "Go on as more comes.")

# Spelled out: help must not load what knows them.
_STATES: Final = (
    "SCHEDULED, RETRY_WAIT, HELD, PUBLISHING, UNCERTAIN, PUBLISHED, EXPIRED, CANCELED, DEAD_LETTER; once for each"
)

_SCHEDULE: Final = """Limits: a time at most 10 years (3653 days) ahead; an argument of 131071 bytes, all of them
512 KiB; 256 KiB of stdin; 64 tags; 10000 attempts.

Defaults: 1 attempt; an attempt of unknown effect waits for a person (is retried if --max-attempts is above 1); no
timeout; back-off from 1 s, doubling, at most 1 h. With generated ids the answer is QUEUED; with --id or --command-id it
is APPLIED or REJECTED."""

_DEAD: Final = (
    Verb(
        name="dead list",
        summary="Messages that gave up, in the order of their delivery time, each with its reason.",
        handler="read:list_dead",
        example="nereus dead list --open",
        details="Those that a person has seen off are marked; --open leaves them out.",
        options=(
            Option("--open", "Only those that nobody has seen off."),
            TAG,
            _LIMIT,
            _CURSOR,
            SHOW_SECRETS,
        ),
    ),
    Verb(
        name="dead show",
        summary="One message that gave up: all of it, why, and the line that tries it once more.",
        handler="dead:show_dead",
        example="nereus dead show backup-42",
        options=(SHOW_SECRETS,),
        argument=_ID,
    ),
    Verb(
        name="dead replay",
        summary="A dead letter once more, as a new generation; at once unless a time is said.",
        handler="write:control",
        example="nereus dead replay backup-42 --in 10m",
        details="What may have taken effect before is refused without --accept-duplicate.",
        options=(IN, AT, TZ, GAP, FOLD, *AGAIN, *_CONTROL),
        argument=_ID,
    ),
)
_FORMAT: Final = Option("--format", "json, md (default) or html.", "FORMAT")
_UNCERTAIN: Final = (
    Verb(
        name="uncertain list",
        summary="The same as uncertain alone.",
        handler="unsettled:uncertain",
        example="nereus uncertain list --all",
        options=(_ALL,),
    ),
    Verb(
        name="uncertain show",
        summary="The report on one message; exit 30 where one of its attempts is not settled.",
        handler="unsettled:report",
        example="nereus uncertain show backup-42",
        options=(_FORMAT,),
        argument=_ID,
    ),
    Verb(
        name="uncertain report",
        summary="Every such attempt with its evidence, and the exact lines that settle it; exit 30 where there is one.",
        handler="unsettled:report",
        example="nereus uncertain report --format html > uncertain.html",
        options=(_ALL, _FORMAT),
    ),
)

VERBS: Final = (
    Verb(
        name="schedule",
        summary="Run a command later.",
        handler="write:schedule",
        example="nereus schedule --in 10m --id backup-42 -- ./backup --full",
        details=_SCHEDULE,
        options=(
            *TIMES,
            *IDENTITY,
            *POLICY,
            *SHELL,
            *ANSWERING,
            Option("--batch", "One command per NDJSON line, same names as the flags; one receipt per line.", "FILE"),
            *LATER,
        ),
        command=True,
    ),
    Verb(
        name="cancel",
        summary="Not at all: nothing is delivered any more.",
        handler="write:control",
        example="nereus cancel backup-42",
        details="- reads ids from standard input, one a line.",
        options=_CONTROL,
        argument=_IDS,
    ),
    Verb(
        name="reschedule",
        summary="Deliver at another time, as a new generation.",
        handler="write:control",
        example="nereus reschedule backup-42 --at 2027-03-28T04:00 --tz Europe/Berlin",
        options=(*TIMES, *_CONTROL),
        argument=_IDS,
    ),
    Verb(
        name="hold",
        summary="Keep it back until somebody releases it.",
        handler="write:control",
        example="nereus hold backup-42",
        options=_CONTROL,
        argument=_IDS,
    ),
    Verb(
        name="release",
        summary="Let go on what was held.",
        handler="write:control",
        example="nereus release backup-42",
        options=_CONTROL,
        argument=_IDS,
    ),
    Verb(
        name="run-now",
        summary="Deliver as soon as possible, as a new generation.",
        handler="write:control",
        example="nereus run-now backup-42",
        options=_CONTROL,
        argument=_IDS,
    ),
    Verb(
        name="stop",
        summary="No further attempt; what was not begun is cancelled.",
        handler="write:control",
        example="nereus stop backup-42 --kill",
        options=(Option("--kill", "Also end the attempt that is in progress."), *_CONTROL),
        argument=_IDS,
    ),
    Verb(
        name="resolve",
        summary="Settle an attempt whose effect is not known, by name and with evidence.",
        handler="write:control",
        example="nereus resolve backup-42 --attempt 1 --published --evidence 'the archive is complete'",
        details="Exactly one verdict. nereus uncertain report shows what can be said of which attempt.",
        options=(*VERDICT, *_CONTROL),
        argument=_ID,
    ),
    Verb(
        name="dead",
        summary="Dead letters: what gave up, why, and once more.",
        handler="",
        example="nereus dead list --open",
        subverbs=_DEAD,
    ),
    Verb(
        name="prepare",
        summary="Fix a command's bytes without a store: nereus prepare [VERB] ... > FILE.",
        handler="prepared:prepare",
        example="nereus prepare schedule --in 10m -- ./backup > backup.nereus",
        details="Takes what schedule (the default), cancel, reschedule, hold, release, run-now, stop, resolve and dead "
        "replay take.",
        options=(*TIMES, *IDENTITY, *POLICY, *SHELL, *LATER),
        command=True,
    ),
    Verb(
        name="submit",
        summary="Send prepared bytes, any number of times.",
        handler="prepared:submit",
        example="nereus submit backup.nereus",
        options=ANSWERING,
        argument=Argument("FILE"),
    ),
    Verb(
        name="result",
        summary="What became of a command.",
        handler="answering:result",
        example="nereus result dc~6c1f...",
        argument=Argument("COMMAND_ID|FILE"),
    ),
    Verb(
        name="show",
        summary="All that is known of one message.",
        handler="read:show",
        example="nereus show backup-42",
        options=(SHOW_SECRETS,),
        argument=_ID,
    ),
    Verb(
        name="list",
        summary="Messages in the order of their delivery time.",
        handler="read:list_messages",
        example="nereus list --state SCHEDULED --due-before 2027-01-01T00:00:00Z",
        details="Without --state: those that are not terminal. --due-before is exclusive.",
        options=(
            Option("--state", f"Only messages in this state: {_STATES}.", "STATE", many=True),
            TAG,
            Option("--lane", "Only messages of this lane.", "LANE"),
            Option("--key", "Only messages of this key.", "KEY"),
            Option("--due-before", "Only messages due before this instant.", "TIME"),
            TZ,
            _LIMIT,
            _CURSOR,
            SHOW_SECRETS,
        ),
    ),
    Verb(
        name="status",
        summary="How the store stands, and what needs attention.",
        handler="overview:status",
        example="nereus status --check",
        options=(Option("--check", "Exit 30 if something needs a person."),),
    ),
    Verb(
        name="uncertain",
        summary="Attempts whose effect is not known; exit 30 where there is one.",
        handler="unsettled:uncertain",
        example="nereus uncertain",
        options=(_ALL,),
        subverbs=_UNCERTAIN,
    ),
    Verb(
        name="wait",
        summary="Wait until messages ended.",
        handler="waiting:wait",
        example="nereus wait backup-42 --timeout 10m",
        options=(
            Option("--for", "terminal (default), published or applied.", "WHAT"),
            Option("--timeout", "How long (default: without end).", "DURATION"),
        ),
        argument=_IDS,
    ),
    Verb(
        name="logs",
        summary="What an attempt printed.",
        handler="output_of:logs",
        example="nereus logs backup-42 --attempt 1",
        options=(Option("--attempt", "Which attempt (default: the last).", "N"), _FOLLOW),
        argument=_ID,
    ),
    Verb(
        name="events",
        summary="The log, one line a record.",
        handler="events:events",
        example="nereus events --since 40",
        options=(Option("--since", "Only records behind this position.", "POSITION"), _FOLLOW),
    ),
    Verb(
        name="run",
        summary="Own the store and deliver what is due, in the foreground.",
        handler="operate:run",
        example="nereus run --concurrency 8",
        options=(
            Option("--concurrency", "Attempts at the same time (default 8).", "N"),
            Option("--grace", "How long to wait for attempts when told to stop (default 10s).", "DURATION"),
            Option("--until-idle", "End when nothing can move without a person."),
            Option("--once", "Handle what is due now, then end."),
        ),
    ),
    Verb(
        name="when",
        summary="How a time is understood; commits nothing.",
        handler="times:when",
        example="nereus when '2027-03-28T02:30' --tz Europe/Berlin --gap later",
        options=(TZ, GAP, FOLD),
        argument=Argument("TEXT"),
    ),
    Verb(name="init", summary="Create the store.", handler="operate:init", example="nereus init --store ./jobs"),
    Verb(
        name="verify",
        summary="Read the whole log and compare the projection with it.",
        handler="operate:verify",
        example="nereus verify",
    ),
)

BY_NAME: Final = {verb.name: verb for verb in VERBS}
EVERY: Final = tuple(one for verb in VERBS for one in (verb, *verb.subverbs))
PREPARABLE: Final = ("schedule", "cancel", "reschedule", "hold", "release", "run-now", "stop", "resolve", "dead replay")
LATER_VERBS: Final = frozenset(
    (
        *("edit", "explain", "missed", "destination", "pause", "resume", "close", "clock"),
        *("checkpoint", "compact", "backup", "restore", "export", "import", "doctor"),
    )
)
