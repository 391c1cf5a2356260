/* codec.h - one description of the state serves writing and reading it
 *
 * A codec either writes to a growing block or reads from a given one. Each function moves one
 * thing in the codec's direction, so that what is written and what is read cannot differ. When
 * reading, nothing is trusted: a count is checked against the bytes that are left, a truth value
 * is 0 or 1, and after the first fault nothing more is read.
 *
 * Shapes  numbers as they lie in memory; the header tells machines of another kind
 * Owner   codec_take() hands the block out; else codec_free()
 * Errors  `error`: 0, -ENOMEM, -EINVAL
 */
#ifndef PLIANT_STATES_CODEC_H
#define PLIANT_STATES_CODEC_H

#include "util/deadline.h"
#include "util/vec.h"

struct codec {
    const struct pliant_alloc *alloc;
    bool reading;
    int error;
    struct VEC(uint8_t) out;
    const uint8_t *in;
    size_t size, at;
};

/* Scalars only: no padding, no pointers, no bool. */
#define CODEC(c, scalar) codec_raw((c), &(scalar), sizeof(scalar))

void codec_raw(struct codec *c, void *scalar, size_t size);
void codec_bool(struct codec *c, bool *truth);
/* An enum-like byte or int below `end`. */
void codec_byte(struct codec *c, uint8_t *byte, uint8_t end);
#define CODEC_ENUM(c, field, end)                                                                  \
    do {                                                                                           \
        uint8_t codec_enum_ = (uint8_t)(field);                                                    \
        codec_byte((c), &codec_enum_, (uint8_t)(end));                                             \
        (field) = codec_enum_;                                                                     \
    } while (0)
/* NULL is kept. When reading, the text is the caller's. At most `max` bytes. */
void codec_text(struct codec *c, char **text, size_t max);
/* A count of things of at least `size_each` bytes in the block. */
void codec_count(struct codec *c, size_t *count, size_t size_each);
void codec_array(struct codec *c, uint32_t *v, size_t n);
void codec_deadline(struct codec *c, struct deadline *d);

/* Reading: is it in order? else -EINVAL. Writing: nothing. */
void codec_expect(struct codec *c, bool condition);
static inline bool codec_fine(const struct codec *c)
{
    return c->error == 0;
}
void codec_no_memory(struct codec *c);
uint64_t codec_sum(const uint8_t *bytes, size_t n);

#endif
