/* recording.c - any bytes as a recording; what can be read is written and read again the same */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spec/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* All of it, without the actions, as text into *j. */
static int copy(const char *text, size_t size, struct json *j)
{
    const struct pliant_actions none = {.n = 0};
    struct recording_step step;
    struct spec_error err = {""};
    struct recording *rec = NULL;
    const void *snapshot;
    size_t snapshot_size;
    int r = recording_of_text("fuzz", text, size, &rec, &err);

    json_init(j, NULL);
    if (r == 0) {
        snapshot = recording_snapshot(rec, &snapshot_size);
        recording_write_header(j, recording_job(rec), recording_config(rec), snapshot,
                               snapshot_size);
    }
    while (r >= 0 && (r = recording_next(rec, &step, &err)) == 1) {
        require(step.actions_size >= 2 && step.actions[0] == '[');
        recording_write_step(j, recording_job(rec), NULL, step.at_ms, &step.event, &none);
    }
    require(r == 0 || *err.text);
    recording_close(&rec);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json first, second;
    int r = copy((const char *)data, size, &first);

    if (r == 0) {
        require(copy(first.v, first.n, &second) == 0);
        require(first.n == second.n && memcmp(first.v, second.v, first.n) == 0);
        json_free(&second);
    }
    json_free(&first);
    return 0;
}
