#!/usr/bin/env bash
# A million node events, one a second, ten thousand names that come and go: time and memory of
# pliant-sim run. million.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
sim=$(realpath "${1:-build}")/pliant-sim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

awk 'BEGIN {
    print "{\"pliant_trace\":1,\"name\":\"million\"}"
    for (t = 0; t < 1000000; t++) { # some name comes, or goes if it is there
        x = (x * 1103515245 + 12345) % 2147483648
        n = int(x / 65536) % 10000
        up[n] = !up[n]
        printf "{\"t\":%.0f,\"ev\":\"node_%s\",\"node\":\"n%d\"%s}\n", t * 1000,
            up[n] ? "up" : "down", n, up[n] ? ",\"slots\":1" : ""
    }
}' >"$dir/trace.jsonl"
cat >"$dir/job.yaml" <<'END'
vertices:
  - {id: src, max_parallelism: 128}
  - {id: map, max_parallelism: 128}
edges:
  - {from: src, to: map}
config: {scheduler-mode: reactive, execution.checkpointing.interval: 1 min}
END

python3 - "$sim" "$dir" <<'END'
import resource, subprocess, sys, time
sim, dir = sys.argv[1:]
start = time.monotonic()
done = subprocess.run([sim, "run", "--job", f"{dir}/job.yaml", "--trace", f"{dir}/trace.jsonl", "--json"],
                      stdout=open(f"{dir}/out.jsonl", "wb"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - start:.2f} s ({used.ru_utime + used.ru_stime:.2f} s of a processor),",
      f"{used.ru_maxrss / 1024:.1f} MiB,",
      f"exit code {done.returncode}")
END
