/* duration.c - any text as a duration: what is read writes back as the same */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), again[DURATION_TEXT_MAX];
    int64_t ms, same = 0;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (duration_parse(text, &ms) == 0) {
        duration_format(ms, again);
        assert(duration_parse(again, &same) == 0 && same == ms);
    }
    free(text);
    return 0;
}
