/* link.h - lines to and from the agent, over a connection that may break and come back
 *
 * Nothing here knows what a line says. Each try to connect that fails doubles the time to the next
 * one, from 0.05 s to 1 s; link_settled() begins anew.
 *
 * Poll    link_poll_fd() is one descriptor for the life of the link (an epoll): readable when bytes
 *         have come, when the connection broke, when it is time for the next try, and when
 *         link_ring() was called
 * Owner   the path is borrowed; a line until the next call of link_line()
 * Errors  -ENOTCONN: not or no longer connected; -ENOMEM; those of link_poll_fd()
 */
#ifndef PLIANT_WORKER_LINK_H
#define PLIANT_WORKER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_LINE_MAX ((size_t)256 * 1024) /* bytes, the LF not counted */
#define LINK_NEVER INT64_MAX

struct link {
    const char *path;
    int fd;               /* -1: not connected */
    int poll_fd, ring_fd; /* -1: not asked for yet */
    bool ringing;
    int64_t try_at_ms, delay_ms;
    char *in;                   /* in[taken..n) is read and not handed out */
    size_t n, cap, taken, seen; /* no LF before in[seen] */
};

int64_t link_now_ms(void); /* since the machine's start */

void link_init(struct link *l, const char *path);
void link_close(struct link *l);
int link_poll_fd(struct link *l);

int link_connect(struct link *l); /* one try */
void link_drop(struct link *l);   /* what was read is forgotten */
void link_settled(struct link *l);
void link_ring(struct link *l, bool on);

int link_send(struct link *l, const char *bytes, size_t n);
/* 1 and a line without its LF; 0: none until then, LINK_NEVER: wait. */
int link_line(struct link *l, int64_t until_ms, const char **ret_line, size_t *ret_n);
void link_sleep(int64_t until_ms);

#endif
