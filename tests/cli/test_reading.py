"""The verbs that show: messages, lists, how the store stands, what attempts printed, what is waited for."""

from __future__ import annotations

import base64
import shutil
import time
from pathlib import Path

import pytest

from nereus_cli.domain.records import Usage
from tests.cli.owning import DEAD, PUBLISHED, UNKNOWN, Owning
from tests.cli.running import Nereus


def schedule(nereus: Nereus, name: str, *flags: str) -> None:
    delay = () if "--at" in flags else ("--in", "1h")
    assert nereus("schedule", "-q", *delay, "--id", name, *flags, "--", "echo", name).status == 0


def names(nereus: Nereus, *flags: str) -> list[str]:
    *messages, end = nereus("list", "--json", *flags).documents
    assert end["schema"] == "nereus.end/1"
    return [one["message_id"] for one in messages]


def test_a_message_shows_its_whole_life(nereus: Nereus, owning: Owning) -> None:
    schedule(nereus, "x", "--tag", "team=a", "--reason", "why", "--env", "MY_TOKEN=hush", "--env", "B=c")
    nereus("hold", "x")
    nereus("release", "x")
    owning.end("x", owning.admit("x"), PUBLISHED)
    status, shown = nereus.json("show", "x")
    assert (status, shown["state"], shown["work"], shown["tags"]) == (0, "PUBLISHED", "NONE", {"team": "a"})
    (attempt,) = shown["attempts"]
    assert (attempt["number"], attempt["code"], attempt["exit_code"]) == (1, "EXIT_0", 0)
    assert [line["event"] for line in shown["history"]] == ["Schedule", "Hold", "Release", "Admission", "Outcome"]
    text = nereus("show", "x").text
    for part in ("PUBLISHED", "echo x", "--in 1h", "team=a", "why", attempt["attempt_id"], "Release"):
        assert part in text


def test_values_that_look_secret_are_masked_until_asked_for(nereus: Nereus) -> None:
    schedule(nereus, "x", "--env", "MY_TOKEN=hush", "--env", "B=clear", "--secret", "K=file:/some/where")
    for verb in (("show", "x"), ("list",), ("show", "x", "--json"), ("list", "--json")):
        assert b"hush" not in nereus(*verb).out, verb
    shown = nereus.json("show", "x")[1]["destination"]
    assert [one["value"] for one in shown["env"]] == ["***", "clear"]
    assert shown["secrets"] == [{"name": "K", "reference": "file:/some/where"}]
    assert b"hush" in nereus("show", "x", "--show-secrets").out
    assert b"hush" in nereus("list", "--json", "--show-secrets").out


def test_b085_bytes_of_any_kind_go_in_and_come_out_as_they_were(nereus: Nereus, tmp_path: Path) -> None:
    words = (
        b"a\xffb",
        b"",
        b"it's",
        b"a\nb",
        b"\x1b[31m",
        "\u202edlrow".encode(),
        b"$HOME *",
        b"--json",
        b"\x01\xc2\x80",
    )
    for environment in ({"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        ran = nereus.process(
            "schedule", "-q", "--in", "1h", "--id", "x", "--env", b"E=\xfe", "--", "printf", *words, env=environment
        )
        assert ran == (0, b"x\n", b"")
    shown = nereus.json("show", "x")[1]["destination"]
    assert shown["argv"][1] == {"b64": "Yf9i"}
    assert shown["argv"][2:5] == ["", "it's", "a\nb"]
    assert shown["env"][0]["value"] == {"b64": "/g=="}
    line = shown["command"]
    assert line.isprintable()
    assert line.isascii()
    import subprocess

    script = tmp_path / "script"
    script.write_text('printf "%s\\0" ' + line.removeprefix("printf ") + "\n")
    assert subprocess.run(["bash", script], capture_output=True, check=True).stdout.split(b"\0")[:-1] == list(words)
    for verb in (("show", "x"), ("list",)):
        out = nereus(*verb).out
        assert not any(byte < 0x20 and byte not in b"\t\n" for byte in out)
        assert "\u202e" not in out.decode()


def test_a_list_is_in_order_and_can_be_narrowed(nereus: Nereus, owning: Owning) -> None:
    schedule(nereus, "late", "--at", "2027-06-01T00:00:00Z", "--tag", "a=1", "--tag", "b=2")
    schedule(nereus, "early", "--at", "2027-01-01T00:00:00Z", "--tag", "a=1")
    schedule(nereus, "middle", "--at", "2027-03-01T00:00:00Z")
    nereus("schedule", "--in", "0s", "--id", "dead", "--", "true")
    owning.end("dead", owning.admit("dead"), DEAD)
    nereus("cancel", "middle")
    assert names(nereus) == ["early", "late"]
    assert names(nereus, "--state", "canceled", "--state", "DEAD_LETTER") == ["dead", "middle"]
    assert names(nereus, "--tag", "a=1") == ["early", "late"]
    assert names(nereus, "--tag", "a=1", "--tag", "b=2") == ["late"]
    assert names(nereus, "--lane", "shell") == ["early", "late"]
    assert names(nereus, "--lane", "other") == []
    assert names(nereus, "--key", "k") == []
    assert names(nereus, "--due-before", "2027-06-01T00:00:00Z") == ["early"]
    assert names(nereus, "--due-before", "2027-06-01T02:00:01", "--tz", "Europe/Berlin") == ["early", "late"]


def test_a_list_goes_on_where_it_ended(nereus: Nereus) -> None:
    for number in range(5):
        schedule(nereus, f"m{number}", "--at", "2027-01-01T00:00:00Z")
    seen: list[str] = []
    cursor: tuple[str, ...] = ()
    for expected in (2, 2, 1):
        *page, end = nereus("list", "--json", "--limit", "2", *cursor).documents
        assert len(page) == expected
        seen += [one["message_id"] for one in page]
        cursor = ("--cursor", end["next"] or "")
    assert (seen, cursor[1]) == ([f"m{number}" for number in range(5)], "")
    assert "--cursor" in nereus("list", "--limit", "2").notes[0]
    *page, end = nereus("list", "--json", "--limit", "5").documents
    assert end["next"] is None


def test_no_instant_is_too_far_to_list_by(nereus: Nereus) -> None:
    schedule(nereus, "x")
    nereus.process("run", "--once")
    for option, value, found in (
        ("--due-before", "9999-12-31T00:00:00Z", 1),
        ("--due-before", "0001-01-01T00:00:00Z", 0),
        ("--cursor", cursor_of(b'[%d,""]' % 10**30), 0),
        ("--cursor", cursor_of(b'[%d,""]' % -(10**30)), 1),
    ):
        ran = nereus("list", "--json", option, value)
        assert (ran.status, len(ran.documents)) == (0, found + 1), (option, value)
    for broken in (b"[1]", b"[" * 4_000, b'[1,"\xff"]', b""):
        assert nereus("list", "--cursor", cursor_of(broken)).status == 2, broken


def cursor_of(place: bytes) -> str:
    return base64.urlsafe_b64encode(place).decode().rstrip("=")


def codes(nereus: Nereus) -> dict[str, int]:
    return {one["code"]: one["count"] for one in nereus.json("status")[1]["attention"]}


def test_the_status_says_what_needs_attention(nereus: Nereus, owning: Owning) -> None:
    schedule(nereus, "x")
    assert (nereus("status", "--check").status, codes(nereus)) == (0, {})
    nereus("schedule", "--in", "0s", "--id", "due", "--", "true")
    assert (nereus("status", "--check").status, codes(nereus)) == (30, {"OVERDUE_NO_DAEMON": 1})
    assert nereus("status").status == 0
    shown = nereus.json("status")[1]
    assert (shown["overdue"], shown["owner"], shown["log"]) == (1, None, {"first": 1, "last": 2, "durable": 2})
    owning.end("due", owning.admit("due"), UNKNOWN)
    assert (nereus("status", "--check").status, codes(nereus)) == (30, {"UNCERTAIN": 1})


@pytest.mark.parametrize(("how", "code"), [("dead", "DEAD_LETTER"), ("held", "HELD")])
def test_what_gave_up_needs_a_person_and_what_a_person_held_does_not(
    nereus: Nereus, owning: Owning, how: str, code: str
) -> None:
    nereus("schedule", "--in", "0s" if how == "dead" else "1h", "--id", "x", "--", "true")
    if how == "dead":
        owning.end("x", owning.admit("x"), DEAD)
    else:
        nereus("hold", "x")
    assert codes(nereus) == {code: 1}
    assert nereus("status", "--check").status == (30 if how == "dead" else 0)


def test_b033_what_expired_is_seen(nereus: Nereus) -> None:
    nereus(
        "schedule", "--at", "2020-01-01T00:00:00Z", "--allow-past", "--expires-after", "1s", "--id", "x", "--", "true"
    )
    assert nereus.process("run", "--once").status == 0
    assert names(nereus, "--state", "EXPIRED") == ["x"]
    assert codes(nereus) == {"EXPIRED": 1}
    assert nereus("status", "--check").status == 30
    assert "expire" in [one["event"] for one in nereus("events", "--json").documents]


def test_a_record_that_cannot_be_read_is_reported(nereus: Nereus) -> None:
    from nereus_cli.store import open_store

    schedule(nereus, "x")
    with open_store(str(nereus.store)) as store:
        store.log.append([b"not a record"])
    assert codes(nereus) == {"QUARANTINED": 1}
    assert nereus("status", "--check").status == 30
    assert nereus.json("verify")[1]["projection"]["quarantined"] == 1
    assert nereus("events", "--json", "--since", "1").document["event"] == "quarantined"
    assert nereus.json("show", "x")[0] == 0


def test_uncertain_lists_what_is_not_known(nereus: Nereus, owning: Owning) -> None:
    nereus("schedule", "--in", "0s", "--id", "x", "--", "true")
    status, nothing = nereus.json("uncertain")
    assert (status, nothing["items"]) == (0, [])
    attempt = owning.admit("x")
    owning.end("x", attempt, UNKNOWN)
    status, found = nereus.json("uncertain")
    (item,) = found["items"]
    assert (status, item["attempt_id"], item["attempt"], item["work"]) == (30, attempt, 1, "NONE")
    assert item["evidence"]["signal"] == 9
    human = nereus("uncertain")
    assert (human.status, attempt in human.text) == (30, True)
    assert nereus("uncertain", "--all").status == 30


def test_waiting_ends_with_the_worst(nereus: Nereus, owning: Owning) -> None:
    for name in ("ok", "dead", "unknown", "later"):
        nereus("schedule", "--in", "1h" if name == "later" else "0s", "--id", name, "--", "true")
    owning.end("ok", owning.admit("ok"), PUBLISHED)
    owning.end("dead", owning.admit("dead"), DEAD)
    owning.end("unknown", owning.admit("unknown"), UNKNOWN)
    table = [
        (("ok",), 0), (("dead",), 20), (("unknown",), 21), (("later", "--timeout", "0s"), 22), (("ok", "dead"), 20),
        (("dead", "unknown", "ok"), 21), (("later", "unknown", "--timeout", "10ms"), 22), (("nobody",), 13),
        (("ok", "--for", "published"), 0), (("dead", "--for", "published"), 20), (("later", "--for", "applied"), 0),
    ]  # fmt: skip
    for words, status in table:
        got, document = nereus.json("wait", *words)
        assert (got, document["exit"]) == (status, status), words
        assert nereus("wait", *words).status == status, words


def test_waiting_notices_what_happens_meanwhile(nereus: Nereus) -> None:
    import threading

    schedule(nereus, "x")
    canceller = threading.Timer(0.3, lambda: nereus.process("cancel", "x"))
    canceller.start()
    began = time.monotonic()
    assert nereus("wait", "x", "--timeout", "30s").status == 20
    assert time.monotonic() - began < 20
    canceller.join()


def keep(nereus: Nereus, position: int, attempt: str, out: bytes, err: bytes) -> None:
    folder = nereus.store / "attempts" / f"{position // 4_096:08d}"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / attempt).write_bytes(out)
    (folder / f"{attempt}.err").write_bytes(err)


def test_logs_are_the_bytes_that_were_kept(nereus: Nereus, owning: Owning) -> None:
    nereus("schedule", "--in", "0s", "--id", "x", "--", "true")
    assert nereus.json("logs", "x")[1]["error"] == "NO_SUCH_ATTEMPT"
    assert nereus("logs", "nobody").status == 13
    attempt = owning.admit("x")
    position = nereus.json("show", "x")[1]["attempts"][0]["admitted_position"]
    keep(nereus, position, attempt, b"o\xff\x1b[31m", b"e\n")
    assert nereus("logs", "x") == (0, b"o\xff\x1b[31me\n", b"")
    usage = Usage(stdout_bytes=100, stdout_kept=7, stderr_bytes=2, stderr_kept=2)
    owning.end("x", attempt, PUBLISHED, usage)
    ran = nereus("logs", "x", "--attempt", "1", "--follow")
    assert (ran.status, ran.notes) == (0, ["nereus: stdout: the first 7 of 100 bytes were kept"])
    document = nereus.json("logs", "x")[1]
    assert document["stdout"] == {"b64": "b/8bWzMxbQ=="}
    assert (document["stderr"], document["stdout_bytes"], document["stdout_truncated"]) == ("e\n", 100, True)
    assert document["stderr_truncated"] is False
    assert nereus.json("logs", "x", "--attempt", "2")[0] == 13


def test_logs_that_are_gone_or_may_not_be_read_do_not_pass_for_empty_ones(nereus: Nereus, owning: Owning) -> None:
    nereus("schedule", "--in", "0s", "--id", "x", "--", "true")
    attempt = owning.admit("x")
    position = nereus.json("show", "x")[1]["attempts"][0]["admitted_position"]
    keep(nereus, position, attempt, b"abc\n", b"")
    owning.end("x", attempt, PUBLISHED, Usage(stdout_bytes=4, stdout_kept=4, stderr_bytes=0, stderr_kept=0))
    assert nereus("logs", "x") == (0, b"abc\n", b"")
    folder = nereus.store / "attempts" / f"{position // 4_096:08d}"
    (folder / attempt).unlink()
    ran = nereus("logs", "x")
    assert (ran.status, ran.out, ran.notes) == (0, b"", ["nereus: stdout: 4 bytes were kept, 0 are left"])
    assert nereus.json("logs", "x")[1]["stdout_truncated"] is True
    folder.rename(nereus.store / "elsewhere")
    folder.touch()
    assert nereus("logs", "x").status == 74


def test_an_attempt_that_never_began_printed_nothing(nereus: Nereus, owning: Owning) -> None:
    nereus("schedule", "--in", "0s", "--id", "x", "--", "true")
    attempt = owning.admit("x")
    folder = nereus.store / "attempts" / "00000000"
    folder.mkdir(mode=0o700)
    (folder / attempt).symlink_to("/etc/passwd")
    assert nereus("logs", "x") == (0, b"", b"")


def test_events_are_the_log(nereus: Nereus, owning: Owning) -> None:
    schedule(nereus, "x")
    nereus("cancel", "x")
    owning.append()
    events = nereus("events", "--json").documents
    assert [(one["position"], one["event"], one["kind"]) for one in events] == [
        (1, "schedule", "CLIENT"), (2, "cancel", "CLIENT"), (3, "owner", "OWNER"),
    ]  # fmt: skip
    assert [one["position"] for one in nereus("events", "--json", "--since", "2").documents] == [3]
    assert nereus("events", "--since", "1").text.splitlines()[0].startswith("2  ")


def test_an_empty_list_tells_a_person_what_it_leaves_out(nereus: Nereus, monkeypatch: pytest.MonkeyPatch) -> None:
    nereus("schedule", "--in", "1h", "--id", "x", "--", "true")
    nereus("cancel", "x")
    assert nereus("list") == (0, b"", b"")
    monkeypatch.setattr("nereus_cli.cli.output.on_terminal", lambda: True)
    assert "--state" in nereus("list").notes[0]
    assert nereus("list", "--state", "CANCELED").notes == []


def test_where_there_is_no_store_the_next_step_is_named(nereus: Nereus) -> None:
    assert "nereus init" in nereus("list").notes[0]
    nereus.store.write_text("", encoding="ascii")
    assert "is not a directory" in nereus("list").notes[0]
    assert nereus("schedule", "--in", "1h", "--", "true").status == 73


def test_init_makes_a_store_once(nereus: Nereus) -> None:
    assert nereus.json("init") == (0, {"schema": "nereus.init/1", "store": str(nereus.store), "created": True})
    assert nereus.json("init")[1]["created"] is False
    assert nereus("init").text == f"found {nereus.store}\n"
    assert nereus("list") == (0, b"", b"")


def test_an_id_is_unknown_only_where_the_end_of_the_log_was_reached(
    nereus: Nereus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a restart, on a disk that refuses: what was queued last cannot be shown, and is not unknown."""
    schedule(nereus, "old")
    nereus("schedule", "-q", "--in", "1h", "--id", "x", "--command-id", "cx", "--", "true")
    shutil.rmtree(nereus.store / "log" / "mark")
    lock = nereus.store / "log" / "locks" / "append"
    lock.unlink()
    lock.mkdir()
    monkeypatch.setattr("nereus_cli.cli.asking._SYNC_WAIT_S", 0.01)
    for line in (("show", "x"), ("logs", "x"), ("wait", "x", "--timeout", "0s"), ("result", "cx")):
        status, error = nereus.json(*line)
        assert (status, error["error"]) == (15, "PENDING"), line
    assert nereus("show", "old").status == 0
    lock.rmdir()
    assert nereus.json("show", "x")[0] == 0
    assert nereus.json("show", "none")[0] == 13
