"""What the owner does with what may be due: decisions, their order, and what has to be looked at again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.domain.instant import SECOND, Reading
from nereus_cli.domain.message import Condition, Held, Message, Published, Publishing, RetryWait, Scheduled, Uncertain
from nereus_cli.domain.plan import Admit, HoldLate, LetExpire, choose, order, ready
from tests.domain.states import scheduled
from tests.domain.story import told

BASE = scheduled().message()
DUE, EXPIRE = BASE.deliver_at, BASE.deliver_at + 60 * SECOND
PLAIN = told().message()


def at(earliest: int, width: int = 0) -> Reading:
    return Reading(earliest, earliest + width, 0, b"")


def with_condition(condition: Condition, **fields: object) -> Message:
    return msgspec.structs.replace(BASE, condition=condition, **fields)


@pytest.mark.parametrize(
    ("condition", "reading", "decided"),
    [
        (Scheduled(), at(DUE - 1), None),
        (Scheduled(), at(DUE - 1, 2), None),
        (Scheduled(), at(DUE), Admit),
        (Scheduled(), at(DUE, 5), Admit),
        (Scheduled(), at(DUE + 5 * SECOND), Admit),
        (Scheduled(), at(DUE + 5 * SECOND + 1), HoldLate),
        (Scheduled(), at(EXPIRE - 1, 1), None),
        (Scheduled(), at(EXPIRE), LetExpire),
        (RetryWait(DUE, 7), at(DUE + 6), None),
        (RetryWait(DUE, 7), at(DUE + 7), Admit),
        (RetryWait(DUE, 7), at(EXPIRE), LetExpire),
        (Uncertain(again=RetryWait(DUE, 7)), at(DUE + 6), None),
        (Uncertain(again=RetryWait(DUE, 7)), at(DUE + 7), Admit),
        (Uncertain(again=RetryWait(DUE, 7)), at(EXPIRE), LetExpire),
        (Uncertain(), at(DUE + 7), None),
        (Held("PERSON", Scheduled()), at(EXPIRE - 1), None),
        (Held("PERSON", Scheduled()), at(EXPIRE), LetExpire),
        (Publishing(), at(DUE), None),
        (Published(), at(DUE), None),
    ],
)
def test_each_is_judged_alone(condition: Condition, reading: Reading, decided: type | None) -> None:
    admitted_before = DUE if isinstance(condition, RetryWait | Uncertain) else None
    message = with_condition(condition, first_admitted_at=admitted_before)
    plan = choose([message], reading, room=1)
    assert [type(decision) for decision in plan.decisions] == ([decided] if decided else [])
    assert plan.waiting == (() if decided else (message,))


def test_lateness_is_judged_once_and_before_the_first_attempt() -> None:
    late = at(DUE + 6 * SECOND)
    for fields in ({"late_judged": True}, {"first_admitted_at": DUE}, {"late_after_ns": None}):
        assert choose([with_condition(Scheduled(), **fields)], late, 1).decisions[0] == Admit(
            with_condition(Scheduled(), **fields)
        )


def test_ready_asks_for_the_whole_interval() -> None:
    assert ready(BASE, at(DUE, 60 * SECOND - 1))
    assert not ready(BASE, at(DUE, 60 * SECOND))
    assert ready(PLAIN, at(DUE, 1000 * SECOND))


messages = st.builds(
    lambda name, due, priority, place: msgspec.structs.replace(
        PLAIN, message_id=name, deliver_at=due, priority=priority, order_position=place
    ),
    st.sampled_from("abc"),
    st.integers(DUE - 2, DUE + 1),
    st.integers(-1, 1),
    st.integers(1, 2),
)


@given(st.lists(messages, max_size=8), st.integers(-1, 9))
def test_nothing_due_is_lost_and_room_is_kept(due: list[Message], room: int) -> None:
    plan = choose(due, at(DUE), room)
    admitted = [decision.message for decision in plan.decisions]
    assert sorted([*admitted, *plan.waiting], key=order) == sorted(due, key=order)
    assert len(admitted) == min(max(room, 0), sum(m.deliver_at <= DUE for m in due))
    assert admitted == sorted(admitted, key=order)
    late = [m for m in plan.waiting if m.deliver_at <= DUE]
    assert not late or not admitted or max(map(order, admitted)) <= min(map(order, late))


def test_the_order_is_priority_time_position_name() -> None:
    def make(name: str, **fields: object) -> Message:
        return msgspec.structs.replace(PLAIN, message_id=name, **fields)

    ordered = [
        make("z", priority=2, deliver_at=9, order_position=9),
        make("y", priority=1, deliver_at=1, order_position=9),
        make("x", priority=1, deliver_at=2, order_position=3),
        make("w", priority=1, deliver_at=2, order_position=4),
        make("a", priority=-1, deliver_at=0, order_position=1),
        make("b", priority=-1, deliver_at=0, order_position=1),
    ]
    assert sorted([*ordered[3:], *ordered[:3]], key=order) == ordered
