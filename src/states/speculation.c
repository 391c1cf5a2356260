/* speculation.c - see speculation.h */
#include "states/speculation.h"

#include "failover/slow_tasks.h"
#include "states/sched.h"
#include "states/seating.h"

/* ---- life ------------------------------------------------------------------------------- */

void speculation_init(struct speculation *x, const struct pliant_alloc *a)
{
    *x = (struct speculation){
        .alloc = a, .check = DEADLINE_NONE, .unblock = DEADLINE_NONE, .give_up = DEADLINE_NONE};
}

void speculation_free(struct speculation *x)
{
    vec_free(x->alloc, &x->line);
}

/* All tasks read what is finished. Not with checkpoints: a second attempt would restore what the
 * first one goes on from. */
bool speculation_applies(const struct pliant_sched *s)
{
    if (!s->cfg.speculative.enabled || s->way->rescales || checkpointing_on(s))
        return false;
    for (size_t e = 0; e < s->job->n_edges; e++)
        if (s->job->edges[e].exchange == PLIANT_PIPELINED)
            return false;
    return true;
}

static void arm_check(struct pliant_sched *s)
{
    if (s->graph.timed)
        deadline_arm(&s->speculation.check, &s->clock,
                     instant_after(s->clock.now_ms, s->cfg.slow_tasks.check_interval_ms));
}

void speculation_enter(struct pliant_sched *s)
{
    arm_check(s);
}

void speculation_leave(struct pliant_sched *s)
{
    struct speculation *x = &s->speculation;

    x->line.n = x->served = 0;
    x->n_slow = 0;
    x->local = false;
    deadline_clear(&x->check);
    deadline_clear(&x->give_up);
}

size_t speculation_deadlines(struct speculation *x, struct deadline *list[])
{
    list[0] = &x->check;
    list[1] = &x->unblock;
    list[2] = &x->give_up;
    return 3;
}

bool speculation_owns(const struct speculation *x, const struct deadline *due)
{
    return due == &x->check || due == &x->unblock || due == &x->give_up;
}

static struct task *task_at(const struct pliant_sched *s, uint32_t v, uint32_t i)
{
    return &s->graph.vertices[v].tasks[i];
}

static bool restarts(const struct pliant_sched *s, uint32_t v, uint32_t i)
{
    return regional_owner(&s->regional, regional_flat(&s->regional, v, i)) != 0;
}

/* Another attempt may stand for the task now: others of the unit may go into its slot, and the
 * result is where it is. */
void speculation_rank(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    if (!execution_rank(&s->graph, v, i))
        return;
    line_home(s, s->job->group_of[v], i);
    scheduling_stands(s, v, i);
}

/* ---- slow tasks ------------------------------------------------------------------------- */

static int64_t time_taken(const struct pliant_sched *s, uint32_t v, uint32_t i,
                          const struct task *attempt)
{
    int64_t time = *execution_time(&s->graph, v, i, attempt);

    if (attempt->state == PLIANT_TASK_FINISHED)
        return time;
    return time == PLIANT_UNSET ? 0 : s->clock.now_ms - time;
}

static size_t count_attempts(const struct pliant_sched *s, uint32_t v, uint32_t *ret_finished)
{
    size_t n = 0;

    *ret_finished = 0;
    for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
        *ret_finished += task_at(s, v, i)->state == PLIANT_TASK_FINISHED;
        for (const struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a))
            n++;
    }
    return n;
}

static void list_attempts(const struct pliant_sched *s, uint32_t v, struct slow_attempt *list)
{
    for (uint32_t i = 0; i < s->graph.parallelism[v]; i++)
        for (const struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a))
            *list++ = (struct slow_attempt){.state = a->state,
                                            .time_ms = time_taken(s, v, i, a),
                                            .bytes = batching_input_bytes(&s->batching, v, i)};
}

/* Told when it begins; while an attempt stays slow the end moves on [6.2]. */
static void block_node(struct pliant_sched *s, const struct task *attempt)
{
    struct pool_node *node = pool_node(&s->pool, s->pool.slots.v[attempt->slot].node);
    int64_t until_ms = instant_after(s->clock.now_ms, s->cfg.speculative.block_ms);
    bool before = node->blocked_until_ms != PLIANT_NEVER;
    struct pliant_action *act;

    if (s->cfg.speculative.block_ms == 0)
        return;
    pool_block(&s->pool, node, s->clock.now_ms, until_ms);
    if (!deadline_armed(&s->speculation.unblock))
        deadline_arm(&s->speculation.unblock, &s->clock, node->blocked_until_ms);
    if (before)
        return;
    act = emit(s, PLIANT_ACT_BLOCK_NODE);
    act->blocked.node = node_id(node);
    act->blocked.until_at_ms = node->blocked_until_ms;
}

static void speculate(struct pliant_sched *s, uint32_t v, uint32_t i, int64_t n)
{
    for (; n > 0 && !s->no_memory; n--) {
        struct pliant_task *place = vec_push(s->alloc, &s->speculation.line);

        if (!place || execution_speculate(&s->graph, v, i, place) < 0)
            sched_no_memory(s);
    }
}

/* slow[k] says it of the k-th attempt of the vertex. */
static void react(struct pliant_sched *s, uint32_t v, const bool *slow)
{
    for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
        int64_t n = 0;
        bool any = false;

        for (const struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a), n++) {
            if (*slow)
                block_node(s, a);
            any |= *slow++;
        }
        s->speculation.n_slow += any;
        if (any && !s->job->vertices[v].no_concurrent_attempts)
            speculate(s, v, i, s->cfg.speculative.max_attempts - n);
    }
}

static void look_at(struct pliant_sched *s, uint32_t v)
{
    struct slow_limits limits = {.ratio = s->cfg.slow_tasks.ratio,
                                 .multiplier = s->cfg.slow_tasks.multiplier,
                                 .lower_bound_ms = s->cfg.slow_tasks.lower_bound_ms};
    uint32_t n_tasks = s->graph.parallelism[v], finished;
    size_t n = count_attempts(s, v, &finished);
    struct slow_attempt *attempts;
    bool *slow;

    if (!slow_tasks_comparable(&limits, n_tasks, finished))
        return;
    attempts = outbox_block(s, n, sizeof *attempts);
    slow = outbox_block(s, n, sizeof *slow);
    if (!attempts || !slow)
        return;
    list_attempts(s, v, attempts);
    if (slow_tasks_find(&limits, n_tasks, attempts, n, s->alloc, slow) < 0)
        sched_no_memory(s);
    else
        react(s, v, slow);
}

static void check(struct pliant_sched *s)
{
    s->speculation.n_slow = 0;
    for (uint32_t v = 0; v < s->job->n_vertices && !s->no_memory; v++)
        look_at(s, v);
    arm_check(s);
}

static void unblock(struct pliant_sched *s)
{
    int64_t next_ms = pool_unblock(&s->pool, s->clock.now_ms);

    deadline_clear(&s->speculation.unblock);
    if (next_ms != PLIANT_NEVER)
        deadline_arm(&s->speculation.unblock, &s->clock, next_ms);
}

/* ---- slots for more attempts ------------------------------------------------------------ */

/* Nobody has to confirm the end of an attempt that has no slot. */
static void drop(struct pliant_sched *s, struct task *waiting)
{
    execution_move(&s->graph, &s->pool, waiting, PLIANT_TASK_CANCELED, s->clock.now_ms);
}

/* Does it still wait, and would it find what it reads? */
static bool still_wanted(struct pliant_sched *s, struct pliant_task id)
{
    uint32_t v = id.vertex.v - 1;
    struct task *attempt = execution_current(&s->graph, id);

    if (!attempt || !attempt->rival || attempt->state != PLIANT_TASK_CREATED)
        return false;
    if (scheduling_can_read(s, v, id.subtask))
        return true;
    drop(s, attempt);
    speculation_rank(s, v, id.subtask);
    return false;
}

/* The next in line, at most `most`. */
static uint32_t next_in_line(struct pliant_sched *s, struct pliant_task *chosen, uint32_t most)
{
    struct speculation *x = &s->speculation;
    uint32_t n = 0;

    while (n < most && x->served < x->line.n) {
        struct pliant_task id = x->line.v[x->served++];

        if (still_wanted(s, id))
            chosen[n++] = id;
    }
    if (x->served == x->line.n)
        x->line.n = x->served = 0;
    return n;
}

static void start(struct pliant_sched *s, struct pliant_task id, uint32_t row)
{
    uint32_t v = id.vertex.v - 1;
    struct task *attempt = execution_current(&s->graph, id);

    execution_seat_rival(&s->graph, &s->pool, attempt, row);
    deploy_attempt(s, v, id.subtask, attempt);
    speculation_rank(s, v, id.subtask);
}

void speculation_serve(struct pliant_sched *s)
{
    struct speculation *x = &s->speculation;
    size_t waiting = x->line.n - x->served;
    uint32_t most = pool_n_open(&s->pool), n;
    struct pliant_task *chosen;
    const uint32_t *slots;

    if (waiting == 0 || most == 0 || s->no_memory)
        return;
    if (most > waiting)
        most = (uint32_t)waiting;
    chosen = outbox_block(s, most, sizeof *chosen);
    n = chosen ? next_in_line(s, chosen, most) : 0;
    slots = n > 0 ? seating_spread(s, n) : NULL;
    for (uint32_t k = 0; !s->no_memory && k < n; k++)
        start(s, chosen[k], slots ? slots[k] - 1 : s->pool.idle_first);
}

/* ---- the end of an attempt -------------------------------------------------------------- */

void speculation_note_end(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    if (s->graph.timed && task_at(s, v, i)->state == PLIANT_TASK_FINISHED)
        s->graph.vertices[v].times[i] = s->clock.now_ms - s->graph.vertices[v].times[i];
}

/* Those that were told to stop have until then to confirm it. */
static void bound_stop(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    int64_t give_up_ms = instant_after(s->clock.now_ms, s->cfg.cancellation_timeout_ms);
    struct task *a = task_at(s, v, i);

    if (s->cfg.cancellation_timeout_ms == 0 || s->state.id != PLIANT_EXECUTING)
        return;
    while ((a = execution_next(&s->graph, a))) {
        struct rival *rival = execution_rival(&s->graph, a);

        if (a->state != PLIANT_TASK_CANCELING || rival->give_up_at_ms != PLIANT_NEVER)
            continue;
        rival->give_up_at_ms = give_up_ms;
        if (!deadline_armed(&s->speculation.give_up))
            deadline_arm(&s->speculation.give_up, &s->clock, give_up_ms);
    }
}

/* It is the task's result, and nobody needs the others [6.3]. */
static void wins(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    speculation_rank(s, v, i);
    speculation_note_end(s, v, i);
    task_stop(s, v, i, false);
    bound_stop(s, v, i);
    s->way->task_down(s, v, i);
}

/* In a slot, and not told to stop. */
static bool works(const struct task *attempt)
{
    return task_seated(attempt) && attempt->state != PLIANT_TASK_CANCELING;
}

/* Would another attempt of the task finish? */
static bool other_can_finish(struct pliant_sched *s, uint32_t v, uint32_t i,
                             const struct task *attempt)
{
    for (const struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a))
        if (a != attempt &&
            (works(a) || (a->state == PLIANT_TASK_CREATED && scheduling_can_read(s, v, i))))
            return true;
    return false;
}

static bool any_works(const struct pliant_sched *s, uint32_t v, uint32_t i)
{
    const struct task *a = task_at(s, v, i);

    while (a && !works(a))
        a = execution_next(&s->graph, a);
    return a != NULL;
}

/* Of attempts that wait for a slot while no other works, one is enough: it waits in line like a
 * task that has not begun; none, if the task is about to restart. */
static void drop_waiting(struct pliant_sched *s, uint32_t v, uint32_t i, uint32_t keep)
{
    for (struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a)) {
        if (a->state != PLIANT_TASK_CREATED)
            continue;
        if (keep > 0)
            keep--;
        else
            drop(s, a);
    }
}

/* The task goes on with another attempt. */
static void goes_on(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    if (!any_works(s, v, i))
        drop_waiting(s, v, i, 1);
    speculation_rank(s, v, i);
}

/* Nothing of it can finish, or it has to begin anew with what it reads. */
static void falls(struct pliant_sched *s, uint32_t v, uint32_t i, bool failed)
{
    drop_waiting(s, v, i, 0);
    speculation_rank(s, v, i);
    if (task_live(task_at(s, v, i)))
        regional_attempt_down(s, v, i, failed);
    else
        s->way->task_down(s, v, i);
}

void speculation_over(struct pliant_sched *s, uint32_t v, uint32_t i, struct task *attempt,
                      enum pliant_task_state state, bool input_lost)
{
    /* all attempts of a task that a plan restarts were told to stop */
    bool matters = s->state.id == PLIANT_EXECUTING && attempt->state != PLIANT_TASK_CANCELING;
    bool on = matters && other_can_finish(s, v, i, attempt);
    bool first = state == PLIANT_TASK_FINISHED && task_at(s, v, i)->state != PLIANT_TASK_FINISHED;

    execution_move(&s->graph, &s->pool, attempt, state, s->clock.now_ms);
    if (first) {
        wins(s, v, i);
    } else if (!matters) {
        speculation_rank(s, v, i);
        regional_attempt_down(s, v, i, false);
    } else if (on && !(state == PLIANT_TASK_FAILED && input_lost)) {
        s->speculation.local |= state == PLIANT_TASK_FAILED;
        goes_on(s, v, i);
    } else {
        falls(s, v, i, state == PLIANT_TASK_FAILED);
    }
}

/* Those that do not confirm take their nodes along, and what else is on these fails [S-FLG-4]. From
 * the end on: into the gap of one that is forgotten comes one that was looked at. */
static void give_up_due(struct pliant_sched *s, struct failure *ret)
{
    const struct execution *g = &s->graph;

    for (size_t row = g->rivals.n; row > 0; row = row > g->rivals.n ? g->rivals.n : row) {
        const struct rival *rival = &g->rivals.v[--row];
        struct pool_node *node;

        if (rival->task.state != PLIANT_TASK_CANCELING || rival->give_up_at_ms > s->clock.now_ms)
            continue;
        node = pool_node(&s->pool, s->pool.slots.v[rival->task.slot].node);
        emit(s, PLIANT_ACT_GIVE_UP_NODE)->node.node = node_id(node);
        node_gone(s, node, ret);
    }
}

static struct state give_up(struct pliant_sched *s)
{
    struct deadline *due = &s->speculation.give_up;
    int64_t next_ms = PLIANT_NEVER;
    struct failure failure;

    give_up_due(s, &failure);
    for (size_t row = 0; row < s->graph.rivals.n; row++)
        if (s->graph.rivals.v[row].give_up_at_ms < next_ms)
            next_ms = s->graph.rivals.v[row].give_up_at_ms;
    deadline_clear(due);
    if (next_ms != PLIANT_NEVER)
        deadline_arm(due, &s->clock, next_ms);
    return sched_undecided(s) ? s->way->failed(s, &failure) : STAY;
}

struct state speculation_on_due(struct pliant_sched *s, struct deadline *due)
{
    if (due == &s->speculation.give_up)
        return give_up(s);
    if (due == &s->speculation.check)
        check(s);
    else
        unblock(s);
    return STAY;
}

/* ---- a node leaves ---------------------------------------------------------------------- */

/* Is there one that another attempt makes unnecessary? */
static struct task *unnecessary(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    for (struct task *a = task_at(s, v, i); a; a = execution_next(&s->graph, a))
        if (works(a) && s->pool.slots.v[a->slot].leaving && other_can_finish(s, v, i, a))
            return a;
    return NULL;
}

void speculation_moves(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    struct task *leaves;

    if (task_at(s, v, i)->more == 0 || restarts(s, v, i))
        return;
    while ((leaves = unnecessary(s, v, i))) {
        attempt_stop(s, v, i, leaves);
        goes_on(s, v, i);
        bound_stop(s, v, i);
    }
}

/* ---- invariants ------------------------------------------------------------------------- */

const char *speculation_check_task(const struct pliant_sched *s, uint32_t v, uint32_t i)
{
    const struct task *task = task_at(s, v, i), *before = NULL;
    uint32_t n = works(task);

    if (task->rival || (task->more != 0 && task->last < task->attempt))
        return "an attempt that stands for its task is not known as such";
    for (const struct task *a = execution_next(&s->graph, task); a;
         before = a, a = execution_next(&s->graph, a)) {
        if (!a->rival || !task_live(a) || a->attempt > task->last || a->attempt == task->attempt)
            return "a rival that is none";
        if (before && before->attempt >= a->attempt)
            return "rivals are out of order";
        if (task->state == PLIANT_TASK_FINISHED && a->state != PLIANT_TASK_CANCELING)
            return "an attempt goes on though another one has finished";
        if (a->state != PLIANT_TASK_CANCELING &&
            (a->state > task->state || task->state == PLIANT_TASK_CANCELING))
            return "a better attempt does not stand for its task";
        n += a->state != PLIANT_TASK_CANCELING;
    }
    if (n > s->cfg.speculative.max_attempts ||
        (n > 1 && s->job->vertices[v].no_concurrent_attempts))
        return "more attempts of a task at a time than may be";
    return NULL;
}

const char *speculation_check(const struct pliant_sched *s)
{
    const struct speculation *x = &s->speculation;

    for (size_t row = 0; row < s->graph.rivals.n; row++) {
        const struct rival *rival = &s->graph.rivals.v[row];

        if (rival->task.state == PLIANT_TASK_CREATED && pool_n_open(&s->pool) > 0)
            return "an attempt waits for a slot that is there";
        if (rival->give_up_at_ms != PLIANT_NEVER && !deadline_armed(&x->give_up))
            return "an attempt is stopped without a bound";
    }
    if (deadline_armed(&x->check) != s->graph.timed)
        return "nobody looks for slow tasks, or somebody should not";
    if (s->pool.n_blocked > 0 && !deadline_armed(&x->unblock))
        return "a node is blocked for ever";
    return x->local ? "an attempt failed and nobody decided" : NULL;
}
