/* reported.c - what agents say about tasks, compared with what the cores believe
 *
 * Each difference becomes a fact for the core or an order for the agent. Tasks are named by
 * attempt, so that hearing the same twice changes nothing.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "daemon/agents_impl.h"
#include "daemon/results.h"

#define TEXT_MAX_BYTES 1024
#define CAUSE_BYTES 400

static struct daemon_job *job_of(struct daemon *d, const char *id)
{
    struct daemon_job *job;

    HASH_FIND_STR(d->jobs, id, job);
    return job;
}

/* ---- tasks as agents name them -------------------------------------------------------------- */

int named_read(struct daemon *d, const struct doc_file *f, const struct doc *map, struct named *ret,
               struct spec_error *err)
{
    int64_t subtask, attempt;
    int r;

    *ret = (struct named){0};
    if (map->kind != DOC_MAP)
        return doc_error(f, map, err, "accepted: a map");
    r = doc_string(f, map, "job", PLIANT_NAME_MAX, &ret->id, err);
    if (r == 0)
        r = doc_string(f, map, "vertex", PLIANT_NAME_MAX, &ret->vertex, err);
    if (r == 0)
        r = doc_int(f, map, "subtask", 0, UINT32_MAX, &subtask, err);
    if (r == 0)
        r = doc_int(f, map, "attempt", 0, UINT32_MAX, &attempt, err);
    if (r == -ENOENT)
        r = doc_error(f, map, err, "accepted: job, vertex, subtask, attempt");
    if (r < 0)
        return r;
    ret->subtask = (uint32_t)subtask;
    ret->attempt = (uint32_t)attempt;
    ret->job = job_of(d, ret->id);
    if (ret->job && ret->job->sched)
        ret->task =
            (struct pliant_task){.vertex = pliant_job_vertex_find(ret->job->spec.job, ret->vertex),
                                 .subtask = ret->subtask,
                                 .attempt = ret->attempt};
    if (ret->task.vertex.v)
        ret->known = job_task(ret->job, &ret->task);
    return 0;
}

bool named_believed(const struct named *n, struct pliant_task_info *ret)
{
    if (!n->task.vertex.v || n->job->ended_unix_ms)
        return false;
    for (uint32_t i = 0; pliant_attempt_info(n->job->sched, n->task.vertex, n->subtask, i, ret);
         i++)
        if (ret->attempt == n->attempt)
            return true;
    return false;
}

static bool is_over(enum pliant_task_state state)
{
    return state == PLIANT_TASK_FINISHED || state == PLIANT_TASK_CANCELED ||
           state == PLIANT_TASK_FAILED;
}

/* ---- how a task ended ----------------------------------------------------------------------- */

enum how { HOW_EXITED, HOW_KILLED, HOW_NOT_STARTED, HOW_STOPPED };

struct end {
    enum how how;
    int64_t code;
    const char *signal, *cause;
    bool oom, port_in_use, hung;
    const struct doc *doc; /* all of it */
};

static int read_how(const struct doc_file *f, const struct doc *map, enum how *ret,
                    struct spec_error *err)
{
    static const char *const words[] = {"exited", "killed", "not-started", "stopped"};
    const char *text = "";
    int r = doc_optional(doc_string(f, map, "how", PLIANT_NAME_MAX, &text, err));

    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++) {
        *ret = (enum how)i;
        if (strcmp(text, words[i]) == 0)
            return 0;
    }
    return r < 0 ? r
                 : doc_error(f, map, err, "how: accepted: exited, killed, not-started, stopped");
}

static int read_optional_text(const struct doc_file *f, const struct doc *map, const char *key,
                              const char **ret, struct spec_error *err)
{
    const struct doc *value = doc_get(map, key);

    if (!value || value->kind == DOC_NULL)
        return 0;
    return doc_as_string(f, value, TEXT_MAX_BYTES, ret, err);
}

static int read_end(const struct doc_file *f, const struct doc *state, struct end *ret,
                    struct spec_error *err)
{
    const struct doc *map = NULL;
    int r = doc_container(f, state, "end", DOC_MAP, &map, err);

    *ret = (struct end){.signal = "", .cause = "", .doc = map};
    if (r == -ENOENT)
        return doc_error(f, state, err, "end: missing, and it has ended");
    if (r == 0)
        r = read_how(f, map, &ret->how, err);
    if (r == 0)
        r = doc_optional(doc_int(f, map, "code", INT32_MIN, INT32_MAX, &ret->code, err));
    if (r == 0)
        r = read_optional_text(f, map, "signal", &ret->signal, err);
    if (r == 0)
        r = read_optional_text(f, map, "cause", &ret->cause, err);
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "oom", &ret->oom, err));
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "port_in_use", &ret->port_in_use, err));
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "hung", &ret->hung, err));
    return r;
}

static void say_cause(const struct end *end, char ret[CAUSE_BYTES])
{
    const char *colon = *end->cause ? ": " : "";

    if (end->hung)
        snprintf(ret, CAUSE_BYTES, "%s", end->cause);
    else if (end->oom)
        snprintf(ret, CAUSE_BYTES, "out of memory (OOM killer)%s%s", colon, end->cause);
    else if (end->how == HOW_NOT_STARTED)
        snprintf(ret, CAUSE_BYTES, "not started%s%s", colon, end->cause);
    else if (end->how == HOW_STOPPED)
        snprintf(ret, CAUSE_BYTES, "stopped by its agent%s%s", colon, end->cause);
    else if (end->how == HOW_KILLED)
        snprintf(ret, CAUSE_BYTES, "killed by SIG%s%s%s", *end->signal ? end->signal : "?", colon,
                 end->cause);
    else
        snprintf(ret, CAUSE_BYTES, "exit code %" PRId64 "%s%s", end->code, colon, end->cause);
}

/* Told to stop after the savepoint of a stop: so it has finished. */
static bool finishes(const struct named *n, const struct end *end)
{
    return end->how == HOW_STOPPED && n->known->stopping &&
           pliant_state(n->job->sched) == PLIANT_STOP_WITH_SAVEPOINT;
}

/* Also where its command cannot be executed, which is the job's fault and none of the node's. */
static bool was_started(const struct end *end)
{
    return end->how != HOW_NOT_STARTED || end->code != 0;
}

/* [2.2]; a code of 137 or 143 is a shell's word for a child that was killed. */
static enum pliant_death death_of(const struct end *end)
{
    if (end->hung)
        return PLIANT_DEATH_HUNG; /* [W-GRP-8] */
    if (end->port_in_use)
        return PLIANT_DEATH_PORT_IN_USE;
    if (end->how == HOW_EXITED)
        return end->code == 128 + 9 || end->code == 128 + 15 ? PLIANT_DEATH_CRASH
                                                             : PLIANT_DEATH_ERROR;
    if (end->how != HOW_KILLED)
        return PLIANT_DEATH_ERROR;
    if (!end->oom && (strcmp(end->signal, "TERM") == 0 || strcmp(end->signal, "KILL") == 0))
        return PLIANT_DEATH_TERMINATED;
    return PLIANT_DEATH_CRASH;
}

/* Of which nothing is taken, but the end itself. */
static void complain_of_results(const struct named *n, const char *wrong)
{
    if (wrong)
        log_line(4, "msg=\"an agent reports %s\" job=%s vertex=%s subtask=%u attempt=%u", wrong,
                 n->id, n->vertex, (unsigned)n->subtask, (unsigned)n->attempt);
}

static void finished_fact(struct daemon *d, const struct named *n, const struct end *end)
{
    struct result_report report = {0};

    complain_of_results(n, results_read_sizes(n->job, &n->task, end->doc, &report));
    job_fact(d, n->job,
             &(struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                    .finished = {.task = n->task,
                                                 .outputs = report.outputs.v,
                                                 .n_outputs = report.outputs.n}});
    results_report_free(&report);
}

/* 0: it has none. */
static int signal_number(const char *name)
{
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);

        if (known && strcmp(known, name) == 0)
            return number;
    }
    return 0;
}

/* As a shell tells it. */
static uint8_t exit_code_of(const struct end *end)
{
    int number = signal_number(end->signal);
    int64_t code = number > 0 ? 128 + number : end->code;

    return code >= 0 && code <= UINT8_MAX ? (uint8_t)code : 0;
}

/* How it ended, as the core is to see it. What ends while it is being canceled was canceled, also
 * with code 0: it may not have done its work. With code 0 and a cause what it wrote is not there.
 */
static enum pliant_task_state ended_as(const struct named *n, enum pliant_task_state believed,
                                       const struct end *end)
{
    if (believed == PLIANT_TASK_CANCELING)
        return PLIANT_TASK_CANCELED;
    return (end->how == HOW_EXITED && end->code == 0 && !*end->cause) || finishes(n, end)
               ? PLIANT_TASK_FINISHED
               : PLIANT_TASK_FAILED;
}

/* False: the core is told later. */
static bool end_fact(struct daemon *d, const struct named *n, enum pliant_task_state state,
                     const struct end *end)
{
    char cause[CAUSE_BYTES] = "";
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_CANCELED, .task = n->task};

    if (state == PLIANT_TASK_FAILED) {
        say_cause(end, cause);
        ev = (struct pliant_event){
            .kind = PLIANT_EV_TASK_FAILED,
            .failure = {.task = n->task,
                        .recoverable = true,
                        .cause = cause,
                        .death = n->job->group ? death_of(end) : PLIANT_DEATH_ERROR,
                        .exit_code = exit_code_of(end)}};
        if (was_started(end) && group_holds_end(d, n->known, &ev))
            return false;
        complain_of_results(n, results_read_lost(n->job, &n->task, end->doc, &ev));
    }
    if (state == PLIANT_TASK_FINISHED)
        finished_fact(d, n, end);
    else
        job_fact(d, n->job, &ev);
    tell_task(d, n->job, n->known, state, *cause ? cause : NULL);
    return true;
}

/* ---- one reported state --------------------------------------------------------------------- */

enum reported { SAID_STARTING, SAID_INITIALIZING, SAID_RUNNING, SAID_STOPPING, SAID_ENDED };

static int read_reported(const struct doc_file *f, const struct doc *map, enum reported *ret,
                         struct spec_error *err)
{
    static const char *const words[] = {"starting", "initializing", "running", "stopping", "ended"};
    const char *text = "";
    int r = doc_optional(doc_string(f, map, "state", PLIANT_NAME_MAX, &text, err));

    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++) {
        *ret = (enum reported)i;
        if (strcmp(text, words[i]) == 0)
            return 0;
    }
    return r < 0 ? r
                 : doc_error(f, map, err,
                             "state: accepted: starting, initializing, running, stopping, ended");
}

static void alive(struct daemon *d, const struct named *n, enum pliant_task_state believed_state,
                  enum reported said, bool hello)
{
    struct pliant_event ev = {.task = n->task};

    if (believed_state == PLIANT_TASK_CANCELING || n->known->stopping) {
        if (hello && said != SAID_STOPPING) /* the STOP may have been lost */
            stop_task(d, n->job, n->known);
        return;
    }
    if (said == SAID_RUNNING && believed_state != PLIANT_TASK_RUNNING) {
        ev.kind = PLIANT_EV_TASK_RUNNING;
        tell_task(d, n->job, n->known, PLIANT_TASK_RUNNING, NULL);
    } else if (said == SAID_INITIALIZING && believed_state != PLIANT_TASK_RUNNING &&
               believed_state != PLIANT_TASK_INITIALIZING) {
        ev.kind = PLIANT_EV_TASK_INITIALIZING;
        tell_task(d, n->job, n->known, PLIANT_TASK_INITIALIZING, NULL);
    } else
        return;
    n->known->since_unix_ms = d->clock.unix_ms;
    job_fact(d, n->job, &ev);
}

/* After a restart of the daemon: the job gave up the node, and this is why its slots are not free.
 */
static void know_given_up(struct daemon *d, struct daemon_node *node, struct named *n)
{
    if (n->known || !n->task.vertex.v || !node_has_open_life(node, n->job))
        return;
    n->known = job_task_add(n->job, &n->task, node, UINT32_MAX);
    n->known->given_up = true;
    n->known->seen = agents_of(d)->hellos;
}

/* Nobody wants it: its job is unknown or over, or its attempt is. */
static void unwanted(struct daemon *d, struct daemon_node *node, struct named *n,
                     enum reported said, bool hello)
{
    bool given_up = n->known && n->known->given_up;
    struct pliant_task_info info;

    if (said == SAID_ENDED) {
        forget_task(d, node, n->id, n->vertex, n->subtask, n->attempt,
                    named_believed(n, &info) && info.state == PLIANT_TASK_FINISHED);
        if (n->known && n->known->node == node)
            node_task_over(d, n->known);
        if (given_up)
            node_close_lives(d, node);
        return;
    }
    if (hello || said != SAID_STOPPING)
        stop_stray(d, node, n->id, n->vertex, n->subtask, n->attempt,
                   given_up ? 0
                   : n->task.vertex.v
                       ? job_stop_timeout_ms(n->job)
                       : options_duration_ms(&d->opts.all, "pliant.agent.stop-timeout"));
}

/* What the worker of a group waits for is said again in each HELLO. */
static void waits(struct daemon *d, const struct named *n, const struct doc_file *f,
                  const struct doc *map)
{
    const struct doc *report = doc_get(map, "report"), *entered = doc_get(map, "entered");

    if (!n->job->group)
        return;
    if (report && report->kind == DOC_MAP)
        group_report(d, n->job, &n->task, f, report);
    if (entered && entered->kind == DOC_MAP)
        group_enter(d, n->job, &n->task, f, entered);
}

static int take_state(struct daemon *d, struct daemon_node *node, const struct doc_file *f,
                      const struct doc *map, bool hello, struct spec_error *err)
{
    struct pliant_task_info info;
    struct named n;
    struct end end;
    enum reported said = SAID_STARTING;
    enum pliant_task_state state;
    int64_t pid = 0, started_unix_ms = 0;
    int r = named_read(d, f, map, &n, err);

    if (r == 0)
        r = read_reported(f, map, &said, err);
    if (r == 0)
        r = doc_optional(doc_int(f, map, "pid", 0, INT32_MAX, &pid, err));
    if (r == 0)
        r = doc_optional(
            doc_int(f, map, "started_unix_ms", 0, DOC_INTEGER_MAX, &started_unix_ms, err));
    if (r == 0 && said == SAID_ENDED)
        r = read_end(f, map, &end, err);
    if (r < 0 || (n.job && n.job->damaged))
        return r;
    if (n.known && n.known->node == node) {
        n.known->pid = pid;
        if (n.known->since_unix_ms == 0) /* from before this daemon */
            n.known->since_unix_ms = started_unix_ms;
        n.known->seen = agents_of(d)->hellos;
    }
    if (!named_believed(&n, &info) || is_over(info.state) || !n.known || n.known->node != node ||
        n.known->given_up) {
        if (said != SAID_ENDED)
            know_given_up(d, node, &n);
        unwanted(d, node, &n, said, hello);
        return 0;
    }
    if (said != SAID_ENDED) {
        alive(d, &n, info.state, said, hello);
        waits(d, &n, f, map);
        return 0;
    }
    state = ended_as(&n, info.state, &end);
    if (!end_fact(d, &n, state, &end))
        return 0;
    forget_task(d, node, n.id, n.vertex, n.subtask, n.attempt, state == PLIANT_TASK_FINISHED);
    node_task_over(d, n.known);
    return 0;
}

int reported_take(struct daemon *d, struct daemon_node *node, const struct doc_file *f, bool hello,
                  struct spec_error *err)
{
    const struct doc *tasks = NULL;
    int r = doc_optional(doc_container(f, f->root, "tasks", DOC_LIST, &tasks, err));

    for (const struct doc *t = tasks ? tasks->child : NULL; t && r == 0; t = t->next)
        r = take_state(d, node, f, t, hello, err);
    return r;
}

/* ---- reconciling ---------------------------------------------------------------------------- */

/* The agent does not have a task that the core believes to be there. */
static void missing(struct daemon *d, struct daemon_task *t)
{
    const struct pliant_task task = {
        .vertex = {t->key.vertex}, .subtask = t->key.subtask, .attempt = t->key.attempt};
    struct named n = {
        .job = t->job, .task = task, .subtask = task.subtask, .attempt = task.attempt, .known = t};
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_CANCELED, .task = task};
    struct pliant_task_info info;
    struct pliant_counts counts;

    if (named_believed(&n, &info) && !is_over(info.state) && !t->given_up) {
        if (info.state == PLIANT_TASK_SCHEDULED || info.state == PLIANT_TASK_DEPLOYING) {
            pliant_counts(t->job->sched, &counts);
            deploy_task(d, t->job, &task, info.slot, counts.checkpoint);
            return;
        }
        if (info.state != PLIANT_TASK_CANCELING)
            ev = (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                       .failure = {.task = task,
                                                   .recoverable = true,
                                                   .cause = "the agent no longer has it"}};
        job_fact(d, t->job, &ev);
    }
    node_task_over(d, t);
}

void reported_missing(struct daemon *d, struct daemon_node *node)
{
    uint64_t hello = agents_of(d)->hellos;

    for (struct daemon_task *t = node->tasks, *next; t; t = next) {
        next = t->next;
        if (t->seen != hello)
            missing(d, t);
    }
    node_close_lives(d, node);
}
