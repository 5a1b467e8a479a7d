"""The keeper at work: one thread, one loop, the order of things in ``turn``."""

import errno
import heapq
import os
import signal
from collections import OrderedDict, deque
from functools import partial

from nereus_cli.keeper.attempt import Attempt, Exit
from nereus_cli.keeper.clock import MILLISECOND, SECOND, boot_ns, wall_ns
from nereus_cli.keeper.daemons import ACCEPTING, Daemons, Request
from nereus_cli.keeper.descriptors import Descriptors
from nereus_cli.keeper.door import Door, close_door, path_of, try_door
from nereus_cli.keeper.evidence import EvidenceFile
from nereus_cli.keeper.folders import Folders
from nereus_cli.keeper.ladder import Ladder
from nereus_cli.keeper.lines import line
from nereus_cli.keeper.log import note
from nereus_cli.keeper.loop import Loop
from nereus_cli.keeper.output import Stream
from nereus_cli.keeper.place import Place
from nereus_cli.keeper.signals import Bell
from nereus_cli.keeper.spawn import Child, NotStartedError, spawn
from nereus_cli.keeper.strays import become_subreaper
from nereus_cli.keeper.wire import Drain, MalformedError, Start, Stop

# Starts taken in one turn: what waits longer are reading, reaping and the timers of everybody else.
BATCH = 8
# Streams of ended attempts that somebody still holds open; beyond this the oldest is closed.
HELD_MAX = 512
RETRY_NS = SECOND // 5
FAREWELL_NS = SECOND


class Keeper:
    """Serves one store until its last child has ended and nobody has been connected for ``idle_ns``.

    A test takes a subclass; each method below ``turn`` is one step that can be interrupted."""

    def __init__(self, place: Place, idle_ns: int, boot_id: str) -> None:
        """``boot_id`` is what the daemon calls this boot, in hexadecimal digits.

        Raises OSError if there is no room for evidence or sockets."""
        self.place = place
        self.name = f"{wall_ns():x}-{os.getpid()}"
        self.idle_ns = idle_ns
        self.null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.descriptors = Descriptors(self.null)
        self.loop = Loop()
        self.bell = Bell()
        self.loop.add(self.bell.fd, self.bell.hush)
        self.evidence = EvidenceFile(place.keeper, self.name, boot_id)
        self.folders = Folders()
        self.leaders: dict[int, Attempt] = {}
        self.attempts: dict[str, Attempt] = {}
        self.ladder = Ladder(self.leaders, self.settle, adopts_orphans=become_subreaper())
        self.timers: list[tuple[int, str]] = []
        self.queue: OrderedDict[str, Start] = OrderedDict()
        self.held: deque[Stream] = deque()
        self.news = bytearray()
        self.draining = False
        self.daemons = Daemons(place.keeper, self.name, self.loop, self.asked)

    def run(self) -> None:
        """Until there is nothing left to keep. No error of one turn ends it."""
        quiet_since = boot_ns()
        while True:
            try:
                self.turn(quiet_since)
            except Exception as failed:  # noqa: BLE001 - whatever it was, children have to be reaped and reported
                note(failed)
            now = boot_ns()
            if self.busy():
                quiet_since = now
            elif self.draining or now - quiet_since >= self.idle_ns:
                break
        self.farewell()

    def turn(self, quiet_since: int) -> None:
        """Hear, reap, climb, start, tell: an end that came before its timer is not a time-out."""
        for handler in self.loop.wait(self.patience_ms(quiet_since)):
            handler()
        if self.bell.asked_to_end:
            self.drain()
        self.reap()
        self.climb()
        self.take()
        self.flush()

    def busy(self) -> bool:
        """Whether there is something to stay for. Who holds a stream of an ended child counts: it would be hit
        by SIGPIPE."""
        self.held = deque(stream for stream in self.held if not stream.ended())
        work = self.attempts or self.queue or self.held or self.evidence.waits
        return bool(work) or (bool(self.daemons) and not self.draining)

    def patience_ms(self, quiet_since: int) -> int | None:
        """How long the loop may wait; None: until something is heard."""
        if self.queue:
            return 0
        now = boot_ns()
        due = [self.timers[0][0]] if self.timers else []
        climbing = self.ladder.next_ns()
        if climbing is not None:
            due.append(climbing)
        if self.evidence.waits:
            due.append(now + RETRY_NS)
        if not self.busy():
            due.append(quiet_since + (0 if self.draining else self.idle_ns))
        if not due:
            return None
        # Waiting does not count suspend, so a timer is looked at every second.
        return min(max(0, -((now - min(due)) // MILLISECOND)), 1000)

    def asked(self, request: Request) -> None:
        """One request of a daemon."""
        match request:
            case Start():
                self.received(request)
            case Stop():
                self.stop(request)
            case Drain():
                self.drain()
            case MalformedError():
                note(request)
                if request.attempt_id is not None:
                    self.say(line("NOSTART", request.attempt_id, errno.EINVAL, "request"))

    def received(self, start: Start) -> None:
        """Queue it; a start that is known already is ignored, and one that comes while draining never happens."""
        if start.attempt_id in self.attempts:
            return
        if self.draining:
            self.refuse(start)
        else:
            self.queue.setdefault(start.attempt_id, start)

    def refuse(self, start: Start) -> None:
        """Close its door from this side: it never starts, unless it did before."""
        if close_door(self.place.store, start.directory, start.attempt_id):
            self.say(line("CLOSED", start.attempt_id))

    def stop(self, request: Stop) -> None:
        """What waits never starts, what runs goes on the ladder, what ended is left alone."""
        waiting = self.queue.pop(request.attempt_id, None)
        if waiting is not None:
            self.refuse(waiting)
            return
        self.reap()
        attempt = self.attempts.get(request.attempt_id)
        if attempt is None:
            return
        if not attempt.stopped:
            attempt.stopped = True
            self.say(line("STOPPED", attempt.id))
            self.flush()
        self.ladder.begin(attempt, boot_ns(), kill=request.kill)

    def drain(self) -> None:
        """Name and lock are free at once; what was accepted before is still started."""
        if self.draining:
            return
        self.draining = True
        self.daemons.leave(ACCEPTING)
        self.place.unlock()
        self.say(line("DRAINING", self.name))

    def reap(self) -> None:
        """Every child that ended, orphans that came here too."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            attempt = self.leaders.pop(pid, None)
            if attempt is not None:
                self.reaped(attempt, Exit(status, usage))

    def reaped(self, attempt: Attempt, end: Exit) -> None:
        attempt.exit = end
        if attempt in self.ladder:
            self.ladder.leader_ended(attempt, boot_ns())
        else:
            self.settle(attempt, 0)

    def settle(self, attempt: Attempt, survivors: int) -> None:
        """The verdict, with the output that is there by now; who still holds a stream goes on being read."""
        del self.attempts[attempt.id]
        for stream in attempt.streams:
            self.drain_stream(stream)
            if not stream.ended():
                self.held.append(stream)
        if attempt.exit is not None:
            self.say(attempt.ended_line(attempt.exit, survivors))
        while len(self.held) > HELD_MAX:
            self.close_stream(self.held.popleft())

    def climb(self) -> None:
        """Time-outs that are due, then whatever the ladder has to do."""
        now = boot_ns()
        expired = []
        while self.timers and self.timers[0][0] <= now:
            attempt = self.attempts.get(heapq.heappop(self.timers)[1])
            if attempt is not None and attempt not in self.ladder:
                attempt.timed_out = True
                self.say(line("TIMEDOUT", attempt.id))
                expired.append(attempt)
        if expired:
            self.flush()
        for attempt in expired:
            self.ladder.begin(attempt, now, kill=False)
        if self.ladder:
            self.ladder.climb(now)

    def take(self) -> None:
        """Start a batch: TAKEN is in the evidence before any door of it is tried."""
        if not self.queue:
            return
        batch = [self.queue.popitem(last=False)[1] for _ in range(min(BATCH, len(self.queue)))]
        failed = self.announce(batch)
        for start in batch:
            if failed is None:
                self.begin_safely(start)
            else:
                # Said to the daemon alone: there is no room to write it, and no door that would contradict it.
                self.news += line("NOSTART", start.attempt_id, failed.errno or errno.EIO, "evidence")

    def announce(self, batch: list[Start]) -> OSError | None:
        """Write TAKEN for each; returns why nothing may be started now."""
        try:
            self.evidence.renew(text for attempt in self.attempts.values() for text in attempt.standing_lines())
        except OSError as failed:
            return failed
        full = self.evidence.flush()
        if full is not None:
            return full
        self.evidence.add(b"".join(line("TAKEN", start.attempt_id) for start in batch))
        return self.evidence.flush()

    def begin_safely(self, start: Start) -> None:
        """An error that nobody thought of is the end of this attempt's story, not of the others'."""
        try:
            self.begin(start)
        except Exception as failed:  # noqa: BLE001 - it may have struck on either side of the exec
            note(failed)
            if start.attempt_id not in self.attempts:
                self.say(line("LOST", start.attempt_id))

    def begin(self, start: Start) -> None:
        """One attempt, from its door to its exec; whatever goes wrong is its own NOSTART."""
        try:
            door = try_door(self.place.store, start.directory, start.attempt_id)
        except OSError as failed:
            self.say(line("NOSTART", start.attempt_id, failed.errno or errno.EIO, "door"))
            return
        if door is Door.CLOSED:
            self.say(line("CLOSED", start.attempt_id))
        elif door is Door.PASSED:
            note(f"{start.attempt_id}: asked for twice, started once")
        else:
            self.launch(start)

    def launch(self, start: Start) -> None:
        """Behind the open door."""
        try:
            self.folders.require(start.cwd)
            child = self.execute(start)
        except NotStartedError as refused:
            self.say(line("NOSTART", start.attempt_id, refused.number, refused.what))
            return
        out = path_of(start.directory, start.attempt_id)
        streams = (
            Stream(child.stdout, self.place.store, out, start.output_bytes_max),
            Stream(child.stderr, self.place.store, out + ".err", start.output_bytes_max),
        )
        attempt = Attempt(start, child.pid, streams)
        self.leaders[child.pid] = self.attempts[attempt.id] = attempt
        for stream in streams:
            self.loop.add(stream.fd, partial(self.read_stream, stream))
        if start.timeout_ms is not None:
            self.arm(attempt, start.timeout_ms * MILLISECOND)
        self.say(attempt.started_line())

    def execute(self, start: Start) -> Child:
        return spawn(start, self.null, self.place.keeper, self.descriptors)

    def arm(self, attempt: Attempt, timeout_ns: int) -> None:
        """Set its timer; those of attempts that ended long before theirs are thrown out now and then."""
        if len(self.timers) > 2 * len(self.attempts) + 64:
            self.timers = [timer for timer in self.timers if timer[1] in self.attempts]
            heapq.heapify(self.timers)
        heapq.heappush(self.timers, (attempt.boot_ns + timeout_ns, attempt.id))

    def read_stream(self, stream: Stream) -> None:
        if not stream.ended():
            fd = stream.fd
            stream.read()
            if stream.ended():
                self.loop.remove(fd)

    def drain_stream(self, stream: Stream) -> None:
        if not stream.ended():
            fd = stream.fd
            stream.drain()
            if stream.ended():
                self.loop.remove(fd)

    def close_stream(self, stream: Stream) -> None:
        if not stream.ended():
            self.loop.remove(stream.fd)
            stream.close()

    def say(self, text: bytes) -> None:
        """A fact: into the evidence, then to every daemon."""
        self.evidence.add(text)
        self.news += text

    def flush(self) -> None:
        """Evidence first. A daemon hears it even if the disk is full: it can write it down elsewhere."""
        failed = self.evidence.flush() if self.evidence.waits else None
        if failed is not None:
            note(failed)
        if self.news:
            said, self.news = bytes(self.news), bytearray()
            self.daemons.say(said)

    def farewell(self) -> None:
        """Stop listening before the lock goes, and let those connected take the last lines."""
        self.daemons.leave_all()
        until = boot_ns() + FAREWELL_NS
        while self.daemons.unsent and boot_ns() < until:
            for handler in self.loop.wait(100):
                handler()
        signal.set_wakeup_fd(-1)
