/* labels.c - see labels.h */
#include "failover/labels.h"

#include <stdio.h>
#include <string.h>

#include "util/ascii.h"
#include "util/utf8.h"

#define SHOWN 32 /* bytes of what is wrong that an error repeats */
#define EXIT_CODE_MAX 255u

/* ---- patterns ------------------------------------------------------------------------------ */

static const char *next_letter(const char *text)
{
    for (text++; utf8_continues(*text); text++)
        ;
    return text;
}

bool label_pattern_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *taken = NULL; /* the last star, and where what it stands for ends */

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            taken = text;
        } else if (*pattern == '?') {
            pattern++;
            text = next_letter(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) { /* it stands for more; what stars before it stand for may stay */
            pattern = star + 1;
            text = ++taken;
        } else
            return false;
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* ---- reading rules -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum label_field field;
} fields[] = {
    {"cause", LABEL_FIELD_CAUSE}, {"node", LABEL_FIELD_NODE}, {"vertex", LABEL_FIELD_VERTEX},
    {"exit", LABEL_FIELD_EXIT},   {"kind", LABEL_FIELD_KIND},
};
#define N_FIELDS (sizeof fields / sizeof *fields)

static const char *const kinds[] = {
    [LABEL_KIND_TASK] = "task", [LABEL_KIND_GLOBAL] = "global", [LABEL_KIND_NODE] = "node"};
#define N_KINDS (sizeof kinds / sizeof *kinds)

/* Each word that is kept had something behind it, where its NUL goes: `room` lasts. */
struct reader {
    const char *text, *at;
    struct label_rules *rules;
    char *room;
    char *why;
};

static bool fail(struct reader *r, const char *at, const char *sentence)
{
    if (*at)
        snprintf(r->why, LABEL_WHY_MAX, "at byte %zu, \"%.*s\": %s", (size_t)(at - r->text) + 1,
                 (int)(strlen(at) > SHOWN ? utf8_cut(at, SHOWN) : strlen(at)), at, sentence);
    else
        snprintf(r->why, LABEL_WHY_MAX, "at the end: %s", sentence);
    return false;
}

static bool is_blank(char c)
{
    return c != '\n' && ascii_is_blank(c);
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(*r->at))
        r->at++;
}

static bool at_arrow(const char *at)
{
    return at[0] == '-' && at[1] == '>';
}

static bool ends_rule(const char *at)
{
    return *at == '\0' || *at == ';' || *at == '\n';
}

static bool ends_word(const char *at)
{
    return ends_rule(at) || *at == ',' || at_arrow(at);
}

static bool take(struct reader *r, char c)
{
    bool there;

    skip_blanks(r);
    there = *r->at == c;
    r->at += there;
    return there;
}

static const char *keep(struct reader *r, const char *word, size_t n)
{
    char *kept = r->room;

    memcpy(kept, word, n);
    kept[n] = '\0';
    r->room += n + 1;
    return kept;
}

static bool quoted_word(struct reader *r, const char **ret)
{
    const char *first = r->at + 1, *end = strchr(first, '"');

    if (!end)
        return fail(r, r->at, "the quotation mark has no second one");
    *ret = keep(r, first, (size_t)(end - first));
    r->at = end + 1;
    skip_blanks(r);
    return ends_word(r->at) ||
           fail(r, r->at,
                "accepted after a text in quotation marks: , -> ; or the end of the line");
}

static bool word(struct reader *r, const char **ret)
{
    const char *first, *end;

    skip_blanks(r);
    if (*r->at == '"')
        return quoted_word(r, ret);
    first = end = r->at;
    for (; !ends_word(r->at); r->at++)
        if (!is_blank(*r->at))
            end = r->at + 1;
    if (end == first)
        return fail(r, first, "accepted: a text after =");
    *ret = keep(r, first, (size_t)(end - first));
    return true;
}

/* Letters of a key, or of what is taken for a name. */
static size_t name_length(const char *at)
{
    size_t n = 0;

    for (;; n++) {
        char c = at[n];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !ascii_is_digit(c) &&
            (c == '\0' || !strchr("_.-/", c) || at_arrow(at + n)))
            return n;
    }
}

/* ---- conditions ----------------------------------------------------------------------------- */

static bool read_code(const char **at, uint8_t *ret)
{
    unsigned code = 0;

    while (ascii_is_digit(**at) && code <= EXIT_CODE_MAX)
        code = code * 10 + (unsigned)(*(*at)++ - '0');
    *ret = (uint8_t)code;
    return code >= 1 && code <= EXIT_CODE_MAX;
}

static bool read_exit(struct reader *r, const char *text, const char *at,
                      struct label_condition *ret)
{
    bool fine = read_code(&text, &ret->first);

    ret->last = ret->first;
    if (fine && *text == '-') {
        text++;
        fine = read_code(&text, &ret->last);
    }
    return (fine && *text == '\0' && ret->first <= ret->last) ||
           fail(r, at, "accepted: exit=, and a code from 1 to 255, or two as 129-255");
}

static bool read_kind(struct reader *r, const char *text, const char *at,
                      struct label_condition *ret)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i], text) == 0) {
            ret->kind = (enum label_kind)i;
            return true;
        }
    return fail(r, at, "accepted: kind=task, kind=global, kind=node");
}

static bool read_field(struct reader *r, enum label_field *ret)
{
    const char *name = r->at;
    size_t n = name_length(name);

    r->at += n;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strlen(fields[i].name) == n && memcmp(fields[i].name, name, n) == 0 && take(r, '=')) {
            *ret = fields[i].field;
            return true;
        }
    return fail(r, name, "accepted: cause=, exit=, kind=, node= or vertex=");
}

static bool condition(struct reader *r)
{
    struct label_rules *rules = r->rules;
    struct label_condition c = {0};
    const char *first, *text;

    skip_blanks(r);
    first = r->at;
    if (rules->n_conditions == LABEL_CONDITIONS_MAX)
        return fail(r, first, "more than " LABEL_NUMBER(LABEL_CONDITIONS_MAX) " conditions");
    if (!read_field(r, &c.field) || !word(r, &text))
        return false;
    c.pattern = text;
    if ((c.field == LABEL_FIELD_EXIT && !read_exit(r, text, first, &c)) ||
        (c.field == LABEL_FIELD_KIND && !read_kind(r, text, first, &c)))
        return false;
    rules->conditions[rules->n_conditions++] = c;
    return true;
}

/* ---- labels --------------------------------------------------------------------------------- */

static bool has_key(const struct pliant_label *labels, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(labels[i].key, key) == 0)
            return true;
    return false;
}

static uint32_t count_keys(const struct label_rules *rules)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rules->n_labels; i++)
        n += !has_key(rules->labels, i, rules->labels[i].key);
    return n;
}

/* `first_label`: of the rule that it belongs to. */
static bool label(struct reader *r, uint32_t first_label)
{
    struct label_rules *rules = r->rules;
    struct pliant_label l;
    const char *first;
    size_t n;

    skip_blanks(r);
    first = r->at;
    n = name_length(first);
    if (rules->n_labels == LABELS_MAX)
        return fail(r, first, "more than " LABEL_NUMBER(LABELS_MAX) " labels");
    r->at += n;
    if (n < 1 || n > LABEL_KEY_MAX || !take(r, '='))
        return fail(r, first,
                    "accepted: key=value, the key 1 to " LABEL_NUMBER(
                        LABEL_KEY_MAX) " of letters, digits and _ . - /");
    l.key = keep(r, first, n);
    if (!word(r, &l.value))
        return false;
    if (*l.value == '\0' || strlen(l.value) > LABEL_VALUE_MAX)
        return fail(r, first, "accepted: a value of 1 to " LABEL_NUMBER(LABEL_VALUE_MAX) " bytes");
    if (has_key(rules->labels + first_label, rules->n_labels - first_label, l.key))
        return fail(r, first, "the rule gives this key already");
    rules->labels[rules->n_labels++] = l;
    return count_keys(rules) <= LABEL_KEYS_MAX ||
           fail(r, first, "more than " LABEL_NUMBER(LABEL_KEYS_MAX) " keys");
}

/* ---- rules ---------------------------------------------------------------------------------- */

static bool conditions(struct reader *r)
{
    do {
        if (!condition(r))
            return false;
    } while (take(r, ','));
    if (!at_arrow(r->at))
        return fail(r, r->at, "accepted: , and one more condition, or -> and labels");
    r->at += strlen("->");
    return true;
}

static bool labels(struct reader *r)
{
    uint32_t first = r->rules->n_labels;

    do {
        if (!label(r, first))
            return false;
    } while (take(r, ','));
    return ends_rule(r->at) || fail(r, r->at, "accepted after a label: , ; or the end of the line");
}

static bool rule(struct reader *r)
{
    struct label_rules *rules = r->rules;
    struct label_rule *next = &rules->rules[rules->n_rules];

    if (rules->n_rules == LABEL_RULES_MAX)
        return fail(r, r->at, "more than " LABEL_NUMBER(LABEL_RULES_MAX) " rules");
    next->first_condition = rules->n_conditions;
    next->first_label = rules->n_labels;
    if (!conditions(r) || !labels(r))
        return false;
    next->end_condition = rules->n_conditions;
    next->end_label = rules->n_labels;
    rules->n_rules++;
    return true;
}

bool label_rules_parse(const char *text, struct label_rules *ret, char why[LABEL_WHY_MAX])
{
    struct reader r = {.text = text, .at = text, .rules = ret, .room = ret->text, .why = why};

    ret->n_rules = ret->n_conditions = ret->n_labels = 0;
    if (strlen(text) > PLIANT_FAILURE_LABELS_MAX)
        return fail(&r, text, "more than " LABEL_NUMBER(PLIANT_FAILURE_LABELS_MAX) " bytes");
    if (ascii_equal(text, "none"))
        return true;
    for (;;) {
        skip_blanks(&r);
        if (!ends_rule(r.at) && !rule(&r))
            return false;
        if (*r.at == '\0')
            break;
        r.at++;
    }
    return ret->n_rules > 0 || fail(&r, text, "no rule; accepted: rules, or none");
}

/* ---- applying them -------------------------------------------------------------------------- */

static bool holds(const struct label_condition *c, const struct label_facts *facts)
{
    switch (c->field) {
    case LABEL_FIELD_CAUSE:
        return label_pattern_matches(c->pattern, facts->cause);
    case LABEL_FIELD_NODE:
        return label_pattern_matches(c->pattern, facts->node);
    case LABEL_FIELD_VERTEX:
        return label_pattern_matches(c->pattern, facts->vertex);
    case LABEL_FIELD_EXIT:
        return facts->exit_code >= c->first && facts->exit_code <= c->last;
    case LABEL_FIELD_KIND:
        return facts->kind == c->kind;
    }
    return false;
}

static bool all_hold(const struct label_rules *rules, const struct label_rule *rule,
                     const struct label_facts *facts)
{
    for (uint32_t i = rule->first_condition; i < rule->end_condition; i++)
        if (!holds(&rules->conditions[i], facts))
            return false;
    return true;
}

uint32_t label_rules_apply(const struct label_rules *rules, const struct label_facts *facts,
                           struct pliant_label ret[LABEL_KEYS_MAX])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rules->n_rules; i++) {
        const struct label_rule *rule = &rules->rules[i];

        if (!all_hold(rules, rule, facts))
            continue;
        for (uint32_t k = rule->first_label; k < rule->end_label; k++)
            if (!has_key(ret, n, rules->labels[k].key)) /* the first that holds [P-FO-5] */
                ret[n++] = rules->labels[k];
    }
    return n;
}
