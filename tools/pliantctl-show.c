/* pliantctl-show.c - the commands that show what there is */
#include <inttypes.h>
#include <string.h>

#include "pliantctl.h"

/* Ask, then print the reply as it is, or let `show` do it. */
static enum exit_code show(struct ctl *c, enum message_type type,
                           enum exit_code (*text)(struct ctl *c))
{
    enum exit_code code = ctl_call(c, type);

    if (code != DONE)
        return code;
    return c->given[CTL_JSON] ? ctl_print_reply(c) : text(c);
}

static enum exit_code show_of_job(struct ctl *c, enum message_type type,
                                  enum exit_code (*text)(struct ctl *c))
{
    ctl_request_of(c, "job");
    return show(c, type, text);
}

static enum exit_code nothing(const char *sentence)
{
    printf("%s\n", sentence);
    return DONE;
}

#define COLUMNS(heads) (sizeof(heads) / sizeof *(heads))

/* ---- jobs ------------------------------------------------------------------------------------ */

static enum exit_code list(struct ctl *c)
{
    static const char *const heads[] = {"id",     "name",    "status",    "state",
                                        ">slots", ">wanted", "submitted", "ended"};
    const struct doc *job = ctl_first(c->reply.root, "jobs");
    char time[CTL_TIME_TEXT];
    struct ctl_table t;

    if (!job)
        return nothing(c->given[CTL_ALL] ? "no jobs" : "no jobs (list --all shows ended ones)");
    ctl_table_start(&t, heads, COLUMNS(heads));
    for (; job; job = job->next) {
        ctl_cell(&t, "%s", ctl_text(job, "job_id"));
        ctl_cell(&t, "%s", ctl_text(job, "name"));
        ctl_cell(&t, "%s", ctl_text(job, "job_status"));
        ctl_cell(&t, "%s", ctl_text(job, "state"));
        ctl_cell(&t, "%s", ctl_text(job, "slots_used"));
        ctl_cell(&t, "%s", ctl_text(job, "desired"));
        ctl_cell(&t, "%s", ctl_clock(time, ctl_int(job, "submitted_unix_ms")));
        ctl_cell(&t, "%s", ctl_clock(time, ctl_int(job, "ended_unix_ms")));
    }
    return ctl_table_end(&t, stdout);
}

enum exit_code ctl_list(struct ctl *c)
{
    json_bool(ctl_request(c), "ended", c->given[CTL_ALL]);
    return show(c, MESSAGE_LIST, list);
}

/* ---- one job --------------------------------------------------------------------------------- */

static void print_coloured(const char *state)
{
    bool on = ctl_colourful();

    fputs(ctl_colour(ctl_colour_of(state), on), stdout);
    ctl_put(stdout, state);
    fputs(ctl_colour(CTL_PLAIN, on), stdout);
}

/* "next", as in "next: rescale in 12 s: 4 slots since ...". */
void ctl_next_words(FILE *out, const struct doc *next, int64_t elapsed_ms)
{
    char span[CTL_TIME_TEXT];
    int64_t left_ms;

    if (!next || next->kind != DOC_MAP) {
        fputs("nothing", out);
        return;
    }
    ctl_put(out, *ctl_text(next, "decision") ? ctl_text(next, "decision") : "nothing is due");
    if (ctl_has(next, "at_ms")) {
        left_ms = ctl_int(next, "at_ms") - elapsed_ms;
        fprintf(out, " in %s", ctl_span(span, left_ms > 0 ? left_ms : 0));
    }
    if (*ctl_text(next, "why")) {
        fputs(": ", out);
        ctl_put(out, ctl_text(next, "why"));
    }
}

/* Slow nodes, on which nothing new starts for a time. */
static void print_blocked(const struct doc *list)
{
    const char *label = "  blocked      ";
    char text[CTL_TIME_TEXT];

    for (const struct doc *d = list ? list->child : NULL; d; d = d->next) {
        fputs(label, stdout);
        ctl_put(stdout, ctl_text(d, "node"));
        printf(" until %s", ctl_clock(text, ctl_int(d, "until_unix_ms")));
        label = d->next ? ", " : "\n";
    }
    if (list && list->child)
        fputs(label, stdout);
}

static void print_head(const struct doc *job)
{
    const struct doc *slots = doc_get(job, "slots"), *checkpoint = doc_get(job, "checkpoint");
    char text[CTL_TIME_TEXT];

    printf("Job ");
    ctl_put(stdout, ctl_text(job, "name"));
    printf(" (%s)\n  state        ", ctl_text(job, "job_id"));
    print_coloured(ctl_text(job, "state"));
    printf(", ");
    print_coloured(ctl_text(job, "job_status"));
    printf("\n  submitted    %s\n", ctl_clock(text, ctl_int(job, "submitted_unix_ms")));
    if (slots)
        printf("  slots        %s used, %s offered\n", ctl_text(slots, "used"),
               ctl_text(slots, "offered"));
    print_blocked(doc_get(job, "blocked"));
    printf("  restarts     %s, rescales %s\n", ctl_text(job, "restarts"),
           ctl_text(job, "rescales"));
    printf("  checkpoint   ");
    if (checkpoint && checkpoint->kind == DOC_MAP)
        printf("%s, %s ago\n", ctl_text(checkpoint, "id"),
               ctl_span(text, ctl_int(checkpoint, "age_ms")));
    else
        printf("none\n");
    printf("  next         ");
    ctl_next_words(stdout, doc_get(job, "next"), 0);
    printf("\n\n");
}

static enum exit_code print_vertices(const struct doc *job)
{
    static const char *const heads[] = {"vertex", ">parallelism", ">wanted", ">bounds"};
    struct ctl_table t;

    ctl_table_start(&t, heads, COLUMNS(heads));
    for (const struct doc *v = ctl_first(job, "vertices"); v; v = v->next) {
        const struct doc *min = ctl_first(v, "bounds"), *max = min ? min->next : NULL;

        ctl_cell(&t, "%s", v->key);
        ctl_cell(&t, "%s", ctl_is_undecided(job, v) ? "not decided" : ctl_text(v, "parallelism"));
        ctl_cell(&t, "%s", ctl_text(v, "desired"));
        ctl_cell(&t, "%s..%s", min ? min->text : "", max ? max->text : "");
    }
    return ctl_table_end(&t, stdout);
}

static enum exit_code print_tasks(const struct doc *job)
{
    static const char *const heads[] = {"task", ">attempt", "node", ">process", "state"};
    struct ctl_table t;

    if (!ctl_first(job, "tasks"))
        return DONE;
    fputc('\n', stdout);
    ctl_table_start(&t, heads, COLUMNS(heads));
    for (const struct doc *task = ctl_first(job, "tasks"); task; task = task->next) {
        ctl_cell(&t, "%s/%s", ctl_text(task, "vertex"), ctl_text(task, "subtask"));
        ctl_cell(&t, "%s", ctl_text(task, "attempt"));
        ctl_cell(&t, "%s", ctl_text(task, "node"));
        ctl_cell(&t, "%s", ctl_text(task, "pid"));
        ctl_cell(&t, "%s", ctl_text(task, "state"));
    }
    return ctl_table_end(&t, stdout);
}

static enum exit_code status(struct ctl *c)
{
    enum exit_code code;

    print_head(c->reply.root);
    code = print_vertices(c->reply.root);
    return code == DONE ? print_tasks(c->reply.root) : code;
}

enum exit_code ctl_status(struct ctl *c)
{
    return show_of_job(c, MESSAGE_STATUS, status);
}

static enum exit_code tasks(struct ctl *c)
{
    static const char *const heads[] = {"task",  ">attempt", "node",    ">slot", ">process",
                                        "state", "since",    ">memory", ">CPU"};
    const struct doc *task = ctl_first(c->reply.root, "tasks");
    char text[CTL_TIME_TEXT];
    struct ctl_table t;

    if (!task)
        return nothing("no tasks");
    ctl_table_start(&t, heads, COLUMNS(heads));
    for (; task; task = task->next) {
        ctl_cell(&t, "%s/%s", ctl_text(task, "vertex"), ctl_text(task, "subtask"));
        ctl_cell(&t, "%s", ctl_text(task, "attempt"));
        ctl_cell(&t, "%s", ctl_text(task, "node"));
        ctl_cell(&t, "%s", ctl_text(task, "slot"));
        ctl_cell(&t, "%s", ctl_text(task, "pid"));
        ctl_cell(&t, "%s", ctl_text(task, "state"));
        ctl_cell(&t, "%s", ctl_clock(text, ctl_int(task, "since_unix_ms")));
        ctl_cell(&t, "%s",
                 ctl_int(task, "rss_bytes") ? ctl_bytes(text, ctl_int(task, "rss_bytes")) : "");
        ctl_cell(&t, "%s",
                 ctl_int(task, "rss_bytes") ? ctl_span(text, ctl_int(task, "cpu_ms")) : "");
    }
    return ctl_table_end(&t, stdout);
}

enum exit_code ctl_tasks(struct ctl *c)
{
    return show_of_job(c, MESSAGE_TASKS_OF, tasks);
}

/* ---- histories ------------------------------------------------------------------------------- */

/* "map 2 > 4 (wants 8), sink 1". */
static void print_moves(const struct doc *rescale)
{
    const struct doc *v = ctl_first(rescale, "vertices");

    for (; v; v = v->next) {
        int64_t pre = ctl_int(v, "pre"), post = ctl_int(v, "post"), want = ctl_int(v, "desired");

        ctl_put(stdout, v->key);
        if (post == 0 || post == pre)
            printf(" %" PRId64, pre);
        else if (pre == 0)
            printf(" %" PRId64, post);
        else
            printf(" %" PRId64 " > %" PRId64, pre, post);
        if (want != (post ? post : pre))
            printf(" (wants %" PRId64 ")", want);
        fputs(v->next ? ", " : "", stdout);
    }
}

static void print_rescale(const struct doc *rescale)
{
    int64_t began = ctl_int(rescale, "started_unix_ms"), ended = ctl_int(rescale, "ended_unix_ms");
    const struct doc *judged = doc_get(rescale, "judged");
    char text[CTL_TIME_TEXT];

    printf("%s  %s: ", ctl_clock(text, began), ctl_trigger_words(ctl_text(rescale, "trigger")));
    print_moves(rescale);
    printf("\n    %s", ctl_end_words(ctl_text(rescale, "end")));
    if (ended)
        printf(" after %s", ctl_span(text, ended - began));
    for (const struct doc *s = ctl_first(rescale, "spans"); s; s = s->next) {
        int64_t enter = ctl_int(s, "enter_unix_ms"), leave = ctl_int(s, "leave_unix_ms");

        printf("%s%s", s == ctl_first(rescale, "spans") ? ": " : ", ", ctl_text(s, "state"));
        if (enter > 0 && leave > enter)
            printf(" %s", ctl_span(text, leave - enter));
    }
    fputc('\n', stdout);
    if (judged && judged->kind == DOC_MAP) {
        fputs("    ", stdout);
        ctl_judgement_words(stdout, judged);
        fputc('\n', stdout);
    }
}

static enum exit_code rescales(struct ctl *c)
{
    const struct doc *rescale = ctl_first(c->reply.root, "rescales");

    if (!rescale)
        return nothing("no rescales");
    for (; rescale; rescale = rescale->next)
        print_rescale(rescale);
    return DONE;
}

enum exit_code ctl_rescales(struct ctl *c)
{
    return show_of_job(c, MESSAGE_RESCALES, rescales);
}

/* Of the option pliant.failure-labels. */
static void print_labels(const struct doc *item)
{
    const struct doc *label = ctl_first(item, "labels");

    if (!label)
        return;
    for (const char *before = " ["; label; label = label->next, before = ", ") {
        fputs(before, stdout);
        ctl_put(stdout, label->key);
        putchar('=');
        ctl_put(stdout, label->text);
    }
    putchar(']');
}

static void print_failure_item(const struct doc *item, bool root)
{
    char text[CTL_TIME_TEXT];

    printf("%s%s  %s", root ? "" : "    ", ctl_clock(text, ctl_int(item, "at_unix_ms")),
           ctl_text(item, "reason"));
    if (*ctl_text(item, "vertex")) {
        fputs(" ", stdout);
        ctl_put(stdout, ctl_text(item, "vertex"));
        printf("/%s", ctl_text(item, "subtask"));
        if (ctl_has(item, "attempt"))
            printf(" (attempt %s)", ctl_text(item, "attempt"));
    }
    if (*ctl_text(item, "node")) {
        fputs(" on ", stdout);
        ctl_put(stdout, ctl_text(item, "node"));
    }
    if (*ctl_text(item, "cause")) {
        fputs(": ", stdout);
        ctl_put(stdout, ctl_text(item, "cause"));
    }
    if (ctl_has(item, "recoverable") && !ctl_truth(item, "recoverable"))
        fputs(" [not recoverable]", stdout);
    print_labels(item);
    putchar('\n');
}

static enum exit_code failures(struct ctl *c)
{
    const struct doc *failure = ctl_first(c->reply.root, "failures");

    if (!failure)
        return nothing("no failures");
    for (; failure; failure = failure->next) {
        const struct doc *root = ctl_first(failure, "items");

        for (const struct doc *item = root; item; item = item->next)
            print_failure_item(item, item == root);
        if (ctl_int(failure, "more") > 0)
            printf("    and %s more\n", ctl_text(failure, "more"));
    }
    return DONE;
}

enum exit_code ctl_failures(struct ctl *c)
{
    return show_of_job(c, MESSAGE_FAILURES, failures);
}

static enum exit_code checkpoints(struct ctl *c)
{
    static const char *const heads[] = {">id",   "kind",  "status", "triggered",
                                        ">took", ">size", "path"};
    const struct doc *one = ctl_first(c->reply.root, "checkpoints");
    char text[CTL_TIME_TEXT];
    struct ctl_table t;

    if (!one)
        return nothing("no checkpoints");
    ctl_table_start(&t, heads, COLUMNS(heads));
    for (; one; one = one->next) {
        int64_t began = ctl_int(one, "triggered_unix_ms"), ended = ctl_int(one, "ended_unix_ms");

        ctl_cell(&t, "%s", ctl_text(one, "id"));
        ctl_cell(&t, "%s", ctl_text(one, "kind"));
        ctl_cell(&t, "%s", ctl_text(one, "status"));
        ctl_cell(&t, "%s", ctl_clock(text, began));
        ctl_cell(&t, "%s", ended ? ctl_span(text, ended - began) : "");
        ctl_cell(&t, "%s", ctl_has(one, "bytes") ? ctl_bytes(text, ctl_int(one, "bytes")) : "");
        ctl_cell(&t, "%s",
                 *ctl_text(one, "cause") ? ctl_text(one, "cause") : ctl_text(one, "path"));
    }
    return ctl_table_end(&t, stdout);
}

enum exit_code ctl_checkpoints(struct ctl *c)
{
    return show_of_job(c, MESSAGE_CHECKPOINTS, checkpoints);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* "zone a, domain rack1, gpu=yes": what is said of a node beyond its slots. */
static const char *node_notes(const struct doc *node, char *buf, size_t size)
{
    const struct doc *drain = doc_get(node, "drain");
    size_t n = 0;
    char time[CTL_TIME_TEXT];

    buf[0] = '\0';
#define NOTE(...) (n < size ? n += (size_t)snprintf(buf + n, size - n, __VA_ARGS__) : n)
    if (drain && drain->kind == DOC_MAP) {
        NOTE("drains (%s)", ctl_text(drain, "reason"));
        if (ctl_has(drain, "deadline_unix_ms"))
            NOTE(" until %s", ctl_clock(time, ctl_int(drain, "deadline_unix_ms")));
    }
    if (*ctl_text(node, "zone"))
        NOTE("%szone %s", n ? ", " : "", ctl_text(node, "zone"));
    if (*ctl_text(node, "domain"))
        NOTE("%sdomain %s", n ? ", " : "", ctl_text(node, "domain"));
    for (const struct doc *label = ctl_first(node, "labels"); label; label = label->next)
        NOTE("%s%s=%s", n ? ", " : "", label->key, label->text ? label->text : "");
#undef NOTE
    return buf;
}

static enum exit_code nodes(struct ctl *c)
{
    static const char *const heads[] = {"node", "state", ">slots", ">used", "address", "heard", ""};
    const struct doc *node = ctl_first(c->reply.root, "nodes");
    char text[CTL_TIME_TEXT], notes[1024];
    struct ctl_table t;

    if (!node)
        return nothing("no nodes");
    ctl_table_start(&t, heads, COLUMNS(heads));
    for (; node; node = node->next) {
        ctl_cell(&t, "%s", ctl_text(node, "node"));
        ctl_cell(&t, "%s", ctl_text(node, "state"));
        ctl_cell(&t, "%s", ctl_text(node, "slots"));
        ctl_cell(&t, "%s", ctl_text(node, "used"));
        ctl_cell(&t, "%s", ctl_text(node, "address"));
        ctl_cell(&t, "%s ago", ctl_span(text, ctl_int(node, "last_seen_ms")));
        ctl_cell(&t, "%s", node_notes(node, notes, sizeof notes));
    }
    return ctl_table_end(&t, stdout);
}

enum exit_code ctl_nodes(struct ctl *c)
{
    ctl_request(c);
    return show(c, MESSAGE_NODES, nodes);
}
