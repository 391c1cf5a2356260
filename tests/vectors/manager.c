/* manager.c - vectors transition_manager: scripts around the real manager
 *
 * A script is replayed by a host of one of three modes: the bare manager, or what
 * WaitingForResources (check, wait timeout) or Executing (check, countdown of failed
 * checkpoints) add to it. Timers come before events, in the order of (due, made); those that
 * an event made due at once come before the next event. `expect_events_first` is the other
 * order, which is not ours.
 */
#include "vectors.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "transition/manager.h"

enum mode { MODE_MANAGER, MODE_WAITING, MODE_EXECUTING };

struct host {
    enum mode mode;
    struct clock clock;
    struct manager manager;
    struct deadline wait, check; /* of the host itself */
    struct outlook outlook;
    bool parallelism_changed;
    int64_t max_failures, countdown; /* failed checkpoints left; 0: not armed */
    bool closed;

    /* what happened, against `expect` */
    const cJSON *phase; /* the next one expected */
    int64_t left_at_ms;
    const char *left_by; /* NULL: not left */
    char *why;
    size_t size;
    bool differs;
};

static enum mode read_mode(const char *name)
{
    if (strcmp(name, "waiting") == 0)
        return MODE_WAITING;
    return strcmp(name, "executing") == 0 ? MODE_EXECUTING : MODE_MANAGER;
}

static struct outlook outlook(const struct host *h)
{
    return (struct outlook){
        .sufficient = h->outlook.sufficient && h->parallelism_changed,
        .desired = h->outlook.desired && h->parallelism_changed,
    };
}

static void set_outlook(struct host *h, const cJSON *set)
{
    h->outlook.sufficient = vectors_bool_or(set, "sufficient", h->outlook.sufficient);
    h->outlook.desired = vectors_bool_or(set, "desired", h->outlook.desired);
    h->parallelism_changed = vectors_bool_or(set, "parallelism_changed", h->parallelism_changed);
}

/* ---- what happened ------------------------------------------------------------------------ */

static void record_phase(struct host *h)
{
    const char *name = manager_phase_name(h->manager.phase);
    const cJSON *want = h->phase;

    if (h->differs)
        return;
    if (want && cJSON_GetArrayItem(want, 0)->valuedouble == (double)h->clock.now_ms &&
        strcmp(cJSON_GetArrayItem(want, 1)->valuestring, name) == 0) {
        h->phase = want->next;
        return;
    }
    h->differs = true;
    vectors_say(h->why, h->size, "%s at %" PRId64 ", expected %s", name, h->clock.now_ms,
                want ? cJSON_GetArrayItem(want, 1)->valuestring : "no other phase");
}

/* After each input: the phase may be another, the verdict may be to go. */
static void settle(struct host *h, enum manager_phase before, enum verdict verdict)
{
    if (verdict == VERDICT_GO)
        manager_go(&h->manager);
    if (h->manager.phase != before)
        record_phase(h);
    if (verdict == VERDICT_GO) {
        h->left_at_ms = h->clock.now_ms;
        h->left_by = "manager";
        h->closed = h->mode != MODE_MANAGER;
    }
}

/* ---- inputs ------------------------------------------------------------------------------- */

static void change(struct host *h)
{
    enum manager_phase before = h->manager.phase;

    manager_on_change(&h->manager, &h->clock, outlook(h));
    settle(h, before, VERDICT_STAY);
}

static void trigger(struct host *h)
{
    enum manager_phase before = h->manager.phase;

    settle(h, before, manager_on_trigger(&h->manager, &h->clock, outlook(h)));
}

static void check(struct host *h)
{
    change(h);
    trigger(h);
}

static void checkpoint_ended(struct host *h, bool completed)
{
    if (completed) {
        h->countdown = 0;
        trigger(h);
    } else if (h->countdown > 0 && --h->countdown == 0) {
        trigger(h);
    }
}

static void resources(struct host *h)
{
    if (h->mode == MODE_WAITING) {
        check(h);
        return;
    }
    change(h);
    if (h->countdown == 0)
        h->countdown = h->max_failures;
}

static void input(struct host *h, const char *what)
{
    if (strcmp(what, "change") == 0)
        change(h);
    else if (strcmp(what, "trigger") == 0)
        trigger(h);
    else if (strcmp(what, "check") == 0)
        check(h);
    else if (strcmp(what, "resources") == 0 || strcmp(what, "requirements") == 0)
        resources(h);
    else if (strcmp(what, "checkpoint_completed") == 0)
        checkpoint_ended(h, true);
    else if (strcmp(what, "checkpoint_failed") == 0)
        checkpoint_ended(h, false);
    else if (strcmp(what, "close") == 0)
        h->closed = true;
    else {
        h->differs = true;
        vectors_say(h->why, h->size, "unknown input %s", what);
    }
}

/* ---- timers ------------------------------------------------------------------------------- */

static struct deadline *first_due(struct host *h)
{
    struct deadline *all[] = {&h->manager.phase_end, &h->manager.evaluation, &h->wait, &h->check};
    struct deadline *first = all[0];

    for (size_t i = 1; i < sizeof all / sizeof all[0]; i++)
        if (deadline_before(all[i], first))
            first = all[i];
    return first;
}

static void on_deadline(struct host *h, struct deadline *due)
{
    enum manager_phase before = h->manager.phase;

    if (due == &h->wait) {
        deadline_clear(due);
        h->left_at_ms = h->clock.now_ms;
        h->left_by = "wait_timeout";
        h->closed = true;
    } else if (due == &h->check) {
        deadline_clear(due);
        check(h);
    } else {
        settle(h, before, manager_on_deadline(&h->manager, &h->clock, due, outlook(h)));
    }
}

static void run_timers(struct host *h, int64_t until_ms)
{
    while (!h->closed) {
        struct deadline *due = first_due(h);

        if (!deadline_armed(due) || due->at_ms > until_ms)
            return;
        assert(due->at_ms >= h->clock.now_ms);
        h->clock.now_ms = due->at_ms;
        on_deadline(h, due);
    }
}

/* ---- a script ----------------------------------------------------------------------------- */

static void start(struct host *h, const cJSON *config)
{
    struct manager_timing timing = {
        .cooldown_ms = vectors_int_or(config, "cooldown_ms", 0),
        .stabilization_ms = vectors_int(config, "stabilization_ms"),
        .max_trigger_delay_ms = vectors_int_or(config, "max_trigger_delay_ms", 0),
    };
    int64_t wait_ms = vectors_int_or(config, "resource_wait_ms", -1);

    h->max_failures = vectors_int_or(config, "max_checkpoint_failures", 0);
    h->manager = manager_start(timing, &h->clock);
    record_phase(h);
    if (wait_ms >= 0)
        deadline_arm(&h->wait, &h->clock, wait_ms);
    if (h->mode != MODE_MANAGER)
        deadline_arm(&h->check, &h->clock, 0);
}

static void replay(struct host *h, const cJSON *events)
{
    const cJSON *event;

    cJSON_ArrayForEach(event, events)
    {
        int64_t t = vectors_int(event, "t");

        run_timers(h, t);
        if (h->closed)
            return;
        h->clock.now_ms = t;
        if (vectors_find(event, "set"))
            set_outlook(h, vectors_find(event, "set"));
        else
            input(h, vectors_text(event, "do"));
    }
    run_timers(h, PLIANT_NEVER - 1);
}

static int compare(struct host *h, const cJSON *transition)
{
    const char *want = transition ? vectors_text(transition, "by") : "nobody";
    int64_t want_ms = transition ? vectors_int(transition, "t") : 0;

    if (h->differs)
        return 1;
    if (h->phase)
        return vectors_say(h->why, h->size, "%s did not come",
                           cJSON_GetArrayItem(h->phase, 1)->valuestring);
    if (strcmp(want, h->left_by ? h->left_by : "nobody") != 0 || h->left_at_ms != want_ms)
        return vectors_say(h->why, h->size, "left by %s at %" PRId64 ", expected %s at %" PRId64,
                           h->left_by ? h->left_by : "nobody", h->left_at_ms, want, want_ms);
    return 0;
}

int run_transition_manager(const cJSON *line, char *why, size_t size)
{
    const cJSON *expect = vectors_member(line, "expect");
    struct host h = {
        .mode = read_mode(vectors_text(line, "mode")),
        .wait = DEADLINE_NONE,
        .check = DEADLINE_NONE,
        .parallelism_changed = true,
        .phase = vectors_member(expect, "phases")->child,
        .why = why,
        .size = size,
    };

    set_outlook(&h, vectors_member(line, "initial"));
    start(&h, vectors_member(line, "config"));
    replay(&h, vectors_member(line, "events"));
    return compare(&h, vectors_find(expect, "transition"));
}
