"""An agent's side of the worker's socket, for tests: keeps the rules of docs/worker.md for one task."""

import json
import os
import socket
import threading


class FakeAgent:
    """Answers by itself what needs nobody else; reports and collectives when `release` says so.

    `lines` is all that came. `hang_up()` breaks every connection; `answers` holds answers that replace
    the usual ones, by op.
    """

    def __init__(self, path, run_dir=None):
        self.path, self.run_dir = path, run_dir
        self.calls = self.seqs = 0
        self.health = 0  # the check that was answered last
        self.auto = True  # this rank is the only one: nothing waits
        self.answers, self.lines, self.parts = {}, [], {}
        self.checkpoint = None
        self.info = None
        self.requests, self.said = {}, []  # events that a new connection is told
        self.changed = threading.Condition()
        self.connections, self.takers, self.waiting = [], [], []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.hang_up()
        os.unlink(self.path)

    def hang_up(self):
        with self.changed:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.connections, self.takers, self.waiting = [], [], []

    def ops(self, op):
        with self.changed:
            return [line for line in self.lines if line.get("op") == op]

    def wait(self, condition, timeout=60):
        """Until condition(self) holds, after each line that comes."""
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self), timeout):
                raise AssertionError(f"it did not come to that; lines: {self.lines}")

    def ask_for_checkpoint(self, id, dir, savepoint=False):
        event = {"ev": "checkpoint", "id": id, "dir": dir, "savepoint": savepoint}
        with self.changed:
            self.requests[id] = event
            for connection in self.takers:
                self._send(connection, event)

    def say(self, event):
        with self.changed:
            self.said.append(event)
            for connection in self.connections:
                self._send(connection, event)

    def release(self):
        """All other ranks have come: what waits is answered."""
        with self.changed:
            for connection, line in self.waiting:
                self._finish(connection, line)
            self.waiting = []

    # ---- inside -----------------------------------------------------------------------------------

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("r") as lines:
                for text in lines:
                    line = json.loads(text)
                    with self.changed:
                        self.lines.append(line)
                        self._take(connection, line)
                        self.changed.notify_all()
        except OSError:
            pass

    @staticmethod
    def _send(connection, message):
        try:
            connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def _answer(self, connection, line, **members):
        answer = {"ok": True, **members, **self.answers.get(line["op"], {})}
        if "n" in line:
            answer["n"] = line["n"]
        self._send(connection, answer)

    def _take(self, connection, line):
        op = line["op"]
        if op == "hello":
            known = {"run_dir": self.run_dir} if self.run_dir else {}
            self._answer(connection, line, calls=self.calls, seqs=self.seqs, **known)
            events = list(self.said)
            if line.get("checkpoints"):
                self.takers.append(connection)
                events += self.requests.values()
            for event in events:
                self._send(connection, event)
        elif op in ("report", "enter") or "seq" in line:
            self._collective(connection, line)
        elif op == "part":
            self.requests.pop(line["id"], None)
            self.parts[line["id"]] = line
            self._answer(connection, line)
        elif op == "get_checkpoint":
            self._answer(connection, line, dir=self.checkpoint)
        elif op == "get_preemption_info":
            self._answer(connection, line, info=self.info)
        elif op == "health":
            self.health = line["n"]
        elif op in ("end_of_data", "output", "input_lost"):
            self._answer(connection, line)
        else:
            self._send(connection, {"n": line.get("n"), "ok": False, "code": "unknown-op"})

    def _collective(self, connection, line):
        done = self.calls if line["op"] == "report" else self.seqs
        number = line.get("call", line.get("seq", done + 1))
        if number > done + 1:
            self._answer(connection, line, ok=False, code="out-of-order", text=f"expected {done + 1}")
        elif self.auto or number <= done:
            self._finish(connection, line)
        else:
            self.waiting.append((connection, line))

    def _finish(self, connection, line):
        if line["op"] == "report":
            self.calls = max(self.calls, line.get("call", self.calls + 1))
            if line["checkpoint"]:
                self.checkpoint = os.path.join(self.run_dir, line["checkpoint"])
            self._answer(connection, line, checkpoint_dir=self.checkpoint)
            return
        self.seqs = max(self.seqs, line.get("seq", self.seqs + 1))
        if line["op"] == "enter":
            self._answer(connection, line, payload=line["payload"])
        else:
            self._answer(connection, line, info=self.info)
