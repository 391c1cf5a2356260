/* sentence.c - see sentence.h
 *
 * One template a reason. {words} are filled in from the change, the event that led to it, and the
 * counts after the step.
 */
#include "sim/sentence.h"

#include <inttypes.h>
#include <string.h>

#include "sim/time_text.h"
#include "util/utf8.h"

#define TEXT_SHOWN_MAX 160 /* bytes of a cause: it stands in a line */
#define VERTICES_SHOWN_MAX 4

/* What a template is filled in from. */
struct change {
    const struct view *v;
    const struct pliant_action *a;
};

static const char *template_of(enum pliant_reason reason)
{
    /* clang-format off */
    static const char *const templates[PLIANT_REASONS] = {
        [PLIANT_REASON_STARTED] = "started: {wanted}",
        [PLIANT_REASON_DESIRED_RESOURCES] = "{slots}{since}, all that is wanted",
        [PLIANT_REASON_SUFFICIENT_RESOURCES] = "{slots}{since}, enough to run ({wanted})",
        [PLIANT_REASON_RESOURCE_TIMEOUT] = "waited long enough: {slots}, {wanted}",
        [PLIANT_REASON_PLAN_READY] = "runs with {runs}{restore}",
        [PLIANT_REASON_SLOTS_GONE] = "a slot of the plan is gone, {slots} left",
        [PLIANT_REASON_RESCALE] = "rescale {move}: {slots}{since}{checkpoint}",
        [PLIANT_REASON_DRAIN] = "{node} drains, {move}: {slots} elsewhere{checkpoint}",
        [PLIANT_REASON_RECLAIM] = "slots of {node} go back, {move}: {slots} left{checkpoint}",
        [PLIANT_REASON_BACKOFF_OVER] = "back-off is over: {slots}, {wanted}",
        [PLIANT_REASON_TARGET_REACHABLE] = "all tasks are down, {slots} as planned",
        [PLIANT_REASON_TARGET_UNREACHABLE] = "all tasks are down, not as planned: {slots}, {wanted}",
        [PLIANT_REASON_LAUNCHED] = "runs with {runs}{restore}",
        [PLIANT_REASON_ALL_FINISHED] = "all tasks finished",
        [PLIANT_REASON_ALL_CANCELED] = "all tasks are down",
        [PLIANT_REASON_CANCEL_REQUESTED] = "canceled on request",
        [PLIANT_REASON_SUSPEND_REQUESTED] = "suspended on request",
        [PLIANT_REASON_STOP_REQUESTED] = "stops on request, after a savepoint",
        [PLIANT_REASON_SAVEPOINT_DONE] = "savepoint done",
        [PLIANT_REASON_SAVEPOINT_FAILED] = "savepoint failed{cause}: runs on",
        [PLIANT_REASON_TASK_FAILED] = "{failed}{backoff}",
        [PLIANT_REASON_NODE_LOST] = "{failed}{backoff}",
        [PLIANT_REASON_DRAINING_NODE_LOST] = "{node} lost while it drained{lost}",
        [PLIANT_REASON_GLOBAL_FAILURE] = "{failed}{backoff}",
        [PLIANT_REASON_CREATION_FAILED] = "the graph could not be made{cause}{backoff}",
        [PLIANT_REASON_NOT_ENOUGH_RESOURCES] = "not enough slots: {slots}, {wanted}",
        [PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES] = "too many checkpoints failed{backoff}",
        [PLIANT_REASON_STOPPING_FAILED] = "the savepoint is there, but {failed}",
        [PLIANT_REASON_LAUNCH_FAILED] = "the launch failed{backoff}",
        [PLIANT_REASON_LAUNCH_TIMEOUT] = "the workers did not come up in time{backoff}",
        [PLIANT_REASON_PREEMPTED] = "{failed}, preempted{backoff}",
        [PLIANT_REASON_PORT_IN_USE] = "{failed}, the port is taken{backoff}",
        [PLIANT_REASON_CHECKPOINT_PATHS_DIFFER] = "checkpoints of one report differ in their place",
        [PLIANT_REASON_NOT_RECOVERABLE] = "{failed}: can't be recovered from",
        [PLIANT_REASON_RESTARTS_SUPPRESSED] = "{failed}: no restart is left",
        [PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED] = "no move is left for a drain",
        [PLIANT_REASON_WORKER_BUDGET_EXHAUSTED] = "{failed}: max-failures is exhausted",
        [PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED] =
            "{failed}: max-preemption-failures is exhausted",
        [PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED] =
            "the launch failed: controller-failure-limit is exhausted",
        [PLIANT_REASON_RESET_LIMIT_REACHED] = "one restart more than reset-limit allows",
    };
    /* clang-format on */
    return templates[reason] ? templates[reason] : pliant_reason_name(reason);
}

void sentence_text(FILE *out, const char *text)
{
    size_t n = strlen(text), shown = n > TEXT_SHOWN_MAX ? utf8_cut(text, TEXT_SHOWN_MAX) : n;

    for (size_t i = 0; i < shown; i++)
        fputc((unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i], out);
    if (shown < n)
        fputs("...", out);
}

static void count(FILE *out, uint32_t n, const char *noun)
{
    fprintf(out, "%" PRIu32 " %s%s", n, noun, n == 1 ? "" : "s");
}

/* ---- the words ---------------------------------------------------------------------------- */

static void put_slots(FILE *out, const struct change *c)
{
    count(out, c->a->change.slots, "slot");
}

static void put_wanted(FILE *out, const struct change *c)
{
    const struct pliant_counts *n = &c->v->counts;

    if (n->minimal == n->desired)
        fprintf(out, "%" PRIu32 " wanted", n->desired);
    else
        fprintf(out, "%" PRIu32 " to %" PRIu32 " wanted", n->minimal, n->desired);
}

static void put_since(FILE *out, const struct change *c)
{
    char time[TIME_TEXT_MAX];

    if (c->a->change.since_at_ms != PLIANT_NEVER)
        fprintf(out, " since %s", time_stopwatch(time, c->a->change.since_at_ms));
}

static void put_checkpoint(FILE *out, const struct change *c)
{
    if (c->a->change.detail)
        fprintf(out, ", checkpoint %" PRId64 " done", c->a->change.detail);
}

static void put_backoff(FILE *out, const struct change *c)
{
    uint8_t to = c->a->flag[1];
    char span[TIME_TEXT_MAX];

    if (to == PLIANT_RESTARTING || to == PLIANT_RETRYING_EXECUTION_GRAPH_CREATION ||
        (to == PLIANT_WAITING_FOR_RESOURCES && c->a->change.detail > 0))
        fprintf(out, ", back-off %s", time_span(span, c->a->change.detail));
}

static void put_node(FILE *out, const struct change *c)
{
    pliant_node_id node = c->a->change.node;

    sentence_text(out, node.v ? c->v->node_name(c->v->sched, node) : "a node");
}

/* How much of the work ran on the node. */
static void put_lost(FILE *out, const struct change *c)
{
    uint32_t was = c->v->before.slots_used, is = c->v->counts.slots_used;

    if (c->v->event->kind == PLIANT_EV_NODE_LOST && was > is)
        fprintf(out, " (%" PRIu32 " of %" PRIu32 " slots in use)", was - is, was);
}

static const char *cause_of(const struct pliant_event *ev)
{
    if (ev->kind == PLIANT_EV_TASK_FAILED || ev->kind == PLIANT_EV_GLOBAL_FAILURE)
        return ev->failure.cause;
    if (ev->kind == PLIANT_EV_CREATION_FAILED)
        return ev->plan.cause;
    if (ev->kind == PLIANT_EV_CHECKPOINT_FAILED || ev->kind == PLIANT_EV_SAVEPOINT_FAILED)
        return ev->checkpoint.cause;
    return NULL;
}

static void put_cause(FILE *out, const struct change *c)
{
    const char *cause = cause_of(c->v->event);

    if (!cause || !*cause)
        return;
    fputs(" (", out);
    sentence_text(out, cause);
    fputc(')', out);
}

/* What failed: the event says more than the reason. */
static void put_failed(FILE *out, const struct change *c)
{
    const struct pliant_event *ev = c->v->event;

    if (ev->kind == PLIANT_EV_TASK_FAILED) {
        fprintf(out, "%s/%" PRIu32 " failed",
                pliant_job_vertex_name(c->v->job, ev->failure.task.vertex),
                ev->failure.task.subtask);
        put_cause(out, c);
    } else if (ev->kind == PLIANT_EV_NODE_LOST) {
        put_node(out, c);
        fputs(" lost", out);
        put_lost(out, c);
    } else if (ev->kind == PLIANT_EV_GLOBAL_FAILURE) {
        fputs("global failure", out);
        put_cause(out, c);
    } else {
        fputs(sentence_of_cause((enum pliant_reason)c->a->flag[2]), out);
    }
}

static bool same(const uint32_t *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

/* "4 (src 4, map 2)", or "4" where all vertices have the same. */
static void put_runs(FILE *out, const struct change *c)
{
    const struct view *v = c->v;
    uint32_t n = v->n_vertices;

    fprintf(out, "%" PRIu32, view_widest(v->parallelism, n));
    if (same(v->parallelism, n))
        return;
    for (uint32_t i = 0; i < n && i < VERTICES_SHOWN_MAX; i++)
        fprintf(out, "%s%s %" PRIu32, i == 0 ? " (" : ", ",
                pliant_job_vertex_name(v->job, (pliant_vertex_id){i + 1}), v->parallelism[i]);
    fputs(n > VERTICES_SHOWN_MAX ? ", ...)" : ")", out);
}

static void put_restore(FILE *out, const struct change *c)
{
    if (c->v->counts.checkpoint)
        fprintf(out, ", from checkpoint %" PRIu64, c->v->counts.checkpoint);
}

/* The vertices whose parallelism changes, one by one: "src 2 -> 4, map 3 -> 2". */
static void put_moves(FILE *out, const struct view *v)
{
    uint32_t shown = 0;

    for (uint32_t i = 0; i < v->n_vertices; i++) {
        if (v->parallelism[i] == v->aim[i])
            continue;
        if (shown == VERTICES_SHOWN_MAX) {
            fputs(", ...", out);
            return;
        }
        fprintf(out, "%s%s %" PRIu32 " -> %" PRIu32, shown++ ? ", " : "",
                pliant_job_vertex_name(v->job, (pliant_vertex_id){i + 1}), v->parallelism[i],
                v->aim[i]);
    }
}

/* From the parallelism that ran to the one aimed at. */
static void put_move(FILE *out, const struct change *c)
{
    const struct view *v = c->v;
    uint32_t n = v->n_vertices;

    if (!v->has_aim)
        fputs("stops", out);
    else if (memcmp(v->parallelism, v->aim, n * sizeof *v->aim) == 0)
        fprintf(out, "moves with %" PRIu32, view_widest(v->aim, n));
    else if (same(v->parallelism, n) && same(v->aim, n))
        fprintf(out, "%" PRIu32 " -> %" PRIu32, v->parallelism[0], v->aim[0]);
    else
        put_moves(out, v);
}

/* clang-format off */
static const struct word {
    const char *name;
    void (*put)(FILE *out, const struct change *c);
} words[] = {
    {"slots", put_slots}, {"wanted", put_wanted}, {"since", put_since},
    {"checkpoint", put_checkpoint}, {"backoff", put_backoff}, {"node", put_node},
    {"lost", put_lost}, {"cause", put_cause}, {"failed", put_failed},
    {"runs", put_runs}, {"restore", put_restore}, {"move", put_move},
};
/* clang-format on */

static void put_word(FILE *out, const struct change *c, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == n && memcmp(words[i].name, name, n) == 0)
            words[i].put(out, c);
}

void sentence_of_change(FILE *out, const struct view *v, const struct pliant_action *a)
{
    struct change c = {v, a};
    const char *at = template_of((enum pliant_reason)a->flag[2]);
    size_t n;

    if (a->flag[0] == PLIANT_FAILING || a->flag[0] == PLIANT_CANCELING)
        at = template_of(PLIANT_REASON_ALL_CANCELED); /* the reason stands at its entry */

    while (*at) {
        n = strcspn(at, "{");
        fwrite(at, 1, n, out);
        at += n;
        if (*at == '{') {
            n = strcspn(++at, "}");
            put_word(out, &c, at, n);
            at += n + 1;
        }
    }
    if (a->flag[1] == PLIANT_FINISHED)
        fprintf(out, "; the job is %s", pliant_job_status_name(v->status));
}

const char *sentence_of_cause(enum pliant_reason reason)
{
    static const char *const causes[PLIANT_REASONS] = {
        [PLIANT_REASON_RESCALE] = "rescale",
        [PLIANT_REASON_DRAIN] = "drain",
        [PLIANT_REASON_RECLAIM] = "slots reclaimed",
        [PLIANT_REASON_TASK_FAILED] = "task failure",
        [PLIANT_REASON_NODE_LOST] = "node loss",
        [PLIANT_REASON_DRAINING_NODE_LOST] = "loss of a draining node",
        [PLIANT_REASON_GLOBAL_FAILURE] = "global failure",
        [PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES] = "failed checkpoints",
        [PLIANT_REASON_PREEMPTED] = "preemption",
        [PLIANT_REASON_PORT_IN_USE] = "port in use",
    };
    return causes[reason] ? causes[reason] : "failure";
}

void sentence_of_refusal(FILE *out, const struct view *v, const struct pliant_action *a)
{
    static const char *const refusals[PLIANT_REASONS] = {
        [PLIANT_REASON_NOT_EXECUTING] = "the job is not executing",
        [PLIANT_REASON_ALREADY_STARTED] = "the job was started before",
        [PLIANT_REASON_CHECKPOINTING_OFF] = "checkpointing is off",
        [PLIANT_REASON_NO_SAVEPOINT_DIR] = "no directory for savepoints is known",
        [PLIANT_REASON_CHECKPOINT_PENDING] = "a checkpoint is under way",
        [PLIANT_REASON_TASKS_NOT_RUNNING] = "not all tasks are running",
        [PLIANT_REASON_REACTIVE_MODE] = "reactive mode takes all slots there are",
        [PLIANT_REASON_JOB_ENDED] = "the job has ended",
        [PLIANT_REASON_UNKNOWN_VERTEX] = "it names a vertex that the job does not have",
        [PLIANT_REASON_VERTEX_MISSING] = "it does not name every vertex",
        [PLIANT_REASON_BOUND_BELOW_ONE] = "a bound is below 1",
        [PLIANT_REASON_MIN_ABOVE_MAX] = "the lower bound is above the upper one",
        [PLIANT_REASON_ABOVE_MAX_PARALLELISM] = "a bound is above the vertex's maximum",
        [PLIANT_REASON_NAMED_TWICE] = "it names a vertex twice",
    };
    enum pliant_reason reason = (enum pliant_reason)a->flag[0];

    fprintf(out, "%s: %s", pliant_event_name(v->event->kind),
            refusals[reason] ? refusals[reason] : pliant_reason_name(reason));
    if (a->refused.vertex.v)
        fprintf(out, " (%s)", pliant_job_vertex_name(v->job, a->refused.vertex));
}

void sentence_slot_seconds(FILE *out, int64_t slot_ms)
{
    if (slot_ms >= 10000)
        fprintf(out, "%" PRId64, slot_ms / 1000);
    else
        fprintf(out, "%g", (double)slot_ms / 1000);
}

void sentence_of_judgement(FILE *out, const struct pliant_action *a)
{
    static const char *const follows[] = {
        [PLIANT_JUDGED_NOT] = "nothing",
        [PLIANT_JUDGED_GAIN] = "now",
        [PLIANT_JUDGED_CHECKPOINT] = "after a checkpoint",
        [PLIANT_JUDGED_REPORT] = "after the next report",
        [PLIANT_JUDGED_SETTLES] = "once no more slots arrive",
        [PLIANT_JUDGED_STARTING] = "not while the tasks start",
        [PLIANT_JUDGED_COST] = "not yet",
    };

    fprintf(out, "%" PRIu32 " -> %" PRIu32 " would bring ", a->judged.from, a->judged.to);
    sentence_slot_seconds(out, a->judged.gain);
    fputs(" slot-seconds and cost ", out);
    sentence_slot_seconds(out, a->judged.cost);
    fprintf(out, ": %s", follows[a->flag[0]]);
}
