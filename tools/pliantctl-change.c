/* pliantctl-change.c - the commands that change something */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pliantctl.h"
#include "spec/job_spec.h"

/* The answer for programs, or a sentence. */
static enum exit_code told(struct ctl *c, const char *sentence, const char *of)
{
    if (c->given[CTL_JSON])
        return ctl_print_reply(c);
    ctl_put(stdout, of);
    printf("%s\n", sentence);
    return DONE;
}

/* ---- submit ---------------------------------------------------------------------------------- */

/* The whole text of a file, or of standard input. */
static enum exit_code read_text(const char *path, char **ret)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *in = standard ? stdin : fopen(path, "r");
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    int error;

    if (!in)
        return ctl_complain(BAD_INPUT, "%s: %s", path, strerror(errno));
    errno = 0;
    n = getdelim(&text, &cap, '\0', in); /* text has no byte 0 */
    error = errno;
    if (!standard)
        fclose(in);
    if (n > 0 && text[n - 1] != '\0' && n <= JOB_SPEC_FILE_MAX) {
        *ret = text;
        return DONE;
    }
    free(text);
    if (n < 0 && error)
        return ctl_complain(error == ENOMEM ? NO_RESOURCES : BAD_INPUT, "%s: %s", path,
                            strerror(error));
    if (n <= 0)
        return ctl_complain(BAD_INPUT, "%s: is empty", path);
    if (n > JOB_SPEC_FILE_MAX)
        return ctl_complain(BAD_INPUT, "%s: a job has at most %u bytes", path, JOB_SPEC_FILE_MAX);
    return ctl_complain(BAD_INPUT, "%s: is no text: it holds a byte 0", path);
}

/* [["name","value"]...] of every -D. */
static bool add_defines(const struct ctl *c, struct json *j)
{
    json_begin(j, "options", '[');
    for (size_t i = 0; i < c->defines.n; i++) {
        const char *text = c->defines.v[i], *equals = strchr(text, '=');
        char *name = equals && equals > text ? strndup(text, (size_t)(equals - text)) : NULL;

        if (!name) {
            ctl_usage(c, "-D: NAME=VALUE, not \"%s\"", text);
            return false;
        }
        json_begin(j, NULL, '[');
        json_string(j, NULL, name);
        json_string(j, NULL, equals + 1);
        json_end(j, ']');
        free(name);
    }
    json_end(j, ']');
    return true;
}

static enum exit_code print_plan(struct ctl *c)
{
    static const char *const heads[] = {"vertex", ">parallelism"};
    const struct doc *root = c->reply.root, *slots = doc_get(root, "slots");
    struct ctl_table t;

    ctl_put(stdout, ctl_text(root, "name"));
    printf(" is fine; it would be %s", ctl_text(root, "state"));
    if (slots)
        printf(": %s slots offered, %s needed, %s wanted", ctl_text(slots, "offered"),
               ctl_text(slots, "needed"), ctl_text(slots, "desired"));
    fputs("\n\n", stdout);
    ctl_table_start(&t, heads, 2);
    for (const struct doc *v = ctl_first(root, "vertices"); v; v = v->next) {
        ctl_cell(&t, "%s", v->key);
        ctl_cell(&t, "%s", ctl_text(v, "parallelism"));
    }
    return ctl_table_end(&t, stdout);
}

/* A name that is used again by accident goes on with the old run: that is worth a word [W-DRV-3].
 */
static void say_resumed(const struct ctl *c)
{
    const struct doc *run = doc_get(c->reply.root, "resumed"),
                     *age = run ? doc_get(run, "age_ms") : NULL;
    const struct doc *checkpoint = run ? doc_get(run, "checkpoint") : NULL;
    char span[CTL_TIME_TEXT];

    if (!run || run->kind != DOC_MAP)
        return;
    fputs("pliantctl: the run ", stderr);
    ctl_put(stderr, ctl_text(run, "run"));
    fprintf(stderr, " was begun %s ago; it goes on from ",
            ctl_span(span, age && age->kind == DOC_NUMBER ? (int64_t)age->number : 0));
    ctl_put(stderr, checkpoint && checkpoint->kind == DOC_STRING ? checkpoint->text : "its start");
    fputs("\n", stderr);
}

static enum exit_code submitted(struct ctl *c)
{
    enum exit_code code;
    char *job;

    if (c->given[CTL_DRY_RUN])
        return c->given[CTL_JSON] ? ctl_print_reply(c) : print_plan(c);
    say_resumed(c);
    code = told(c, "", ctl_text(c->reply.root, "job"));
    if (code != DONE || !c->given[CTL_WAIT])
        return code;
    fflush(stdout);
    job = strdup(ctl_text(c->reply.root, "job"));
    code = job ? ctl_wait_end(c, job) : ctl_complain(NO_RESOURCES, "no memory");
    free(job);
    return code;
}

enum exit_code ctl_submit(struct ctl *c)
{
    struct json *j = ctl_request(c);
    char *text = NULL;
    enum exit_code code;

    if (!add_defines(c, j))
        return BAD_INPUT;
    code = read_text(c->words[0], &text);
    if (code != DONE)
        return code;
    json_string(j, "spec", text);
    free(text);
    json_string(j, "file", strcmp(c->words[0], "-") == 0 ? "<stdin>" : c->words[0]);
    json_bool(j, "dry_run", c->given[CTL_DRY_RUN]);
    if (c->given[CTL_ID])
        json_string(j, "id", c->given[CTL_ID]);
    code = ctl_call(c, MESSAGE_SUBMIT);
    return code == DONE ? submitted(c) : code;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* A vertex's name is any bytes: as a key it is written like a string. */
static void begin_named(struct json *j, const char *name)
{
    json_string(j, NULL, name);
    j->comma = false;
    json_raw(j, NULL, ":", 1);
    j->comma = false;
    json_begin(j, NULL, '{');
}

/* VERTEX=MAX or VERTEX=MIN:MAX; a vertex's name may hold '='. */
static bool add_bounds(const struct ctl *c, struct json *j, const char *word)
{
    const char *equals = strrchr(word, '='), *colon = equals ? strchr(equals, ':') : NULL;
    char number[32] = "1";
    int64_t min = 1, max;
    char *name;

    if (!equals || equals == word) {
        ctl_usage(c, "scale: VERTEX=MAX or VERTEX=MIN:MAX, not \"%s\"", word);
        return false;
    }
    if (colon)
        snprintf(number, sizeof number, "%.*s", (int)(colon - equals - 1), equals + 1);
    if (!ctl_take_number(word, number, 1, UINT32_MAX, &min) ||
        !ctl_take_number(word, colon ? colon + 1 : equals + 1, min, UINT32_MAX, &max))
        return false;
    name = strndup(word, (size_t)(equals - word));
    if (!name) {
        ctl_complain(NO_RESOURCES, "no memory");
        return false;
    }
    begin_named(j, name);
    free(name);
    json_int(j, "min", min);
    json_int(j, "max", max);
    json_end(j, '}');
    return true;
}

enum exit_code ctl_scale(struct ctl *c)
{
    struct json *j = ctl_request_of(c, "job");
    enum exit_code code;

    if (c->n_words < 2)
        return ctl_usage(c, "scale: VERTEX=MAX is missing");
    json_begin(j, "vertices", '{');
    for (size_t i = 1; i < c->n_words; i++)
        if (!add_bounds(c, j, c->words[i]))
            return BAD_INPUT;
    json_end(j, '}');
    code = ctl_call(c, MESSAGE_SCALE);
    return code == DONE ? told(c, ": the new bounds hold", c->words[0]) : code;
}

enum exit_code ctl_cancel(struct ctl *c)
{
    enum exit_code code = c->given[CTL_WAIT] ? ctl_settle_job(c) : DONE;

    if (code != DONE)
        return code;
    ctl_request_of(c, "job");
    code = ctl_call(c, MESSAGE_CANCEL);
    if (code != DONE)
        return code;
    if (c->given[CTL_WAIT])
        return ctl_wait_end(c, c->words[0]);
    return told(c, "", ctl_text(c->reply.root, "job_status"));
}

static enum exit_code savepoint(struct ctl *c, enum message_type type, const char *flag, bool set)
{
    struct json *j = ctl_request_of(c, "job");
    enum exit_code code;

    if (c->given[CTL_DIR])
        json_string(j, "dir", c->given[CTL_DIR]);
    json_bool(j, flag, set);
    code = ctl_call_long(c, type);
    return code == DONE ? told(c, "", ctl_text(c->reply.root, "savepoint")) : code;
}

enum exit_code ctl_remove(struct ctl *c)
{
    enum exit_code code;

    json_bool(ctl_request_of(c, "job"), "force", c->given[CTL_FORCE]);
    code = ctl_call(c, MESSAGE_REMOVE);
    if (code != DONE)
        return code;
    return told(c, ctl_truth(c->reply.root, "removed") ? ": removed" : ": there is no such job",
                ctl_text(c->reply.root, "job"));
}

enum exit_code ctl_stop(struct ctl *c)
{
    return savepoint(c, MESSAGE_STOP_JOB, "drain", c->given[CTL_DRAIN]);
}

enum exit_code ctl_savepoint(struct ctl *c)
{
    return savepoint(c, MESSAGE_SAVEPOINT, "cancel", c->given[CTL_CANCEL]);
}

enum exit_code ctl_checkpoint(struct ctl *c)
{
    enum exit_code code;

    ctl_request_of(c, "job");
    code = ctl_call(c, MESSAGE_TAKE_CHECKPOINT);
    return code == DONE ? told(c, ": a checkpoint is asked for", c->words[0]) : code;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

enum exit_code ctl_drain(struct ctl *c)
{
    struct json *j = ctl_request_of(c, "node");
    enum exit_code code;
    int64_t ms;

    if (c->given[CTL_DEADLINE]) {
        if (!ctl_take_duration("--deadline", c->given[CTL_DEADLINE], &ms))
            return BAD_INPUT;
        json_int(j, "deadline_ms", ms);
    }
    if (c->given[CTL_REASON] && !ctl_take_choice(c, CTL_REASON))
        return BAD_INPUT;
    json_string(j, "reason", c->given[CTL_REASON] ? c->given[CTL_REASON] : "upgrade");
    code = ctl_call(c, MESSAGE_DRAIN_NODE);
    return code == DONE ? told(c, " drains", c->words[0]) : code;
}

enum exit_code ctl_undrain(struct ctl *c)
{
    enum exit_code code;

    ctl_request_of(c, "node");
    code = ctl_call(c, MESSAGE_UNDRAIN_NODE);
    return code == DONE ? told(c, " is in use again", c->words[0]) : code;
}

/* ---- the service ----------------------------------------------------------------------------- */

enum exit_code ctl_shutdown(struct ctl *c)
{
    enum exit_code code;

    json_bool(ctl_request(c), "stop_jobs", c->given[CTL_STOP_JOBS]);
    code = ctl_call(c, MESSAGE_SHUTDOWN);
    return code == DONE ? told(c, "pliantd ends", "") : code;
}

enum exit_code ctl_ping(struct ctl *c)
{
    char span[CTL_TIME_TEXT], tried[5120];
    const struct doc *root;
    enum exit_code code;
    bool well;

    ctl_request(c);
    code = ctl_call(c, MESSAGE_PING);
    if (code != DONE)
        return code;
    root = c->reply.root;
    well = strcmp(ctl_text(root, "state"), "ok") == 0;
    if (c->given[CTL_JSON])
        code = ctl_print_reply(c);
    else
        printf("pliantd %s at %s: %s, process %s, epoch %s, up for %s\n", ctl_text(root, "version"),
               ctl_tried(c, tried, sizeof tried), ctl_text(root, "state"), ctl_text(root, "pid"),
               ctl_text(root, "epoch"), ctl_span(span, ctl_int(root, "uptime_ms")));
    return code == DONE && !well ? ANSWER_IS_NO : code;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static enum exit_code print_keys(const char *dir, const char *name, const char *role)
{
    struct json j;
    char path[4096];
    int r;

    json_init(&j, stdout);
    json_begin(&j, NULL, '{');
    snprintf(path, sizeof path, "%s/%s.key_secret", dir, name);
    json_string(&j, "secret", path);
    snprintf(path, sizeof path, "%s/%s.key", dir, name);
    json_string(&j, "public", path);
    json_string(&j, "role", role);
    json_end(&j, '}');
    json_line(&j);
    r = json_flush(&j);
    json_free(&j);
    return r ? ctl_complain(NO_RESOURCES, "standard output: %s", strerror(-r)) : DONE;
}

enum exit_code ctl_keygen(struct ctl *c)
{
    const char *keys = c->given[CTL_KEYS], *role = c->given[CTL_ROLE], *out = c->given[CTL_OUTPUT];
    const char *node = c->given[CTL_NODE];
    struct spec_error err = {.text = ""};
    bool server;
    int r;

    if (!role)
        return ctl_usage(c, "keygen: --role is missing");
    if (!ctl_take_choice(c, CTL_ROLE))
        return BAD_INPUT;
    if (node && strcmp(role, "agent") != 0)
        return ctl_usage(c, "keygen: --node goes with --role agent");
    server = strcmp(role, "server") == 0;
    if (!out)
        out = server && keys ? keys : ".";
    /* a server's own key is no peer's: it is not let in */
    r = rpc_keygen(server ? NULL : keys, c->words[0], message_role_of(role), node, out, &err);
    if (r)
        return ctl_complain(r == -ENOMEM || r == -ENOSPC || r == -EIO ? NO_RESOURCES : BAD_INPUT,
                            "%s", *err.text ? err.text : strerror(-r));
    if (!c->given[CTL_JSON]) {
        printf("%s/%s.key_secret\n%s/%s.key\n", out, c->words[0], out, c->words[0]);
        return DONE;
    }
    return print_keys(out, c->words[0], role);
}
