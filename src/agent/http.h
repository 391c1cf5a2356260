/* http.h - one request to a metadata service, without blocking
 *
 * HTTP/1.1 in plain text over TCP to a numeric address; the reply is read until its end. That is
 * all that metadata services ask for.
 *
 * Owner   the reply lives until the next http_begin() or http_cancel()
 * Errors  a reply with status 0 is none: no connection, no HTTP, too long, too late
 */
#ifndef PLIANT_AGENT_HTTP_H
#define PLIANT_AGENT_HTTP_H

#include "agent/agent.h"

#define HTTP_TIMEOUT_MS 3000
#define HTTP_REPLY_MAX (64u * 1024u)

struct http {
    struct source source;
    int64_t give_up_at_ms; /* PLIANT_NEVER: none is under way */
    char *request;
    size_t n_request, n_sent;
    char *reply;
    size_t n_reply;
    void (*done)(struct agent *a, int status, const char *body);
};

struct http_base { /* of an URL http://ADDRESS[:PORT] */
    uint32_t address;
    uint16_t port;
};

/* False: not such an URL. localhost is an address too. */
bool http_base_read(const char *url, struct http_base *ret);

/* `headers` end with CRLF each. `done` is called once, never from within. */
void http_begin(struct agent *a, struct http *h, const struct http_base *base, const char *method,
                const char *path, const char *headers,
                void (*done)(struct agent *a, int status, const char *body));
void http_cancel(struct agent *a, struct http *h);
void http_expire(struct agent *a, struct http *h);

/* The status of a whole reply and its body, which is decoded in place; 0: no reply. */
int http_parse(char *reply, size_t size, const char **ret_body);

#endif
