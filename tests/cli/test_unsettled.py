"""``uncertain`` and its report: what is listed, what is offered, and lines that do what they say when pasted."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nereus_cli.domain.outcome import Code, Disposition, SideEffect
from nereus_cli.domain.records import Outcome
from nereus_cli.render.text import visible
from tests.cli.owning import UNKNOWN, Owning
from tests.cli.running import Document, Nereus, Ran, check, environment
from tests.cli.unsettled_states import MAKERS, SEEN, exhausted, given_up, scheduled, uncertain

HOSTILE = "<script>alert(1)</script> | `x` \n\r\x1b[31m \u202e ]](http://x) **b** & \\ $x$ ~~~"
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "section", "table", "tr", "th", "td"}

# Attempts that are listed, and those that are listed with --all.
LISTED: dict[str, tuple[list[int], list[int]]] = {
    **dict.fromkeys(MAKERS, ([], [])),
    "uncertain": ([1], [1]),
    "with attempts left": ([1], [1]),
    "again": ([1], [1]),
    "stopped": ([1], [1]),
    "exhausted": ([1, 2], [1, 2]),
    "replayed": ([], [1, 2]),
    "seen off": ([], [1, 2]),
}


@pytest.mark.parametrize("state", MAKERS)
def test_what_asks_for_a_person_is_listed(nereus: Nereus, owning: Owning, state: str) -> None:
    MAKERS[state](nereus, owning)
    for flags, expected in zip(((), ("--all",)), LISTED[state], strict=True):
        for verb in (("uncertain",), ("uncertain", "report")):
            status, document = nereus.json(*verb, *flags)
            assert (status, [one["attempt"] for one in document["items"]]) == (30 if expected else 0, expected)
            assert all(one["can"] == ["resolve"] for one in document["items"])
        for form in ("md", "html"):
            assert nereus("uncertain", "report", "--format", form, *flags).status == (30 if expected else 0)


@pytest.mark.parametrize("state", MAKERS)
def test_the_check_and_the_list_agree(nereus: Nereus, owning: Owning, state: str) -> None:
    """What ``status`` counts as UNCERTAIN is what ``uncertain`` shows of messages that have not ended."""
    MAKERS[state](nereus, owning)
    counts = {one["code"]: one for one in nereus.json("status")[1]["attention"]}
    items = [one for one in nereus.json("uncertain", "report")[1]["items"] if one["state"] == "UNCERTAIN"]
    assert counts.get("UNCERTAIN", {}).get("count", 0) == len({one["message_id"] for one in items})
    if items:
        assert counts["UNCERTAIN"]["command"] == "nereus uncertain report"


def test_what_was_given_up_beside_an_attempt_in_progress_asks_for_nobody(nereus: Nereus, owning: Owning) -> None:
    MAKERS["again"](nereus, owning)
    assert nereus("status", "--check").status == 30
    assert nereus("resolve", "x", "--attempt", "1", "--give-up", *SEEN).status == 0
    assert nereus.json("show", "x")[1]["state"] == "UNCERTAIN"
    assert (nereus("uncertain", "--all").status, nereus("status", "--check").status) == (0, 0)


def test_nothing_uncertain_is_said_in_each_form(nereus: Nereus) -> None:
    nereus("init")
    document = nereus.json("uncertain", "report")[1]
    assert (document["items"], document["summary"]) == ([], {"attempts": 0, "messages": 0, "oldest_age_s": None})
    for form in ("md", "html"):
        ran = nereus("uncertain", "report", "--format", form)
        assert (ran.status, "Nothing is uncertain." in ran.text, ran.err) == (0, True, b"")
    assert nereus("uncertain").notes == ["nereus: nothing is uncertain"]


def ageless(document: Document) -> list[Document]:
    """The items, without what a moment later is another."""
    return [{**one, "age_s": None} for one in document["items"]]


def test_one_message_can_be_looked_at_alone(nereus: Nereus, owning: Owning) -> None:
    MAKERS["seen off"](nereus, owning)
    nereus("schedule", "--in", "0s", "--id", "y", "--", "true")
    owning.end("y", owning.admit("y"), UNKNOWN)
    nereus("schedule", "--in", "1h", "--id", "z", "--", "true")
    for name, expected in (("x", [1, 2]), ("y", [1]), ("z", [])):
        status, document = nereus.json("uncertain", "show", name)
        assert (status, [one["attempt"] for one in document["items"]]) == (30 if expected else 0, expected)
        assert {one["message_id"] for one in document["items"]} <= {name}
    assert nereus("uncertain", "show", "y").text.startswith("# Attempts whose effect is not known")
    assert nereus("uncertain", "show", "nobody").status == 13
    assert ageless(nereus.json("uncertain", "list", "--all")[1]) == ageless(nereus.json("uncertain", "--all")[1])


def test_the_form_is_markdown_unless_something_else_is_said(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    assert nereus("uncertain", "report").out.startswith(
        b"# Attempts whose effect is not known\n\n1 attempt of 1 message"
    )
    document = json.loads(nereus("uncertain", "report", "--format", "json").out)
    check(document)
    assert ageless(document) == ageless(nereus.json("uncertain", "report", "--format", "json")[1])
    status, error = nereus.json("uncertain", "report", "--format", "html")
    assert (status, error["details"]) == (2, {"field": "format"})


def test_a_report_holds_all_that_is_known(nereus: Nereus, owning: Owning) -> None:
    scheduled(nereus, owning, "--env", "API_TOKEN=hush", "--env", "PLACE=clear", "--reason", "end of month")
    attempt = owning.admit("x")
    detail = "its keeper died; pid 4711"
    owning.append(
        Outcome("x", attempt, SideEffect.UNKNOWN, Code.NO_EVIDENCE, Disposition.UNCERTAIN, detail=detail, started_at=1)
    )
    (item,) = nereus.json("uncertain", "report")[1]["items"]
    assert (item["attempt_id"], item["pid"], item["evidence"]["detail"]) == (attempt, 4711, detail)
    assert (item["known"], item["state"]) == ("it was begun, and nothing tells how it ended", "UNCERTAIN")
    assert [one["value"] for one in item["destination"]["env"]] == ["***", "clear"]
    for form in ("json", "md", "html"):
        text = nereus("uncertain", "report", "--format", form).text
        assert "hush" not in text
        for part in ("4711", "its keeper died", "end of month", "NO_EVIDENCE", "1970-01-01T00:00:00.000Z", "NONE"):
            assert part in text, (form, part)


@pytest.mark.parametrize(
    ("code", "signal", "said"),
    [
        (Code.SIGNALED, 15, "signal 15 (SIGTERM) ended it"),
        (Code.SIGNALED, 99, "signal 99 ended it"),
        (Code.TIMED_OUT, None, "its timeout ended it"),
        (Code.STOPPED, None, "a stop ended it"),
        (Code.SIGNALED_IN_SHELL, None, "the shell reported that a command in it was ended by a signal"),
        (Code.BROKEN_OFF, None, "it ended with BROKEN_OFF"),
    ],
)
def test_how_it_ended_is_a_sentence(nereus: Nereus, owning: Owning, code: Code, signal: int | None, said: str) -> None:
    scheduled(nereus, owning)
    owning.append(Outcome("x", owning.admit("x"), SideEffect.UNKNOWN, code, Disposition.UNCERTAIN, signal=signal))
    assert nereus.json("uncertain", "report")[1]["items"][0]["known"] == said


def paste(line: str, evidence: str | None, store: Path | None = None) -> Ran:
    """As a person would, in a shell where ``nereus`` is on the path."""
    beside = os.path.dirname(sys.executable)
    env = environment({"PATH": f"{beside}:{os.environ['PATH']}", **({"NEREUS_STORE": str(store)} if store else {})})
    script = line if evidence is None else f"EVIDENCE={shlex.quote(evidence)}\n{line}"
    ran = subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=False, timeout=60)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize("place", range(4))
def test_each_line_of_the_report_can_be_pasted(nereus: Nereus, owning: Owning, tmp_path: Path, place: int) -> None:
    """From a store whose path is made of everything that a shell, Markdown or HTML could take for its own."""
    folder = tmp_path / "it's $HOME `id` | <b>&amp; \\n 'two  spaces'"
    folder.mkdir(mode=0o700)
    nereus.store = folder / "s"
    owning._store = str(nereus.store)
    (uncertain if place < 3 else exhausted)(nereus, owning)
    item = nereus.json("uncertain", "report")[1]["items"][0]
    line = item["choices"][min(place, len(item["choices"]) - 1)]["command"]
    assert line == item["commands"][min(place, len(item["choices"]) - 1)]
    assert line in nereus("uncertain", "report").text.replace("\n    ", "\n").splitlines()
    pre = [
        html.unescape(one)
        for one in re.findall("<pre>(.*?)</pre>", nereus("uncertain", "report", "--format", "html").text)
    ]
    assert line in pre
    for verb in item["look"]:
        assert paste(verb, None).status in (0, 13), verb
    assert paste(line, None).status == 2
    assert paste(line, "").notes == ["nereus: say what shows it: --evidence TEXT"]
    said = 'it\'s in the "ledger" $HOME\nline 2'
    assert paste(line, said).status == 0
    attempt = nereus.json("show", "x")[1]["attempts"][0]
    assert attempt["resolution"]["evidence"] == said


def test_a_line_names_the_store_only_where_the_report_was_told_which(nereus: Nereus, owning: Owning) -> None:
    uncertain(nereus, owning)
    told = nereus.json("uncertain")[1]["items"][0]["commands"][0]
    assert told == f'nereus resolve x --attempt 1 --published --evidence "$EVIDENCE" --store {nereus.store}'
    (item,) = paste("nereus uncertain --json", None, nereus.store).document["items"]
    assert item["commands"][0] == 'nereus resolve x --attempt 1 --published --evidence "$EVIDENCE"'
    assert paste(item["commands"][0], "seen", nereus.store).status == 0


def hostile(nereus: Nereus, owning: Owning) -> None:
    """Everything that a stranger can write into a report."""
    nereus("schedule", "-q", "--in", "0s", "--id", "x", "--reason", HOSTILE, "--", "echo", HOSTILE)
    outcome = Outcome("x", owning.admit("x"), SideEffect.UNKNOWN, Code.SIGNALED, Disposition.UNCERTAIN, detail=HOSTILE)
    owning.append(outcome)
    said = ("--evidence", HOSTILE, "--by", HOSTILE)
    assert nereus("resolve", "x", "--attempt", "1", "--retry", *said).status == 0


class Seen(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_holds_no_markup_of_a_stranger(nereus: Nereus, owning: Owning) -> None:
    hostile(nereus, owning)
    ran = nereus("uncertain", "report", "--format", "html")
    page = ran.out.decode("ascii")
    seen = Seen(page)
    assert seen.tags <= TAGS | {"strong"}
    assert seen.attributes == {"lang", "charset", "http-equiv", "content"}
    assert page.startswith("<!DOCTYPE html>")
    for start in ("", "retry, by "):
        assert any(text.startswith(f"{start}{visible(HOSTILE)}") for text in seen.texts), seen.texts
    assert not any(ord(character) < 0x20 and character != "\n" for character in html.unescape(page))


def test_markdown_holds_no_markup_of_a_stranger(nereus: Nereus, owning: Owning) -> None:
    hostile(nereus, owning)
    text = nereus("uncertain", "report").text
    assert not any(ord(character) < 0x20 and character != "\n" for character in text)
    assert "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    for row in rows:
        bare = re.sub(r"\\.", "", row)
        assert bare.count("|") == 3, row
        assert not set(bare) & set("<`*[]$"), row
    assert "<script" not in text


def test_machines_get_every_byte(nereus: Nereus, owning: Owning) -> None:
    hostile(nereus, owning)
    (item,) = nereus.json("uncertain", "report")[1]["items"]
    assert (item["evidence"]["detail"], item["request_reason"]) == (HOSTILE, HOSTILE)
    assert (item["resolution"]["evidence"], item["resolution"]["by"]) == (HOSTILE, HOSTILE)
    for verb in (("show", "x"), ("uncertain",), ("events",), ("resolve", "x", "--attempt", "1", "--retry", *SEEN)):
        out = nereus(*verb).out
        assert not any(byte < 0x20 and byte not in b"\t\n" for byte in out), verb
        assert "\u202e" not in out.decode(), verb


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_report_is_printed_in_any_locale(nereus: Nereus, owning: Owning, locale: str) -> None:
    nereus("schedule", "-q", "--in", "0s", "--id", "x", "--reason", "z\u00fcrich \u2603", "--", "echo", "\u00e9")
    owning.end("x", owning.admit("x"), UNKNOWN)
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for form in ("md", "html", "json"):
        ran = nereus.process("uncertain", "report", "--format", form, env=env)
        assert (ran.status, ran.err) == (30, b""), form
    assert "z&#252;rich &#9731;" in nereus("uncertain", "report", "--format", "html").text


def test_an_attempt_that_was_given_up_is_shown_with_its_verdict(nereus: Nereus, owning: Owning) -> None:
    given_up(nereus, owning)
    shown = nereus.json("show", "x")[1]
    assert (shown["state"], shown["reason"]) == ("DEAD_LETTER", "GIVEN_UP")
    assert (shown["attempts"][0]["side_effect"], shown["attempts"][0]["resolution"]["verdict"]) == (
        "UNKNOWN",
        "give-up",
    )
    assert "give-up, says " in nereus("show", "x").text
