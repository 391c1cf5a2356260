/* json_doc.c - see json_doc.h */
#include "spec/json_doc.h"

#include <string.h>

static void put_key(struct json *j, const char *key)
{
    json_string(j, NULL, key);
    j->comma = false;
    json_raw(j, NULL, ":", 1);
    j->comma = false;
}

void json_doc(struct json *j, const char *key, const struct doc *d)
{
    switch (d ? d->kind : DOC_NULL) {
    case DOC_NULL:
        json_null(j, key);
        return;
    case DOC_BOOL:
        json_bool(j, key, d->truth);
        return;
    case DOC_NUMBER:
        json_raw(j, key, d->text, strlen(d->text));
        return;
    case DOC_STRING:
        json_string(j, key, d->text);
        return;
    case DOC_LIST:
    case DOC_MAP:
        break;
    }
    json_begin(j, key, d->kind == DOC_MAP ? '{' : '[');
    for (const struct doc *c = d->child; c; c = c->next) {
        if (d->kind == DOC_MAP)
            put_key(j, c->key); /* any bytes: json_doc()'s own key is plain ASCII */
        json_doc(j, NULL, c);
    }
    json_end(j, d->kind == DOC_MAP ? '}' : ']');
}

char *json_doc_text(const struct doc *d, const char *if_none)
{
    struct json j;
    char *text;

    if (!d || d->kind == DOC_NULL)
        return strdup(if_none);
    json_init(&j, NULL);
    json_doc(&j, NULL, d);
    text = j.error ? NULL : strndup(j.v, j.n);
    json_free(&j);
    return text;
}
