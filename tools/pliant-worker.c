/* pliant-worker.c - the worker's library for shell scripts
 *
 * Each call connects anew; what counts over calls is counted by the agent. Exit codes: 0 done; 1
 * the answer is no (nothing there, refused, about to stop); 2 bad usage or input; 3 the agent
 * cannot be reached; 4 no memory, full disk, closed pipe.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pliant/worker.h>

#include "spec/json_out.h"
#include "util/decimal.h"
#include "util/duration.h"
#include "worker/json_read.h"

enum exit_code { DONE = 0, NO = 1, BAD_INPUT = 2, UNREACHABLE = 3, NO_RESOURCES = 4 };

#define ANY (-1)

enum { SHORT_PATIENCE_MS = 1000, PART_WAIT_MS = 2000 };

struct call {
    struct pliant_worker *w;
    const struct command *command;
    bool as_json;
    int64_t patience_ms;
    int timeout_ms; /* wait-checkpoint; -1: none */
    const char *checkpoint, *cause, *vertex;
    int64_t subtask, edge; /* -1: not given */
    bool counts;           /* outputs --subpartitions */
    struct json metrics;
    char **args;
    int n_args;
};

struct command {
    const char *name, *usage;
    int n_args; /* ANY: one or more */
    enum exit_code (*run)(struct call *c);
    bool alone; /* the agent is not asked */
};

/* ---- errors
 * --------------------------------------------------------------------------------------- */

static enum exit_code complain(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum exit_code complain(enum exit_code code, const char *format, ...)
{
    va_list args;

    fputs("pliant-worker: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

static enum exit_code failed(const struct call *c, int r)
{
    enum exit_code code = NO;

    if (r == -ETIMEDOUT || r == -EAGAIN)
        code = UNREACHABLE;
    else if (r == -EINVAL || r == -ENOENT || r == -ENOTDIR)
        code = BAD_INPUT;
    else if (r != -EREMOTEIO && r != -EPROTO && r != -ECANCELED)
        code = NO_RESOURCES;
    return complain(code, "%s: %s", c->command->name, pliant_worker_error(c->w));
}

static enum exit_code print_json(struct json *j)
{
    int error;

    json_line(j);
    fwrite(j->v, 1, j->n, stdout);
    error = j->error;
    json_free(j);
    return error ? complain(NO_RESOURCES, "no memory") : DONE;
}

/* {"KEY":TEXT}, or the text alone. */
static enum exit_code print_text(const struct call *c, const char *key, const char *text)
{
    struct json j;

    if (!c->as_json) {
        if (text)
            puts(text);
        return DONE;
    }
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, key, text);
    json_end(&j, '}');
    return print_json(&j);
}

/* ---- commands
 * ------------------------------------------------------------------------------------- */

static enum exit_code run_report(struct call *c)
{
    int r;

    json_end(&c->metrics, '}');
    json_raw(&c->metrics, NULL, "", 1); /* a comma, and the NUL */
    if (c->metrics.error)
        return complain(NO_RESOURCES, "no memory");
    c->metrics.v[c->metrics.n - 2] = '\0';
    r = pliant_worker_report(c->w, c->metrics.v, c->checkpoint);
    return r < 0 ? failed(c, r) : c->as_json ? print_text(c, "checkpoint", c->checkpoint) : DONE;
}

static enum exit_code run_checkpoint_dir(struct call *c)
{
    const char *dir;
    int r = pliant_worker_checkpoint_dir(c->w, &dir);

    return r < 0 ? failed(c, r) : print_text(c, "dir", dir);
}

static enum exit_code run_get_checkpoint(struct call *c)
{
    const char *dir;
    int r = pliant_worker_get_checkpoint(c->w, &dir);
    enum exit_code code = r < 0 ? failed(c, r) : print_text(c, "dir", dir);

    return code == DONE && !dir ? NO : code;
}

static void print_instant(const char *name, int64_t unix_ms)
{
    if (unix_ms != PLIANT_WORKER_NO_DEADLINE)
        printf("%s %" PRId64 "\n", name, unix_ms);
}

static void print_notice(const struct pliant_worker_preemption *info)
{
    print_instant("deadline_ms", info->deadline_unix_ms);
    print_instant("stop_at_ms", info->stop_at_unix_ms);
    fputs("ranks", stdout);
    for (size_t i = 0; i < info->n_ranks; i++)
        printf(" %" PRIu32, info->ranks[i]);
    fputs("\nnodes", stdout);
    for (size_t i = 0; i < info->n_nodes; i++)
        printf(" %s", info->nodes[i]);
    puts("");
}

static enum exit_code run_preemption_info(struct call *c)
{
    const struct pliant_worker_preemption *info;
    int r = pliant_worker_get_preemption_info(c->w, &info);

    if (r < 0)
        return failed(c, r);
    if (c->as_json)
        puts(info ? info->json : "null");
    else if (info)
        print_notice(info);
    return info ? DONE : NO;
}

static enum exit_code print_request(const struct call *c, const struct pliant_worker_event *ev)
{
    struct json j;

    if (!c->as_json) {
        printf("%s %s\n", ev->id ? ev->id : "-", ev->dir ? ev->dir : "-");
        return DONE;
    }
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "id", ev->id);
    json_string(&j, "dir", ev->dir);
    json_bool(&j, "savepoint", ev->savepoint);
    json_end(&j, '}');
    return print_json(&j);
}

/* NO without a word when the time is over, with one when none will come. */
static enum exit_code run_wait_checkpoint(struct call *c)
{
    struct pliant_worker_event ev;
    int r = pliant_worker_take_checkpoints(c->w);

    if (r == 0 && !pliant_worker_managed(c->w))
        return complain(NO, "wait-checkpoint: not started by pliant-agent: nobody asks for any");
    while (r == 0 && (r = pliant_worker_next(c->w, c->timeout_ms, &ev)) == 1) {
        if (ev.kind == PLIANT_WORKER_CHECKPOINT)
            return print_request(c, &ev);
        if (ev.kind == PLIANT_WORKER_STOP)
            return complain(NO, "wait-checkpoint: the task is to stop");
        r = 0;
    }
    return r < 0 ? failed(c, r) : NO;
}

/* The agent tells a new connection all requests that have no part yet; so this one, too. */
static int find_request(struct call *c, const char *id)
{
    struct pliant_worker_event ev;
    int r = pliant_worker_take_checkpoints(c->w);

    if (!pliant_worker_managed(c->w))
        return 1;
    while (r == 0 && (r = pliant_worker_next(c->w, PART_WAIT_MS, &ev)) == 1) {
        if (ev.kind == PLIANT_WORKER_CHECKPOINT && ev.id && strcmp(ev.id, id) == 0)
            return 1;
        r = 0;
    }
    return r;
}

static enum exit_code run_part(struct call *c)
{
    const char *id = c->args[0];
    int r = find_request(c, id);

    if (r == 0)
        return complain(NO, "part: no checkpoint %s is asked for", id);
    if (r >= 0)
        r = c->cause ? pliant_worker_part_failed(c->w, id, c->cause)
                     : pliant_worker_part_done(c->w, id);
    return r < 0 ? failed(c, r) : c->as_json ? print_text(c, "id", id) : DONE;
}

static enum exit_code run_end_of_data(struct call *c)
{
    int r = pliant_worker_end_of_data(c->w);

    return r < 0 ? failed(c, r) : DONE;
}

static enum exit_code run_restore_parts(struct call *c)
{
    size_t n;
    const struct pliant_worker_part *parts = pliant_worker_restore_parts(c->w, &n);
    struct json j;

    for (size_t i = 0; i < n && !c->as_json; i++)
        printf("%" PRIu32 "-%" PRIu32 " %s\n", parts[i].first_key_group, parts[i].last_key_group,
               parts[i].dir);
    if (!c->as_json)
        return DONE;
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_begin(&j, "parts", '[');
    for (size_t i = 0; i < n; i++) {
        json_begin(&j, NULL, '{');
        json_string(&j, "dir", parts[i].dir);
        json_uint(&j, "subtask", parts[i].subtask);
        json_uint(&j, "parallelism", parts[i].parallelism);
        json_uint(&j, "first_key_group", parts[i].first_key_group);
        json_uint(&j, "last_key_group", parts[i].last_key_group);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    return print_json(&j);
}

/* ---- blocking edges
 * ------------------------------------------------------------------------------- */

static bool is_meant(const struct call *c, uint32_t edge, const char *vertex)
{
    return (!c->vertex || strcmp(c->vertex, vertex) == 0) && (c->edge < 0 || c->edge == edge);
}

static enum exit_code no_edge(const struct call *c)
{
    return c->vertex
               ? complain(NO, "%s: this task has no such edge with %s", c->command->name, c->vertex)
               : complain(NO, "%s: this task has none", c->command->name);
}

/* What is empty may have no file, but it has its directory. */
static bool print_files(const struct pliant_worker_partition *p, struct json *j)
{
    char path[4096];

    if (access(p->dir, F_OK) != 0)
        return false;
    for (uint64_t n = p->first; n <= p->last; n++) {
        snprintf(path, sizeof path, "%s/%" PRIu64, p->dir, n);
        if (access(path, F_OK) != 0)
            continue;
        if (j)
            json_string(j, NULL, path);
        else
            puts(path);
    }
    return true;
}

static enum exit_code lost(const struct call *c, const struct pliant_worker_input *in,
                           const struct pliant_worker_partition *p)
{
    return complain(NO, "%s: what %s/%u wrote is lost: %s: %s", c->command->name, in->from,
                    (unsigned)p->subtask, p->dir, strerror(errno));
}

static enum exit_code run_inputs(struct call *c)
{
    const struct pliant_worker_input *v;
    struct json list, *j = c->as_json ? &list : NULL;
    enum exit_code code = DONE;
    bool any = false;
    size_t n;
    int r = pliant_worker_inputs(c->w, &v, &n);

    if (r < 0)
        return failed(c, r);
    json_init(&list, NULL);
    json_begin(&list, NULL, '{');
    json_begin(&list, "files", '[');
    for (size_t i = 0; i < n; i++) {
        if (!is_meant(c, v[i].edge, v[i].from))
            continue;
        any = true;
        for (size_t k = 0; k < v[i].n_partitions && code == DONE; k++)
            if (!print_files(&v[i].partitions[k], j))
                code = lost(c, &v[i], &v[i].partitions[k]);
    }
    json_end(&list, ']');
    json_end(&list, '}');
    if (any && j && code == DONE)
        return print_json(&list);
    json_free(&list);
    return any ? code : no_edge(c);
}

static enum exit_code run_outputs(struct call *c)
{
    const struct pliant_worker_output *v;
    struct json j;
    bool any = false;
    size_t n;
    int r = pliant_worker_outputs(c->w, &v, &n);

    if (r < 0)
        return failed(c, r);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_begin(&j, "outputs", '[');
    for (size_t i = 0; i < n; i++) {
        if (!is_meant(c, v[i].edge, v[i].to))
            continue;
        any = true;
        if (!c->as_json && c->counts)
            printf("%" PRIu32 "\n", v[i].subpartitions);
        else if (!c->as_json)
            puts(v[i].dir);
        json_begin(&j, NULL, '{');
        json_uint(&j, "edge", v[i].edge);
        json_string(&j, "to", v[i].to);
        json_string(&j, "dir", v[i].dir);
        json_uint(&j, "subpartitions", v[i].subpartitions);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    if (any && c->as_json)
        return print_json(&j);
    json_free(&j);
    return any ? DONE : no_edge(c);
}

static bool reads(const struct pliant_worker_input *in, int64_t subtask)
{
    for (size_t i = 0; i < in->n_partitions; i++)
        if (in->partitions[i].subtask == subtask)
            return true;
    return false;
}

static enum exit_code run_input_lost(struct call *c)
{
    const struct pliant_worker_input *v;
    bool any = false;
    size_t n;
    int r;

    if (!c->vertex || c->subtask < 0)
        return complain(BAD_INPUT, "input-lost: needs --from and --subtask");
    r = pliant_worker_inputs(c->w, &v, &n);
    if (r == 0 && !pliant_worker_managed(c->w))
        return DONE;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!is_meant(c, v[i].edge, v[i].from))
            continue;
        any = true;
        if (!reads(&v[i], c->subtask))
            continue;
        /* of several edges any will do: it writes all of them again */
        r = pliant_worker_input_lost(c->w, v[i].edge, (uint32_t)c->subtask);
        return r < 0 ? failed(c, r) : DONE;
    }
    if (r < 0)
        return failed(c, r);
    return any ? complain(NO, "input-lost: this task reads nothing of %s/%" PRId64, c->vertex,
                          c->subtask)
               : no_edge(c);
}

static enum exit_code tell_sizes(struct call *c, uint32_t edge)
{
    uint64_t *bytes = calloc((size_t)c->n_args, sizeof *bytes);
    enum exit_code code = DONE;
    int64_t size;
    int r;

    if (!bytes)
        return complain(NO_RESOURCES, "no memory");
    for (int i = 0; i < c->n_args && code == DONE; i++) {
        if (decimal_read_int(c->args[i], &size) && size >= 0)
            bytes[i] = (uint64_t)size;
        else
            code = complain(BAD_INPUT, "output-sizes: %s: expected a number of bytes", c->args[i]);
    }
    r = code == DONE ? pliant_worker_output_sizes(c->w, edge, bytes, (size_t)c->n_args) : 0;
    free(bytes);
    return r < 0 ? failed(c, r) : code;
}

static enum exit_code run_output_sizes(struct call *c)
{
    const struct pliant_worker_output *v, *meant = NULL;
    size_t n;
    int r;

    if (!c->vertex)
        return complain(BAD_INPUT, "output-sizes: needs --to");
    r = pliant_worker_outputs(c->w, &v, &n);
    if (r == 0 && !pliant_worker_managed(c->w))
        return DONE;
    if (r < 0)
        return failed(c, r);
    for (size_t i = 0; i < n; i++) {
        if (!is_meant(c, v[i].edge, v[i].to))
            continue;
        if (meant)
            return complain(BAD_INPUT,
                            "output-sizes: edges %" PRIu32 " and %" PRIu32
                            " both lead to %s; say which with --edge",
                            meant->edge, v[i].edge, c->vertex);
        meant = &v[i];
    }
    return meant ? tell_sizes(c, meant->edge) : no_edge(c);
}

/* clang-format off */
static const struct command commands[] = {
    {"report", "report [--metric NAME=VALUE]... [--checkpoint DIR]", 0, run_report, false},
    {"checkpoint-dir", "checkpoint-dir", 0, run_checkpoint_dir, false},
    {"get-checkpoint", "get-checkpoint", 0, run_get_checkpoint, false},
    {"preemption-info", "preemption-info", 0, run_preemption_info, false},
    {"wait-checkpoint", "wait-checkpoint [--timeout DURATION]", 0, run_wait_checkpoint, false},
    {"part", "part ID [--failed CAUSE]", 1, run_part, false},
    {"restore-parts", "restore-parts", 0, run_restore_parts, true},
    {"end-of-data", "end-of-data", 0, run_end_of_data, false},
    {"inputs", "inputs [--from VERTEX] [--edge N]", 0, run_inputs, true},
    {"outputs", "outputs [--to VERTEX] [--edge N] [--subpartitions]", 0, run_outputs, true},
    {"output-sizes", "output-sizes --to VERTEX [--edge N] BYTES...", ANY, run_output_sizes, false},
    {"input-lost", "input-lost --from VERTEX [--edge N] --subtask N", 0, run_input_lost, false},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static const char help[] =
    "Usage: pliant-worker COMMAND [--json] [--patience DURATION]\n\n"
    "What a task of a job says to Pliant, for shell scripts that pliant-agent started.\n\n"
    "Worker groups (all ranks call report, checkpoint-dir and preemption-info equally often):\n"
    "  report [--metric NAME=VALUE]... [--checkpoint DIR]\n"
    "                    hand over metrics and a checkpoint; waits until all ranks have\n"
    "  checkpoint-dir    prints a new directory, the same one for all ranks\n"
    "  get-checkpoint    prints the one to go on from; exit code 1: none\n"
    "  preemption-info   prints what is known of a coming preemption; exit code 1: nothing\n\n"
    "Graph jobs:\n"
    "  wait-checkpoint [--timeout DURATION]\n"
    "                    waits until a checkpoint is asked for, prints its ID and DIR; exit\n"
    "                    code 1: none came, or none will\n"
    "  part ID [--failed CAUSE]\n"
    "                    the state is in DIR; or could not be written\n"
    "  restore-parts     prints what to read at the start, a line each: FIRST-LAST DIR, where\n"
    "                    FIRST-LAST are the key groups that are this subtask's\n"
    "  end-of-data       this source has no more to read\n\n"
    "Blocking edges of graph jobs:\n"
    "  inputs [--from VERTEX] [--edge N]\n"
    "                    prints the files that this task reads, a line each; an empty one may\n"
    "                    be missing; exit code 1: it has no such edge, or one of\n"
    "                    them is lost with its directory\n"
    "  outputs [--to VERTEX] [--edge N] [--subpartitions]\n"
    "                    prints the directory to write files 0, 1, 2, ... into, or how many\n"
    "  output-sizes --to VERTEX [--edge N] BYTES...\n"
    "                    how much was written, if that is not the sizes of the files\n"
    "  input-lost --from VERTEX [--edge N] --subtask N\n"
    "                    what N wrote cannot be read: it is written again; then exit 1\n"
    "  --edge is the edge's place in the job file, from 0: where several join the same two\n\n"
    "  --json            print JSON\n"
    "  --patience D      how long to try when the agent cannot be reached (10 min)\n\n"
    "Exit codes: 0 done, 1 the answer is no, 2 bad usage, 3 the agent cannot be reached,\n"
    "4 no memory, full disk or closed pipe. Not under Pliant, commands do nothing and succeed\n"
    "where that makes sense.\n";
/* clang-format on */

/* ---- usage
 * ------------------------------------------------------------------------------------------ */

static enum exit_code usage(const struct command *self)
{
    if (self)
        fprintf(stderr, "Usage: pliant-worker %s\n", self->usage);
    fputs("Try 'pliant-worker --help'.\n", stderr);
    return BAD_INPUT;
}

static bool read_duration(const char *option, const char *text, int64_t max_ms, int64_t *ret)
{
    if (duration_parse(text, ret) == 0 && *ret >= 0 && *ret <= max_ms)
        return true;
    complain(BAD_INPUT, "--%s %s: expected a duration, a number with a unit of " DURATION_UNITS,
             option, text);
    return false;
}

/* NAME=VALUE: a number, true or false as such, else a string. */
static bool read_metric(struct json *j, const char *text)
{
    const char *value = strchr(text, '=');
    struct json_span span;
    char *name;

    if (!value || value == text || strcspn(text, "\"\\") < (size_t)(value - text)) {
        complain(BAD_INPUT, "--metric %s: expected NAME=VALUE", text);
        return false;
    }
    name = strndup(text, (size_t)(value++ - text));
    span = json_read(value, strlen(value));
    if (!name)
        j->error = -ENOMEM;
    else if (span.v && !json_is(span, '"') && !json_is(span, '{') && !json_is(span, '['))
        json_raw(j, name, span.v, span.n);
    else
        json_member(j, name, value);
    free(name);
    return true;
}

static bool belongs(const struct command *self, const char *option)
{
    return strstr(self->usage, option) != NULL; /* none is the beginning of another */
}

static bool read_option(struct call *c, int option)
{
    int64_t ms;

    switch (option) {
    case 'j':
        c->as_json = true;
        return true;
    case 'p':
        return read_duration("patience", optarg, INT64_MAX, &c->patience_ms);
    case 't':
        if (!belongs(c->command, "--timeout") || !read_duration("timeout", optarg, INT32_MAX, &ms))
            return false;
        c->timeout_ms = (int)ms;
        return true;
    case 'm':
        return belongs(c->command, "--metric") && read_metric(&c->metrics, optarg);
    case 'c':
        c->checkpoint = optarg;
        return belongs(c->command, "--checkpoint");
    case 'f':
        c->cause = optarg;
        return belongs(c->command, "--failed");
    case 'F':
        c->vertex = optarg;
        return belongs(c->command, "--from");
    case 'T':
        c->vertex = optarg;
        return belongs(c->command, "--to");
    case 's':
        c->counts = true;
        return belongs(c->command, "--subpartitions");
    case 'e':
        if (belongs(c->command, "--edge") && decimal_read_int(optarg, &c->edge) && c->edge >= 0 &&
            c->edge <= UINT32_MAX)
            return true;
        complain(BAD_INPUT, "--edge %s: expected a number from 0", optarg);
        return false;
    case 'n':
        if (belongs(c->command, "--subtask") && decimal_read_int(optarg, &c->subtask) &&
            c->subtask >= 0 && c->subtask <= UINT32_MAX)
            return true;
        complain(BAD_INPUT, "--subtask %s: expected a number from 0", optarg);
        return false;
    default:
        return false;
    }
}

static bool read_options(struct call *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"patience", required_argument, NULL, 'p'},
        {"timeout", required_argument, NULL, 't'},
        {"metric", required_argument, NULL, 'm'},
        {"checkpoint", required_argument, NULL, 'c'},
        {"failed", required_argument, NULL, 'f'},
        {"from", required_argument, NULL, 'F'},
        {"to", required_argument, NULL, 'T'},
        {"subpartitions", no_argument, NULL, 's'},
        {"subtask", required_argument, NULL, 'n'},
        {"edge", required_argument, NULL, 'e'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!read_option(c, option))
            return false;
    c->args = argv + optind;
    c->n_args = argc - optind;
    return c->command->n_args == ANY ? c->n_args > 0 : c->n_args == c->command->n_args;
}

/* ---- run
 * -------------------------------------------------------------------------------------------- */

/* Within a second it is there, or the user is told what the wait is for. */
static int reach_agent(struct call *c)
{
    int64_t rest_ms = c->patience_ms - SHORT_PATIENCE_MS;
    int r;

    if (rest_ms > 0) {
        pliant_worker_set_patience(c->w, SHORT_PATIENCE_MS);
        r = pliant_worker_connect(c->w);
        if (r != -ETIMEDOUT)
            return r;
        complain(UNREACHABLE, "%s: %s; still trying", c->command->name, pliant_worker_error(c->w));
    }
    pliant_worker_set_patience(c->w, rest_ms > 0 ? rest_ms : c->patience_ms);
    return pliant_worker_connect(c->w);
}

static enum exit_code run(struct call *c)
{
    int r = pliant_worker_new(&c->w);

    if (!c->w)
        return complain(NO_RESOURCES, "no memory");
    if (r == 0 && !c->command->alone)
        r = reach_agent(c);
    if (r < 0)
        return failed(c, r);
    pliant_worker_set_patience(c->w, c->patience_ms);
    return c->command->run(c);
}

static enum exit_code finish(enum exit_code code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return complain(NO_RESOURCES, "standard output: %s", strerror(errno));
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct call c = {
        .patience_ms = PLIANT_WORKER_PATIENCE_MS, .timeout_ms = -1, .subtask = -1, .edge = -1};
    enum exit_code code;

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is told by exit code 4 */
    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return (int)finish(DONE);
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("pliant-worker %s\n", pliant_worker_version());
        return (int)finish(DONE);
    }
    c.command = argc >= 2 ? find_command(argv[1]) : NULL;
    if (!c.command) {
        if (argc >= 2)
            complain(BAD_INPUT, "there is no command %s", argv[1]);
        return (int)usage(NULL);
    }
    json_init(&c.metrics, NULL);
    json_begin(&c.metrics, NULL, '{');
    code = read_options(&c, argc - 1, argv + 1) ? run(&c) : usage(c.command);
    pliant_worker_close(c.w);
    json_free(&c.metrics);
    return (int)finish(code);
}
