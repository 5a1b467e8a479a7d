"""The closed vocabularies: what an attempt did, how that is known, and why a command was refused."""

from __future__ import annotations

import enum


class SideEffect(enum.StrEnum):
    """What is known of one attempt's effect on its destination."""

    PUBLISHED = "PUBLISHED"
    NOT_PUBLISHED = "NOT_PUBLISHED"
    UNKNOWN = "UNKNOWN"


class Basis(enum.StrEnum):
    """On what ground NOT_PUBLISHED is claimed."""

    NOT_SENT = "NOT_SENT"
    REFUSED = "REFUSED"
    PROVEN_ABSENT = "PROVEN_ABSENT"


class Disposition(enum.StrEnum):
    """What the outcome asks for next."""

    NONE = "NONE"
    RETRIABLE = "RETRIABLE"
    PERMANENT = "PERMANENT"
    UNCERTAIN = "UNCERTAIN"


class Code(enum.StrEnum):
    """What happened to the attempt, in one word."""

    EXIT_0 = "EXIT_0"
    EXIT_NONZERO = "EXIT_NONZERO"
    SIGNALED = "SIGNALED"
    SIGNALED_IN_SHELL = "SIGNALED_IN_SHELL"
    TIMED_OUT = "TIMED_OUT"
    STOPPED = "STOPPED"
    NOT_STARTABLE = "NOT_STARTABLE"
    NO_RESOURCES = "NO_RESOURCES"
    DOOR_CLOSED = "DOOR_CLOSED"
    NO_EVIDENCE = "NO_EVIDENCE"
    HTTP_STATUS = "HTTP_STATUS"
    CONNECT_FAILED = "CONNECT_FAILED"
    TLS_FAILED = "TLS_FAILED"
    ADDRESS_REFUSED = "ADDRESS_REFUSED"
    BROKEN_OFF = "BROKEN_OFF"
    CLIENT_RESEND_BLOCKED = "CLIENT_RESEND_BLOCKED"


class Decision(enum.StrEnum):
    """What the fold said to a client command."""

    APPLIED = "APPLIED"
    REJECTED = "REJECTED"


class Reason(enum.StrEnum):
    """Why a command was refused, or a message ended."""

    COMMAND_CONFLICT = "COMMAND_CONFLICT"
    MESSAGE_CONFLICT = "MESSAGE_CONFLICT"
    TOO_LATE_PUBLISHING = "TOO_LATE_PUBLISHING"
    TOO_LATE_UNCERTAIN = "TOO_LATE_UNCERTAIN"
    TOO_LATE_PUBLISHED = "TOO_LATE_PUBLISHED"
    TOO_LATE_CANCELED = "TOO_LATE_CANCELED"
    TOO_LATE_EXPIRED = "TOO_LATE_EXPIRED"
    TOO_LATE_DEAD_LETTER = "TOO_LATE_DEAD_LETTER"
    NOT_FOUND = "NOT_FOUND"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    OUTSIDE_HORIZON = "OUTSIDE_HORIZON"
    PAST = "PAST"
    TOO_FAR = "TOO_FAR"
    ID_FROM_FUTURE = "ID_FROM_FUTURE"
    EXPIRES_BEFORE_DELIVERY = "EXPIRES_BEFORE_DELIVERY"
    WINDOW_TOO_NARROW = "WINDOW_TOO_NARROW"
    LIMIT = "LIMIT"
    LANE_CLOSED = "LANE_CLOSED"
    DESTINATION_UNKNOWN = "DESTINATION_UNKNOWN"
    DESTINATION_RETIRED = "DESTINATION_RETIRED"
    NO_SUCH_ATTEMPT = "NO_SUCH_ATTEMPT"
    ALREADY_SETTLED = "ALREADY_SETTLED"
    DUPLICATE_NOT_ACCEPTED = "DUPLICATE_NOT_ACCEPTED"
    NOT_DEAD = "NOT_DEAD"


class Ending(enum.StrEnum):
    """Why a message became a dead letter."""

    PERMANENT = "PERMANENT"
    EXHAUSTED = "EXHAUSTED"
    UNCERTAIN_EXHAUSTED = "UNCERTAIN_EXHAUSTED"
    STOPPED = "STOPPED"
    GIVEN_UP = "GIVEN_UP"


class Risk(enum.StrEnum):
    """Whether the destination may have seen a message more than once."""

    NONE = "none"
    POSSIBLE = "possible"
    CONFIRMED = "confirmed"
