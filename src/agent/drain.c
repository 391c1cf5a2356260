/* drain.c - notice that the node will go, and the end of the agent; see agent.h
 *
 * SIGTERM drains the own node, so that the scheduler can move its tasks while they still run
 * [W-PRE-21]; the agent ends when the last of them is gone. Near the deadline it stops what is left
 * by itself, and at the deadline it kills: nothing outlives it.
 */
#include "agent/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rpc/log.h"

#define LAST_PART 3  /* of the drain is left for stopping, */
#define LAST_MS 5000 /* at most so much */
#define NO_MORE_WAITING_MS (KEEPER_SWEEP_MS + 2000)

static void write_body(const struct agent *a, struct json *j)
{
    if (a->leaving.deadline_unix_ms > 0)
        json_int(j, "deadline_unix_ms", a->leaving.deadline_unix_ms);
    else
        json_null(j, "deadline_unix_ms");
    json_string(j, "reason", "preemption");
    json_string(j, "text", a->leaving.why);
}

void drain_write(const struct agent *a, struct json *j, const char *key)
{
    if (!a->leaving.draining) {
        json_null(j, key);
        return;
    }
    json_begin(j, key, '{');
    write_body(a, j);
    json_end(j, '}');
}

void drain_begin(struct agent *a, int64_t deadline_unix_ms, const char *why)
{
    struct leaving *l = &a->leaving;
    struct json *j;

    if (l->draining && (deadline_unix_ms == 0 ||
                        (l->deadline_unix_ms > 0 && l->deadline_unix_ms <= deadline_unix_ms)))
        return; /* known already, and no earlier */
    l->draining = true;
    l->deadline_unix_ms = deadline_unix_ms;
    snprintf(l->why, sizeof l->why, "%s", why);
    say(SAY_WARN, "msg=\"the node will go\" why=%s deadline_unix_ms=%" PRId64, log_quoted(why).v,
        deadline_unix_ms);
    j = session_body(a);
    write_body(a, j);
    json_end(j, '}');
    session_send(a, MESSAGE_DRAIN, j);
}

void drain_withdraw(struct agent *a)
{
    struct json *j;

    if (!a->leaving.draining || a->leaving.ends)
        return;
    a->leaving.draining = false;
    a->leaving.deadline_unix_ms = 0;
    *a->leaving.why = '\0';
    say(SAY_INFO, "msg=\"the node will stay\"");
    j = session_body(a);
    json_end(j, '}');
    session_send(a, MESSAGE_DRAIN_WITHDRAWN, j);
}

/* ---- signals
 * ------------------------------------------------------------------------------------------- */

static void hurry(struct agent *a)
{
    struct leaving *l = &a->leaving;

    l->ends = true;
    l->stop_at_ms = PLIANT_NEVER;
    l->end_at_ms = a->now_ms + NO_MORE_WAITING_MS;
    l->hurry = true;
    tasks_stop_all(a, 0, 0);
}

static void leave(struct agent *a, const char *why)
{
    struct leaving *l = &a->leaving;
    int64_t timeout_ms = a->opts->drain_timeout_ms, last_ms = timeout_ms / LAST_PART;

    l->ends = true;
    l->end_at_ms = instant_after(a->now_ms, timeout_ms);
    l->stop_at_ms = l->end_at_ms - (last_ms < LAST_MS ? last_ms : LAST_MS);
    drain_begin(a, unix_ms() + timeout_ms, why);
}

int signal_by_name(const char *name, size_t n)
{
    for (int s = 1; s < NSIG; s++) {
        const char *known = sigabbrev_np(s);

        if (known && strncmp(known, name, n) == 0 && known[n] == '\0')
            return s;
    }
    return 0;
}

static void forward(struct agent *a, int signal)
{
    struct keeper_message m = {.op = KEEPER_SIGNAL, .code = signal};

    keep_tell(a, &m, -1);
}

static void on_interrupt(struct agent *a)
{
    if (++a->leaving.interrupts > 1) {
        hurry(a);
        return;
    }
    if (tasks_living(a) > 0)
        forward(a, SIGINT);
    else
        leave(a, "interrupted");
}

/* [W-SIG-4] */
void drain_signal(struct agent *a, int signal)
{
    if (signal == SIGTERM && a->leaving.ends)
        hurry(a);
    else if (signal == SIGTERM)
        leave(a, "the agent was asked to end");
    else if (signal == SIGINT)
        on_interrupt(a);
    else if (signal == SIGHUP || signal == SIGQUIT || sigismember(&a->opts->forwarded, signal))
        forward(a, signal);
}

/* ---- deadlines
 * --------------------------------------------------------------------------------------------- */

void drain_expire(struct agent *a)
{
    struct leaving *l = &a->leaving;

    if (!l->ends)
        return;
    if (tasks_living(a) == 0) {
        agent_end(a, 0);
        return;
    }
    if (a->now_ms >= l->stop_at_ms) {
        tasks_stop_all(a, l->end_at_ms - l->stop_at_ms, l->deadline_unix_ms);
        l->stop_at_ms = PLIANT_NEVER;
    }
    if (a->now_ms < l->end_at_ms)
        return;
    if (!l->hurry) {
        hurry(a);
        return;
    }
    say(SAY_ERROR, "msg=\"tasks do not end\" tasks=%zu", tasks_living(a));
    agent_end(a, 1);
}

int64_t drain_next_deadline(const struct agent *a)
{
    if (!a->leaving.ends)
        return PLIANT_NEVER;
    return tasks_living(a) == 0 ? a->now_ms : sooner(a->leaving.stop_at_ms, a->leaving.end_at_ms);
}
