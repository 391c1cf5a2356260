/* labels.h - rules that put labels on failures: pliant.failure-labels
 *
 *     cause=*out of memory*, node=gpu-* -> type=oom, owner=user; exit=129-255 -> type=killed
 *
 * A rule holds for a failure that meets all its conditions. For each key the first rule that holds
 * gives the value. Labels decide nothing [P-FO-5].
 *
 *     rules      [rule] { (";" | new line) [rule] } | "none"
 *     rule       condition { "," condition } "->" label { "," label }
 *     condition  ("cause" | "node" | "vertex") "=" word, a pattern of the whole text
 *                | "exit" "=" code [ "-" code ] | "kind" "=" ("task" | "global" | "node")
 *     label      key "=" word
 *     word       up to , ; -> or the end of the line, without blanks around it; or any text but
 *                quotation marks, between two of them
 *
 * Pure: reads texts, writes the caller's structs.
 * Owner   a parsed struct holds all its texts: it stays where it is, and labels point into it
 * Errors  parsing: false, and why, with the place
 */
#ifndef PLIANT_FAILOVER_LABELS_H
#define PLIANT_FAILOVER_LABELS_H

#include <pliant/pliant.h>

/* Plain numbers, so that texts can show them. */
#define LABEL_RULES_MAX 32
#define LABEL_CONDITIONS_MAX 64 /* of all rules together, as the next two */
#define LABELS_MAX 64
#define LABEL_KEYS_MAX 16 /* that differ: a failure has no more labels */
#define LABEL_KEY_MAX 64  /* bytes, as the next */
#define LABEL_VALUE_MAX 128
#define LABEL_WHY_MAX 200 /* bytes of what is wrong, as text */
#define LABEL_NUMBER_(n) #n
#define LABEL_NUMBER(n) LABEL_NUMBER_(n)

enum label_kind { LABEL_KIND_TASK, LABEL_KIND_GLOBAL, LABEL_KIND_NODE };

enum label_field {
    LABEL_FIELD_CAUSE,
    LABEL_FIELD_NODE,
    LABEL_FIELD_VERTEX,
    LABEL_FIELD_EXIT,
    LABEL_FIELD_KIND,
};

struct label_condition {
    enum label_field field;
    const char *pattern;  /* CAUSE, NODE, VERTEX */
    uint8_t first, last;  /* EXIT */
    enum label_kind kind; /* KIND */
};

struct label_rule {
    uint32_t first_condition, end_condition, first_label, end_label;
};

struct label_rules {
    uint32_t n_rules, n_conditions, n_labels;
    struct label_rule rules[LABEL_RULES_MAX];
    struct label_condition conditions[LABEL_CONDITIONS_MAX];
    struct pliant_label labels[LABELS_MAX];
    char text[PLIANT_FAILURE_LABELS_MAX + 1]; /* all patterns, keys and values */
};

/* What conditions look at; no text is NULL. */
struct label_facts {
    enum label_kind kind;
    uint8_t exit_code;                 /* 0: none */
    const char *cause, *node, *vertex; /* "": none */
};

/* False: `why` says what is wrong and what is accepted; *ret is then undefined. */
bool label_rules_parse(const char *text, struct label_rules *ret, char why[LABEL_WHY_MAX]);

/* How many labels a failure gets, and which. */
uint32_t label_rules_apply(const struct label_rules *rules, const struct label_facts *facts,
                           struct pliant_label ret[LABEL_KEYS_MAX]);

/* Does the pattern describe all of the text? `*` is any text, `?` one letter, all else itself.
 * Takes no longer than for each byte of the pattern once through the text. */
bool label_pattern_matches(const char *pattern, const char *text);

#endif
