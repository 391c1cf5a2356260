/* worker_line.c - any bytes as a line of a worker's socket */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/worker_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spec_error err = {""};
    struct doc_file f = {0};
    struct worker_line line;
    const char *code;
    int r = worker_line_read(&f, (const char *)data, size, &line, &code, &err);

    if (r == -EINVAL && (!*err.text || !*code))
        abort(); /* whoever sent it must be told why */
    if (r == 0 && (line.number < 0 || line.bytes < 0))
        abort();
    doc_free(&f);
    return 0;
}
