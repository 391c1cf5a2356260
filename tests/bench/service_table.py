#!/usr/bin/env python3
"""How fast the service is: the table of docs/performance.md.

service_table.py [BUILD_DIR [BENCH_OUTPUT]]

Runs the service's benches of BUILD_DIR/tests/bench and service_real.py (or reads what they
printed), and writes the table between the marks in docs/performance.md. About 3 minutes.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAYED = ["service_beats", "service_many", "service_states", "service_deploy", "service_adopt"]


def lines_of(command):
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    print(out, end="", flush=True)
    return out


def output(build):
    text = "".join(lines_of([f"{build}/tests/bench", name]) for name in PLAYED)
    return text + lines_of([ROOT / "tests/bench/service_real.py", build])


def times(text):
    return f"{text:.2f} times"


def seconds(s):
    return f"{s:.2g} s" if s >= 1 else f"{s * 1000:.0f} ms"


def restart(row):
    return f"{seconds(row['seconds'])}, floor {seconds(row['floor_seconds'])}: " \
           f"{times(row['ratio'])}"


# What is asked, the goal, bench and what else tells its line, what it came to.
ROWS = [
    ("heartbeats of 1,000 agents, as fast as they come, beside a bare ROUTER that drops them",
     "50 % of its rate", "service_beats", {},
     lambda r: f"{r['messages'] / r['seconds']:,.0f} a second, {r['ratio'] * 100:.0f} %; by "
               f"processor time {r['cpu_ratio'] * 100:.0f} %"),
    ("10,000 agents, a beat each 5 s", "5 % of a core", "service_many", {},
     lambda r: f"{r['cpu_share'] * 100:.1f} %; a bare ROUTER "
               f"{r['floor_cpu_seconds'] / r['floor_seconds'] * 100:.1f} %"),
    ("updates of a task's state, a message each, journaled and acted on", "20,000 a second",
     "service_states", {},
     lambda r: f"{r['per_second']:,.0f} a second, the bare ROUTER "
               f"{r['updates'] / r['floor_seconds']:,.0f}; by processor time "
               f"{r['updates'] / r['cpu_seconds']:,.0f} and "
               f"{r['updates'] / r['floor_cpu_seconds']:,.0f}"),
    ("1,000 agents with 10 slots register, a job of 10,000 tasks is deployed and all run",
     "3 s, 150 MiB", "service_deploy", {},
     lambda r: f"{seconds(r['seconds'])}, {r['rss_mib']:.0f} MiB, at its peak "
               f"{r['peak_mib']:.0f} MiB"),
    ("SIGKILL of a worker to the first line of all restarted ones, 2 workers", "3 times",
     "service_restart", {"workers": 2}, restart),
    ("the same, 8 workers", "1.6 times", "service_restart", {"workers": 8}, restart),
    ("the same, 32 workers", "1.25 times", "service_restart", {"workers": 32}, restart),
    ("a second agent is started: from 1 worker to 2", "2 times", "service_join", {"workers": 2},
     restart),
    ("the same, from 4 to 8", "2 times", "service_join", {"workers": 8}, restart),
    ("one of two agents is killed: the other's worker runs again", "2 times + detection",
     "service_lost", {"workers": 1}, restart),
    ("the same, 4 workers", "2 times + detection", "service_lost", {"workers": 4}, restart),
    ("an idle agent", "8 MiB, 20 ms of CPU in 30 s", "service_idle", {},
     lambda r: f"{r['agent_mib']:.1f} MiB, its keeper {r['keeper_mib']:.1f} MiB, "
               f"{r['cpu_ms']:.1f} ms"),
    ("pliantd is restarted: 1,000 tasks of 100 agents are adopted", "1 s", "service_adopt", {},
     lambda r: f"{seconds(r['seconds'])} after the agents are back; ready "
               f"{seconds(r['start_seconds'])} after its start"),
    ("pliantd is restarted: 8 real agents are in session again", "", "service_back", {},
     lambda r: f"{seconds(r['seconds'])} to {seconds(r['slowest'])} after it answers"),
    ("commits, each one sync (as strace sees it)", "1 a turn", "service_commits", {},
     lambda r: f"{r['syncs']} syncs, {r['commits']} commits, {r['turns']} turns, "
               f"{r['steps']} steps"),
]


def table(figures):
    lines = ["| | goal | measured |", "|---|---|---|"]
    for what, goal, bench, tells, say in ROWS:
        for row in figures:
            if row["bench"] == bench and all(row[k] == v for k, v in tells.items()):
                lines.append(f"| {what} | {goal} | {say(row)} |")
    return "\n".join(lines)


def put(figures):
    page = ROOT / "docs/performance.md"
    before, rest = page.read_text().split("<!-- service -->\n")
    _, after = rest.split("<!-- end of service -->")
    page.write_text(f"{before}<!-- service -->\n\n{table(figures)}\n\n"
                    f"<!-- end of service -->{after}")


if __name__ == "__main__":
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    text = pathlib.Path(sys.argv[2]).read_text() if len(sys.argv) > 2 else output(build)
    put([json.loads(line) for line in text.splitlines()])
