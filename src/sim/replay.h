/* replay.h - does a recorded run come out the same again?
 *
 * Feeds a recording's events to a new scheduler and compares its actions, as text, byte for
 * byte. A recording that ends early, at the end of a line, is a prefix and replays as such.
 *
 * Errors  -EINVAL with *err (not a recording, or damaged), -ENOMEM: there is no verdict
 */
#ifndef PLIANT_SIM_REPLAY_H
#define PLIANT_SIM_REPLAY_H

#include "spec/recording.h"

struct replay_result {
    uint64_t steps; /* that came out the same */
    bool same;
    uint32_t line;  /* of the first difference */
    int64_t at_ms;  /* its instant */
    char *recorded; /* the actions there, as texts; replay_free() frees them */
    char *replayed;
};

int replay(struct recording *rec, struct replay_result *ret, struct spec_error *err);
void replay_free(struct replay_result *result);

#endif
