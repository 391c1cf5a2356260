/* doc_build.h - what the decoders of JSON and YAML share: memory and errors of a document
 *
 * For doc.c, doc_json.c and doc_yaml.c only.
 */
#ifndef PLIANT_SPEC_DOC_BUILD_H
#define PLIANT_SPEC_DOC_BUILD_H

#include "spec/doc.h"

/* Chunks in the order of their use; what a reset leaves behind is used again. */
struct doc_arena {
    struct doc_chunk *first, *now;
    char *free; /* what is left of `now` */
    size_t left;
    bool failed;
};

void *doc_alloc_chunk(struct doc_arena *arena, size_t size);

/* Memory that lives as long as the document, aligned for every type in it; NULL: no memory. */
static inline void *doc_alloc(struct doc_arena *arena, size_t size)
{
    size_t aligned = (size + 7) & ~(size_t)7;
    void *block = arena->free;

    if (arena->left < aligned || aligned < size)
        return doc_alloc_chunk(arena, size);
    arena->free += aligned;
    arena->left -= aligned;
    return block;
}

char *doc_copy(struct doc_arena *arena, const char *text, size_t size);

/* A place in the text. */
struct doc_place {
    uint32_t line, column; /* from 1 */
};

/* "file:line:column: " and the formatted rest into *err; returns -EINVAL. */
int doc_syntax_error(const struct doc_file *f, struct doc_place at, struct spec_error *err,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Put a child behind `*tail`, the link that is NULL now, and move on. */
void doc_append(struct doc *parent, struct doc ***tail, struct doc *child);

/* A map has all its children: is each key there once? 0, -EINVAL, -ENOMEM. */
int doc_check_keys(const struct doc_file *f, const struct doc *map, struct spec_error *err);

/* Decode into f->root. The text is valid UTF-8 without control characters. */
int doc_decode_json(struct doc_file *f, const char *text, size_t size, uint32_t first_line,
                    struct spec_error *err);
int doc_decode_yaml(struct doc_file *f, const char *text, size_t size, uint32_t first_line,
                    struct spec_error *err);

#endif
