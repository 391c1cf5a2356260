/* job_spec_test.c - a job as its file describes it */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pliant/pliant.h>

#include "failing_alloc.h"
#include "spec/job_spec.h"
#include "spec/memory.h"
#include "spec/options.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))
#define VERTEX "\"vertices\":[{\"id\":\"src\"}]"

static int decode(const char *text, struct job_spec *ret, struct spec_error *err)
{
    struct doc_file f;
    int r = doc_parse("j", text, strlen(text), 1, &f, err);

    if (r < 0)
        return r;
    r = job_spec_decode(&f, f.root, ret, err);
    if (r < 0)
        doc_free(&f);
    else
        ret->doc = f; /* as job_spec_read() does */
    return r;
}

static struct job_spec decoded(const char *text)
{
    struct job_spec spec = {0};
    struct spec_error err;

    cr_assert(eq(int, decode(text, &spec, &err), 0), "%s", err.text);
    return spec;
}

Test(job_spec, has_the_documented_defaults)
{
    struct job_spec spec = decoded("{" VERTEX "}");
    const struct job_vertex_spec *v = spec.vertices;

    cr_expect(eq(u32, pliant_job_vertices(spec.job), 1));
    cr_expect(eq(u32, pliant_job_vertex_parallelism(spec.job, (pliant_vertex_id){1}), 1));
    cr_expect(eq(u32, pliant_job_vertex_max_parallelism(spec.job, (pliant_vertex_id){1}), 128));
    cr_expect(eq(str, (char *)pliant_job_vertex_group(spec.job, (pliant_vertex_id){1}), "default"));
    cr_expect(spec.config == NULL && v->command.argv == NULL && v->command.cwd == NULL);
    cr_expect(eq(i64, v->sim.duration_ms.min, JOB_SIM_UNSET));
    cr_expect(eq(i64, v->sim.bytes.max, JOB_SIM_UNSET));
    cr_expect(eq(i64, v->sim.deploy_ms, JOB_SIM_UNSET));
    cr_expect(eq(i64, v->sim.fail_every_ms, JOB_SIM_UNSET));
    cr_expect(eq(int, (int)spec.progress.kind, JOB_SPEEDUP_LINEAR));
    job_spec_free(&spec);
    cr_expect(spec.job == NULL);
}

Test(job_spec, says_all_that_a_job_can_say)
{
    struct job_spec spec = decoded(
        "name: wc\nx-owner: {team: a}\n"
        "vertices:\n"
        "- id: src\n  parallelism: 4\n  min_parallelism: 2\n  max_parallelism: 8\n"
        "  slot_sharing_group: io\n  command: [./src, --out, '']\n  env: {A: 1, B: x y, C: true}\n"
        "  cwd: /tmp\n  sim: {duration_ms: [5, 9], bytes: 7, deploy_ms: 0, fail_every_ms: 1}\n"
        "- {id: map, x-note: here, concurrent_attempts: false}\n"
        "edges:\n- {from: src, to: map, pattern: pointwise, exchange: blocking}\n"
        "- {from: src, to: map}\n"
        "- {from: src, to: map, partitioner: broadcast, input: 7, splittable: true}\n"
        "config:\n  pliant.seed: 5\n"
        "progress: {speedup: [[1, 1.0], [8, 6.5], [64, 40]]}\n");
    const struct job_vertex_spec *v = spec.vertices;
    pliant_vertex_id src = pliant_job_vertex_find(spec.job, "src");

    cr_expect(eq(str, (char *)pliant_job_name(spec.job), "wc"));
    cr_expect(eq(u32, pliant_job_groups(spec.job), 2));
    cr_expect(eq(u32, pliant_job_vertex_parallelism(spec.job, src), 4));
    cr_expect(eq(u32, pliant_job_vertex_max_parallelism(spec.job, src), 8));
    cr_expect(eq(str, (char *)pliant_job_vertex_group(spec.job, src), "io"));
    cr_expect(eq(sz, v->command.argc, 3));
    cr_expect(eq(str, (char *)v->command.argv[1], "--out"));
    cr_expect(eq(str, (char *)v->command.argv[2], ""));
    cr_expect(v->command.argv[3] == NULL);
    cr_expect(eq(sz, v->command.n_env, 3));
    cr_expect(eq(str, (char *)v->command.env[0].name, "A"));
    cr_expect(eq(str, (char *)v->command.env[0].value, "1"));
    cr_expect(eq(str, (char *)v->command.env[2].value, "true"));
    cr_expect(eq(str, (char *)v->command.cwd, "/tmp"));
    cr_expect(eq(i64, v->sim.duration_ms.min, 5));
    cr_expect(eq(i64, v->sim.duration_ms.max, 9));
    cr_expect(eq(i64, v->sim.bytes.min, 7));
    cr_expect(eq(i64, v->sim.bytes.max, 7));
    cr_expect(eq(i64, v->sim.deploy_ms, 0));
    cr_expect(eq(i64, v->sim.fail_every_ms, 1));
    cr_expect(v[1].command.argv == NULL);
    cr_expect(eq(str, (char *)doc_get(spec.config, "pliant.seed")->text, "5"));
    cr_expect(eq(int, (int)spec.progress.kind, JOB_SPEEDUP_TABLE));
    cr_expect(eq(sz, spec.progress.n_points, 3));
    cr_expect(eq(u32, spec.progress.points[2].parallelism, 64));
    cr_expect(eq(dbl, spec.progress.points[1].speedup, 6.5));
    job_spec_free(&spec);
}

Test(job_spec, blocking_edges_are_refused_for_the_adaptive_scheduler_at_their_line) /* [S-GEN-14] */
{
    struct job_spec spec = decoded("vertices: [{id: a}, {id: b}]\nedges:\n- from: a\n  to: b\n"
                                   "  exchange: blocking\n");
    struct pliant_config cfg;
    struct pliant_error why;
    struct spec_error err;

    pliant_config_init(&cfg);
    cr_assert(eq(int, pliant_config_resolve(&cfg, &why), 0));
    cr_assert(eq(int, pliant_job_check(spec.job, &cfg, &why), -EINVAL));
    cr_expect(eq(int, job_spec_error(&spec.doc, spec.doc.root, &why, &err), -EINVAL));
    cr_expect(strncmp(err.text, "j:5: edges[0].exchange: ", 24) == 0, "%s", err.text);
    job_spec_free(&spec);
}

Test(job_spec, refuses_with_line_field_and_what_is_accepted)
{
    static const char *const rows[][2] = {
        {"[1]", "j:1: is a list; accepted: a map"},
        {"{\"vertexes\":[]}", "j:1: vertexes: unknown key; did you mean vertices? accepted: name, "
                              "vertices, edges, config, worker_group, progress"},
        {"{}", "j:1: \"vertices\" is missing; accepted: a list of vertices"},
        {"vertices: []", "j:1: vertices: has 0 vertices; accepted: 1 to 100000"},
        {"vertices: {a: 1}", "j:1: vertices: is a map; accepted: a list"},
        {"vertices:\n- 7", "j:2: vertices[0]: is a number; accepted: a map"},
        {"vertices:\n- {}",
         "j:2: vertices[0]: \"id\" is missing; accepted: a name, once in the job"},
        {"{\"vertices\":[\n{\"id\":\"a\",\n\"parallelism\":0}]}",
         "j:3: vertices[0].parallelism: is 0; accepted: an integer from 1 to 32768"},
        {"vertices:\n- id: a\n- id: b\n  parallelism: 2147483648",
         "j:4: vertices[1].parallelism: is 2147483648; accepted: an integer from 1 to 32768"},
        {"vertices: [{id: a, parallelism: 1.5}]",
         "j:1: vertices[0].parallelism: is 1.5; accepted: an integer from 1 to 32768"},
        {"vertices: [{id: a, parallelism: \"4\"}]",
         "j:1: vertices[0].parallelism: is a string; accepted: an integer from 1 to 32768"},
        {"vertices: [{id: a, min_parallelism: 0}]",
         "j:1: vertices[0].min_parallelism: is 0; accepted: an integer from 1 to 32768"},
        {"vertices: [{id: a, max_parallelism: 0}]",
         "j:1: vertices[0].max_parallelism: is 0; accepted: an integer from 1 to 32768"},
        {"vertices: [{id: a, paralelism: 1}]",
         "j:1: vertices[0].paralelism: unknown key; did you mean parallelism? accepted: id, "
         "parallelism, min_parallelism, max_parallelism, slot_sharing_group, concurrent_attempts, "
         "command, env, cwd, "
         "sim"},
        {"{" VERTEX ",\n\"edges\":[{\"from\":\"src\"}]}",
         "j:2: edges[0]: \"to\" is missing; accepted: the id of a vertex"},
        {"{" VERTEX ",\n\"edges\":[{\"from\":\"scr\",\n\"to\":\"src\"}]}",
         "j:2: edges[0].from: no vertex has the id \"scr\"; did you mean \"src\"?"},
        {"{" VERTEX ",\n\"edges\":[{\"from\":\"src\",\n\"to\":\"nowhere\"}]}",
         "j:3: edges[0].to: no vertex has the id \"nowhere\"; accepted: the id of a vertex"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"pattern\":\"round\"}]}",
         "j:1: edges[0].pattern: is \"round\"; accepted: all_to_all | pointwise"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"exchange\":1}]}",
         "j:1: edges[0].exchange: is a number; accepted: a string"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"x\":1}]}",
         "j:1: edges[0].x: unknown key; accepted: from, to, pattern, exchange, partitioner, input, "
         "splittable"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"partitioner\":\"\"}]}",
         "j:1: edges[0].partitioner: is \"\"; accepted: hash | custom | rebalance | broadcast | "
         "forward | rescale"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"input\":0}]}",
         "j:1: edges[0].input: is 0; accepted: an integer from 1 to 4294967295"},
        {"{" VERTEX ",\"edges\":[{\"from\":\"src\",\"to\":\"src\",\"splittable\":1}]}",
         "j:1: edges[0].splittable: is a number; accepted: true | false"},
        {"{" VERTEX
         ",\n\"edges\":[{\"from\":\"src\",\"to\":\"src\",\n\"partitioner\":\"forward\"}]}",
         "j:3: edges[0].partitioner: partitioner does not go with the edge's pattern; accepted are "
         "forward, rescale (pointwise) and hash, custom, rebalance, broadcast (all_to_all)"},
        {"{" VERTEX ",\n\"edges\":[{\"from\":\"src\",\n\"to\":\"src\"}]}",
         "j:3: edges[0].to: closes a cycle through vertex \"src\"; accepted are graphs without "
         "cycles"},
        {"{" VERTEX ",\"edges\":{}}", "j:1: edges: is a map; accepted: a list"},
        {"{" VERTEX ",\"config\":[]}", "j:1: config: is a list; accepted: a map of options"},
        {"worker_group: {}\nvertices: [{id: a}]",
         "j:1: worker_group: accepted: vertices and edges, or a worker group, not both"},
        {"worker_group: 3", "j:1: worker_group: is a number; accepted: a map"},
        {"worker_group: {max-failure: 3}",
         "j:1: worker_group.max-failure: no such option; did you mean worker-group.max-failures?"},
        {"worker_group: {max-failures: -2}",
         "j:1: worker_group.max-failures: not \"-2\"; accepted: an integer from -1 to 2147483647; "
         "-1: no limit"},
        {"worker_group: {checkpoint: {num-to-keep: 0}}",
         "j:1: worker_group.checkpoint.num-to-keep: not \"0\"; accepted: an integer from 1 to "
         "2147483647 | none"},
        {"worker_group: {quarantine-range: \"1 s, 2 h\"}",
         "j:1: worker_group.quarantine-range: not \"1 s, 2 h\"; accepted: two durations from 1 s "
         "to "
         "1 h, \"lo, hi\" | none"},
        {"worker_group: {forward-signals: \"INT,TERM\"}",
         "j:1: worker_group.forward-signals: not \"INT,TERM\"; accepted: INT,HUP,... | none"},
        {"worker_group: {min-workers: 0}",
         "j:1: worker_group.min-workers: accepted: an integer from 1 to 32768"},
        {"worker_group: {min-workers: 3, max-workers: 2}",
         "j:1: worker_group.min-workers: min-workers is 3, max-workers 2; accepted: not more than "
         "that"},
        {"worker_group: {parallelism: 2}\nconfig: {worker-group: {min-workers: 3}}",
         "j:2: config.worker-group.min-workers: min-workers is 3, max-workers 2; accepted: not "
         "more "
         "than that"},
        {"{\"name\":7," VERTEX "}", "j:1: name: is a number; accepted: a string"},
        {"vertices: [{id: a, command: []}]",
         "j:1: vertices[0].command: names no program; accepted: a list of strings, the program "
         "first"},
        {"vertices: [{id: a, command: [x, 1]}]",
         "j:1: vertices[0].command[1]: is a number; accepted: a string"},
        {"vertices: [{id: a, command: ./x}]",
         "j:1: vertices[0].command: is a string; accepted: a list"},
        {"vertices: [{id: a, env: {K: [1]}}]",
         "j:1: vertices[0].env.K: is a list; accepted: a text of at most 65536 bytes"},
        {"vertices: [{id: a, env: {\"A=B\": 1}}]",
         "j:1: vertices[0].env.A=B: is no name; accepted: letters without \"=\""},
        {"vertices: [{id: a, sim: {duration_ms: [9, 5]}}]",
         "j:1: vertices[0].sim.duration_ms[1]: is 5; accepted: an integer from 9 to "
         "9007199254740992"},
        {"vertices: [{id: a, sim: {bytes: [1, 2, 3]}}]",
         "j:1: vertices[0].sim.bytes: has 3 elements; accepted: a number, or [min, max]"},
        {"vertices: [{id: a, sim: {deploy_ms: -1}}]",
         "j:1: vertices[0].sim.deploy_ms: is -1; accepted: an integer from 0 to 9007199254740992"},
        {"vertices: [{id: a, sim: {deplay_ms: 1}}]",
         "j:1: vertices[0].sim.deplay_ms: unknown key; did you mean deploy_ms? accepted: "
         "duration_ms, bytes, deploy_ms, fail_every_ms"},
        {"vertices: [{id: a}]\nprogress: {speedup: fast}",
         "j:2: progress.speedup: accepted: linear | amdahl | [[parallelism, speedup], ...]"},
        {"vertices: [{id: a}]\nprogress: {speedup: amdahl}",
         "j:2: progress: \"serial\" is missing; accepted: a number from 0 to 1"},
        {"vertices: [{id: a}]\nprogress: {speedup: amdahl, serial: 2}",
         "j:2: progress.serial: is 2; accepted: a number from 0 to 1"},
        {"vertices: [{id: a}]\nprogress: {serial: 0.1}",
         "j:2: progress.serial: accepted only with \"speedup\": \"amdahl\""},
        {"vertices: [{id: a}]\nprogress: {speedup: []}",
         "j:2: progress.speedup: is empty; accepted: [[parallelism, speedup], ...]"},
        {"vertices: [{id: a}]\nprogress: {speedup: [[1, 1], [1, 2]]}",
         "j:2: progress.speedup[1][0]: is 1; accepted: an integer from 2 to 32768"},
        {"vertices: [{id: a}]\nprogress: {speedup: [[1, 0]]}",
         "j:2: progress.speedup[0][1]: is 0; accepted: a number from 1e-09 to 1e+09"},
        {"vertices: [{id: a}]\nprogress: {speedup: [[1]]}",
         "j:2: progress.speedup[0]: accepted: [parallelism, speedup]"},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct job_spec spec = {0};
        struct spec_error err = {""};

        cr_expect(eq(int, decode(rows[i][0], &spec, &err), -EINVAL), "%s", rows[i][0]);
        cr_expect(eq(str, err.text, (char *)rows[i][1]));
        cr_expect(spec.job == NULL && spec.blocks == NULL);
    }
}

Test(job_spec, a_worker_group_is_one_vertex_with_its_options)
{
    static const struct {
        const char *text;
        uint32_t min, max;
    } rows[] = {
        {"worker_group: {}", 1, 1},
        {"worker_group: {parallelism: 4}", 4, 4},
        {"worker_group: {parallelism: 4, min-workers: 2}", 2, 4},
        {"worker_group: {parallelism: 4, max-workers: 9}", 4, 9},
        {"worker_group: {min-workers: 2, max-workers: 8}", 2, 8},
        {"worker_group: {}\nconfig: {worker-group.max-workers: 8}", 1, 8},
        {"worker_group: {max-workers: 8}\nconfig: {worker-group: {min-workers: \"5\"}}", 5, 8},
    };

    for (size_t i = 0; i < N(rows); i++) {
        const pliant_vertex_id worker = {1};
        struct job_spec spec = {0};
        struct spec_error err = {""};
        struct pliant_config cfg;
        struct pliant_sched *s;
        uint32_t min, max;

        pliant_config_init(&cfg);
        cr_assert(eq(int, decode(rows[i].text, &spec, &err), 0), "%s: %s", rows[i].text, err.text);
        cr_expect(pliant_job_is_group(spec.job));
        cr_expect(eq(str, (char *)pliant_job_vertex_name(spec.job, worker), "worker"));
        cr_expect(eq(u32, pliant_job_vertex_parallelism(spec.job, worker), rows[i].max));
        cr_expect(eq(u32, pliant_job_vertex_max_parallelism(spec.job, worker), rows[i].max));
        cr_assert(eq(int, pliant_sched_new(&cfg, spec.job, &s, NULL), 0));
        pliant_vertex_bounds(s, worker, &min, &max);
        cr_expect(min == rows[i].min && max == rows[i].max, "%s", rows[i].text);
        pliant_sched_destroy(&s);
        job_spec_free(&spec);
    }
}

Test(job_spec, the_options_of_a_worker_group_need_no_prefix)
{
    const char *text =
        "worker_group: {parallelism: 4, command: [python3, train.py], max-failures: 3,\n"
        " checkpoint: {score-order: min}, x-note: mine}\n"
        "config: {worker-group.stop-timeout: 5 s}";
    struct doc_file f;
    struct job_spec spec;
    struct options o = {0};
    struct pliant_config cfg;
    struct spec_error err = {""};

    cr_assert(eq(int, doc_parse("j", text, strlen(text), 1, &f, &err), 0), "%s", err.text);
    cr_assert(eq(int, job_spec_decode(&f, f.root, &spec, &err), 0), "%s", err.text);
    cr_assert(eq(int, options_add_job(&o, &f, spec.config, spec.group, &err), 0), "%s", err.text);
    cr_assert(eq(int, options_resolve(&o, &cfg, &err), 0), "%s", err.text);
    cr_expect(eq(sz, spec.vertices[0].command.argc, 2));
    cr_expect(eq(i64, cfg.group.max_failures, 3));
    cr_expect(eq(i64, cfg.group.stop_timeout_ms, 5000));
    cr_expect(eq(int, cfg.group.score_order, PLIANT_SCORE_MIN));
    cr_expect(eq(int, cfg.rescale_policy, PLIANT_POLICY_WORTH));
    cr_expect(eq(i64, cfg.resource_wait_ms, -1));
    cr_expect(eq(i64, cfg.submission_stabilization_ms, 0));
    cr_expect(eq(i64, cfg.cooldown_ms, 0));
    options_free(&o);
    job_spec_free(&spec);
    doc_free(&f);
}

Test(job_spec, what_the_core_refuses_is_named_at_its_line)
{
    static const char *const rows[][2] = {
        {"vertices:\n- id: a\n- id: b\n- id: a\n", "j:4: vertices[2].id: "},
        {"vertices:\n- id: a b\n", "j:2: vertices[0].id: "},
        {"vertices:\n- id: a\n  slot_sharing_group: ''\n", "j:3: vertices[0].slot_sharing_group: "},
        {"vertices:\n- id: a\n  parallelism: 9\n  max_parallelism: 8\n",
         "j:3: vertices[0].parallelism: "},
        {"name: a b\nvertices: [{id: a}]\n", "j:1: name: "},
        {"vertices: [{id: a}, {id: b}]\nedges:\n- {from: a, to: b}\n- {from: b, to: a}\n", ".to: "},
        {"vertices: [{id: a}]\nedges:\n- from: a\n  to: a\n", "j:4: edges[0].to: "},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct job_spec spec = {0};
        struct spec_error err = {""};

        cr_expect(eq(int, decode(rows[i][0], &spec, &err), -EINVAL), "%s", rows[i][0]);
        cr_expect(strstr(err.text, rows[i][1]) != NULL, "%s", err.text);
    }
}

Test(job_spec, the_example_is_read_and_its_options_too)
{
    struct job_spec spec;
    struct options o = {0};
    struct pliant_config cfg;
    struct spec_error err;

    cr_assert(eq(int, job_spec_read("examples/wordcount.yaml", &spec, &err), 0), "%s", err.text);
    cr_assert(eq(int, options_add_job(&o, &spec.doc, spec.config, spec.group, &err), 0), "%s",
              err.text);
    cr_assert(eq(int, options_resolve(&o, &cfg, &err), 0), "%s", err.text);
    cr_expect(eq(int, pliant_job_check(spec.job, &cfg, NULL), 0));
    cr_expect(eq(u32, pliant_job_vertex_parallelism(spec.job, (pliant_vertex_id){2}), 32));
    cr_expect(eq(i64, cfg.checkpoint_interval_ms, 60000));
    options_free(&o);
    job_spec_free(&spec);
    cr_expect(eq(int, job_spec_read("examples/none.yaml", &spec, &err), -ENOENT));
}

Test(job_spec, a_large_job_is_read)
{
    size_t n = 20000, size = 0;
    char *text = malloc(n * 100);
    struct job_spec spec;

    cr_assert(text != NULL);
    size += (size_t)sprintf(text, "{\"vertices\":[");
    for (size_t i = 0; i < n; i++)
        size += (size_t)sprintf(text + size, "%s{\"id\":\"v%zu\"}", i ? ",\n" : "", i);
    size += (size_t)sprintf(text + size, "],\"edges\":[");
    for (size_t i = 1; i < n; i++)
        size += (size_t)sprintf(text + size, "%s{\"from\":\"v%zu\",\"to\":\"v%zu\"}",
                                i > 1 ? ",\n" : "", i - 1, i);
    sprintf(text + size, "]}");
    spec = decoded(text);
    cr_expect(eq(u32, pliant_job_vertices(spec.job), (uint32_t)n));
    job_spec_free(&spec);
    free(text);
}

Test(job_spec, the_kth_allocation_may_fail)
{
    const char *text =
        "{\"name\":\"wc\",\"vertices\":[{\"id\":\"a\",\"command\":[\"x\",\"y\"],\"env\":{\"K\":"
        "\"V\"},\"cwd\":\"/\"},{\"id\":\"b\"}],\"edges\":[{\"from\":\"a\",\"to\":\"b\"}],"
        "\"config\":{\"pliant.seed\":1},\"progress\":{\"speedup\":[[1,1],[2,2]]}}";
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(memory, k);
        struct job_spec spec = {0};
        struct spec_error err;

        spec_memory = &memory.hook;
        r = decode(text, &spec, &err);
        cr_expect(r == -ENOMEM ? strcmp(err.text, "j: out of memory") == 0 : k > 15, "%s",
                  err.text);
        job_spec_free(&spec);
        cr_assert(eq(sz, memory.live, 0));
    }
    spec_memory = NULL;
    cr_expect(eq(int, r, 0));
}
