/* sentence.h - why the job did what it did, in words
 *
 *     rescale 2 -> 4: 4 slots since 15.000, checkpoint 4 done
 *     n1 lost (2 of 4 slots in use), back-off 1 s
 *
 * The scheduler gives codes and numbers; these are the sentences that people read.
 *
 * Errors  none: what can't be written shows on the stream
 */
#ifndef PLIANT_SIM_SENTENCE_H
#define PLIANT_SIM_SENTENCE_H

#include <stdio.h>

#include "sim/view.h"

/* Why this state was left for the next one. `a` is a STATE_CHANGED action of the view's step. */
void sentence_of_change(FILE *out, const struct view *v, const struct pliant_action *a);

/* Slot-ms as slot-seconds: whole ones, and what is small to the ms. */
void sentence_slot_seconds(FILE *out, int64_t slot_ms);

/* What a rescale would bring and cost, and what follows. `a` is a RESCALE_JUDGED action. */
void sentence_of_judgement(FILE *out, const struct pliant_action *a);

/* Why a wish was refused. */
void sentence_of_refusal(FILE *out, const struct view *v, const struct pliant_action *a);

/* "node lost", "task failed", ...: what made a restart necessary, for counting. */
const char *sentence_of_cause(enum pliant_reason reason);

/* Text of others without its control characters, cut if it is very long. */
void sentence_text(FILE *out, const char *text);

#endif
