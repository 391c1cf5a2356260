/* pliantctl-events.c - what happened, in words
 *
 * Codes that the service knows and this program does not are shown as they are.
 */
#include <inttypes.h>
#include <string.h>

#include "pliantctl.h"
#include "sim/sentence.h"

struct words {
    const char *code, *words;
};

/* clang-format off */
static const struct words triggers[] = {
    {"INITIAL_SCHEDULE", "first start"},
    {"UPDATE_REQUIREMENT", "other bounds were asked for"},
    {"NEW_RESOURCE_AVAILABLE", "slots came"},
    {"RECOVERABLE_FAILOVER", "restart after a failure"},
    {"DRAIN", "a node is to go"},
    {"RECLAIM", "slots go to other jobs"},
};

static const struct words ends[] = {
    {"", "under way"},
    {"SUCCEEDED", "done"},
    {"EXCEPTION_OCCURRED", "broken off by a failure"},
    {"RESOURCE_REQUIREMENTS_UPDATED", "overtaken by other bounds"},
    {"NO_RESOURCES_OR_PARALLELISMS_CHANGE", "not done: it would have changed nothing"},
    {"JOB_FINISHED", "the job finished first"},
    {"JOB_FAILED", "the job failed first"},
    {"JOB_CANCELED", "the job was canceled first"},
    {"JOB_SUSPENDED", "the job was suspended first"},
};

static const struct words judgements[] = {
    {"gain", "worth it now"},
    {"checkpoint", "worth it after a checkpoint"},
    {"report", "worth it after the next report"},
    {"settles", "worth it once no more slots arrive"},
    {"starting", "not while the tasks start"},
    {"cost", "not worth it yet"},
};
/* clang-format on */

#define LOOK_UP(table, code) look_up(table, sizeof(table) / sizeof *(table), code)

static const char *look_up(const struct words *table, size_t n, const char *code)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].code, code) == 0)
            return table[i].words;
    return code;
}

const char *ctl_trigger_words(const char *trigger)
{
    return LOOK_UP(triggers, trigger);
}

const char *ctl_end_words(const char *end)
{
    return LOOK_UP(ends, end);
}

/* `code` of a judgement, and its numbers. */
static void put_judgement(FILE *out, const struct doc *judged, const char *code)
{
    fprintf(out, "%s > %s slots would bring ", ctl_text(judged, "from"), ctl_text(judged, "to"));
    sentence_slot_seconds(out, ctl_int(judged, "gain_slot_ms"));
    fputs(" slot-seconds and cost ", out);
    sentence_slot_seconds(out, ctl_int(judged, "cost_slot_ms"));
    fprintf(out, ": %s", LOOK_UP(judgements, code));
}

void ctl_judgement_words(FILE *out, const struct doc *judged)
{
    if (*ctl_text(judged, "text"))
        ctl_put(out, ctl_text(judged, "text"));
    else
        put_judgement(out, judged, ctl_text(judged, "judgement"));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* before TEXT after; nothing where there is no such member. */
static void put_member(FILE *out, const struct doc *ev, const char *before, const char *key,
                       const char *after)
{
    if (!*ctl_text(ev, key))
        return;
    fputs(before, out);
    ctl_put(out, ctl_text(ev, key));
    fputs(after, out);
}

static void put_task(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "", "vertex", "/");
    put_member(out, ev, "", "subtask", "");
    put_member(out, ev, " attempt ", "attempt", "");
    put_member(out, ev, " on ", "node", "");
}

static void put_job(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "", "change", "");
}

static void put_state(FILE *out, const struct doc *ev)
{
    const char *separator = "; runs ";

    put_member(out, ev, "", "from", " > ");
    put_member(out, ev, "", "to", "");
    put_member(out, ev, ": ", "reason", "");
    put_member(out, ev, ", ", "slots", " slots");
    for (const struct doc *v = ctl_first(ev, "vertices"); v; v = v->next) {
        if (v->number <= 0)
            continue;
        fputs(separator, out);
        ctl_put(out, v->key);
        fprintf(out, " %s", v->text);
        separator = ", ";
    }
}

static void put_status(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "", "from", " > ");
    put_member(out, ev, "", "to", "");
}

static void put_task_event(FILE *out, const struct doc *ev)
{
    fputs("task ", out);
    put_task(out, ev);
    put_member(out, ev, ": ", "state", "");
    put_member(out, ev, " (", "cause", ")");
}

static void put_rescale(FILE *out, const struct doc *ev)
{
    const char *change = ctl_text(ev, "change");

    fputs("rescale ", out);
    if (strcmp(change, "judged") == 0) {
        if (ctl_has(ev, "gain_slot_ms"))
            put_judgement(out, ev, ctl_text(ev, "text"));
        else
            ctl_put(out, ctl_text(ev, "text"));
        return;
    }
    ctl_put(out, change);
    if (*ctl_text(ev, "trigger"))
        fprintf(out, " (%s)", ctl_trigger_words(ctl_text(ev, "trigger")));
    if (*ctl_text(ev, "end"))
        fprintf(out, ": %s", ctl_end_words(ctl_text(ev, "end")));
}

static void put_failure(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "failure: ", "reason", " ");
    put_task(out, ev);
    put_member(out, ev, ": ", "cause", "");
}

static void put_checkpoint(FILE *out, const struct doc *ev)
{
    char text[CTL_TIME_TEXT];

    put_member(out, ev, "checkpoint ", "id", " ");
    put_member(out, ev, "", "status", "");
    if (ctl_has(ev, "duration_ms"))
        fprintf(out, " in %s", ctl_span(text, ctl_int(ev, "duration_ms")));
    if (ctl_int(ev, "bytes") > 0)
        fprintf(out, ", %s", ctl_bytes(text, ctl_int(ev, "bytes")));
}

static void put_savepoint(FILE *out, const struct doc *ev)
{
    fputs("savepoint", out);
    put_member(out, ev, " ", "path", "");
    put_member(out, ev, " failed: ", "cause", "");
}

static void put_node(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "node ", "node", " ");
    put_member(out, ev, "", "change", "");
    put_member(out, ev, ", ", "slots", " slots");
    put_member(out, ev, " (", "cause", ")");
}

static void put_decided(FILE *out, const struct doc *ev)
{
    char text[CTL_TIME_TEXT];

    put_member(out, ev, "", "vertex", "");
    put_member(out, ev, " gets parallelism ", "parallelism", "");
    fprintf(out, " for %s", ctl_bytes(text, ctl_int(ev, "bytes")));
}

static void put_blocked(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "node ", "node", " is slow: blocked for a time");
}

static void put_daemon(FILE *out, const struct doc *ev)
{
    put_member(out, ev, "pliantd: ", "change", "");
}

static const struct {
    const char *kind;
    void (*put)(FILE *out, const struct doc *ev);
} kinds[] = {
    {"job", put_job},
    {"state", put_state},
    {"status", put_status},
    {"task", put_task_event},
    {"rescale", put_rescale},
    {"failure", put_failure},
    {"checkpoint", put_checkpoint},
    {"savepoint", put_savepoint},
    {"node", put_node},
    {"decided", put_decided},
    {"blocked", put_blocked},
    {"daemon", put_daemon},
};

void ctl_event_line(FILE *out, const struct doc *event, const char *job_name)
{
    const char *kind = ctl_text(event, "kind");

    if (*job_name) {
        ctl_put(out, job_name);
        fputs("  ", out);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, kind) == 0) {
            kinds[i].put(out, event);
            return;
        }
    ctl_put(out, kind);
}
