/* json_doc.h - a decoded value written again as JSON: numbers and keys as they were */
#ifndef PLIANT_SPEC_JSON_DOC_H
#define PLIANT_SPEC_JSON_DOC_H

#include "spec/doc.h"
#include "spec/json_out.h"

/* `d` NULL is null. Numbers keep their digits if the document was JSON. */
void json_doc(struct json *j, const char *key, const struct doc *d);

/* As a text of its own, which the caller frees; if_none where `d` is NULL or null. NULL: no memory.
 */
char *json_doc_text(const struct doc *d, const char *if_none);

#endif
