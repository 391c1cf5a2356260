/* memory.c - what a daemon without memory does: it ends, and starts again from its store */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

void *need(void *memory)
{
    if (memory)
        return memory;
    fputs("level=error msg=\"out of memory\"\n", stderr);
    _Exit(4);
}

char *need_text(const char *s)
{
    return s ? need(strdup(s)) : NULL;
}

char *need_json(struct json *j)
{
    char *text = need(j->error ? NULL : strndup(j->v, j->n));

    json_free(j);
    return text;
}
