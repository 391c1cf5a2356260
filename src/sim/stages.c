/* stages.c - see stages.h */
#include "sim/stages.h"

#include <errno.h>

int stages_init(struct stages *s, uint32_t n_vertices, uint32_t n_columns)
{
    *s = (struct stages){.n = n_vertices, .n_columns = n_columns, .width_ms = 1};
    s->v = mem_zero(NULL, n_vertices, sizeof *s->v);
    for (uint32_t v = 0; s->v && v < n_vertices; v++) {
        s->v[v].first_start_at_ms = s->v[v].last_end_at_ms = PLIANT_NEVER;
        if (v < STAGES_SHOWN && !(s->v[v].running_ms = mem_zero(NULL, n_columns, sizeof(double))))
            goto no_memory;
    }
    if (s->v)
        return 0;
no_memory:
    stages_free(s);
    return -ENOMEM;
}

void stages_free(struct stages *s)
{
    for (uint32_t v = 0; s->v && v < s->n; v++) {
        vec_free(NULL, &s->v[v].tasks);
        mem_free(NULL, s->v[v].running_ms);
    }
    mem_free(NULL, s->v);
    *s = (struct stages){0};
}

/* ---- time --------------------------------------------------------------------------------- */

/* Twice as wide, half as many. */
static void widen(struct stages *s)
{
    for (uint32_t v = 0; v < s->n && v < STAGES_SHOWN; v++) {
        double *ms = s->v[v].running_ms;

        for (uint32_t i = 0; i < s->n_columns / 2; i++)
            ms[i] = ms[2 * i] + ms[2 * i + 1];
        for (uint32_t i = s->n_columns / 2; i < s->n_columns; i++)
            ms[i] = 0;
    }
    s->width_ms *= 2;
}

static void pass(struct stages *s, int64_t at_ms)
{
    while (at_ms / s->width_ms >= s->n_columns)
        widen(s);
    while (s->now_ms < at_ms) {
        int64_t column = s->now_ms / s->width_ms, end_ms = (column + 1) * s->width_ms;
        int64_t until_ms = end_ms < at_ms ? end_ms : at_ms;

        for (uint32_t v = 0; v < s->n && v < STAGES_SHOWN; v++)
            s->v[v].running_ms[column] += (double)s->v[v].running * (double)(until_ms - s->now_ms);
        s->now_ms = until_ms;
    }
}

/* ---- tasks -------------------------------------------------------------------------------- */

static void set_phase(struct stages *s, struct stage *stage, struct stage_task *task,
                      enum stage_phase phase)
{
    stage->running += (phase == STAGE_RUNS) - (uint32_t)(task->phase == STAGE_RUNS);
    if (phase == STAGE_FINISHED && task->phase != STAGE_FINISHED)
        stage->last_end_at_ms = s->now_ms;
    task->phase = phase;
}

static enum stage_phase phase_of(const struct view *v, uint32_t vertex, uint32_t subtask,
                                 enum stage_phase otherwise)
{
    struct pliant_task_info info;

    if (!pliant_task_info(v->sched, (pliant_vertex_id){vertex + 1}, subtask, &info))
        return otherwise == STAGE_RUNS ? STAGE_WAITS : otherwise; /* the graph is gone */
    if (info.state == PLIANT_TASK_FINISHED)
        return STAGE_FINISHED;
    return info.state > PLIANT_TASK_CREATED && info.state <= PLIANT_TASK_CANCELING ? STAGE_RUNS
                                                                                   : STAGE_WAITS;
}

static void look_at(struct stages *s, const struct view *v, const struct pliant_task *id)
{
    struct stage *stage =
        id->vertex.v >= 1 && id->vertex.v <= s->n ? &s->v[id->vertex.v - 1] : NULL;

    if (stage && id->subtask < stage->tasks.n)
        set_phase(s, stage, &stage->tasks.v[id->subtask],
                  phase_of(v, id->vertex.v - 1, id->subtask,
                           v->event->kind == PLIANT_EV_TASK_FINISHED
                               ? STAGE_FINISHED
                               : stage->tasks.v[id->subtask].phase));
}

static void look_at_all(struct stages *s, const struct view *v)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->v[i].tasks.n; k++)
            set_phase(s, &s->v[i], &s->v[i].tasks.v[k],
                      phase_of(v, i, k, s->v[i].tasks.v[k].phase));
}

/* Is there another attempt, which began before it? */
static bool is_beside(const struct view *v, const struct pliant_task *id)
{
    struct pliant_task_info info;

    for (uint32_t i = 0; pliant_attempt_info(v->sched, id->vertex, id->subtask, i, &info); i++)
        if (info.attempt < id->attempt)
            return true;
    return false;
}

static int started(struct stages *s, const struct view *v, const struct pliant_task *id)
{
    struct stage *stage = &s->v[id->vertex.v - 1];
    struct stage_task *task;
    bool beside = is_beside(v, id);

    while (stage->tasks.n <= id->subtask)
        if (!vec_push(NULL, &stage->tasks))
            return -ENOMEM;
    task = &stage->tasks.v[id->subtask];
    if (stage->first_start_at_ms == PLIANT_NEVER)
        stage->first_start_at_ms = s->now_ms;
    stage->attempts++;
    stage->speculative += beside;
    stage->speculative_now += beside;
    stage->restarted += id->attempt > 1 && !beside;
    if (id->attempt > task->attempt)
        task->attempt = id->attempt;
    set_phase(s, stage, task, phase_of(v, id->vertex.v - 1, id->subtask, STAGE_RUNS));
    return 0;
}

/* Tasks that have started before and have a new attempt, which may have to wait. */
static void count_restarts(struct stages *s, const struct view *v)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->v[i].tasks.n; k++) {
            struct stage_task *task = &s->v[i].tasks.v[k];
            struct pliant_task_info info;

            if (!pliant_task_info(v->sched, (pliant_vertex_id){i + 1}, k, &info) ||
                task->attempt == 0 || info.attempt <= task->attempt)
                continue;
            s->v[i].restarts_now++;
            task->attempt = info.attempt;
        }
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool concerns_all(const struct view *v)
{
    switch ((int)v->event->kind) {
    case PLIANT_EV_NODE_UP: /* a life that nobody saw end */
    case PLIANT_EV_NODE_LOST:
        return true;
    default:
        break;
    }
    for (size_t i = 0; i < v->actions->n; i++)
        if (v->actions->v[i].kind == PLIANT_ACT_STATE_CHANGED ||
            v->actions->v[i].kind == PLIANT_ACT_GIVE_UP_NODE)
            return true;
    return v->counts.region_restarts != v->before.region_restarts;
}

static void take_event(struct stages *s, const struct view *v)
{
    switch ((int)v->event->kind) {
    case PLIANT_EV_TASK_FINISHED:
    case PLIANT_EV_TASK_CANCELED:
        look_at(s, v, &v->event->task);
        return;
    case PLIANT_EV_TASK_FAILED:
        look_at(s, v, &v->event->failure.task);
        return;
    default:
        return;
    }
}

int stages_take(struct stages *s, const struct view *v)
{
    int r = 0;

    pass(s, v->at_ms);
    for (uint32_t i = 0; i < s->n; i++)
        s->v[i].restarts_now = s->v[i].speculative_now = 0;
    if (v->counts.region_restarts != v->before.region_restarts)
        count_restarts(s, v);
    take_event(s, v);
    for (size_t i = 0; r == 0 && i < v->actions->n; i++) {
        const struct pliant_action *a = &v->actions->v[i];

        if (a->kind == PLIANT_ACT_STATE_CHANGED)
            s->by_region |= a->flag[0] == PLIANT_CREATED && a->flag[1] == PLIANT_EXECUTING;
        if (a->kind == PLIANT_ACT_DEPLOY)
            r = started(s, v, &a->deploy.task);
    }
    if (r == 0 && concerns_all(v))
        look_at_all(s, v);
    return r;
}

void stages_end(struct stages *s, int64_t end_ms)
{
    pass(s, end_ms);
}

void stages_row(const struct stages *s, uint32_t vertex, double *row, uint32_t n)
{
    int64_t last = s->now_ms / s->width_ms;
    const double *ms = s->v[vertex].running_ms;

    for (uint32_t i = 0; i < n; i++) {
        int64_t from = i * (last + 1) / n, to = (i + 1) * (last + 1) / n, count = 0;

        row[i] = 0;
        for (int64_t k = from; k < to || k == from; k++, count++)
            row[i] += ms[k];
        row[i] /= (double)count * (double)s->width_ms;
    }
}

uint32_t stages_restart_now(const struct stages *s)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < s->n; v++)
        n += s->v[v].restarts_now;
    return n;
}

uint32_t stages_speculate_now(const struct stages *s)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < s->n; v++)
        n += s->v[v].speculative_now;
    return n;
}
