#!/usr/bin/env python3
"""Results of blocking edges, and regions that others do not disturb. blocking_test.py PROGRAMS

  regions   100 regions of two tasks; one task is killed: 198 process ids stay, with both schedulers [P-REG-6]
  words     split > count > sum through files; meanwhile a result is deleted by hand, the daemon is killed, a task says
            itself that an input is lost; what nobody reads any more goes at once, and the rest at the end
  decided   the same without a parallelism for count: it follows from what split wrote [5.4]
  nodes     both nodes die with all agents: split, which had finished, runs again, or not if results outlive their nodes
"""
import os
import signal
import sys

sys.dont_write_bytecode = True
from service import Failed, Service  # noqa: E402

RESTARTS = """
  restart-strategy.type: fixed-delay
  restart-strategy.fixed-delay.attempts: 100
  restart-strategy.fixed-delay.delay: 0 s
"""

DEFAULT = "  jobmanager.scheduler: default" + RESTARTS
ADAPTIVE = "  pliant.adaptive.failover: region" + RESTARTS

TARGET = "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task"

REGIONS = """
name: regions
vertices:
  - {id: a, parallelism: 100, command: [sleep, "1000"]}
  - {id: b, parallelism: 100, command: [sleep, "1000"]}
edges:
  - {from: a, to: b, pattern: pointwise, exchange: pipelined}
config:
"""

# Words, split by their length into the files of the subpartitions; counted; summed. `hold VERTEX` waits at a gate.
TASK = """
set -e
hold() { while [ ! -e "$GATES/$PLIANT_VERTEX" ]; do sleep 0.05; done; }
case $PLIANT_VERTEX in
split)
    dir=$(pliant-worker outputs --to count) n=$(pliant-worker outputs --subpartitions)
    for word in one three fifteen four; do echo "$word" >>"$dir/$((${#word} % n))"; done ;;
count)
    hold
    if [ "$PLIANT_SUBTASK" = 0 ] && rm "$GATES/lose" 2>/dev/null; then
        pliant-worker input-lost --from split --subtask 1
        exit 1
    fi
    pliant-worker inputs --from split | xargs -r cat | wc -l >"$(pliant-worker outputs)/0" ;;
sum)
    hold
    pliant-worker inputs | xargs cat | awk '{n += $1} END {print n}' >"$GATES/result" ;;
esac
"""


def batch(script, gates, counters, config):
    env = f'{{GATES: "{gates}"}}'
    return f"""
name: words
vertices:
  - {{id: split, parallelism: 2, command: [sh, {script}], env: {env}}}
  - {{id: count, {counters}command: [sh, {script}], env: {env}}}
  - {{id: sum, parallelism: 1, command: [sh, {script}], env: {env}}}
edges:
  - {{from: split, to: count, pattern: all_to_all, exchange: blocking}}
  - {{from: count, to: sum, pattern: all_to_all, exchange: blocking}}
config:
{config}"""


def regions(service, config):
    job = service.submit_text(REGIONS + config)
    service.wait("200 tasks run", lambda: len(service.running(job)) == 200)
    before = service.running(job)
    victim = next(pid for pid, task in before.items() if task[:2] == ("a", 17))
    os.kill(victim, signal.SIGKILL)
    service.wait("its region is back", lambda: again(service.running(job)) == {("a", 17, 2), ("b", 17, 2)})
    stayed = set(before) & set(service.running(job))
    if len(stayed) != 198:
        raise Failed(f"{len(stayed)} of 200 processes are as before")
    service.ctl("cancel", job)
    service.wait("it is canceled", lambda: service.status(job)["job_status"] == "CANCELED")


def again(running):
    """Tasks that are not in their first attempt, once all run."""
    return {task[:3] for task in running.values() if task[2] > 1} if len(running) == 200 else None


def attempts(service, job):
    return {(t["vertex"], t["subtask"]): t["attempt"] for t in service.tasks(job)}


def words(service):
    gates, script = service.dir / "gates", service.dir / "task.sh"
    gates.mkdir()
    script.write_text(TASK)
    job = service.submit_text(batch(script, gates, "parallelism: 3, ", DEFAULT))
    results = service.state_dir / "results" / job

    def held(vertex):
        return [pid for pid, task in service.running(job).items() if task[0] == vertex]

    service.wait("the counters wait", lambda: len(held("count")) == 3)
    expect(sizes(results / "split-count-0" / "0.1"), {"0": 4, "1": 13, "2": 6}, "what split/0 wrote")
    # Lost before the start: its producer runs again, and all that read of it.
    for file in (results / "split-count-0" / "1.1").iterdir():
        file.unlink()
    (results / "split-count-0" / "1.1").rmdir()
    os.kill(held("count")[0], signal.SIGKILL)
    service.wait("split/1 ran again", lambda: attempts(service, job).get(("split", 1)) == 2)
    service.wait("the counters wait again", lambda: len(held("count")) == 3)
    expect(attempts(service, job)[("split", 0)], 1, "attempts of split/0")
    # The daemon dies: nobody notices.
    before = held("count")
    service.daemon.kill()
    service.start_daemon()
    service.wait("the same processes", lambda: sorted(held("count")) == sorted(before))
    # Lost while it runs, as the task itself finds.
    (gates / "lose").touch()
    (gates / "count").touch()
    service.wait("sum waits", lambda: len(held("sum")) == 1)
    expect(attempts(service, job)[("split", 1)], 3, "attempts of split/1")
    expect(attempts(service, job)[("split", 0)], 1, "attempts of split/0")
    # Nobody reads what split wrote any more.
    service.wait("it is deleted", lambda: not list((results / "split-count-0").iterdir()))
    (gates / "sum").touch()
    service.wait("the job finishes", lambda: service.status(job)["job_status"] == "FINISHED")
    expect((gates / "result").read_text().strip(), "8", "the sum")
    service.wait("nothing is left of its results", lambda: not results.exists())


def decided(service):
    gates, script = service.dir / "open", service.dir / "task.sh"
    gates.mkdir()
    for vertex in ("count", "sum"):
        (gates / vertex).touch()
    # Words of 3, 4, 5 and 7 letters: 8 + 10, 12 and 16 bytes for a counter each.
    config = "  jobmanager.scheduler: AdaptiveBatch" + RESTARTS + f"  {TARGET}: 18 b\n"
    job = service.submit_text(batch(script, gates, "", config))
    service.wait("the job finishes", lambda: service.status(job)["job_status"] == "FINISHED")
    expect((gates / "result").read_text().strip(), "8", "the sum")
    told = [line for line in service.daemon.log.read_text().splitlines() if "parallelism decided" in line]
    if not any("vertex=count parallelism=3 bytes=46" in line for line in told):
        raise Failed(f"the log does not tell of three counters, but {told}")


def nodes(service, name, config, split_attempts):
    """Nodes come for the job and die; only others are there then."""
    gates, script = service.dir / name, service.dir / "task.sh"
    gates.mkdir()
    job = service.submit_text(batch(script, gates, "parallelism: 3, ", DEFAULT + config))

    def counters():
        return {task[3] for task in service.running(job).values() if task[0] == "count"}

    def again():
        ran = attempts(service, job)
        return counters() and ran[("count", 0)] > 1 and ran[("split", 0)]

    service.wait("the counters wait", lambda: len(service.running(job)) == 3)
    first = [agent for agent in service.agents if service.agents[agent].runs()]
    service.start_agent(f"{name}-1", slots=50)
    for agent in first:
        service.agents[agent].kill()
    expect(service.wait("the counters wait again", again), split_attempts, "attempts of split/0")
    for vertex in ("count", "sum"):
        (gates / vertex).touch()
    service.wait("the job finishes", lambda: service.status(job)["job_status"] == "FINISHED")
    expect((gates / "result").read_text().strip(), "8", "the sum")


def sizes(dir):
    return {file.name: file.stat().st_size for file in dir.iterdir()}


def expect(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: {got}, not {wanted}")


def main(programs):
    with Service(programs) as service:
        service.start_daemon()
        service.start_agent("n1", slots=50)
        service.start_agent("n2", slots=50)
        regions(service, DEFAULT)
        regions(service, ADAPTIVE)
        words(service)
        decided(service)
        nodes(service, "stay", f"  pliant.results.dir: {service.dir}/shared\n  pliant.results.outlive-nodes: true\n", 1)
        nodes(service, "lost", "", 2)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Failed as failed:
        sys.exit(f"results_test: {failed}")
