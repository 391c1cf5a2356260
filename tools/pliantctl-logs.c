/* pliantctl-logs.c - pliantctl logs: what a task has printed, and pliantctl record */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pliantctl.h"
#include "sim/output.h"

#define PIECE_MAX (256 * 1024) /* bytes asked for at a time */
#define IDLE_MIN_MS 200        /* between two looks at a task that prints nothing */
#define IDLE_MAX_MS 1000

/* ---- logs ------------------------------------------------------------------------------------ */

struct log {
    struct ctl *c;
    char *vertex;
    int64_t subtask, attempt; /* attempt 0: the service knows none */
    int64_t offset;
    bool json;
    bool patient; /* what is not there now may come: the service, the node, the next attempt */
};

/* ctl_call(), but a patient one says nothing of what will be asked again. */
static enum exit_code ask(struct log *log, enum message_type type)
{
    struct ctl *c = log->c;
    struct rpc_refusal refusal;
    int r;

    if (!log->patient)
        return ctl_call(c, type);
    if (!c->link && !ctl_reopen(c))
        return NO_CONNECTION;
    r = ctl_try(c, type, c->timeout_ms > INT32_MAX ? INT32_MAX : (int)c->timeout_ms, &refusal);
    if (!r)
        return DONE;
    if (r == -EPROTO)
        return ANSWER_IS_NO;
    ctl_reopen(c);
    return r == -ENOMEM ? NO_RESOURCES : NO_CONNECTION;
}

/* VERTEX/SUBTASK; a vertex's name may hold '/'. */
static enum exit_code parse_task(struct log *log, const char *word)
{
    const char *slash = strrchr(word, '/');

    if (!slash || slash == word)
        return ctl_usage(log->c, "logs: VERTEX/SUBTASK, not \"%s\"", word);
    if (!ctl_take_number("subtask", slash + 1, 0, UINT32_MAX, &log->subtask))
        return BAD_INPUT;
    log->vertex = strndup(word, (size_t)(slash - word));
    return log->vertex ? DONE : ctl_complain(NO_RESOURCES, "no memory");
}

/* The newest attempt of the task that the job has now. */
static enum exit_code newest_attempt(struct log *log, int64_t *ret)
{
    enum exit_code code;

    ctl_request_of(log->c, "job");
    code = ask(log, MESSAGE_TASKS_OF);
    *ret = 0;
    if (code != DONE)
        return code;
    for (const struct doc *t = ctl_first(log->c->reply.root, "tasks"); t; t = t->next)
        if (strcmp(ctl_text(t, "vertex"), log->vertex) == 0 &&
            ctl_int(t, "subtask") == log->subtask && ctl_int(t, "attempt") > *ret)
            *ret = ctl_int(t, "attempt");
    return DONE;
}

static enum exit_code read_piece(struct log *log, int64_t offset, int64_t max)
{
    struct json *j = ctl_request_of(log->c, "job");

    json_string(j, "vertex", log->vertex);
    json_int(j, "subtask", log->subtask);
    if (log->attempt)
        json_int(j, "attempt", log->attempt);
    json_string(j, "stream", log->c->given[CTL_STDERR] ? "stderr" : "stdout");
    json_int(j, "offset", offset);
    json_int(j, "max", max);
    return ask(log, MESSAGE_LOGS);
}

/* As it was printed: this is the task's own text, for a pipe or a file too. */
static enum exit_code print_piece(struct log *log)
{
    if (log->json)
        return ctl_print_reply(log->c);
    fputs(ctl_text(log->c->reply.root, "data"), stdout);
    return ctl_finish(DONE);
}

/* All that is there now. */
static enum exit_code print_rest(struct log *log, bool *ret_ended, bool *ret_news)
{
    enum exit_code code;
    int64_t next;

    *ret_news = false;
    do {
        code = read_piece(log, log->offset, PIECE_MAX);
        if (code != DONE)
            return code;
        next = ctl_int(log->c->reply.root, "next");
        *ret_ended = ctl_truth(log->c->reply.root, "ended");
        if (next <= log->offset)
            return DONE;
        *ret_news = true;
        log->offset = next;
        code = print_piece(log);
    } while (code == DONE && next < ctl_int(log->c->reply.root, "size"));
    return code;
}

/* Where in text the last *lines lines begin; false, and *lines fewer: before it. */
static bool lines_from_end(const char *text, int64_t *lines, size_t *ret)
{
    for (size_t i = strlen(text); i > 0; i--)
        if (text[i - 1] == '\n' && (*lines)-- == 0) {
            *ret = i;
            return true;
        }
    return false;
}

/* From the end backwards, a piece at a time, until enough lines have been seen. */
static enum exit_code seek_tail(struct log *log, int64_t lines)
{
    const struct doc *root;
    enum exit_code code = read_piece(log, -(int64_t)PIECE_MAX, PIECE_MAX);
    const char *data;
    size_t at;

    if (code != DONE)
        return code;
    root = log->c->reply.root;
    data = ctl_text(root, "data");
    lines -= *data && data[strlen(data) - 1] != '\n'; /* the last line may have no end yet */
    for (;;) {
        int64_t end = ctl_int(root, "offset"), begin = end > PIECE_MAX ? end - PIECE_MAX : 0;

        log->offset = end;
        if (lines_from_end(ctl_text(root, "data"), &lines, &at)) {
            log->offset += (int64_t)at;
            return DONE;
        }
        if (end == 0)
            return DONE;
        code = read_piece(log, begin, end - begin);
        if (code != DONE)
            return code;
        root = log->c->reply.root;
    }
}

static bool job_has_ended(struct log *log)
{
    ctl_request_of(log->c, "job");
    return ask(log, MESSAGE_STATUS) == DONE &&
           ctl_status_is_final(ctl_text(log->c->reply.root, "job_status"));
}

static void nap(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The attempt is over and printed: on with a newer one, if there is one. */
static enum exit_code next_attempt(struct log *log, bool *ret_over)
{
    enum exit_code code;
    int64_t newest;

    *ret_over = false;
    if (job_has_ended(log)) {
        *ret_over = true;
        return DONE;
    }
    code = newest_attempt(log, &newest);
    if (code != DONE || newest <= log->attempt)
        return code;
    if (!log->json) {
        fflush(stdout);
        ctl_complain(DONE, "%s/%lld, attempt %lld", log->vertex, (long long)log->subtask,
                     (long long)newest);
    }
    log->attempt = newest;
    log->offset = 0;
    return DONE;
}

/* What is out of reach now is looked for again; what cannot be written ends it. */
static bool is_passing(enum exit_code code)
{
    return code == ANSWER_IS_NO || code == NO_CONNECTION;
}

static enum exit_code follow(struct log *log)
{
    int64_t idle_ms = IDLE_MIN_MS;
    bool ended, news, over = false;
    enum exit_code code = print_rest(log, &ended, &news); /* is there such a log at all? */

    if (code != DONE)
        return code;
    log->patient = true;
    while (code == DONE || is_passing(code)) {
        if (code != DONE || (ended && !news))
            code = next_attempt(log, &over);
        if (over)
            return DONE;
        idle_ms = news                            ? IDLE_MIN_MS
                  : idle_ms * 3 / 2 < IDLE_MAX_MS ? idle_ms * 3 / 2
                                                  : IDLE_MAX_MS;
        nap(idle_ms);
        code = print_rest(log, &ended, &news);
    }
    return code;
}

static enum exit_code show_log(struct log *log)
{
    struct ctl *c = log->c;
    bool ended, news;
    enum exit_code code;
    int64_t lines;

    if (c->given[CTL_ATTEMPT] &&
        !ctl_take_number("--attempt", c->given[CTL_ATTEMPT], 1, UINT32_MAX, &log->attempt))
        return BAD_INPUT;
    if (c->given[CTL_TAIL] && !ctl_take_number("--tail", c->given[CTL_TAIL], 0, UINT32_MAX, &lines))
        return BAD_INPUT;
    code = parse_task(log, c->words[1]);
    if (code == DONE && c->given[CTL_FOLLOW])
        code = ctl_settle_job(c);
    if (code == DONE && !log->attempt && c->given[CTL_FOLLOW])
        code = newest_attempt(log, &log->attempt);
    if (code == DONE && c->given[CTL_TAIL])
        code = seek_tail(log, lines);
    if (code != DONE)
        return code;
    return c->given[CTL_FOLLOW] ? follow(log) : print_rest(log, &ended, &news);
}

enum exit_code ctl_logs(struct ctl *c)
{
    struct log log = {.c = c, .json = c->given[CTL_JSON]};
    enum exit_code code = show_log(&log);

    free(log.vertex);
    return code;
}

/* ---- record ---------------------------------------------------------------------------------- */

/* Piece by piece, until there is no next one. */
static enum exit_code copy_journal(struct ctl *c, FILE *out)
{
    char from[32] = "0";
    enum exit_code code;

    for (;;) {
        json_string(ctl_request_of(c, "job"), "from", from);
        code = ctl_call(c, MESSAGE_RECORD);
        if (code != DONE)
            return code;
        errno = EIO;
        if (fputs(ctl_text(c->reply.root, "lines"), out) == EOF)
            return ctl_complain(NO_RESOURCES, "%s: %s",
                                c->given[CTL_OUTPUT] ? c->given[CTL_OUTPUT] : "standard output",
                                strerror(errno));
        if (!ctl_has(c->reply.root, "next"))
            return DONE;
        snprintf(from, sizeof from, "%s", ctl_text(c->reply.root, "next"));
    }
}

enum exit_code ctl_record(struct ctl *c)
{
    const char *path = c->given[CTL_OUTPUT];
    struct output out;
    enum exit_code code;
    int r;

    if (!path || strcmp(path, "-") == 0)
        return copy_journal(c, stdout);
    r = output_open(&out, path);
    if (r)
        return ctl_complain(r == -ENOSPC || r == -ENOMEM ? NO_RESOURCES : BAD_INPUT, "%s: %s", path,
                            strerror(-r));
    code = copy_journal(c, out.file);
    if (code == DONE && (r = output_commit(&out)))
        code = ctl_complain(NO_RESOURCES, "%s: %s", path, strerror(-r));
    output_abandon(&out);
    return code;
}
