/* link.c - see link.h */
#include "worker/link.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { DELAY_MIN_MS = 50, DELAY_MAX_MS = 1000, SEND_PATIENCE_MS = 30000, READ_SIZE = 4096 };

int64_t link_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For poll(): milliseconds until then, rounded to what an int holds. */
static int left_ms(int64_t until_ms)
{
    int64_t left;

    if (until_ms == LINK_NEVER)
        return -1;
    left = until_ms - link_now_ms();
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Did it become ready? A signal does not end the wait. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int r;

    do
        r = poll(&p, 1, left_ms(until_ms));
    while (r < 0 && errno == EINTR);
    return r > 0;
}

void link_sleep(int64_t until_ms)
{
    wait_for(-1, 0, until_ms);
}

void link_init(struct link *l, const char *path)
{
    *l = (struct link){
        .path = path, .fd = -1, .poll_fd = -1, .ring_fd = -1, .delay_ms = DELAY_MIN_MS};
}

void link_close(struct link *l)
{
    link_drop(l);
    if (l->ring_fd >= 0)
        close(l->ring_fd);
    if (l->poll_fd >= 0)
        close(l->poll_fd);
    free(l->in);
    link_init(l, NULL);
}

/* ---- one descriptor for all of it --------------------------------------------------------------
 */

/* Make the timer readable when the next try is due, or now. */
static void set_ring(struct link *l)
{
    int64_t in_ms = l->ringing ? 0 : l->try_at_ms - link_now_ms();
    struct itimerspec t = {0};

    if (l->ring_fd < 0)
        return;
    if ((l->ringing || l->fd < 0) && l->path) {
        in_ms = in_ms < 0 ? 0 : in_ms;
        t.it_value.tv_sec = in_ms / 1000;
        t.it_value.tv_nsec = in_ms % 1000 * 1000000 + 1; /* 0 would mean never */
    }
    timerfd_settime(l->ring_fd, 0, &t, NULL);
}

static int watch(struct link *l, int fd)
{
    return epoll_ctl(l->poll_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN});
}

int link_poll_fd(struct link *l)
{
    if (l->poll_fd >= 0)
        return l->poll_fd;
    l->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->ring_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->poll_fd < 0 || l->ring_fd < 0 || watch(l, l->ring_fd) < 0 ||
        (l->fd >= 0 && watch(l, l->fd) < 0)) {
        int r = -errno;

        if (l->poll_fd >= 0)
            close(l->poll_fd);
        if (l->ring_fd >= 0)
            close(l->ring_fd);
        l->poll_fd = l->ring_fd = -1;
        return r;
    }
    set_ring(l);
    return l->poll_fd;
}

void link_ring(struct link *l, bool on)
{
    if (l->ringing == on)
        return;
    l->ringing = on;
    set_ring(l);
}

/* ---- connection --------------------------------------------------------------------------------
 */

void link_drop(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd); /* epoll forgets it too */
    l->fd = -1;
    l->n = l->taken = l->seen = 0;
    set_ring(l);
}

void link_settled(struct link *l)
{
    l->delay_ms = DELAY_MIN_MS;
}

static int try_later(struct link *l)
{
    l->try_at_ms = link_now_ms() + l->delay_ms;
    l->delay_ms = 2 * l->delay_ms < DELAY_MAX_MS ? 2 * l->delay_ms : DELAY_MAX_MS;
    link_drop(l);
    return -ENOTCONN;
}

int link_connect(struct link *l)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(l->path);

    if (n >= sizeof to.sun_path)
        return try_later(l);
    memcpy(to.sun_path, l->path, n + 1);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&to, sizeof to) < 0 ||
        (l->poll_fd >= 0 && watch(l, l->fd) < 0))
        return try_later(l);
    l->try_at_ms = link_now_ms() + l->delay_ms; /* should it break at once */
    l->delay_ms = 2 * l->delay_ms < DELAY_MAX_MS ? 2 * l->delay_ms : DELAY_MAX_MS;
    set_ring(l);
    return 0;
}

int link_send(struct link *l, const char *bytes, size_t n)
{
    int64_t until_ms = link_now_ms() + SEND_PATIENCE_MS;

    while (n > 0) {
        ssize_t sent = send(l->fd, bytes, n, MSG_NOSIGNAL);

        if (sent > 0) {
            bytes += sent;
            n -= (size_t)sent;
        } else if (errno == EAGAIN ? !wait_for(l->fd, POLLOUT, until_ms) : errno != EINTR) {
            link_drop(l);
            return -ENOTCONN;
        }
    }
    return 0;
}

/* ---- lines
 * --------------------------------------------------------------------------------------- */

static int make_room(struct link *l)
{
    size_t cap = l->cap ? 2 * l->cap : READ_SIZE;
    char *in;

    if (l->taken > 0) {
        memmove(l->in, l->in + l->taken, l->n - l->taken);
        l->n -= l->taken;
        l->seen -= l->taken;
        l->taken = 0;
    }
    if (l->cap - l->n >= READ_SIZE / 2)
        return 0;
    in = realloc(l->in, cap);
    if (!in)
        return -ENOMEM;
    l->in = in;
    l->cap = cap;
    return 0;
}

/* A whole line in what was read? */
static bool take_line(struct link *l, const char **ret_line, size_t *ret_n)
{
    const char *end = l->n > l->seen ? memchr(l->in + l->seen, '\n', l->n - l->seen) : NULL;

    if (!end) {
        l->seen = l->n;
        return false;
    }
    *ret_line = l->in + l->taken;
    *ret_n = (size_t)(end - *ret_line);
    l->taken = l->seen = (size_t)(end - l->in) + 1;
    return true;
}

/* Read what there is. 1: something or a signal; 0: nothing until then. */
static int read_more(struct link *l, int64_t until_ms)
{
    ssize_t got;

    if (make_room(l) < 0)
        return -ENOMEM;
    got = recv(l->fd, l->in + l->n, l->cap - l->n, 0);
    if (got > 0) {
        l->n += (size_t)got;
        return 1;
    }
    if (got < 0 && errno == EINTR)
        return 1;
    if (got < 0 && errno == EAGAIN)
        return wait_for(l->fd, POLLIN, until_ms) ? 1 : 0;
    return -ENOTCONN;
}

int link_line(struct link *l, int64_t until_ms, const char **ret_line, size_t *ret_n)
{
    int r = l->fd < 0 ? -ENOTCONN : 1;

    while (r == 1 && !take_line(l, ret_line, ret_n))
        r = l->n - l->taken > LINK_LINE_MAX ? -ENOTCONN : read_more(l, until_ms);
    if (r == 1 && *ret_n > LINK_LINE_MAX)
        r = -ENOTCONN;
    if (r == -ENOTCONN)
        link_drop(l);
    return r;
}
