#!/usr/bin/env python3
"""How cost grows: the tables and the plot of docs/performance.md, but that of the service.

growth.py [BUILD_DIR [BENCH_OUTPUT]]

Runs BUILD_DIR/tests/bench (or reads what it printed), writes docs/growth.svg (with gnuplot, from
gnuplot-nox) and the tables between the marks in docs/performance.md.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REFERENCE_CALIBRATION_NS = 1.65e6  # where the figures of the reference were measured

# What is asked: bench, slots, vertices, groups, the reference's figure and our budget in us.
BUDGET = [
    ("parallelism", 70, 10, 1, "1.26 us", 0.05),
    ("parallelism", 700, 100, 10, "10.6 us", 0.5),
    ("parallelism", 7000, 1000, 100, "131 us", 6),
    ("plan_default", 10000, 100, 10, "4.22 ms", 100),
    ("plan_default", 100000, 1000, 100, "44.2 ms", 1000),
    ("plan_local", 996, 10, 1, "83.6 ms", 500),
    ("plan_local", 9996, 10, 1, "about 8 s", 6000),
    ("step", 10000, 10, 1, "", 1),
]
BENCHES = ["parallelism", "plan_default", "plan_local", "step", "regions", "restart_set",
           "slow_tasks", "batch", "runs", "runs_memory", "node_loss", "line"]
WORDS = {
    "parallelism": "parallelism",
    "plan_default": "a plan, default placement",
    "plan_default_fewest_nodes": "a plan, fewest nodes",
    "plan_default_spread_nodes": "a plan, spread over nodes",
    "plan_default_spread_domains": "a plan, spread over domains",
    "plan_local": "a plan, state locality",
    "step": "a step",
}
GROWTH = ["plan_default", "plan_default_fewest_nodes", "plan_default_spread_domains", "plan_local",
          "step"]

# Growth in other things than slots. A table: its mark, what the columns are (each row's figures, by
# `n` or `size`), and the rows: words, bench, size or None, what a unit is.
TABLES = [
    ("growth of regions", "tasks", "n", [1000, 10000, 100000, 1000000], [
        ("regions, all edges pipelined", "regions", None, "task"),
        ("regions, every other edge blocking", "regions_blocking", None, "task"),
        ("slow tasks", "slow_tasks", None, "task")]),
    ("growth of the job", "tasks of the job", "size", [1000, 10000, 100000, 1000000], [
        ("restart set: 10 tasks", "restart_set", None, "task")]),
    ("growth of the answer", "tasks that restart, of 1,000,000", "n", [32, 311, 3101, 31001, 330678], [
        ("restart set", "restart_set_answer", None, "task")]),
    ("growth of losses", "tasks of the job", "size", [1000, 10000, 100000], [
        ("a node is lost, default, pointwise", "node_loss_default", None, "task"),
        ("a node is lost, batch, pointwise", "node_loss_batch", None, "task"),
        ("a node is lost, default, all-to-all", "node_loss_all_to_all", None, "task")]),
    ("growth of the line", "tasks of the job", "size", [1000, 10000, 100000], [
        ("a node goes and comes back", "line", None, "unit")]),
    ("growth of decisions", "partitions x subpartitions", "size", [100, 300, 1000, 2000], [
        ("keyed", "batch_keyed", None, "size"),
        ("rebalance", "batch_rebalance", None, "size"),
        ("pointwise", "batch_pointwise", None, "size"),
        ("skewed keys that may be split", "batch_skewed", None, "size")]),
    ("growth of runs", "tasks", "n", [1000, 10000, 100000], [
        (f"{words}, {slots:,} slots", bench, slots, "task")
        for words, bench in (
            ("default, pointwise blocking edges", "run_default"),
            ("default, regions of 2 tasks", "run_default_pairs"),
            ("default, all-to-all blocking edges", "run_default_all_to_all"),
            ("default, 1 task of 100 fails", "run_default_failures"),
            ("default, passing by", "run_default_passing_by"),
            ("batch, fixed parallelism", "run_batch"),
            ("batch, parallelism decided", "run_batch_decided"),
            ("batch, 1 task of 100 fails", "run_batch_failures"))
        for slots in (10, 1000)]),
]
MEMORY = [("default", "run_default"), ("default, regions of 2 tasks", "run_default_pairs"),
          ("batch, fixed parallelism", "run_batch"), ("batch, parallelism decided", "run_batch_decided")]
COLOURS = ["#0072b2", "#56b4e9", "#009e73", "#d55e00", "#52606d"]


def figures(build, output):
    if output:
        text = pathlib.Path(output).read_text()
    else:
        text = subprocess.run([f"{build}/tests/bench", *BENCHES], stdout=subprocess.PIPE, check=True,
                              text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def time_text(ns):
    for unit, scale in (("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.3g} ns"


def find(rows, bench, slots, vertices, groups):
    for row in rows:
        if (row["bench"], row.get("slots"), row.get("vertices"), row.get("groups")) == (
                bench, slots, vertices, groups):
            return row
    sys.exit(f"growth: the bench has no figure for {bench} with {slots} slots")


def budget_table(rows):
    scale = REFERENCE_CALIBRATION_NS / rows[0]["calibration_ns"]
    yield "| question | slots | vertices | groups | reference | at most | measured | as on its machine |"
    yield "|---|---|---|---|---|---|---|---|"
    for bench, slots, vertices, groups, reference, most_us in BUDGET:
        ns = find(rows, bench, slots, vertices, groups)["ns"]
        yield (f"| {WORDS[bench]} | {slots:,} | {vertices:,} | {groups} | {reference} | "
               f"{time_text(most_us * 1e3)} | {time_text(ns)} | {time_text(ns * scale)} |")


def growth_rows(rows, bench):
    return [(row["slots"], row["ns"]) for row in rows if row["bench"] == bench and
            row["vertices"] == 10]


def growth_table(rows):
    sizes = [100, 1000, 10000, 30000, 100000]
    yield "| slots | " + " | ".join(f"{size:,}" for size in sizes) + " |"
    yield "|---|" + "---|" * len(sizes)
    for bench in GROWTH:
        cells = {min(sizes, key=lambda size: abs(size - slots)): time_text(ns)
                 for slots, ns in growth_rows(rows, bench)}
        yield f"| {WORDS[bench]} | " + " | ".join(cells.get(size, "") for size in sizes) + " |"


def cost_cell(rows, bench, size, by, column, unit):
    for row in rows:
        if row["bench"] == bench and row.get(by) == column and size in (None, row["size"]):
            return f"{time_text(row['ns'])}: {time_text(row['ns'] / row['n'])} a {unit}"
    sys.exit(f"growth: the bench has no figure of {bench} for {column}")


def cost_table(rows, head, by, columns, lines):
    times = " x " in head
    yield f"| {head} | " + " | ".join(
        f"{column:,} x {column:,}" if times else f"{column:,}" for column in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for words, bench, size, unit in lines:
        yield f"| {words} | " + " | ".join(
            cost_cell(rows, bench, size, by, column, unit) for column in columns) + " |"


def memory_table(rows):
    yield "| 100,000 tasks over 1,000 slots | half of them over | at its peak |"
    yield "|---|---|---|"
    for words, bench in MEMORY:
        row = next(row for row in rows if row["bench"] == bench and "bytes" in row)
        yield (f"| {words} | {row['bytes'] / 1e5:.0f} bytes a task | "
               f"{row['peak_bytes'] / 1e5:.0f} bytes a task |")


def plot(rows, path):
    script = [
        "set terminal svg size 900,460 font 'Helvetica,13' background '#ffffff'",
        f"set output '{path}'", "set logscale xy", "set xlabel 'slots'",
        "set ylabel 'microseconds'", "set key outside right", "set grid",
        "set xrange [80:130000]", "set yrange [0.03:30000]",
        "set xtics ('100' 100, '1,000' 1000, '10,000' 10000, '100,000' 100000)",
        "set ytics ('0.1' 0.1, '1' 1, '10' 10, '100' 100, '1,000' 1000, '10,000' 10000)",
        "plot " + ", ".join(f"'-' using 1:($2/1000) with linespoints lw 2 pt 7 lc rgb '{COLOURS[i]}' title '{WORDS[bench]}'"
                            for i, bench in enumerate(GROWTH)),
    ]
    for bench in GROWTH:
        script += [f"{slots} {ns}" for slots, ns in growth_rows(rows, bench)] + ["e"]
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def put(text, mark, lines):
    new = "\n".join([f"<!-- {mark} -->", ""] + list(lines) + ["", f"<!-- end of {mark} -->"])
    return re.sub(f"<!-- {mark} -->.*?<!-- end of {mark} -->", lambda _: new, text, flags=re.S)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build"
    rows = figures(build, sys.argv[2] if len(sys.argv) > 2 else None)
    page = ROOT / "docs" / "performance.md"
    text = put(page.read_text(), "figures", budget_table(rows))
    text = put(text, "growth", growth_table(rows))
    for mark, *table in TABLES:
        text = put(text, mark, cost_table(rows, *table))
    page.write_text(put(text, "memory of runs", memory_table(rows)))
    plot(rows, ROOT / "docs" / "growth.svg")


if __name__ == "__main__":
    main()
