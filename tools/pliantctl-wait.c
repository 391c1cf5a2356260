/* pliantctl-wait.c - until a job has ended
 *
 * By asking, not by the event stream: an answer is true whatever got lost on the way, and the
 * service may be started anew meanwhile.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "pliantctl.h"

#define ASK_EACH_MS 200
#define SILENCE_MAX_MS 60000 /* then the service counts as gone for good */

static void nap(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int ask_status(struct ctl *c, const char *job, struct rpc_refusal *refusal)
{
    int64_t timeout_ms = c->timeout_ms < SILENCE_MAX_MS ? c->timeout_ms : SILENCE_MAX_MS;

    json_string(ctl_request(c), "job", job);
    return ctl_try(c, MESSAGE_STATUS, (int)timeout_ms, refusal);
}

/* No answer: once a word about it, and the service may come back under another address. */
static bool try_again(struct ctl *c, int64_t *silent_ms)
{
    char tried[5120];

    if (*silent_ms == 0)
        ctl_complain(DONE, "no connection to %s, trying", ctl_tried(c, tried, sizeof tried));
    *silent_ms += c->timeout_ms + ASK_EACH_MS;
    nap(ASK_EACH_MS);
    return *silent_ms < SILENCE_MAX_MS && ctl_reopen(c);
}

static enum exit_code verdict(const char *job_status)
{
    return strcmp(job_status, "FAILED") == 0 ? ANSWER_IS_NO : DONE;
}

enum exit_code ctl_settle_job(struct ctl *c)
{
    enum exit_code code;

    ctl_request_of(c, "job");
    code = ctl_call(c, MESSAGE_STATUS);
    if (code != DONE)
        return code;
    snprintf(c->job_id, sizeof c->job_id, "%s", ctl_text(c->reply.root, "job_id"));
    c->words[0] = c->job_id;
    return DONE;
}

enum exit_code ctl_wait_end(struct ctl *c, const char *job)
{
    struct rpc_refusal refusal;
    int64_t silent_ms = 0;

    for (;;) {
        int r = ask_status(c, job, &refusal);

        if (r == -ETIMEDOUT || r == -EAGAIN) {
            if (!try_again(c, &silent_ms))
                return ctl_complain(NO_CONNECTION, "the service is gone; job %s may go on", job);
            continue;
        }
        if (r == -EPROTO)
            return ctl_refused(c, &refusal);
        if (r)
            return ctl_complain(NO_RESOURCES, "%s", strerror(-r));
        silent_ms = 0;
        if (ctl_status_is_final(ctl_text(c->reply.root, "job_status"))) {
            const char *status = ctl_text(c->reply.root, "job_status");

            if (c->given[CTL_JSON]) {
                enum exit_code code = ctl_print_reply(c);

                return code != DONE ? code : verdict(status);
            }
            printf("%s\n", status);
            return verdict(status);
        }
        nap(ASK_EACH_MS);
    }
}
