/* collateral.c - when a node is taken back, the workers on others fail with it
 *
 * Their errors (a broken connection, a collective that was aborted) often come first. While a drain
 * for preemption is active, a failure of a worker outside of what is taken back waits for
 * worker-group.collateral-window: a preemption death within it makes the whole batch a preemption,
 * else it was a failure of the worker's own [W-CLS-4]. All others are decided on at once [W-CLS-2].
 */
#include <string.h>

#include "states/sched.h"

static bool taken_back(const struct pool_node *node)
{
    return node && node->draining && node->drain_reason == PLIANT_DRAIN_PREEMPTION;
}

static bool same_domain(const struct pool_node *a, const struct pool_node *b)
{
    return a->domain && b->domain && *a->domain && strcmp(a->domain, b->domain) == 0;
}

/* Its own node, or one of its failure domain. Workers of the group need not be on that one. */
static bool doomed(const struct pliant_sched *s, const struct pool_node *node)
{
    if (taken_back(node))
        return true;
    for (size_t i = 0; s->pool.n_draining > 0 && i < s->pool.nodes.n; i++)
        if (taken_back(s->pool.nodes.v[i]) && same_domain(s->pool.nodes.v[i], node))
            return true;
    return false;
}

static bool any_doomed(const struct pliant_sched *s)
{
    for (size_t i = 0; s->pool.n_draining > 0 && i < s->pool.nodes.n; i++) {
        const struct pool_node *node = s->pool.nodes.v[i];

        if (node && node->n_used > 0 && doomed(s, node))
            return true;
    }
    return false;
}

/* One more launch for another port, unless the last one was for that too. */
static bool port_retry(const struct pliant_sched *s, enum pliant_death death)
{
    return death == PLIANT_DEATH_PORT_IN_USE && !s->group.port_retried &&
           s->clock.now_ms <= instant_after(s->deployed_at_ms, s->cfg.group.port_retry_window_ms);
}

struct failure_class failure_class_of(const struct pliant_sched *s, const struct pliant_event *ev,
                                      const struct pool_node *node)
{
    struct failure_class class = {.recoverable = ev->failure.recoverable};

    if (!s->job->worker_group)
        return class;
    class.doomed = doomed(s, node);
    class.preempted = ev->failure.death == PLIANT_DEATH_TERMINATED && taken_back(node);
    class.launch = port_retry(s, ev->failure.death);
    return class;
}

/* ---- holding one back ------------------------------------------------------------------- */

static bool may_be_collateral(const struct pliant_sched *s, const struct failure_class *class)
{
    return s->failover.group && s->cfg.group.collateral_window_ms > 0 && class->recoverable &&
           !class->preempted && !class->doomed && any_doomed(s);
}

struct state collateral_failed(struct pliant_sched *s, const struct failure *failure)
{
    struct collateral *c = &s->state.executing.collateral;

    if (!may_be_collateral(s, &failure->class))
        return failure_decide(s, failure);
    if (c->held)
        return STAY; /* the first one counts */
    c->held = true;
    c->failure = failure->class;
    c->why = failure->why;
    c->why.node.v = 0; /* it may be another node's row by then */
    deadline_arm(&c->end, &s->clock,
                 instant_after(s->clock.now_ms, s->cfg.group.collateral_window_ms));
    return STAY;
}

struct state collateral_over(struct pliant_sched *s)
{
    struct collateral *c = &s->state.executing.collateral;
    struct failure failure = {.class = c->failure, .why = c->why};

    c->held = false;
    deadline_clear(&c->end);
    return failure_decide(s, &failure);
}
