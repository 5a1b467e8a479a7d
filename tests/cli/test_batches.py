"""Many commands at once: a batch of lines, ids from a pipe, prepared files."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, Nereus, environment

GOOD = '{"id":"good","in":"1h","argv":["true"]}'
MALFORMED = [
    "",
    "nonsense",
    "[]",
    "{}",
    '{"id":"x"}',
    '{"id":"x","in":"1h"}',
    '{"id":"x","argv":["true"]}',
    '{"id":"x","in":"1h","argv":[]}',
    '{"id":"x","in":"1h","argv":["true"],"shell":"true"}',
    '{"id":"x","in":"1h","argv":"true"}',
    '{"id":"x","in":3600,"argv":["true"]}',
    '{"id":"x","in":"1h","argv":["true"],"frobnicate":1}',
    '{"id":"x","in":"1h","argv":["\\ud800"]}',
    '{"id":"x.y","in":"1h","argv":["true"]}',
    '{"id":"x","in":"1h","argv":["true\\u0000"]}',
    '{"id":"x","in":"1h","argv":["true"],"key":"k"}',
    '{"id":"x","in":"1h","url":"https://example.invalid"}',
    '{"id":"x","in":"1h","argv":["true"],"env":{"A=B":"c"}}',
    '{"id":"x","in":"1h","argv":["true"],"stdin":"-"}',
    '{"id":"x","in":"1h","argv":["true"],"max_attempts":0}',
    '{"id":"x","in":"1h","argv":["' + "y" * 131_072 + '"]}',
    '{"id":"x","in":"1h","argv":["' + "y" * 3_000_000 + '"]}',
]


def batch(
    nereus: Nereus, tmp_path: Path, *lines: str, flags: tuple[str, ...] = ()
) -> tuple[int, list[dict[str, object]]]:
    file = tmp_path / "batch.ndjson"
    file.write_text("".join(f"{line}\n" for line in lines))
    ran = nereus("schedule", "--json", "--batch", str(file), *flags)
    return ran.status, ran.documents


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: line[:50] or "empty")
def test_a_malformed_line_is_not_queued_and_the_rest_goes_on(nereus: Nereus, tmp_path: Path, line: str) -> None:
    status, told = batch(nereus, tmp_path, GOOD, line, GOOD.replace("good", "better"))
    assert (status, [one["outcome"] for one in told]) == (1, ["QUEUED", "NOT_QUEUED", "QUEUED"])
    assert [one["line"] for one in told] == [1, 2, 3]
    error = told[1]["error"]
    assert isinstance(error, dict)
    assert (error["error"], error["exit"]) == ("USAGE", 2)
    assert [one.get("message_id") for one in nereus("list", "--json").documents] == ["better", "good", None]


def test_a_batch_can_be_run_again(nereus: Nereus, tmp_path: Path) -> None:
    lines = [f'{{"id":"m{n}","in":"1h","argv":["echo","{n}"]}}' for n in range(2_500)]
    status, first = batch(nereus, tmp_path, *lines)
    assert (status, len(first)) == (0, 2_500)
    assert [one["position"] for one in first] == list(range(1, 2_501))
    status, again = batch(nereus, tmp_path, *lines, flags=("--wait",))
    assert (status, {one["duplicate"] for one in again}) == (0, {True})
    assert [one["position"] for one in again] == [one["position"] for one in first]
    status, changed = batch(nereus, tmp_path, lines[0].replace("1h", "2h"), lines[1], flags=("--wait",))
    assert (status, [one["reason"] for one in changed]) == (1, ["COMMAND_CONFLICT", None])
    assert nereus.json("status")[1]["counts"] == {"SCHEDULED": 2_500}


def test_statuses_of_a_batch(nereus: Nereus, tmp_path: Path) -> None:
    assert batch(nereus, tmp_path)[0] == 0
    assert batch(nereus, tmp_path, "nonsense", "more")[0] == 2
    assert not nereus.store.exists()
    past = '{"at":"2020-01-01T00:00:00Z","shell":"true"}'
    status, told = batch(nereus, tmp_path, past, past)
    assert (status, [one["reason"] for one in told]) == (1, ["PAST", "PAST"])


def test_every_field_means_what_its_flag_means(nereus: Nereus, tmp_path: Path) -> None:
    line = {
        "id": "x", "command_id": "c", "at": "2027-06-01T09:00", "tz": "Europe/Berlin", "argv": ["sh", {"b64": "/w=="}],
        "cwd": "/", "env": {"A": "b", "C": {"b64": "/w=="}}, "secret": {"S": "env:S"}, "tags": {"t": "v"},
        "priority": 3,
        "timeout": "5s", "max_attempts": 4, "retry_base": "1s", "retry_max": "2s", "retry_for": "1h", "ok": "3",
        "retry_on": "4", "fail_on": "5", "on_uncertain": "wait", "expires_after": "1m", "if_late": "hold",
        "late_after": "9s", "reason": "why", "correlation": "k", "allow_past": True,
    }  # fmt: skip
    (status, (by_batch,)) = batch(nereus, tmp_path, json.dumps(line), flags=("--wait",))
    assert (status, by_batch["outcome"]) == (0, "APPLIED")
    by_flags = nereus.process(
        "schedule", "--json", "--id", "x", "--command-id", "c", "--at", "2027-06-01T09:00", "--tz", "Europe/Berlin",
        "--cwd", "/", "--env", "A=b", "--env", b"C=\xff", "--secret", "S=env:S", "--tag", "t=v", "--priority", "3",
        "--timeout", "5s", "--max-attempts", "4", "--retry-base", "1s", "--retry-max", "2s", "--retry-for", "1h",
        "--ok", "3", "--retry-on", "4", "--fail-on", "5", "--on-uncertain", "wait", "--expires-after", "1m",
        "--if-late", "hold", "--late-after", "9s", "--allow-past", "--", "sh", b"\xff",
    )  # fmt: skip
    assert (by_flags.status, by_flags.document["duplicate"]) == (0, True)
    assert by_flags.document["command_hash"] == by_batch["command_hash"]


def test_receipts_come_while_the_input_is_still_open(nereus: Nereus) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--store", str(nereus.store), "schedule", "--json", "--batch", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    for name in ("one", "two"):
        process.stdin.write(GOOD.replace("good", name).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["message_id"] == name
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def prepared(nereus: Nereus, tmp_path: Path, *line: str) -> Path:
    ran = nereus("prepare", *line)
    assert ran.status == 0
    file = tmp_path / "command.nereus"
    file.write_bytes(ran.out)
    return file


def test_a_prepared_command_is_sent_as_it_was_prepared(nereus: Nereus, tmp_path: Path) -> None:
    file = prepared(nereus, tmp_path, "--in", "1h", "--", "echo", "hi")
    written = json.loads(file.read_text())
    assert not nereus.store.exists()
    status, first = nereus.json("submit", str(file))
    assert (status, first["outcome"], first["command_id"]) == (0, "APPLIED", written["command_id"])
    assert first["command_hash"] == written["command_hash"]
    status, again = nereus.json("submit", str(file))
    assert (status, again) == (0, first | {"duplicate": True})
    from_stdin = nereus.process("submit", "--json", "-", stdin=file.read_bytes())
    assert from_stdin.document == again
    for words in (str(file), written["command_id"]):
        status, result = nereus.json("result", words)
        assert (status, result) == (0, first)


def test_prepare_takes_what_the_other_verbs_take(nereus: Nereus, tmp_path: Path) -> None:
    nereus("schedule", "--in", "1h", "--id", "x", "--", "true")
    for words in (
        ("reschedule", "x", "--in", "2h"),
        ("hold", "x"),
        ("release", "x"),
        ("run-now", "x"),
        ("cancel", "x"),
    ):
        receipt = nereus.json("submit", str(prepared(nereus, tmp_path, *words)))
        assert (receipt[0], receipt[1]["outcome"]) == (0, "APPLIED")
    file = prepared(nereus, tmp_path, "schedule", "--in", "1h", "--id", "y", "--", "true")
    nereus("submit", str(file))
    assert nereus.json("show", "y")[0] == 0
    late = prepared(nereus, tmp_path, "cancel", "nobody")
    assert nereus.json("submit", str(late))[1]["reason"] == "NOT_FOUND"
    assert nereus.json("result", str(late))[0] == 13
    several = prepared(nereus, tmp_path, "cancel", "x", "y")
    ran = nereus("submit", "--json", str(several))
    assert (ran.status, [one["already"] for one in ran.documents]) == (0, [True, False])


def test_a_prepared_file_that_was_changed_is_not_sent(nereus: Nereus, tmp_path: Path) -> None:
    file = prepared(nereus, tmp_path, "--in", "1h", "--id", "x", "--", "echo", "hi")
    good = json.loads(file.read_text())
    payload = base64.b64decode(good["payload_b64"])
    other = base64.b64encode(payload.replace(b"echo", b"evil")).decode()
    bad = [
        {"schema": "nereus.receipt/1"}, {"command_id": "y"}, {"command_hash": "sha256:00"}, {"message_id": "y"},
        {"verb": "cancel"}, {"payload_b64": other}, {"payload_b64": "!"}, {"payload_b64": ""},
    ]  # fmt: skip
    for change in bad:
        file.write_text(json.dumps(good | change))
        status, error = nereus.json("submit", str(file))
        assert (status, error["error"]) == (2, "USAGE"), change
    for content in ("", "\n", "nonsense", '{"schema":', '{"x":' + "[" * 4_000):
        file.write_text(content)
        assert nereus.json("submit", str(file))[0] == 2
    newer = base64.b64encode(payload.replace(b"\xa1v\x01", b"\xa1v\x63")).decode()
    for change in ({"schema": "nereus.prepared/2"}, {"payload_b64": newer}):
        file.write_text(json.dumps(good | change))
        assert nereus.json("submit", str(file))[0] == 76, change
    assert not nereus.store.exists()


def test_a_command_outside_its_window_is_16(nereus: Nereus, tmp_path: Path) -> None:
    old = "nc~0" + "1" * 11 + "7" + "0" * 3 + "8" + "0" * 15
    file = prepared(nereus, tmp_path, "--in", "1h", "--command-id", old, "--", "true")
    status, receipt = nereus.json("submit", str(file))
    assert (status, receipt["reason"]) == (16, "OUTSIDE_HORIZON")
    assert receipt["retry_until"] in nereus("submit", str(file)).notes[0]


def test_the_result_of_a_command(nereus: Nereus) -> None:
    nereus("schedule", "--in", "1h", "--id", "x", "--", "true")
    _, refused = nereus.json("schedule", "--in", "1h", "--id", "x", "--command-id", "again", "--", "true")
    status, result = nereus.json("result", "again")
    assert (status, result["reason"], result["position"]) == (10, "MESSAGE_CONFLICT", refused["position"])
    status, error = nereus.json("result", "nobody")
    assert (status, error["error"]) == (13, "UNKNOWN")
