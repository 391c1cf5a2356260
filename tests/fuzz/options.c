/* options.c - any text as an option file, and its first line as -D */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "spec/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_warning(void *ctx, const char *text)
{
    (void)ctx;
    assert(strlen(text) > 0);
}

/* A resolved config stays as it is, and is made again from its texts. */
static void check_config(const struct pliant_config *cfg)
{
    const struct pliant_option *option;
    struct pliant_config again = *cfg, copy;
    char text[PLIANT_FAILURE_LABELS_MAX + 1];

    assert(pliant_config_resolve(&again, NULL) == 0 && memcmp(&again, cfg, sizeof again) == 0);
    pliant_config_init(&copy);
    for (size_t i = 0; (option = pliant_option_at(i)) != NULL; i++)
        if (pliant_config_get(cfg, option->key, text, sizeof text) > 0)
            assert(pliant_config_set(&copy, option->key, text, NULL) == 0);
    assert(pliant_config_resolve(&copy, NULL) == 0);
}

static void define_first_line(struct options *o, const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);
    size_t n = end ? (size_t)(end - text) : size;
    char *line = malloc(n + 1);
    struct spec_error err;

    if (!line)
        return;
    memcpy(line, text, n);
    line[n] = '\0';
    options_define(o, line, &err);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct options o = {0};
    struct pliant_config cfg;
    struct doc_file f;
    struct spec_error err;

    define_first_line(&o, text, size);
    if (doc_parse("fuzz", text, size, 1, &f, &err) == 0) {
        options_add(&o, OPTIONS_FILE, &f, f.root, &err);
        doc_free(&f);
    }
    if (options_resolve(&o, &cfg, &err) == 0)
        check_config(&cfg);
    options_warn(&o, ignore_warning, NULL);
    options_free(&o);
    return 0;
}
