/* record.c - the rescale history as the states write it
 *
 * Opening and closing are news for the host (RESCALE_OPENED, RESCALE_CLOSED). */
#include "states/sched.h"

static void tell(struct pliant_sched *s, enum pliant_action_kind kind,
                 const struct rescale_record *record)
{
    emit(s, kind)->rescale.record = &record->view;
}

void record_open(struct pliant_sched *s, bool new_epoch, enum pliant_rescale_trigger trigger)
{
    if (timeline_open(&s->timeline, &s->prng, s->clock.now_ms, new_epoch, trigger, &s->bounds) < 0)
        sched_no_memory(s);
    if (s->timeline.open)
        tell(s, PLIANT_ACT_RESCALE_OPENED, s->timeline.open);
}

void record_restart(struct pliant_sched *s, enum pliant_rescale_trigger trigger)
{
    if (s->timeline.open)
        timeline_merge(&s->timeline, s->clock.now_ms, trigger);
    else
        record_open(s, false, trigger);
}

void record_span(struct pliant_sched *s)
{
    if (timeline_span(&s->timeline, s->state.id, s->entered_at_ms, s->clock.now_ms) < 0)
        sched_no_memory(s);
}

void record_close(struct pliant_sched *s, enum pliant_rescale_end end)
{
    struct rescale_record *record = s->timeline.open;

    if (!record)
        return;
    if (timeline_close(&s->timeline, s->clock.now_ms, end) < 0)
        sched_no_memory(s);
    tell(s, PLIANT_ACT_RESCALE_CLOSED, record);
}

/* The numbers change all the time; it is news when something else follows from them. */
void record_judged(struct pliant_sched *s, const struct pliant_judged *judged)
{
    struct pliant_judged *told = &s->state.executing.judged;
    struct pliant_action *act;

    if (s->timeline.open)
        s->timeline.open->view.judged = *judged;
    if (told->judgement == judged->judgement && told->from == judged->from &&
        told->to == judged->to)
        return;
    *told = *judged;
    act = emit(s, PLIANT_ACT_RESCALE_JUDGED);
    act->flag[0] = (uint8_t)judged->judgement;
    act->judged.from = judged->from;
    act->judged.to = judged->to;
    act->judged.gain = judged->gain;
    act->judged.cost = judged->cost;
}
