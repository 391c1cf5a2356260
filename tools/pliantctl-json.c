/* pliantctl-json.c - the service's documents: written again, and asked without fuss
 *
 * A viewer may be older or newer than the service, so what is missing is shown as missing.
 */
#include <string.h>

#include "pliantctl.h"
#include "spec/json_doc.h"
#include "util/decimal.h"

/* ---- written --------------------------------------------------------------------------------- */

enum exit_code ctl_print_reply(struct ctl *c)
{
    struct json j;
    int r;

    json_init(&j, stdout);
    json_doc(&j, NULL, c->reply.root);
    json_line(&j);
    r = json_flush(&j);
    json_free(&j);
    return r ? ctl_complain(NO_RESOURCES, "standard output: %s", strerror(-r)) : DONE;
}

/* ---- asked ----------------------------------------------------------------------------------- */

const char *ctl_text(const struct doc *map, const char *key)
{
    const struct doc *d = doc_get(map, key);

    return d && doc_is_scalar(d) ? d->text : "";
}

int64_t ctl_int(const struct doc *map, const char *key)
{
    const struct doc *d = doc_get(map, key);
    int64_t i;

    return d && doc_is_scalar(d) && decimal_read_int(d->text, &i) ? i : 0;
}

bool ctl_truth(const struct doc *map, const char *key)
{
    const struct doc *d = doc_get(map, key);

    return d && d->kind == DOC_BOOL && d->truth;
}

bool ctl_has(const struct doc *map, const char *key)
{
    const struct doc *d = doc_get(map, key);

    return d && d->kind != DOC_NULL;
}

const struct doc *ctl_first(const struct doc *map, const char *key)
{
    const struct doc *d = map ? doc_get(map, key) : NULL;

    return d ? d->child : NULL;
}
