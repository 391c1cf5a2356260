/* labels.c - any text as rules for labels, the rest of it as the failure that they look at */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "failover/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_labels(const struct label_rules *rules, const char *text)
{
    const struct label_facts facts = {(enum label_kind)(strlen(text) % 3), (uint8_t)strlen(text),
                                      text, text, text};
    struct pliant_label labels[LABEL_KEYS_MAX];
    uint32_t n = label_rules_apply(rules, &facts, labels);

    assert(n <= LABEL_KEYS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        assert(*labels[i].key && strlen(labels[i].key) <= LABEL_KEY_MAX);
        assert(*labels[i].value && strlen(labels[i].value) <= LABEL_VALUE_MAX);
        for (uint32_t k = 0; k < i; k++)
            assert(strcmp(labels[i].key, labels[k].key) != 0);
    }
}

/* Rules and a text of a failure, with an empty line between them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest, why[LABEL_WHY_MAX] = "";
    struct label_rules *rules = malloc(sizeof *rules); /* of its size: sanitizers see its end */

    if (text && rules) {
        memcpy(text, data, size);
        text[size] = '\0';
        rest = strstr(text, "\n\n");
        if (rest) {
            *rest = '\0';
            rest += 2;
        }
        if (label_rules_parse(text, rules, why))
            check_labels(rules, rest ? rest : "");
        else
            assert(*why && strlen(why) < LABEL_WHY_MAX);
        label_pattern_matches(text, rest ? rest : "");
    }
    free(rules);
    free(text);
    return 0;
}
