"""The one table of verbs: parser, help and documents are made of it."""

from __future__ import annotations

from typing import Final

from nereus_cli.cli.options import (
    ANSWERING,
    COMMAND_ID,
    FOLD,
    GAP,
    IDENTITY,
    IF_VERSION,
    LATER,
    POLICY,
    REASON,
    SHELL,
    SHOW_SECRETS,
    TAG,
    TIMES,
    TZ,
    Argument,
    Option,
    Verb,
)

_IDS: Final = Argument("ID", many=True)
_CONTROL: Final = (IF_VERSION, COMMAND_ID, REASON, *ANSWERING)
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
        name="prepare",
        summary="Fix a command's bytes without a store: nereus prepare [VERB] ... > FILE.",
        handler="prepared:prepare",
        example="nereus prepare schedule --in 10m -- ./backup > backup.nereus",
        details="Takes what schedule (the default), cancel, reschedule, hold, release, run-now and stop take.",
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
        argument=Argument("ID"),
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
            Option("--limit", "At most so many; the last line then has a cursor.", "N"),
            Option("--cursor", "Go on where a limited list ended.", "CURSOR"),
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
        summary="Attempts whose effect is not known.",
        handler="overview:uncertain",
        example="nereus uncertain",
        options=(Option("--all", "Also those of messages that have ended."),),
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
        argument=Argument("ID"),
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
PREPARABLE: Final = ("schedule", "cancel", "reschedule", "hold", "release", "run-now", "stop")
LATER_VERBS: Final = frozenset(
    (
        *("edit", "explain", "missed", "resolve", "dead", "destination", "pause", "resume", "close", "clock"),
        *("checkpoint", "compact", "backup", "restore", "export", "import", "doctor"),
    )
)
