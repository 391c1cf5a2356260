/* http_reply.c - any bytes as what a metadata service answers */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *reply = malloc(size + 1);
    const char *body = NULL;
    int status;

    if (!reply)
        return 0;
    memcpy(reply, data, size);
    reply[size] = '\0';
    status = http_parse(reply, size, &body);
    if (status != 0 && (!body || body < reply || strlen(body) > size))
        abort();
    free(reply);
    return 0;
}
