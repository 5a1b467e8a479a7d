"""Both ends of the wire are written apart, since neither may import the other: here they are held together."""

from binascii import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nereus_cli.destinations.keeper_client import PROTOCOL, StartRequest
from nereus_cli.destinations.keeper_facts import Ended, checked_lines, fact
from nereus_cli.destinations.keeper_requests import DRAIN, FRAME_BYTES_MAX, start_frame, stop_frame
from nereus_cli.keeper import PROTOCOL as KEEPER_PROTOCOL
from nereus_cli.keeper import wire
from nereus_cli.keeper.lines import line

octets = st.binary(max_size=50).filter(lambda text: b"\0" not in text)
names = octets.filter(lambda text: bool(text) and b"=" not in text)
ids = st.text("abcXYZ019_:@=+~-", min_size=1, max_size=128)
requests = st.builds(
    StartRequest,
    attempt_id=ids,
    directory=st.integers(0, 10**12),
    argv=st.lists(octets, min_size=1, max_size=5).map(tuple),
    cwd=octets.map(lambda text: b"/" + text),
    env=st.dictionaries(names, octets, max_size=5).map(lambda found: tuple(found.items())),
    stdin=st.none() | st.binary(max_size=100),
    umask=st.integers(0, 0o777),
    timeout_ms=st.none() | st.integers(0, 2**50),
    grace_ms=st.integers(0, 2**50),
    output_bytes_max=st.integers(0, 2**40),
)


def parsed(data: bytes) -> list[wire.Start | wire.Stop | wire.Drain]:
    buffer = bytearray(data)
    found = [wire.parse(body) for body in wire.split(buffer)]
    assert not buffer
    return found


def test_both_ends_speak_the_same_version() -> None:
    assert PROTOCOL == KEEPER_PROTOCOL
    assert FRAME_BYTES_MAX == wire.FRAME_BYTES_MAX


@given(requests)
def test_a_start_arrives_as_it_was_sent(request: StartRequest) -> None:
    (start,) = parsed(start_frame(request))
    assert isinstance(start, wire.Start)
    assert start == wire.Start(
        attempt_id=request.attempt_id,
        directory=f"{request.directory:08d}",
        cwd=request.cwd,
        umask=request.umask,
        timeout_ms=request.timeout_ms,
        grace_ms=request.grace_ms,
        output_bytes_max=request.output_bytes_max,
        stdin=request.stdin,
        argv=list(request.argv),
        env=dict(request.env),
    )


def test_stop_and_drain_arrive() -> None:
    data = stop_frame("na~1", kill=True) + DRAIN + stop_frame("na~2", kill=False)
    assert parsed(data) == [wire.Stop("na~1", kill=True), wire.Drain(), wire.Stop("na~2", kill=False)]


def test_the_bytes_of_drain_are_a_promise() -> None:
    assert bytes.fromhex("00000009 00000005 647261696e") == DRAIN


@given(st.lists(requests, max_size=4), st.lists(st.integers(1, 60), max_size=60))
def test_however_a_stream_is_cut_the_same_frames_come_out(sent: list[StartRequest], cuts: list[int]) -> None:
    data = b"".join(map(start_frame, sent))
    buffer, found = bytearray(), []
    for cut in [*cuts, len(data)]:
        buffer += data[:cut]
        data = data[cut:]
        found += [wire.parse(body) for body in wire.split(buffer)]
    assert found == [parsed(start_frame(request))[0] for request in sent]


@given(st.binary(max_size=200))
def test_anything_else_is_malformed_and_nothing_worse(noise: bytes) -> None:
    try:
        wire.parse(noise)
    except wire.MalformedError:
        return


@given(requests, st.data())
def test_a_damaged_start_is_malformed_or_another_start(request: StartRequest, data: st.DataObject) -> None:
    body = bytearray(start_frame(request)[4:])
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    try:
        found = wire.parse(bytes(body))
    except wire.MalformedError:
        return
    assert isinstance(found, wire.Start)


def test_standard_input_is_taken_up_to_its_bound_and_no_further() -> None:
    most = bytes(wire.STDIN_BYTES_MAX)
    request = StartRequest(attempt_id="na~1", directory=1, argv=(b"cat",), cwd=b"/", env=(), stdin=most)
    (start,) = parsed(start_frame(request))
    assert isinstance(start, wire.Start)
    assert start.stdin == most
    with pytest.raises(wire.MalformedError, match="too much"):
        parsed(start_frame(msgspec.structs.replace(request, stdin=most + b"x")))


def test_a_frame_without_end_is_refused_at_its_length() -> None:
    with pytest.raises(wire.MalformedError):
        list(wire.split(bytearray(b"\xff\xff\xff\xff")))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\n", "é", "a" * 201])
def test_an_id_that_is_no_name_of_a_file_is_refused(name: str) -> None:
    body = b"".join(len(part).to_bytes(4, "big") + part for part in (b"stop", name.encode(), b"0"))
    with pytest.raises(wire.MalformedError):
        wire.parse(body)


words = st.lists(st.text("abcXYZ019_:@=+~.-", min_size=1, max_size=12), min_size=1, max_size=6)


@given(st.lists(words, max_size=6))
def test_lines_are_read_as_they_were_written(said: list[list[str]]) -> None:
    assert list(checked_lines(b"".join(line(*some) for some in said))) == said


@given(st.lists(words, min_size=1, max_size=6), st.data())
def test_a_torn_or_changed_line_is_skipped_and_its_neighbours_are_not(
    said: list[list[str]], data: st.DataObject
) -> None:
    lines = [line(*some) for some in said]
    victim = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[victim]) - 2))
    broken = bytearray(lines[victim])
    if data.draw(st.booleans()):
        broken[at] ^= data.draw(st.sampled_from([1, 2, 4, 64]))
        if broken[at] in b"\n" or bytes(broken[:8]).lower() == lines[victim][:8]:
            return
    else:
        del broken[at:-1]
    lines[victim] = bytes(broken)
    kept = [some for number, some in enumerate(said) if number != victim]
    assert list(checked_lines(b"".join(lines))) == kept


@pytest.mark.parametrize(
    "text", ["NEWER na~1 x", "ENDED na~1 0", "STARTED na~1 pid 1", "NOSTART na~1", "CLOSED", "TAKEN na~1"]
)
def test_a_line_of_another_version_says_nothing(text: str) -> None:
    assert fact(text.split()) is None


def test_a_line_with_more_words_than_known_is_understood() -> None:
    said = fact(["ENDED", "na~1", *map(str, (9, 1, 0, 10, 20, 30, 1_500_000, 2, 3, 4, 5, 6, 7, -1)), "later"])
    assert said == Ended(
        attempt_id="na~1",
        wait_status=9,
        timed_out=True,
        stopped=False,
        started_at_ns=10,
        ended_at_ns=20,
        ended_boot_ns=30,
        utime_s=1.5,
        stime_s=2e-6,
        maxrss_kib=3,
        stdout_bytes=4,
        stderr_bytes=5,
        stdout_kept=6,
        stderr_kept=7,
        survivors=-1,
    )
    assert (said.exit_code, said.signal) == (None, 9)


def test_the_check_is_crc32_in_eight_digits() -> None:
    assert line("A", 1) == b"%08x A 1\n" % crc32(b"A 1")
    assert line("smile ☺") == line("smile \\u263a")


@pytest.mark.parametrize("number", [str(1 << 31), str(-(1 << 31)), "9" * 30, "9" * 5_000], ids=len)
def test_a_number_that_no_kernel_gives_is_no_fact(number: str) -> None:
    numbers = "0 0 0 10 20 30 1 2 3 4 5 6 7 0"
    for text in (f"NOSTART na~1 {number} exec", f"STARTED na~1 {number} 1", f"ENDED na~1 {number} {numbers[2:]}"):
        assert fact(text.split()) is None
    assert fact(f"STARTED na~1 7 {1 << 63}".split()) is None
    assert fact(f"ENDED na~1 {numbers[:-1]}{1 << 63}".split()) is None
    assert fact(f"ENDED na~1 {numbers}".split()) is not None
