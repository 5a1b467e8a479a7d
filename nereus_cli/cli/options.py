"""What a verb takes, as data: the one table of verbs is made of these, and help and parser of the table."""

from __future__ import annotations

import msgspec


class Option(msgspec.Struct, frozen=True):
    """One option. ``metavar`` empty means a flag without a value; ``many`` may be given again and again;
    ``refused`` is why this version does not take it: better refused than silently without effect."""

    spelling: str
    help: str
    metavar: str = ""
    many: bool = False
    short: str = ""
    refused: str = ""

    @property
    def name(self) -> str:
        """How handlers ask for it."""
        return self.spelling.lstrip("-")


class Argument(msgspec.Struct, frozen=True):
    """What stands without a dash; ``many`` takes one or more."""

    name: str
    many: bool = False


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One thing people can do. ``handler`` is ``module:function`` below ``nereus_cli.cli``, imported when it is
    called; ``command`` says that what follows the first ``--`` is a command, byte for byte. ``subverbs`` are named by
    both words, as ``dead list``; where there are some, ``handler`` may be empty: one of them has to be said."""

    name: str
    summary: str
    handler: str
    example: str
    details: str = ""
    options: tuple[Option, ...] = ()
    argument: Argument | None = None
    command: bool = False
    subverbs: tuple[Verb, ...] = ()


STORE = Option("--store", "The store's directory; else $NEREUS_STORE, else the XDG state directory.", "DIR")
JSON = Option("--json", "Print JSON, errors too; notices stay on stderr.")
VERSION = Option("--version", "Print the version.")
EVERYWHERE = (STORE, JSON)

IN = Option("--in", "Deliver after this long: 90s, 1h30m, 7d (a day is 24 h), 250ms, PT1H.", "DURATION")
AT = Option("--at", "Deliver at this instant: RFC 3339, RFC 9557, @unix seconds, or local time with --tz.", "TIME")
TZ = Option("--tz", "The zone of a local time, as Europe/Berlin.", "ZONE")
GAP = Option("--gap", "Which reading of a local time that a clock change skips: earlier or later.", "RULE")
FOLD = Option("--fold", "Which reading of a local time that happens twice: first or second.", "RULE")
ALLOW_PAST = Option("--allow-past", "Accept a time that is past: delivered at once.")
EXPIRES_AFTER = Option("--expires-after", "No attempt later than this long after the delivery time.", "DURATION")
EXPIRES_AT = Option("--expires-at", "No attempt later than this instant.", "TIME")
TIMES = (IN, AT, TZ, GAP, FOLD, ALLOW_PAST, EXPIRES_AFTER, EXPIRES_AT)

COMMAND_ID = Option("--command-id", "The id of this command: the same line with it is the same command.", "ID")
REASON = Option("--reason", "Why, for people; kept with the command.", "TEXT")
IF_VERSION = Option("--if-version", "Only if the message's state_version is still this one.", "N")
WAIT = Option("--wait", "Answer APPLIED or REJECTED (the default where an id was given).")
NO_WAIT = Option("--no-wait", "Answer QUEUED as soon as the command is on disk.")
WAIT_TIMEOUT = Option("--wait-timeout", "How long to wait for that answer before exit 15.", "DURATION")
DRY_RUN = Option("--dry-run", "Do everything but append: nothing is written.")
QUIET = Option("--quiet", "Print the message id only.", short="-q")
ANSWERING = (WAIT, NO_WAIT, WAIT_TIMEOUT, DRY_RUN, QUIET)

VERDICT = (
    Option("--attempt", "Which attempt is meant: its number, as shown by uncertain.", "N"),
    Option("--published", "It took effect."),
    Option("--not-published", "It did not: tried again if an attempt is left, else a dead letter."),
    Option("--retry", "Nobody knows: exactly one more attempt, which may be a duplicate."),
    Option("--give-up", "Nobody will know: no longer listed. Without --attempt: a dead letter was seen off."),
    Option("--evidence", "What shows it; kept for ever beside the verdict.", "TEXT"),
    Option("--by", "Whose verdict it is (default: the user who asks).", "NAME"),
)
AGAIN = (
    Option("--accept-duplicate", "Its effect may have happened before, and may happen again."),
    Option("--new-key", "With a new idempotency key; else the receiver sees the old one again."),
)

TAG = Option("--tag", "A label, to list by.", "NAME=VALUE", many=True)
SHOW_SECRETS = Option("--show-secrets", "Do not mask environment values that look secret.")

_NO_WEBHOOK = "webhook destinations are not in this version"
_NO_KEY = "ordered keys are not in this version"

IDENTITY = (
    Option("--id", "The message's id: 1-128 of A-Z a-z 0-9 _ : @ = + ~ -. The same line again is a repeat.", "ID"),
    COMMAND_ID,
    Option("--key", "Deliver in order within this key.", "KEY", refused=_NO_KEY),
    TAG,
    Option("--priority", "Higher goes first among what is due.", "N"),
    Option("--if-late", "What to do when it is later than --late-after: run or hold.", "RULE"),
    Option("--late-after", "From when on it counts as late.", "DURATION"),
    REASON,
    Option("--correlation", "An id of yours that travels with the message.", "ID"),
)
POLICY = (
    Option("--timeout", "End the command after this long (default: never).", "DURATION"),
    Option("--max-attempts", "How many attempts at most (default 1).", "N"),
    Option("--retry-base", "First delay between attempts (default 1s), doubling.", "DURATION"),
    Option("--retry-max", "Longest delay between attempts (default 1h).", "DURATION"),
    Option("--retry-for", "No retry later than this long after the first attempt.", "DURATION"),
    Option("--on-uncertain", "After an attempt of unknown effect: retry, wait or probe.", "RULE"),
)
SHELL = (
    Option("--shell", "Run this text with sh -c, instead of a command behind --.", "STRING"),
    Option("--cwd", "The working directory (default: the one of now).", "DIR"),
    Option("--env", "An environment variable for the command; its value is in the log.", "NAME=VALUE", many=True),
    Option("--env-from-file", "A file of NAME=VALUE lines, read when the command starts.", "FILE"),
    Option("--secret", "As --env, by reference: file:PATH, env:NAME or credential:NAME.", "NAME=REF", many=True),
    Option("--stdin", "What the command reads: a file's content now, or - for this standard input.", "FILE"),
    Option("--ok", "Exit codes that mean success, beside 0: 0,3,10-12.", "CODES"),
    Option("--retry-on", "Exit codes after which to try again.", "CODES"),
    Option("--fail-on", "Exit codes after which not to try again.", "CODES"),
)
LATER = tuple(
    Option(spelling, "", metavar, many=True, refused=_NO_WEBHOOK)
    for spelling, metavar in (
        ("--url", "URL"),
        ("--to", "DESTINATION"),
        ("--method", "M"),
        ("--header", "HEADER"),
        ("--header-from", "REF"),
        ("--data", "TEXT"),
        ("--data-file", "FILE"),
        ("--allow-http", ""),
    )
)
