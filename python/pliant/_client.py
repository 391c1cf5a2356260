"""A connection to the agent that comes back when it breaks.

One thread connects, says hello, sends what is unanswered, and reads. Those who ask wait for it.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any, Callable, Dict, Optional

from ._errors import Error, Stopping, Unavailable, Unreachable, of_answer

LINE_MAX = 256 * 1024  # bytes
PATIENCE = 600.0  # seconds: so long an agent may leave its tasks alone
HELLO_PATIENCE = 2.0
DELAY_MIN, DELAY_MAX = 0.05, 1.0
AWAY, AWAY_STEP = 2.0, 0.2  # so long a daemon that cannot be asked is asked again, so often

Answer = Dict[str, Any]


class _Pending:
    def __init__(self, line: bytes) -> None:
        self.line = line
        self.answer: Optional[Answer] = None


class Client:
    """Thread-safe. `take_event` is called by the connection's thread for each line with "ev"."""

    def __init__(self, path: str, library: str, take_event: Callable[[Answer], None]) -> None:
        self.patience = PATIENCE  # seconds; math.inf: for ever
        self.stopping = False
        self.first_hello: Optional[Answer] = None
        self._path, self._library, self._take_event = path, library, take_event
        self._takes_checkpoints = self._said_checkpoints = False
        self._changed = threading.Condition()
        self._pending: Dict[int, _Pending] = {}
        self._n = 0
        self._sock: Optional[socket.socket] = None
        self._greeted = False
        self._refused: Optional[Error] = None  # hello was: there is no use in trying
        self._down_since = time.monotonic()
        self._closed = False
        threading.Thread(target=self._run, name="pliant", daemon=True).start()

    # ---- for those who ask --------------------------------------------------------------------

    def ask(self, op: str, *, collective: bool = False, **members: Any) -> Answer:
        """The answer, if it is good; else an Error. `collective`: the task's end ends the wait."""
        until = time.monotonic() + AWAY
        while True:
            try:
                return _good(self._ask_once(op, collective, members))
            except Unavailable:
                if time.monotonic() >= until:
                    raise
            time.sleep(AWAY_STEP)

    def _ask_once(self, op: str, collective: bool, members: Dict[str, Any]) -> Answer:
        with self._changed:
            self._n += 1
            n = self._n
            pending = _Pending(_line({"op": op, "n": n, **members}))
            self._pending[n] = pending
            if self._greeted:
                self._send(pending.line)
            try:
                self._wait(lambda: pending.answer is not None, collective)
            finally:
                del self._pending[n]
        assert pending.answer is not None
        return pending.answer

    def hello(self) -> Answer:
        """The answer to the first hello, with the task's counters."""
        with self._changed:
            self._wait(lambda: self.first_hello is not None, False)
        assert self.first_hello is not None
        return self.first_hello

    def take_checkpoints(self) -> None:
        """Take requests for checkpoints from now on."""
        with self._changed:
            if self._takes_checkpoints:
                return
            self._takes_checkpoints = True
            if self._greeted:
                self._send(self._hello_line())

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._hang_up()
            self._changed.notify_all()

    def _wait(self, done: Callable[[], bool], collective: bool) -> None:
        asked_at = time.monotonic()
        while not done():
            if self._refused is not None:
                raise self._refused
            if self._closed:
                raise Error("the connection to the agent was closed")
            if collective and self.stopping and self._greeted:
                raise Stopping("the task is to stop")
            timeout = None
            if not self._greeted:
                timeout = max(self._down_since, asked_at) + self.patience - time.monotonic()
                if timeout <= 0:
                    raise Unreachable(f"the agent cannot be reached at {self._path}")
                timeout = min(timeout, threading.TIMEOUT_MAX)
            self._changed.wait(timeout)

    # ---- the connection's thread --------------------------------------------------------------

    def _hello_line(self) -> bytes:
        hello = {"op": "hello", "n": 0, "library": self._library}
        return _line({**hello, "checkpoints": self._takes_checkpoints, "health": True})

    def _send(self, line: bytes) -> None:
        """With the lock held. When it fails the reader sees the connection end."""
        try:
            if self._sock is not None:
                self._sock.sendall(line)
        except OSError:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._sock is not None:
            try:
                self._sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _run(self) -> None:
        delay = DELAY_MIN
        while not self._closed:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.connect(self._path)
                self._serve(sock)
            except (OSError, ValueError):  # ValueError: what came makes no sense
                pass
            with self._changed:
                if self._greeted:
                    self._down_since, delay = time.monotonic(), DELAY_MIN
                else:
                    delay = min(2 * delay, DELAY_MAX)
                self._greeted, self._sock = False, None
                sock.close()
                self._changed.notify_all()
                if self._refused is not None:
                    return
                self._changed.wait_for(lambda: self._closed, delay)

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(HELLO_PATIENCE)
        with self._changed:
            self._sock = sock
            self._said_checkpoints = self._takes_checkpoints
            self._send(self._hello_line())
        with sock.makefile("rb") as lines:
            while True:
                line = lines.readline(LINE_MAX + 2)
                if not line.endswith(b"\n"):  # the end, or too long
                    return
                self._take(_read(line), sock)

    def _take(self, line: Answer, sock: socket.socket) -> None:
        if line.get("ev") == "health":  # a process whose threads do not get to run is dead
            with self._changed:
                self._send(_line({"op": "health", "n": line.get("n")}))
            return
        if "ev" in line:
            with self._changed:
                self.stopping = self.stopping or line["ev"] == "stop"
                self._changed.notify_all()
            self._take_event(line)
            return
        with self._changed:
            if line.get("n") == 0 and not self._greeted:
                self._take_greeting(line, sock)
            else:
                pending = self._pending.get(line.get("n", self._n))
                if pending is not None:
                    pending.answer = line
            self._changed.notify_all()

    def _take_greeting(self, line: Answer, sock: socket.socket) -> None:
        if line.get("ok") is not True:
            self._refused = of_answer(str(line.get("code")), str(line.get("text") or ""))
            raise ValueError("hello was refused")
        if self.first_hello is None:
            self.first_hello = line
        sock.settimeout(None)
        self._greeted = True
        if self._said_checkpoints != self._takes_checkpoints:
            self._send(self._hello_line())
        for pending in list(self._pending.values()):
            self._send(pending.line)


def _line(members: Dict[str, Any]) -> bytes:
    text = json.dumps(members, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > LINE_MAX:
        raise ValueError(f"the request has {len(text)} bytes, at most {LINE_MAX} are taken")
    return text + b"\n"


def _read(line: bytes) -> Answer:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _good(answer: Answer) -> Answer:
    if answer.get("ok") is not True:
        raise of_answer(str(answer.get("code")), str(answer.get("text") or ""))
    return answer
