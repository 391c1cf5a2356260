/* keeper_wire.c - what agent and keeper say to each other; see keeper.h */
#include "agent/keeper.h"
#include "agent/start_block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- messages -------------------------------------------------------------------------------- */

union control { /* aligned for one descriptor */
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head;
};

int keeper_send(int fd, const struct keeper_message *m, int attached)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof *m};
    union control control = {0};
    struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};

    if (attached >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS,
                                        .cmsg_len = CMSG_LEN(sizeof attached)};
        memcpy(CMSG_DATA(&control.head), &attached, sizeof attached);
    }
    if (sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *m)
        return 0;
    return errno == ECONNRESET ? -EPIPE : -errno;
}

int keeper_receive(int fd, struct keeper_message *ret, int *ret_attached)
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
    union control control = {0};
    struct msghdr h = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n;

    *ret_attached = -1;
    do
        n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n <= 0)
        return -EPIPE;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(ret_attached, CMSG_DATA(c), sizeof *ret_attached);
    if (n == (ssize_t)sizeof *ret) {
        ret->text[KEEPER_TEXT - 1] = '\0';
        return 1;
    }
    if (*ret_attached >= 0)
        close(*ret_attached);
    return -EPIPE; /* another version of us */
}

/* ---- start blocks ---------------------------------------------------------------------------- */

struct block_head {
    uint32_t n_args, n_env;
    uint64_t about_size;
    int64_t stop_timeout_ms;
};

static uint32_t put_list(FILE *out, const char *const *list)
{
    uint32_t n = 0;

    for (; list[n]; n++)
        fwrite(list[n], 1, strlen(list[n]) + 1, out);
    return n;
}

static int to_memory(const void *bytes, size_t size)
{
    int fd = memfd_create("pliant-task", MFD_CLOEXEC);

    for (size_t at = 0; fd >= 0 && at < size;) {
        ssize_t n = write(fd, (const char *)bytes + at, size - at);

        if (n <= 0) {
            close(fd);
            return -ENOMEM;
        }
        at += (size_t)n;
    }
    return fd >= 0 ? fd : -errno;
}

int keeper_pack_text(const char *text, size_t size)
{
    return to_memory(text, size);
}

int keeper_pack(const struct keeper_start *start)
{
    const char *const paths[] = {start->cwd, start->stdout_path, start->stderr_path, start->mark,
                                 NULL};
    struct block_head head = {.about_size = start->about_size,
                              .stop_timeout_ms = start->stop_timeout_ms};
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    int fd;

    if (!out)
        return -ENOMEM;
    fwrite(&head, sizeof head, 1, out);
    put_list(out, paths);
    head.n_args = put_list(out, start->argv);
    head.n_env = put_list(out, start->envp);
    fwrite(start->about, 1, start->about_size, out);
    if (fclose(out) != 0) {
        free(bytes);
        return -ENOMEM;
    }
    memcpy(bytes, &head, sizeof head);
    fd = to_memory(bytes, size);
    free(bytes);
    return fd;
}

char *keeper_slurp(int fd, size_t *ret_size)
{
    struct stat st;
    size_t size = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0, at = 0;
    char *bytes = malloc(size + 1);
    ssize_t n = 1;

    for (; bytes && at < size && n > 0; at += n > 0 ? (size_t)n : 0)
        n = pread(fd, bytes + at, size - at, (off_t)at);
    close(fd);
    if (!bytes)
        return NULL;
    bytes[at] = '\0';
    *ret_size = at;
    return bytes;
}

/* The next string of the block; NULL: it ends too early. */
static const char *take(const char **at, const char *end)
{
    const char *text = *at, *stop = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

    if (stop)
        *at = stop + 1;
    return stop ? text : NULL;
}

static const char **take_list(const char **at, const char *end, uint32_t n)
{
    const char **list = (size_t)(end - *at) < n ? NULL : calloc((size_t)n + 1, sizeof *list);

    for (uint32_t i = 0; list && i < n; i++) {
        list[i] = take(at, end);
        if (!list[i]) {
            free(list);
            return NULL;
        }
    }
    return list;
}

bool start_block_read(struct start_block *b, int fd)
{
    struct block_head head;
    const char *at, *end;
    size_t size = 0;

    *b = (struct start_block){.bytes = keeper_slurp(fd, &size)};
    if (!b->bytes || size < sizeof head)
        return false;
    memcpy(&head, b->bytes, sizeof head);
    at = b->bytes + sizeof head;
    end = b->bytes + size;
    b->start.cwd = take(&at, end);
    b->start.stdout_path = take(&at, end);
    b->start.stderr_path = take(&at, end);
    b->start.mark = take(&at, end);
    b->start.argv = take_list(&at, end, head.n_args);
    b->start.envp = b->start.argv ? take_list(&at, end, head.n_env) : NULL;
    b->start.about = at;
    b->start.about_size = (size_t)(end - at);
    b->start.stop_timeout_ms = head.stop_timeout_ms;
    return b->start.mark && b->start.envp && head.n_args > 0 &&
           b->start.about_size == head.about_size;
}

void start_block_free(struct start_block *b)
{
    free((void *)(uintptr_t)b->start.argv);
    free((void *)(uintptr_t)b->start.envp);
    free(b->bytes);
    *b = (struct start_block){0};
}
