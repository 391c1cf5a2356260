/* regional_codec.h - what hangs on the regions of a graph, in a snapshot
 *
 * Restarts of regions, who has finished, where results are, who is in line for slots, a batch job's
 * decided vertices and what was written for them, slow tasks and attempts that wait for a slot.
 * Regions themselves, and whatever follows from the rest, are found again when reading.
 *
 * Errors  the codec's
 */
#ifndef PLIANT_STATES_REGIONAL_CODEC_H
#define PLIANT_STATES_REGIONAL_CODEC_H

#include "states/codec.h"

struct pliant_sched;

/* Behind the pool and the graph. */
void regional_codec(struct codec *c, struct pliant_sched *s);

#endif
