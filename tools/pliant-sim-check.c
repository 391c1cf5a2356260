/* pliant-sim-check.c - pliant-sim check: do cases come out as they must? */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pliant-sim.h"
#include "sim/check.h"
#include "sim/sentence.h"
#include "spec/json_out.h"

struct tally {
    enum report_format format;
    struct json json;
    unsigned passed, failed;
    enum exit_code code;
};

/* A field of CSV: in quotes, where it needs them. */
static void print_field(const char *text, const char *end)
{
    if (!strpbrk(text, ",\"\r\n")) {
        printf("%s%s", text, end);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    printf("\"%s", end);
}

static void tell(struct tally *t, const struct case_file *c, const struct check_verdict *v)
{
    const char *title = c->title ? c->title : "";

    switch (t->format) {
    case REPORT_TEXT:
        sentence_text(stdout, c->label);
        fputs(v->pass ? " pass " : " FAIL ", stdout);
        sentence_text(stdout, title);
        printf("%s%s\n", v->pass ? "" : ": ", v->why);
        return;
    case REPORT_CSV:
        print_field(c->label, ",");
        print_field(title, v->pass ? ",pass," : ",FAIL,");
        print_field(v->why, "\n");
        return;
    case REPORT_JSON:
        json_begin(&t->json, NULL, '{');
        json_string(&t->json, "case", c->label);
        json_string(&t->json, "title", title);
        json_bool(&t->json, "pass", v->pass);
        json_string(&t->json, "why", v->pass ? NULL : v->why);
        json_end(&t->json, '}');
        json_line(&t->json);
        return;
    }
}

static void check_file(struct tally *t, const char *path)
{
    struct case_file c;
    struct check_verdict verdict;
    struct spec_error err = {.text = ""};
    int r = case_read(path, &c, &err);
    bool readable = r == 0;

    if (readable)
        r = check_case(&c, &verdict, &err);
    if (r) {
        enum exit_code code = input_error(r, err.text);

        if (code > t->code)
            t->code = code;
        t->failed++;
    } else {
        tell(t, &c, &verdict);
        t->passed += verdict.pass;
        t->failed += !verdict.pass;
    }
    if (readable)
        case_free(&c);
}

static enum exit_code tell_sum(struct tally *t)
{
    if (t->format == REPORT_TEXT)
        printf("%u passed, %u failed\n", t->passed, t->failed);
    if (t->format == REPORT_JSON) {
        json_begin(&t->json, NULL, '{');
        json_uint(&t->json, "passed", t->passed);
        json_uint(&t->json, "failed", t->failed);
        json_end(&t->json, '}');
        json_line(&t->json);
        json_flush(&t->json);
    }
    if (t->json.error)
        return complain(NO_RESOURCES, "output: %s", strerror(-t->json.error));
    return finish(t->code != DONE ? t->code : t->failed ? ANSWER_IS_NO : DONE);
}

static enum exit_code check(int argc, char **argv, const struct command *self)
{
    static const struct option options[] = {FORMAT_OPTIONS, COMMON_OPTIONS};
    struct tally t = {.format = REPORT_TEXT};
    enum exit_code code;
    int option;

    while ((option = next_option(argc, argv, options, self, &code)) != -1)
        if (option == '?' || !take_format(option, &t.format))
            return option == '?' ? code : BAD_INPUT;
    if (optind == argc)
        return usage(self, "check: name at least one case");
    json_init(&t.json, stdout);
    if (t.format == REPORT_CSV)
        puts("case,title,verdict,why");
    for (int i = optind; i < argc; i++)
        check_file(&t, argv[i]);
    code = tell_sum(&t);
    json_free(&t.json);
    return code;
}

const struct command check_command = {
    .name = "check",
    .run = check,
    .summary = "runs cases and checks what comes out",
    .usage = "[--format text|json|csv] CASE...\n"
             "Run the job of each case on its trace and check what the case expects.\n"
             "One line a case, then 'N passed, M failed'.\n\n"
             "Exit code 1: a case failed.\n",
};
