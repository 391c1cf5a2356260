/* ports.c - ports held for worker groups [worker-groups 7.2]
 *
 * Bound with SO_REUSEADDR and not listening: a listener that sets it as well may take the port, a
 * stranger without it may not, and the kernel hands it out to nobody.
 */
#include "agent/agent.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/log.h"

#define TRIES 64
#define HELD_MAX 256u

static int bind_any(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, error;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
        *ret_port = ntohs(at.sin_port);
        return fd;
    }
    error = errno;
    if (fd >= 0)
        close(fd);
    return -error;
}

static bool is_listed(const struct doc *avoid, uint16_t port)
{
    for (const struct doc *d = avoid ? avoid->child : NULL; d; d = d->next)
        if (d->kind == DOC_NUMBER && d->number == port)
            return true;
    return false;
}

/* A port that is none of those to avoid [W-ENV-3]. Those are held until one is found, else the
 * kernel would offer them again. */
static int find_port(const struct doc *avoid, uint16_t *ret_port)
{
    int refused[TRIES], n = 0, fd;

    while ((fd = bind_any(ret_port)) >= 0 && is_listed(avoid, *ret_port)) {
        refused[n++] = fd;
        fd = -EADDRINUSE;
        if (n == TRIES)
            break;
    }
    while (n > 0)
        close(refused[--n]);
    return fd;
}

static void release(struct agent *a, size_t i)
{
    close(a->ports.v[i].fd);
    a->ports.v[i] = a->ports.v[--a->ports.n];
}

static void tell(struct agent *a, const struct held_port *p, int error)
{
    struct json *j = session_body(a);

    json_string(j, "job", p->job);
    json_int(j, "attempt", p->attempt);
    if (error)
        json_string(j, "error", strerror(error));
    else
        json_int(j, "port", p->port);
    json_end(j, '}');
    session_send(a, MESSAGE_PORT, j);
}

static bool read_request(struct agent *a, const struct doc *body, struct held_port *ret,
                         const struct doc **ret_avoid)
{
    struct spec_error err;
    const char *job;

    if (doc_string(&a->in, body, "job", AGENT_JOB_ID - 1, &job, &err) < 0 ||
        doc_int(&a->in, body, "attempt", 0, DOC_INTEGER_MAX, &ret->attempt, &err) < 0 ||
        doc_optional(doc_container(&a->in, body, "avoid", DOC_LIST, ret_avoid, &err)) < 0) {
        say(SAY_WARN, "msg=\"a broken RESERVE_PORT\" error=%s", log_quoted(err.text).v);
        return false;
    }
    memcpy(ret->job, job, strlen(job) + 1);
    return true;
}

void ports_reserve(struct agent *a, const struct doc *body)
{
    struct held_port p = {0};
    const struct doc *avoid = NULL;

    if (!read_request(a, body, &p, &avoid))
        return;
    for (size_t i = a->ports.n; i-- > 0;) {
        if (strcmp(a->ports.v[i].job, p.job) != 0)
            continue;
        if (a->ports.v[i].attempt == p.attempt && !is_listed(avoid, a->ports.v[i].port)) {
            tell(a, &a->ports.v[i], 0); /* asked twice */
            return;
        }
        release(a, i); /* of an attempt that is over */
    }
    p.fd = find_port(avoid, &p.port);
    if (p.fd < 0) {
        tell(a, &p, -p.fd);
        return;
    }
    if (a->ports.n == HELD_MAX)
        release(a, 0);
    *(struct held_port *)must(vec_push(NULL, &a->ports)) = p;
    tell(a, &p, 0);
}

void ports_used(struct agent *a, const char *job)
{
    for (size_t i = 0; i < a->ports.n; i++)
        if (strcmp(a->ports.v[i].job, job) == 0)
            a->ports.v[i].used = true;
}

void ports_release_unused(struct agent *a, const char *job)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (strcmp(a->tasks.v[i]->key.job, job) == 0)
            return;
    for (size_t i = a->ports.n; i-- > 0;)
        if (a->ports.v[i].used && strcmp(a->ports.v[i].job, job) == 0)
            release(a, i);
}

void ports_free(struct agent *a)
{
    while (a->ports.n > 0)
        release(a, a->ports.n - 1);
    vec_free(NULL, &a->ports);
}
