/* machine_test.c - which event leads where and emits what, state by state; transitions and time
 *
 * The table covers the states up to Restarting; the others have theirs.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "states/sched.h"
#include "world.h"

#define RETRY "jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy."
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define CRE PLIANT_CREATED
#define WFR PLIANT_WAITING_FOR_RESOURCES
#define CEG PLIANT_CREATING_EXECUTION_GRAPH
#define RTY PLIANT_RETRYING_EXECUTION_GRAPH_CREATION
#define EXE PLIANT_EXECUTING
#define RST PLIANT_RESTARTING
#define FLG PLIANT_FAILING
#define CAN PLIANT_CANCELING
#define SWS PLIANT_STOP_WITH_SAVEPOINT
#define FIN PLIANT_FINISHED
#define STAYS PLIANT_STATES

static const pliant_vertex_id one = {1};

/* A job of 4, at least 2, on n1, with a fifth slot to spare, in this state; it answers nothing.
 * While it waits, only the spare one is there. */
static struct world in_state(enum pliant_state state)
{
    struct world w = world_new((struct world_spec){
        .min_parallelism = 2,
        .options = {"restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts",
                    "9", "restart-strategy.fixed-delay.delay", "8 s", RETRY "type", "fixed-delay",
                    RETRY "fixed-delay.delay", "7 s", "execution.checkpointing.interval", "10 s",
                    "pliant.checkpoint.periodic", "false"}});

    w.reserves = false;
    world_node(&w, "spare", 1);
    if (state == CRE)
        return w;
    world_start(&w);
    if (state == WFR)
        return w;
    world_node(&w, "n1", 4);
    if (state == RTY)
        world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    if (state == CEG || state == RTY)
        return w;
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    w.cancels = false;
    if (state == RST)
        world_fail(&w, true);
    if (state == FLG)
        world_fail(&w, false);
    if (state == CAN)
        world_plain(&w, PLIANT_EV_CANCEL);
    if (state == SWS)
        world_stop(&w);
    if (state == FIN)
        world_plain(&w, PLIANT_EV_SUSPEND);
    return w;
}

/* ---- the table -------------------------------------------------------------------------- */

static void start(struct world *w)
{
    world_start(w);
}

static void cancel(struct world *w)
{
    world_plain(w, PLIANT_EV_CANCEL);
}

static void suspend(struct world *w)
{
    world_plain(w, PLIANT_EV_SUSPEND);
}

static void stop(struct world *w)
{
    world_stop(w);
}

static void savepoint(struct world *w)
{
    world_event(
        w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_REQUESTED, .savepoint.dir = "there"});
}

static void checkpoint(struct world *w)
{
    world_plain(w, PLIANT_EV_CHECKPOINT_REQUESTED);
}

static void global(struct world *w)
{
    world_fail(w, true);
}

static void global_final(struct world *w)
{
    world_fail(w, false);
}

static void slots(struct world *w)
{
    world_node(w, "new", 4);
}

static void one_slot(struct world *w)
{
    world_node(w, "new", 1);
}

static void wishes(struct world *w)
{
    world_bounds(w, 3, 6);
}

static void same_wishes(struct world *w)
{
    world_bounds(w, 2, 4);
}

static void free_lost(struct world *w)
{
    world_lose(w, "spare");
}

static void used_lost(struct world *w)
{
    world_lose(w, "n1");
}

static void initializing(struct world *w)
{
    world_task(w, PLIANT_EV_TASK_INITIALIZING, 1, 0);
}

static void running(struct world *w)
{
    world_task(w, PLIANT_EV_TASK_RUNNING, 1, 0);
}

static void task_finished(struct world *w)
{
    world_task(w, PLIANT_EV_TASK_FINISHED, 1, 0);
}

static void task_canceled(struct world *w)
{
    world_task(w, PLIANT_EV_TASK_CANCELED, 1, 0);
}

static void task_failed(struct world *w)
{
    world_fail_task(w, 1, 0, true);
}

static void task_failed_final(struct world *w)
{
    world_fail_task(w, 1, 0, false);
}

static void stale(struct world *w)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = {one, 0, 77}, .recoverable = true}});
}

static void last(struct world *w, enum pliant_event_kind kind)
{
    w->n_actions = 0;
    for (uint32_t i = 0; i < 4; i++)
        world_task(w, kind, 1, i);
}

static void all_finished(struct world *w)
{
    last(w, PLIANT_EV_TASK_FINISHED);
}

static void all_canceled(struct world *w)
{
    last(w, PLIANT_EV_TASK_CANCELED);
}

static void plan_ready(struct world *w)
{
    world_plan(w, PLIANT_EV_SLOTS_RESERVED, true);
}

static void plan_refused(struct world *w)
{
    world_plan(w, PLIANT_EV_SLOTS_REFUSED, true);
}

static void plan_failed(struct world *w)
{
    world_plan(w, PLIANT_EV_CREATION_FAILED, true);
}

static void plan_failed_final(struct world *w)
{
    world_plan(w, PLIANT_EV_CREATION_FAILED, false);
}

static void checkpoint_done(struct world *w)
{
    world_checkpoint(w);
}

static void checkpoint_failed(struct world *w)
{
    world_checkpoint_failed(w, true);
}

static void savepoint_done(struct world *w)
{
    world_savepoint(w, true);
}

static void savepoint_failed(struct world *w)
{
    world_savepoint(w, false);
}

static void withdrawn(struct world *w)
{
    world_withdraw(w, "spare");
}

static void free_drains(struct world *w)
{
    world_drain(w, "spare", 60000);
}

static void used_drains(struct world *w)
{
    world_drain(w, "n1", 60000);
}

static void reclaimed(struct world *w)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_SLOTS_RECLAIMED,
                       .reclaimed = {.name = "spare", .slots = 1, .deadline_at_ms = PLIANT_NEVER}});
}

/* The state that is entered first, and all that the step emits; "-": nothing, and the event is
 * counted as ignored. */
struct cell {
    uint8_t to;
    const char *emits;
};

/* clang-format off */
#define SILENT {STAYS, ""}
#define IGNORED {STAYS, "-"}
#define REFUSED {STAYS, "refused"}
#define STORED {STAYS, "declare rescale_closed rescale_opened"}
#define GIVES_BACK {STAYS, "release"}
#define CANCELED {FIN, "state_changed status_changed rescale_closed release archived"}
#define SUSPENDED {FIN, "state_changed status_changed rescale_closed archived"}
#define FAILED {FIN, "failure state_changed status_changed rescale_closed release archived"}
#define ENDS {FIN, "state_changed status_changed release archived"}
#define RESTARTS {RST, "rescale_opened state_changed status_changed cancel"}
#define FAILS {FLG, "state_changed status_changed cancel"}
/* clang-format on */

static const struct row {
    void (*happens)(struct world *w);
    const char *name;
    struct cell in[6]; /* CRE, WFR, CEG, RTY, EXE, RST */
} table[] = {
    /* clang-format off */
    /* control [S-CRE-2, S-GEN-6, S-GEN-9] */
    {start, "start",
     {{WFR, "rescale_opened declare state_changed status_changed"}, REFUSED, REFUSED, REFUSED,
      REFUSED, REFUSED}},
    {cancel, "cancel",
     {ENDS, CANCELED, CANCELED, CANCELED, {CAN, "state_changed status_changed cancel"},
      {CAN, "state_changed status_changed rescale_closed"}}},
    {suspend, "suspend",
     {{FIN, "state_changed status_changed archived"}, SUSPENDED, SUSPENDED, SUSPENDED,
      {FIN, "cancel state_changed status_changed archived"}, SUSPENDED}},
    {stop, "stop-with-savepoint",
     {REFUSED, REFUSED, REFUSED, REFUSED, {SWS, "checkpoint state_changed"}, REFUSED}},
    {savepoint, "trigger savepoint",
     {REFUSED, REFUSED, REFUSED, REFUSED, {STAYS, "checkpoint"}, REFUSED}},
    {checkpoint, "trigger checkpoint",
     {REFUSED, REFUSED, REFUSED, REFUSED, {STAYS, "checkpoint"}, REFUSED}},
    {global, "global failure",
     {{FIN, "failure state_changed status_changed release archived"}, FAILED, FAILED, FAILED,
      RESTARTS, SILENT}},
    {global_final, "unrecoverable global failure",
     {{FIN, "failure state_changed status_changed release archived"}, FAILED, FAILED, FAILED,
      FAILS, SILENT}},
    /* resources [S-CEG-8, S-EXE-6, S-RST-9, S-DRN-2, S-DRN-11] */
    {slots, "all slots that are wanted",
     {SILENT, {CEG, "state_changed reserve"}, SILENT, SILENT, SILENT, SILENT}},
    {one_slot, "a slot",
     {SILENT, SILENT, SILENT, SILENT, SILENT, SILENT}},
    {wishes, "requirements that differ",
     {{STAYS, "declare"}, STORED, STORED, STORED, {STAYS, "declare rescale_opened"}, STORED}},
    {same_wishes, "requirements that do not differ",
     {SILENT, SILENT, SILENT, SILENT, SILENT, SILENT}},
    {free_lost, "a free slot is lost",
     {SILENT, SILENT, SILENT, SILENT, SILENT, SILENT}},
    {used_lost, "slots in use are lost",
     {IGNORED, IGNORED, SILENT, SILENT,
      {RST, "rescale_opened state_changed status_changed failure"}, {STAYS, "failure"}}},
    {free_drains, "a node without tasks drains",
     {SILENT, SILENT, SILENT, SILENT, SILENT, SILENT}},
    {used_drains, "a node with tasks drains",
     {IGNORED, IGNORED, SILENT, SILENT, {STAYS, "notify checkpoint"}, SILENT}},
    {reclaimed, "a free slot is to be given back",
     {GIVES_BACK, GIVES_BACK, GIVES_BACK, GIVES_BACK, GIVES_BACK, GIVES_BACK}},
    {withdrawn, "a drain that is none is withdrawn",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    /* tasks [S-GEN-7] */
    {initializing, "task initializing, once it runs",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    {running, "task running, once it runs",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    {task_finished, "task finished",
     {IGNORED, IGNORED, IGNORED, IGNORED, SILENT, SILENT}},
    {task_canceled, "task canceled",
     {IGNORED, IGNORED, IGNORED, IGNORED, SILENT, SILENT}},
    {task_failed, "task failed",
     {IGNORED, IGNORED, IGNORED, IGNORED, RESTARTS, SILENT}},
    {task_failed_final, "task failed, unrecoverable",
     {IGNORED, IGNORED, IGNORED, IGNORED, FAILS, SILENT}},
    {stale, "a stale attempt failed",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    {all_finished, "the last task finished",
     {IGNORED, IGNORED, IGNORED, IGNORED, ENDS, {STAYS, "failure"}}},
    {all_canceled, "the last task was canceled",
     {IGNORED, IGNORED, IGNORED, IGNORED, ENDS, {STAYS, "failure"}}},
    /* the plan [S-CEG-3..6, S-CEG-12, S-GEN-4] */
    {plan_ready, "plan ready",
     {IGNORED, IGNORED, {EXE, "state_changed status_changed rescale_closed deploy"}, IGNORED,
      IGNORED, IGNORED}},
    {plan_refused, "slots refused",
     {IGNORED, IGNORED, {WFR, "state_changed reserve"}, IGNORED, IGNORED, IGNORED}},
    {plan_failed, "plan failed",
     {IGNORED, IGNORED, {RTY, "failure state_changed rescale_closed rescale_opened"}, IGNORED,
      IGNORED, IGNORED}},
    {plan_failed_final, "plan failed, unrecoverable",
     {IGNORED, IGNORED, FAILED, IGNORED, IGNORED, IGNORED}},
    /* checkpoints [S-EXE-8, S-EXE-10] */
    {checkpoint_done, "checkpoint completed",
     {IGNORED, IGNORED, IGNORED, IGNORED, SILENT, IGNORED}},
    {checkpoint_failed, "checkpoint failed",
     {IGNORED, IGNORED, IGNORED, IGNORED, SILENT, IGNORED}},
    {savepoint_done, "a savepoint that nobody waits for",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    {savepoint_failed, "a savepoint that nobody waits for, failed",
     {IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED}},
    /* clang-format on */
};

static void check_cell(enum pliant_state from, const struct row *row, const struct cell *want)
{
    struct world w = in_state(from);
    uint64_t ignored = world_counts(&w).events_ignored;
    size_t n = w.n_states;
    bool ignores = strcmp(want->emits, "-") == 0;
    uint8_t to;

    cr_assert_eq(pliant_state(w.s), from);
    row->happens(&w);
    to = n < w.n_states ? w.states[n] : STAYS;
    cr_expect_eq(to, want->to, "%s in %s leads to %s", row->name, pliant_state_name(from),
                 pliant_state_name(to));
    cr_expect_str_eq(world_emitted(&w), ignores ? "" : want->emits, "%s in %s emits %s", row->name,
                     pliant_state_name(from), world_emitted(&w));
    cr_expect_eq(world_counts(&w).events_ignored > ignored, ignores, "%s in %s", row->name,
                 pliant_state_name(from));
    world_free(&w);
}

Test(machine, every_state_and_event) /* [S-GEN-6, S-GEN-7, S-GEN-9] */
{
    static const enum pliant_state columns[] = {CRE, WFR, CEG, RTY, EXE, RST};

    for (size_t r = 0; r < COUNT(table); r++)
        for (size_t c = 0; c < 6; c++)
            check_cell(columns[c], &table[r], &table[r].in[c]);
}

/* ---- transitions ------------------------------------------------------------------------ */

Test(machine, only_these_edges_are_legal) /* [S-GEN-3] */
{
    static const uint32_t may_go_to[PLIANT_STATES] = {
        [CRE] = BIT(WFR) | BIT(EXE) | BIT(FIN),
        [WFR] = BIT(CEG) | BIT(FIN),
        [CEG] = BIT(EXE) | BIT(WFR) | BIT(RTY) | BIT(FIN),
        [RTY] = BIT(WFR) | BIT(FIN),
        [EXE] = BIT(RST) | BIT(FLG) | BIT(CAN) | BIT(SWS) | BIT(FIN),
        [RST] = BIT(WFR) | BIT(CEG) | BIT(CAN) | BIT(FIN),
        [FLG] = BIT(CAN) | BIT(FIN),
        [CAN] = BIT(FIN),
        [SWS] = BIT(EXE) | BIT(RST) | BIT(FLG) | BIT(CAN) | BIT(FIN),
        [FIN] = 0,
    };

    for (unsigned from = 0; from < PLIANT_STATES; from++)
        for (unsigned to = 0; to < PLIANT_STATES; to++)
            cr_expect_eq(!!(state_ops(to)->may_follow & BIT(from)), !!(may_go_to[from] & BIT(to)),
                         "%s to %s", pliant_state_name(from), pliant_state_name(to));
}

Test(machine, leaves_tells_enters_in_this_order) /* [S-GEN-1] */
{
    struct world w = in_state(EXE);

    savepoint(&w);
    task_failed(&w);
    cr_expect_str_eq(world_emitted(&w), "rescale_opened savepoint_ended state_changed "
                                        "status_changed cancel");
    cr_expect_eq(world_count(&w, PLIANT_ACT_STATUS_CHANGED), 1);
    world_free(&w);
}

Test(machine, stamps_each_state_into_the_open_record) /* [S-GEN-1] */
{
    struct world w = world_new((struct world_spec){0});
    static const struct {
        enum pliant_state state;
        int64_t enter, leave;
    } want[] = {{CRE, 0, 3000}, {WFR, 3000, 14000}, {CEG, 14000, 15000}, {EXE, 15000, 15000}};
    const struct pliant_rescale *record;

    w.reserves = false;
    world_to(&w, 0);
    world_to(&w, 3000);
    world_start(&w);
    world_to(&w, 4000);
    world_node(&w, "n1", 2);
    world_to(&w, 15000);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    record = pliant_rescale_at(w.s, 0);
    cr_assert_eq(record->n_spans, 4);
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(record->spans[i].state, want[i].state);
        if (i > 0)
            cr_expect_eq(record->spans[i].enter_at_ms, want[i].enter, "span %zu", i);
        cr_expect_eq(record->spans[i].leave_at_ms, want[i].leave, "span %zu", i);
    }
    world_free(&w);
}

Test(machine, what_is_due_on_entry_runs_after_the_transition) /* [S-GEN-2] */
{
    struct world w = world_new((struct world_spec){0});
    struct pliant_task_info info;

    world_node(&w, "n1", 4);
    w.reserves = false;
    world_start(&w);
    cr_expect_str_eq(world_emitted(&w),
                     "rescale_opened declare state_changed status_changed "
                     "state_changed reserve",
                     "one transition is done before the next begins");
    cr_expect_not(pliant_task_info(w.s, one, 0, &info));
    world_free(&w);
}

Test(machine, timers_die_with_their_state) /* [S-GEN-4] */
{
    struct world w = world_new((struct world_spec){0});

    world_node(&w, "n1", 4);
    world_start(&w);
    world_to(&w, 3600000);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing"),
              "no wait timeout, no stabilization of the state before");
    world_free(&w);
}

/* What should never be ends the process, not the job. */
Test(machine, a_broken_promise_is_fatal, .signal = SIGABRT) /* [S-GEN-5] */
{
    struct world w = in_state(RST);
    struct pliant_event tick = {.kind = PLIANT_EV_TICK};
    struct pliant_actions acts;

    all_canceled(&w);
    w.s->graph.n_live = 1;
    pliant_step(w.s, 8000, &tick, &acts);
}

Test(machine, refuses_wishes_that_the_state_does_not_allow) /* [S-GEN-6, S-SWS-10] */
{
    static void (*const wish[])(struct world *) = {stop, savepoint, checkpoint};

    for (unsigned state = 0; state < PLIANT_STATES; state++)
        for (size_t i = 0; state != EXE && i < 3; i++) {
            struct world w = in_state(state);

            wish[i](&w);
            cr_expect_str_eq(world_emitted(&w), "refused");
            cr_expect_eq(w.actions[0].flag[0],
                         state == FIN ? PLIANT_REASON_JOB_ENDED : PLIANT_REASON_NOT_EXECUTING);
            cr_expect_eq(pliant_state(w.s), state);
            world_free(&w);
        }
}

Test(machine, tells_a_status_when_it_changes) /* [S-GEN-1, S-GEN-8, S-GEN-13] */
{
    static const struct {
        enum pliant_state state;
        enum pliant_job_status status;
    } rows[] = {
        {CRE, PLIANT_JOB_INITIALIZING}, {WFR, PLIANT_JOB_CREATED},    {CEG, PLIANT_JOB_CREATED},
        {RTY, PLIANT_JOB_CREATED},      {EXE, PLIANT_JOB_RUNNING},    {RST, PLIANT_JOB_RESTARTING},
        {FLG, PLIANT_JOB_FAILING},      {CAN, PLIANT_JOB_CANCELLING}, {SWS, PLIANT_JOB_RUNNING},
        {FIN, PLIANT_JOB_SUSPENDED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w = in_state(rows[i].state);

        cr_expect_eq(pliant_job_status(w.s), rows[i].status, "%s",
                     pliant_state_name(rows[i].state));
        world_free(&w);
    }
}

Test(machine, tells_no_status_that_stays) /* [S-GEN-8] */
{
    struct world w = in_state(CEG);
    size_t told = 0;

    plan_refused(&w); /* WFR, and CEG again */
    told += world_count(&w, PLIANT_ACT_STATUS_CHANGED);
    plan_failed(&w);
    told += world_count(&w, PLIANT_ACT_STATUS_CHANGED);
    world_to(&w, 7000);
    told += world_count(&w, PLIANT_ACT_STATUS_CHANGED);
    cr_expect_eq(told, 0);
    plan_ready(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_STATUS_CHANGED), 1);
    cr_expect_eq(world_action(&w, PLIANT_ACT_STATUS_CHANGED, 0)->status.from, PLIANT_JOB_CREATED);
    cr_expect_eq(world_action(&w, PLIANT_ACT_STATUS_CHANGED, 0)->status.to, PLIANT_JOB_RUNNING);
    stop(&w);
    told += world_count(&w, PLIANT_ACT_STATUS_CHANGED);
    savepoint_failed(&w);
    told += world_count(&w, PLIANT_ACT_STATUS_CHANGED);
    cr_expect_eq(told, 0);
    cr_expect_eq(pliant_state(w.s), EXE);
    world_free(&w);
}

Test(machine, shows_restarting_though_the_graph_is_down) /* [S-GEN-13] */
{
    struct world w = in_state(RST);

    all_canceled(&w);
    cr_expect_eq(world_counts(&w).tasks_live, 0);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_RESTARTING);
    world_free(&w);
}

Test(machine, without_a_graph_the_end_comes_at_once) /* [S-GEN-9, S-HIST-6] */
{
    static const enum pliant_state states[] = {CRE, WFR, CEG, RTY};
    static const struct {
        void (*happens)(struct world *);
        enum pliant_job_status status;
        enum pliant_reason reason;
    } ends[] = {
        {cancel, PLIANT_JOB_CANCELED, PLIANT_REASON_CANCEL_REQUESTED},
        {suspend, PLIANT_JOB_SUSPENDED, PLIANT_REASON_SUSPEND_REQUESTED},
        {global, PLIANT_JOB_FAILED, PLIANT_REASON_GLOBAL_FAILURE},
        {global_final, PLIANT_JOB_FAILED, PLIANT_REASON_GLOBAL_FAILURE},
    };

    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            struct world w = in_state(states[i]);

            ends[k].happens(&w);
            cr_expect_eq(pliant_job_status(w.s), ends[k].status);
            cr_expect_eq(w.changed.flag[2], ends[k].reason);
            cr_expect_eq(w.s->failover.strategy.count, 0, "no strategy was asked");
            cr_expect_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
            if (k >= 2)
                cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[0].cause, "all of it broke");
            world_free(&w);
        }
}

Test(machine, a_graph_that_ends_first_makes_an_entry) /* [S-GEN-11] */
{
    static const enum pliant_state states[] = {RST, FLG};

    for (size_t i = 0; i < 2; i++) {
        struct world w = in_state(states[i]);

        task_failed(&w); /* a second one */
        all_canceled(&w);
        cr_expect_eq(w.actions[0].kind, PLIANT_ACT_FAILURE, "before the state reacts");
        cr_expect_eq(world_count(&w, PLIANT_ACT_FAILURE), 1);
        cr_expect_eq(pliant_failure_at(w.s, 0)->n, 2);
        cr_expect_null(pliant_failure_at(w.s, 1));
        world_free(&w);
    }
}

Test(machine, a_suspended_graph_archives_nothing) /* [S-GEN-12] */
{
    static const enum pliant_state states[] = {EXE, RST, FLG, CAN, SWS};

    for (size_t i = 0; i < COUNT(states); i++) {
        struct world w = in_state(states[i]);

        if (states[i] != EXE)
            task_failed(&w); /* recorded */
        suspend(&w);
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
        cr_expect_eq(world_count(&w, PLIANT_ACT_FAILURE), 0, "%s", pliant_state_name(states[i]));
        cr_expect_null(pliant_failure_at(w.s, 0));
        world_free(&w);
    }
}

Test(machine, an_ended_job_stays_as_it_ended) /* [S-GEN-17, S-FIN-1] */
{
    static const struct {
        void (*first)(struct world *), (*then)(struct world *);
        enum pliant_state in;
        enum pliant_job_status status;
    } ends[] = {
        {cancel, all_canceled, EXE, PLIANT_JOB_CANCELED},
        {all_finished, cancel, EXE, PLIANT_JOB_FINISHED},
        {global_final, all_canceled, EXE, PLIANT_JOB_FAILED},
        {suspend, cancel, EXE, PLIANT_JOB_SUSPENDED},
        {cancel, suspend, WFR, PLIANT_JOB_CANCELED},
        {all_canceled, suspend, FLG, PLIANT_JOB_FAILED},
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        struct world w = in_state(ends[i].in);
        size_t archived = 0;

        ends[i].first(&w);
        archived += world_count(&w, PLIANT_ACT_ARCHIVED);
        ends[i].then(&w);
        archived += world_count(&w, PLIANT_ACT_ARCHIVED);
        for (size_t r = 0; r < COUNT(table); r++) {
            table[r].happens(&w);
            archived += world_count(&w, PLIANT_ACT_ARCHIVED);
        }
        cr_expect_eq(archived, 1, "row %zu", i);
        cr_expect_eq(pliant_job_status(w.s), ends[i].status, "row %zu", i);
        cr_expect_eq(pliant_state(w.s), FIN);
        world_free(&w);
    }
}

Test(machine, refuses_jobs_that_it_cannot_run) /* [S-GEN-14] */
{
    static const struct {
        int64_t parallelism;
        enum pliant_exchange exchange;
        bool fine;
    } rows[] = {{1, PLIANT_PIPELINED, true},
                {0, PLIANT_PIPELINED, true}, /* not fixed: 1 */
                {-1, PLIANT_PIPELINED, false},
                {1, PLIANT_BLOCKING, false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct pliant_vertex_spec vertices[] = {{.id = "a", .parallelism = rows[i].parallelism},
                                                {.id = "b", .parallelism = 1}};
        struct pliant_edge_spec edge = {0, 1, PLIANT_ALL_TO_ALL, rows[i].exchange};
        struct pliant_job_spec spec = {
            .vertices = vertices, .n_vertices = 2, .edges = &edge, .n_edges = 1};
        struct pliant_job *job = NULL;
        struct pliant_sched *s = NULL;
        struct pliant_config cfg;
        int error;

        pliant_config_init(&cfg);
        pliant_config_set(&cfg, "jobmanager.scheduler", "adaptive", NULL);
        error = pliant_job_new(&spec, NULL, &job, NULL);
        if (error == 0)
            error = pliant_sched_new(&cfg, job, &s, NULL);
        cr_expect_eq(error, rows[i].fine ? 0 : -EINVAL, "row %zu", i);
        pliant_sched_destroy(&s);
        pliant_job_destroy(&job);
    }
}

/* ---- time ------------------------------------------------------------------------------- */

Test(machine, time_does_not_go_back)
{
    struct world w = in_state(EXE);
    struct pliant_event tick = {.kind = PLIANT_EV_TICK};
    static const int64_t wrong[] = {999, -1, INT64_MIN, PLIANT_NEVER};
    struct pliant_actions acts = {.n = 7};

    world_to(&w, 1000);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        cr_expect_eq(pliant_step(w.s, wrong[i], &tick, &acts), -EINVAL);
        cr_expect_eq(acts.n, 0);
    }
    cr_expect_eq(pliant_step(w.s, 1000, &tick, &acts), 0, "the same instant is fine");
    world_free(&w);
}

Test(machine, timers_that_are_due_run_before_the_event) /* [S-WFR-11] */
{
    struct world w = in_state(CRE);

    slots(&w);
    world_lose(&w, "new");
    world_node(&w, "n1", 1); /* two: sufficient */
    world_start(&w);
    w.now_ms = 10000; /* stable at this instant; no tick has come before */
    world_node(&w, "n2", 2);
    cr_expect_eq(pliant_state(w.s), CEG);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_SUFFICIENT_RESOURCES);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 2, "without the new node");
    world_free(&w);
}

Test(machine, a_late_step_runs_what_was_due_in_order)
{
    struct world w = in_state(RST);

    all_canceled(&w);
    w.now_ms = 3600000;
    w.reserves = true;
    world_plain(&w, PLIANT_EV_TICK);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > WaitingForResources > CreatingExecutionGraph > "
                             "Executing"));
    cr_expect_eq(w.s->entered_at_ms, 3600000, "handlers see the time of the step");
    world_free(&w);
}

/* ---- nodes ------------------------------------------------------------------------------ */

static void node_up(struct world *w, const char *name, uint64_t incarnation, uint32_t n)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_NODE_UP,
                       .node_up = {.name = name, .incarnation = incarnation, .slots = n}});
}

Test(machine, an_older_or_equal_life_of_a_node_is_no_news) /* [S-GEN-4] */
{
    struct world w = in_state(WFR);
    uint64_t ignored = world_counts(&w).events_ignored;

    node_up(&w, "n7", 500, 1);
    cr_expect_eq(world_counts(&w).slots, 2);
    node_up(&w, "n7", 500, 1);
    node_up(&w, "n7", 499, 4);
    cr_expect_eq(world_counts(&w).slots, 2);
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 2);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST,
                                          .node = {.name = "n7", .incarnation = 499}});
    cr_expect_eq(world_counts(&w).slots, 2);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST,
                                          .node = {.name = "n7", .incarnation = 500}});
    cr_expect_eq(world_counts(&w).slots, 1);
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 3);
    world_free(&w);
}

Test(machine, a_node_that_comes_back_before_it_was_missed_was_lost)
{
    struct world w = in_state(EXE);

    world_node(&w, "n1", 4); /* a new life */
    cr_expect_eq(pliant_state(w.s), RST);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_NODE_LOST);
    cr_expect_eq(world_counts(&w).slots, 5);
    w.reserves = true;
    world_to(&w, 8000);
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    world_free(&w);
}

Test(machine, a_node_may_have_no_slots_yet)
{
    struct world w = in_state(WFR);

    node_up(&w, "n7", 500, 0);
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(world_counts(&w).nodes, 2);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n7", .incarnation = 9, .slots = 3}});
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n7", .slots = 0}});
    cr_expect_eq(world_counts(&w).slots, 1);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n7", .slots = 3}});
    cr_expect_eq(pliant_state(w.s), CEG, "granted slots are new resources");
    world_free(&w);
}

Test(machine, slots_granted_on_a_draining_node_are_no_news) /* [S-DRN-1] */
{
    struct world w = in_state(WFR);

    node_up(&w, "n7", 500, 0);
    world_drain(&w, "n7", 60000);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n7", .slots = 3}});
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(world_counts(&w).slots, 4);
    cr_expect_eq(world_counts(&w).slots_offered, 1);
    node_up(&w, "n7", 500, 3); /* up with the same life: the drain is withdrawn */
    cr_expect_eq(pliant_state(w.s), CEG);
    world_free(&w);
}

Test(machine, a_later_drain_notice_is_no_news) /* [S-DRN-3] */
{
    struct world w = in_state(WFR);
    uint64_t ignored = world_counts(&w).events_ignored;

    world_drain(&w, "spare", 60000);
    world_drain(&w, "spare", 60000);
    world_drain(&w, "spare", 0);
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 2);
    world_drain(&w, "spare", 30000);
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 2);
    world_drain(&w, "nobody", 30000);
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 3);
    world_free(&w);
}

Test(machine, nodes_of_an_ended_job_are_not_kept) /* [S-FIN-1] */
{
    struct world w = in_state(WFR);

    cancel(&w);
    world_node(&w, "n9", 4);
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(world_counts(&w).nodes, 1);
    world_free(&w);
}

/* ---- requirements, failures without a cause, idle slots ----------------------------------- */

Test(machine, requirements_of_an_ended_job_are_refused)
{
    struct world w = in_state(WFR);

    cancel(&w);
    wishes(&w);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_JOB_ENDED);
    world_free(&w);
}

Test(machine, a_wrong_update_changes_nothing) /* [S-REQ-1] */
{
    static const struct {
        const char *vertex;
        int64_t min, max;
    } wrong[] = {{"v", 0, 4}, {"v", 5, 4}, {"v", 1, 129}, {"nobody", 1, 4}, {NULL, 0, 0}};

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct world w = in_state(EXE);
        struct pliant_bounds bounds = {wrong[i].vertex, wrong[i].min, wrong[i].max};
        uint32_t min, max;

        world_event(&w, (struct pliant_event){
                            .kind = PLIANT_EV_REQUIREMENTS,
                            .requirements = {.v = &bounds, .n = wrong[i].vertex != NULL}});
        cr_expect_str_eq(world_emitted(&w), "refused", "row %zu", i);
        pliant_vertex_bounds(w.s, one, &min, &max);
        cr_expect(min == 2 && max == 4);
        world_free(&w);
    }
}

Test(machine, a_failure_without_a_cause_gets_one) /* [S-FAIL-8] */
{
    static const char *const causes[] = {NULL, ""};

    for (size_t i = 0; i < 2; i++) {
        struct world w = in_state(EXE);

        world_event(&w, (struct pliant_event){
                            .kind = PLIANT_EV_TASK_FAILED,
                            .failure = {{one, 0, 1}, .recoverable = true, .cause = causes[i]}});
        world_event(&w,
                    (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                          .failure = {.recoverable = true, .cause = causes[i]}});
        all_canceled(&w);
        cr_assert_eq(pliant_failure_at(w.s, 0)->n, 2);
        cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[0].cause, "missing cause");
        cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[1].cause, "missing cause");
        world_free(&w);
    }
}

/* WaitingForResources has none to spare: with all that it wants it is left. */
Test(machine, gives_idle_slots_back_in_every_state) /* [S-IDL-1] */
{
    static const enum pliant_state states[] = {RTY, EXE, RST, FLG, CAN, SWS};

    for (size_t i = 0; i < COUNT(states); i++) {
        struct world w = in_state(states[i]);
        struct pliant_counts before;

        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                              .granted = {.name = "spare", .slots = 6}});
        before = world_counts(&w);
        world_bounds(&w, 1, 2);
        w.reserves = states[i] == RTY;
        world_to(&w, w.now_ms + 100000);
        cr_expect_lt(world_counts(&w).slots, before.slots, "%s", pliant_state_name(states[i]));
        cr_expect_geq(world_counts(&w).slots, 2, "%s: what is wanted stays",
                      pliant_state_name(states[i]));
        world_free(&w);
    }
}

Test(machine, gives_nothing_back_while_a_plan_is_out) /* [S-IDL-1] */
{
    struct world w = in_state(CEG);

    slots(&w);
    world_to(&w, 200000);
    cr_expect_eq(world_counts(&w).slots, 9);
    plan_ready(&w);
    world_to(&w, 300000);
    cr_expect_eq(world_counts(&w).slots, 4, "after it");
    world_free(&w);
}

/* ---- malformed events ------------------------------------------------------------------- */

Test(machine, a_malformed_event_changes_nothing)
{
    static char long_name[PLIANT_NAME_MAX + 2];
    static const struct pliant_label bad_labels[] = {{NULL, "x"}, {"k", NULL}, {"", "x"}};
    static const struct pliant_bounds nameless = {NULL, 1, 2};
    const struct pliant_event wrong[] = {
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = NULL, .slots = 1}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "", .slots = 1}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = long_name, .slots = 1}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .zone = long_name}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .domain = long_name}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .slots = PLIANT_MAX_SLOTS + 1}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .slots = PLIANT_MAX_SLOTS}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .n_labels = 1}},
        {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n", .labels = bad_labels, .n_labels = 1}},
        {.kind = PLIANT_EV_NODE_UP,
         .node_up = {.name = "n", .labels = bad_labels + 1, .n_labels = 1}},
        {.kind = PLIANT_EV_NODE_UP,
         .node_up = {.name = "n", .labels = bad_labels + 2, .n_labels = 1}},
        {.kind = PLIANT_EV_NODE_DRAINING, .draining = {.name = NULL}},
        {.kind = PLIANT_EV_NODE_DRAINING, .draining = {.name = "n1", .reason = 99}},
        {.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN},
        {.kind = PLIANT_EV_NODE_LOST},
        {.kind = PLIANT_EV_SLOTS_GRANTED},
        {.kind = PLIANT_EV_SLOTS_GRANTED, .granted = {.name = "n1", .slots = UINT32_MAX}},
        {.kind = PLIANT_EV_SLOTS_RECLAIMED},
        {.kind = PLIANT_EV_CHECKPOINT_COMPLETED, .checkpoint = {.n_sizes = 1}},
        {.kind = PLIANT_EV_SAVEPOINT_COMPLETED, .checkpoint = {.n_sizes = 1}},
        {.kind = PLIANT_EV_REQUIREMENTS, .requirements = {.n = 1}},
        {.kind = PLIANT_EV_REQUIREMENTS, .requirements = {.v = &nameless, .n = 1}},
        {.kind = PLIANT_EVENTS},
        {.kind = (enum pliant_event_kind)1000},
    };

    memset(long_name, 'x', sizeof long_name - 1);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct world w = in_state(EXE);
        struct pliant_actions acts;
        struct pliant_counts before = world_counts(&w), after;

        cr_expect_eq(pliant_step(w.s, 5, &wrong[i], &acts), -EINVAL, "row %zu", i);
        after = world_counts(&w);
        cr_expect_eq(memcmp(&before, &after, sizeof before), 0, "row %zu", i);
        cr_expect_eq(pliant_step(w.s, 0, &(struct pliant_event){.kind = PLIANT_EV_TICK}, &acts), 0,
                     "row %zu: not even the time", i);
        world_free(&w);
    }
}
