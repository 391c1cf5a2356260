/* case.c - any bytes as a case file */
#include <stdint.h>
#include <stdlib.h>

#include "spec/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spec_error err = {""};
    struct trace_event ev;
    struct case_file c;
    int r = case_parse("fuzz", (const char *)data, size, &c, &err);

    if (r < 0) {
        if (!*err.text)
            abort();
        return 0;
    }
    while ((r = trace_next(c.trace, &ev, &err)) == 1)
        ;
    case_free(&c);
    if (r < 0)
        abort(); /* the case was checked whole */
    return 0;
}
