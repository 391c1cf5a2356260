/* drains.c - see drains.h */
#include "states/drains.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How long before the end the move begins at the latest. */
static int64_t lead_ms(const struct pliant_sched *s)
{
    int64_t last = s->checkpoints.completed_id
                       ? instant_after(s->checkpoints.duration_ms, DRAIN_MARGIN_MS)
                       : 0;

    return later(s->cfg.drain_lead_ms, last);
}

/* The last checkpoint or the end has changed. */
static void arm_move(struct pliant_sched *s)
{
    struct drain *d = &s->state.executing.drain;

    if (!d->last_checkpoint)
        deadline_arm(&d->move, &s->clock, d->end_at_ms - lead_ms(s));
}

static void clear(struct drain *d)
{
    *d = (struct drain){.move = DEADLINE_NONE, .limit = DEADLINE_NONE};
}

static void notify(struct pliant_sched *s, const struct pool_node *node)
{
    struct pliant_action *act = emit(s, PLIANT_ACT_NOTIFY);

    act->flag[0] = (uint8_t)node->drain_reason;
    act->notify.node = node_id(node);
    act->notify.deadline_at_ms = node->drain_end_at_ms;
}

/* One that is pending was triggered at this very instant, or it does not do [S-DRN-4]. */
static void ask_for_checkpoint(struct pliant_sched *s)
{
    struct drain *d = &s->state.executing.drain;
    struct checkpointing *c = &s->state.executing.checkpointing;

    if (!checkpointing_on(s))
        return;
    d->wants_checkpoint =
        !d->covered &&
        !(c->checkpoint.exists && c->checkpoint.triggered_at_ms >= d->notice_at_ms) &&
        !checkpoint_trigger(s, c, PLIANT_CHECKPOINT_DRAIN);
}

static int64_t until_move_ms(const struct pliant_sched *s)
{
    int64_t move_at_ms = s->state.executing.drain.end_at_ms - lead_ms(s);

    return later(move_at_ms - s->clock.now_ms, 0);
}

/* `worth` leaves it at the one before the move where nodes keep to their ends. */
static bool worth_asking(struct pliant_sched *s)
{
    return s->policy.kind != PLIANT_POLICY_WORTH ||
           worth_checkpoint_at_notice(&s->policy.worth, &s->policy.limits, worth_view(s).unsafe_ms,
                                      until_move_ms(s));
}

/* The earliest end of several; a later notice never moves it later [S-DRN-3]. */
static void pend(struct pliant_sched *s, int64_t end_at_ms)
{
    struct drain *d = &s->state.executing.drain;

    if (!d->pending)
        *d = (struct drain){
            .pending = true, .end_at_ms = end_at_ms, .move = DEADLINE_NONE, .limit = DEADLINE_NONE};
    if (end_at_ms < d->end_at_ms)
        d->end_at_ms = end_at_ms;
    d->notice_at_ms = s->clock.now_ms;
    d->covered = false;
    arm_move(s);
    if (d->last_checkpoint && d->end_at_ms - DRAIN_LIMIT_MS < d->limit.at_ms)
        deadline_arm(&d->limit, &s->clock, d->end_at_ms - DRAIN_LIMIT_MS);
    if (worth_asking(s))
        ask_for_checkpoint(s);
}

/* ---- who leaves ------------------------------------------------------------------------- */

/* Will it go, with tasks of the job on it? */
static bool drains_with_tasks(const struct pool_node *node)
{
    return node && node->draining && node->n_used > 0;
}

/* ... or some of its slots? */
static bool leaves_with_tasks(const struct pool_node *node)
{
    return drains_with_tasks(node) || (node && node->n_reclaimed > 0);
}

static int64_t end_of(const struct pool_node *node)
{
    if (node->draining && node->drain_end_at_ms < node->reclaim_end_at_ms)
        return node->drain_end_at_ms;
    return node->n_reclaimed > 0 ? node->reclaim_end_at_ms : node->drain_end_at_ms;
}

bool drain_any(const struct pliant_sched *s)
{
    for (size_t row = 0; s->pool.n_draining > 0 && row < s->pool.nodes.n; row++)
        if (drains_with_tasks(s->pool.nodes.v[row]))
            return true;
    return false;
}

/* The node whose end comes first, of those that the job still uses. */
static const struct pool_node *first_to_go(const struct pliant_sched *s)
{
    const struct pool_node *first = NULL;

    for (size_t row = 0; s->pool.n_used_leaving > 0 && row < s->pool.nodes.n; row++) {
        const struct pool_node *node = s->pool.nodes.v[row];

        if (leaves_with_tasks(node) && (!first || end_of(node) < end_of(first)))
            first = node;
    }
    return first;
}

/* ---- the move --------------------------------------------------------------------------- */

/* What others of the pool shall have is moved for without a budget: nothing failed, and no provider
 * takes anything away. */
static struct state move_for_others(struct pliant_sched *s, struct why why)
{
    why.reason = PLIANT_REASON_RECLAIM;
    record_restart(s, PLIANT_TRIGGER_RECLAIM);
    return restarting(s, 0, false, why);
}

/* With a target where something sufficient is left, else to wait [S-DRN-5, S-DRN-6]. */
struct state drain_restart(struct pliant_sched *s, pliant_node_id node)
{
    struct failure moved = {.class = {.recoverable = true, .drain = true, .moved = true},
                            .why = {.reason = PLIANT_REASON_DRAIN,
                                    .node = node,
                                    .since_at_ms = s->state.executing.drain.notice_at_ms}};
    struct state next;

    if (s->state.executing.collateral.held) /* workers have failed already */
        return collateral_over(s);
    next = drain_any(s) ? failure_decide(s, &moved) : move_for_others(s, moved.why);
    if (next.id != PLIANT_RESTARTING || !target_aim(s))
        return next;
    next.restarting.has_target = true;
    next.why.detail = s->state.executing.drain.covered ? (int64_t)s->checkpoints.completed_id : 0;
    return next;
}

/* Tasks that still start have nothing to save; `worth` starts them elsewhere at once. */
static bool worth_moving(struct pliant_sched *s)
{
    struct worth_view v;

    if (s->policy.kind != PLIANT_POLICY_WORTH ||
        s->state.executing.running_since_ms != PLIANT_UNSET)
        return false;
    v = worth_view(s);
    return v.q > 0 && worth_moving_early(v.p, v.q, v.left_ms, until_move_ms(s));
}

struct state drain_move(struct pliant_sched *s)
{
    return s->way->move(s, node_id(first_to_go(s)));
}

struct state drain_consider(struct pliant_sched *s)
{
    struct drain *d = &s->state.executing.drain;

    if (!d->pending)
        return STAY;
    if (s->pool.n_used_leaving == 0)
        return drain_over(s);
    if (d->wants_checkpoint)
        ask_for_checkpoint(s);
    if (!worth_moving(s) && (!s->way->fits(s) || (checkpointing_on(s) && !d->covered)))
        return STAY;
    return drain_move(s);
}

/* ---- what happens to it ----------------------------------------------------------------- */

struct state drain_began(struct pliant_sched *s, struct pool_node *node)
{
    if (node->n_used == 0)
        return STAY; /* [S-DRN-2] */
    if (node->draining)
        notify(s, node);
    pend(s, end_of(node));
    return drain_consider(s);
}

/* Drains that came while the savepoint was decided are news now [S-DRN-11]. */
void drain_enter(struct pliant_sched *s)
{
    clear(&s->state.executing.drain);
    for (size_t row = 0; s->pool.n_used_leaving > 0 && row < s->pool.nodes.n; row++) {
        const struct pool_node *node = s->pool.nodes.v[row];

        if (!leaves_with_tasks(node))
            continue;
        if (node->draining)
            notify(s, node);
        pend(s, end_of(node));
    }
}

/* Nothing of the job's leaves any more: what was noted meanwhile is judged afresh. */
struct state drain_over(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    const struct pool_node *first = first_to_go(s);

    if (!e->drain.pending)
        return STAY;
    if (!first) {
        clear(&e->drain);
        deadline_arm(&e->again, &s->clock, s->clock.now_ms);
        return STAY;
    }
    e->drain.end_at_ms = end_of(first);
    arm_move(s);
    return drain_consider(s);
}

struct state drain_checkpoint_done(struct pliant_sched *s)
{
    struct drain *d = &s->state.executing.drain;

    if (!d->pending)
        return STAY;
    if (s->checkpoints.triggered_at_ms >= d->notice_at_ms)
        d->covered = true;
    if (d->last_checkpoint)
        return drain_move(s);
    arm_move(s);
    return drain_consider(s);
}

/* One that could not even begin is asked for again a little later: nothing has changed yet. */
struct state drain_checkpoint_failed(struct pliant_sched *s,
                                     const struct pending_checkpoint *failed)
{
    struct drain *d = &s->state.executing.drain;
    struct checkpointing *c = &s->state.executing.checkpointing;
    int64_t again_at_ms = instant_after(failed->triggered_at_ms, DRAIN_RETRY_MS);

    if (!d->pending || c->checkpoint.exists) /* theirs is still under way */
        return STAY;
    if (d->last_checkpoint)
        return drain_move(s);
    d->wants_checkpoint = !d->covered;
    if (!d->wants_checkpoint || again_at_ms <= s->clock.now_ms)
        return drain_consider(s);
    deadline_arm(&c->retry, &s->clock, again_at_ms);
    return STAY;
}

bool drain_asks_again(const struct pliant_sched *s)
{
    return s->state.executing.drain.pending && s->state.executing.drain.wants_checkpoint;
}

/* A checkpoint that began so long ago does for the move. */
static int64_t fresh_ms(const struct pliant_sched *s)
{
    if (s->policy.kind != PLIANT_POLICY_WORTH)
        return lead_ms(s);
    return 2 * worth_checkpoint_ms(&s->policy.worth, &s->policy.limits);
}

/* The end is near. One more checkpoint if the last is older than the lead, and no later than just
 * before the end [S-DRN-5]. */
static bool waits_for_last_checkpoint(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    struct checkpointing *c = &e->checkpointing;
    int64_t fresh_from = s->clock.now_ms - fresh_ms(s);
    int64_t limit = e->drain.end_at_ms - DRAIN_LIMIT_MS;

    if (!checkpointing_on(s) || limit <= s->clock.now_ms ||
        (s->checkpoints.completed_id && s->checkpoints.triggered_at_ms >= fresh_from))
        return false;
    if (!(c->checkpoint.exists && c->checkpoint.triggered_at_ms >= fresh_from) &&
        !checkpoint_trigger(s, c, PLIANT_CHECKPOINT_DRAIN))
        return false;
    e->drain.last_checkpoint = true;
    deadline_arm(&e->drain.limit, &s->clock, limit);
    return true;
}

struct state drain_due(struct pliant_sched *s, struct deadline *due)
{
    struct drain *d = &s->state.executing.drain;

    deadline_clear(due);
    if (due == &d->move && waits_for_last_checkpoint(s))
        return STAY;
    return drain_move(s);
}
