/* http.c - see http.h */
#include "agent/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_PORT 80

bool http_base_read(const char *url, struct http_base *ret)
{
    static const char scheme[] = "http://";
    char host[64];
    const char *at = url + sizeof scheme - 1;
    struct in_addr address;
    long port = HTTP_PORT;
    size_t n;
    char *end;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return false;
    n = strcspn(at, ":/");
    if (n >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)n, at);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &address) != 1)
        return false;
    at += n;
    if (*at == ':') {
        port = strtol(at + 1, &end, 10);
        at = end;
    }
    if (port < 1 || port > UINT16_MAX || (*at && strcmp(at, "/") != 0))
        return false;
    *ret = (struct http_base){.address = address.s_addr, .port = htons((uint16_t)port)};
    return true;
}

/* ---- the reply
 * ---------------------------------------------------------------------------------------- */

/* Does the head have this line? Its value, or NULL. */
static const char *header(const char *head, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
            return line + 3 + n + strspn(line + 3 + n, " \t");
    return NULL;
}

/* Chunks become one text, in place; false: they are cut or none. */
static bool join_chunks(char *body, char *end)
{
    char *to = body, *at = body, *behind;

    for (;;) {
        unsigned long size = strtoul(at, &behind, 16);
        char *data = behind == at ? NULL : strstr(behind, "\r\n");

        if (!data || size > (size_t)(end - data - 2))
            return false;
        data += 2;
        memmove(to, data, size);
        to += size;
        if (size == 0) {
            *to = '\0';
            return true;
        }
        at = data + size;
        if (end - at < 2)
            return false;
        at += 2;
    }
}

int http_parse(char *reply, size_t size, const char **ret_body)
{
    char *body = strstr(reply, "\r\n\r\n");
    const char *length, *coding;
    int status = 0, minor;

    if (!body || sscanf(reply, "HTTP/1.%1d %3d", &minor, &status) != 2 || status < 100)
        return 0;
    body[2] = '\0'; /* the head with its last line's end */
    body += 4;
    length = header(reply, "Content-Length");
    coding = header(reply, "Transfer-Encoding");
    if (coding && strncasecmp(coding, "chunked", 7) == 0) {
        if (!join_chunks(body, reply + size))
            return 0;
    } else if (length) {
        unsigned long n = strtoul(length, NULL, 10);

        if (n > (size_t)(reply + size - body))
            return 0;
        body[n] = '\0';
    }
    *ret_body = body;
    return status;
}

/* ---- the exchange
 * --------------------------------------------------------------------------------------- */

void http_cancel(struct agent *a, struct http *h)
{
    source_close(a, &h->source);
    free(h->request);
    free(h->reply);
    h->request = h->reply = NULL;
    h->n_request = h->n_sent = h->n_reply = 0;
    h->give_up_at_ms = PLIANT_NEVER;
}

static void finish(struct agent *a, struct http *h, bool whole)
{
    char *reply = h->reply;
    size_t size = h->n_reply;
    const char *body = "";
    int status = 0;

    h->reply = NULL;
    http_cancel(a, h); /* `done` may begin the next one */
    if (whole && reply) {
        reply[size] = '\0';
        status = http_parse(reply, size, &body);
    }
    h->done(a, status, body);
    free(reply);
}

static void on_writable(struct agent *a, struct http *h)
{
    ssize_t n = send(h->source.fd, h->request + h->n_sent, h->n_request - h->n_sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        finish(a, h, false);
        return;
    }
    h->n_sent += (size_t)n;
    if (h->n_sent == h->n_request)
        source_want(a, &h->source, EPOLLIN);
}

static void http_ready(struct agent *a, void *self, uint32_t events)
{
    struct http *h = self;
    ssize_t n;

    if (h->n_sent < h->n_request) {
        if (events & (EPOLLERR | EPOLLHUP))
            finish(a, h, false);
        else
            on_writable(a, h);
        return;
    }
    n = recv(h->source.fd, h->reply + h->n_reply, HTTP_REPLY_MAX - h->n_reply, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    h->n_reply += n > 0 ? (size_t)n : 0;
    if (n <= 0 || h->n_reply == HTTP_REPLY_MAX)
        finish(a, h, n == 0);
}

void http_begin(struct agent *a, struct http *h, const struct http_base *base, const char *method,
                const char *path, const char *headers,
                void (*done)(struct agent *a, int status, const char *body))
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = base->port, .sin_addr.s_addr = base->address};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char address[INET_ADDRSTRLEN];

    http_cancel(a, h);
    inet_ntop(AF_INET, &to.sin_addr, address, sizeof address);
    h->done = done;
    h->request = must_format("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method,
                             path, address, headers);
    h->n_request = strlen(h->request);
    h->reply = must(malloc(HTTP_REPLY_MAX + 1));
    h->give_up_at_ms = a->now_ms; /* in the next turn, unless a connection is on its way */
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        close(fd);
        return;
    }
    source_open(a, &h->source, fd, EPOLLOUT, http_ready, h);
    h->give_up_at_ms = a->now_ms + HTTP_TIMEOUT_MS;
}

void http_expire(struct agent *a, struct http *h)
{
    if (a->now_ms >= h->give_up_at_ms)
        finish(a, h, false);
}
