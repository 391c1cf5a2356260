/* barrier.h - who of a worker group has come to a report or collective, and who is missing
 *
 * Pure: it keeps who is in and since when; what follows is the caller's.
 *
 * Units   _ms on the caller's clock; PLIANT_NEVER: nobody waits
 * Owner   barrier_free() frees; a barrier of zeros is an empty one of no ranks
 * Source  W-CKP-12, W-RLX-7
 */
#ifndef PLIANT_DAEMON_BARRIER_H
#define PLIANT_DAEMON_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct barrier {
    bool *in; /* [n] by rank */
    uint32_t n, n_in;
    int64_t since_ms;   /* the first one came */
    int64_t warn_at_ms; /* who is missing is worth a word again */
};

void barrier_resize(struct barrier *b, uint32_t n); /* and empty */
void barrier_clear(struct barrier *b);
void barrier_free(struct barrier *b);

/* False: it is in already. */
bool barrier_enter(struct barrier *b, uint32_t rank, int64_t now_ms, int64_t warn_after_ms);
bool barrier_complete(const struct barrier *b);

/* "1, 3-5": those that have not come, cut to fit. Returns `text`. */
const char *barrier_missing(const struct barrier *b, char *text, size_t size);
uint32_t barrier_first(const struct barrier *b); /* the lowest rank that is in; n: nobody */

/* ---- collectives ---------------------------------------------------------------------------- */

enum collective_kind { COLLECTIVE_DIR, COLLECTIVE_NOTICE };

/* The collectives of an attempt, one after the other. */
struct collective {
    struct barrier barrier;
    int64_t released; /* number of the last one that was let go; 0: none */
    char *payload;    /* of that, rank 0's [W-PRE-20]; JSON */
    char *error;      /* it came to nothing; NULL: it did not */

    enum collective_kind kind; /* of the one that is waited for */
    char *offered;             /* rank 0's payload; NULL: rank 0 is not in */
};

enum collective_verdict {
    COLLECTIVE_WAITS,
    COLLECTIVE_LET_GO, /* answer all that are in, then collective_clear() */
    COLLECTIVE_WAS,    /* answer this rank alone, as the last time: the first answer was lost */
    COLLECTIVE_WRONG,  /* answer this rank alone with the text: it is at another number */
};

struct collective_entry {
    uint32_t rank;
    int64_t number;
    enum collective_kind kind;
    const char *payload; /* JSON */
};

/* A rank enters. When all are in, or when one calls something else than the others, `released`,
 * `payload` and `error` say what all of them are told. */
enum collective_verdict collective_enter(struct collective *c, const struct collective_entry *e,
                                         int64_t now_ms, int64_t warn_after_ms, char *wrong,
                                         size_t wrong_size);
void collective_clear(struct collective *c);
void collective_begin(struct collective *c, uint32_t n); /* of a new attempt */
void collective_free(struct collective *c);

#endif
