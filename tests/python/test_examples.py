"""The tasks of examples/service under fake agents: test_examples.py PROGRAM, which is pliant-worker."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_agent import FakeAgent  # noqa: E402
from test_pliant import ROOT  # noqa: E402

PROGRAM = ""
EXAMPLES = os.path.join(ROOT, "examples", "service")


class ExampleTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        self.processes = []
        self.addCleanup(self.end)

    def end(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # with all that it has started, as an agent does
            except ProcessLookupError:
                pass
            process.wait()
            process.stdout.close()

    def start(self, command, agent, **env):
        path = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
        process = subprocess.Popen(
            command,
            cwd=EXAMPLES,
            env={**os.environ, "PATH": path, "PLIANT_WORKER_SOCKET": agent.path, **env},
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self.processes.append(process)
        return process

    def agent(self, name):
        agent = FakeAgent(os.path.join(self.dir, name), self.dir)
        self.addCleanup(agent.close)
        return agent

    def subtask(self, command, index, parallelism, restore=""):
        agent = self.agent(f"{index}-of-{parallelism}-{len(self.processes)}")
        first = -(-index * 8 // parallelism)
        last = ((index + 1) * 8 - 1) // parallelism
        env = {
            "PLIANT_VERTEX": "v",
            "PLIANT_SUBTASK": str(index),
            "PLIANT_PARALLELISM": str(parallelism),
            "PLIANT_MAX_PARALLELISM": "8",
            "PLIANT_KEY_GROUPS": f"{first}-{last}",
            "PLIANT_RESTORE": restore,
        }
        return agent, self.start(command, agent, **env)

    def part(self, agent, id, index, parallelism):
        dir = os.path.join(self.dir, id, "v", f"{index}-{parallelism}")
        os.makedirs(dir)
        agent.ask_for_checkpoint(id, dir)
        agent.wait(lambda agent: id in agent.parts)
        self.assertIs(agent.parts[id]["ok"], True)
        return dir

    def counts(self, dir):
        with open(os.path.join(dir, "count")) as lines:
            return dict(line.split() for line in lines)

    def total(self, line, name="total"):
        return float(re.search(name + r"=(\S+)", line)[1])

    def test_counters_move_to_other_subtasks(self):
        """1 subtask, then 3, then 2: each starts from what the checkpoint had."""
        command, saved, restore = [sys.executable, "count.py", "--step", "0.01"], 0, ""
        for parallelism in (1, 3, 2):
            tasks = [self.subtask(command, i, parallelism, restore) for i in range(parallelism)]
            starts = [process.stdout.readline() for _, process in tasks]
            self.assertEqual(sum(map(self.total, starts)), saved)
            for agent, process in tasks:
                self.assertIn("count", process.stdout.readline())
            id = str(parallelism)
            dirs = [self.part(agent, id, i, parallelism) for i, (agent, _) in enumerate(tasks)]
            lines = [next(line for line in p.stdout if "checkpoint" in line) for _, p in tasks]
            self.assertGreater(sum(map(self.total, lines)), saved)
            saved, restore = sum(map(self.total, lines)), ":".join(dirs)
            self.end()
            self.processes = []

    def test_a_shell_script_does_the_same(self):
        agent, process = self.subtask(["bash", "loop.sh"], 0, 1)
        self.assertEqual(process.stdout.readline(), "count 1\n")
        dir = self.part(agent, "1", 0, 1)
        saved = self.counts(dir)
        self.assertEqual(sorted(saved), [str(group) for group in range(8)])
        agent, process = self.subtask(["bash", "loop.sh"], 1, 2, dir)
        self.assertEqual(process.stdout.readline(), f"count {int(saved['4']) + 1}\n")
        dir = self.part(agent, "2", 1, 2)
        self.assertEqual(sorted(self.counts(dir)), ["4", "5", "6", "7"])

    def group(self, world, steps, checkpoint):
        port = socket.socket()  # which is held, as an agent does: nobody else gets it
        self.addCleanup(port.close)
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", 0))
        processes = []
        for rank in range(world):
            agent = self.agent(f"rank-{rank}-of-{world}")
            agent.checkpoint = checkpoint
            agent.answers["enter"] = {"payload": f"of-rank-0-at-{steps}"}
            env = {"RANK": str(rank), "WORLD_SIZE": str(world)}
            master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
            command = [sys.executable, "train.py", "--step", "0", "--steps", str(steps)]
            process = self.start([*command, "--checkpoint-every", "5"], agent, **env, **master)
            processes.append(process)
        outs = [process.communicate(timeout=60)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * world)
        return outs

    def test_a_group_goes_on_at_another_size(self):
        for out in self.group(2, 5, None):
            self.assertEqual(self.total(out.splitlines()[-1], "sum"), 5)
        dir = os.path.join(self.dir, "of-rank-0-at-5")
        self.assertEqual(sorted(os.listdir(dir)), ["rank-0.json", "rank-1.json"])
        for out in self.group(3, 10, dir):
            self.assertIn("step=5", out.splitlines()[0])
            self.assertAlmostEqual(self.total(out.splitlines()[-1], "sum"), 10, places=5)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
