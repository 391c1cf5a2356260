/* agent_keeper_test.c - what agent and keeper say to each other, and starting a process */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/kin.h"
#include "agent/start_block.h"

static const char *const argv_of_true[] = {"true", "", "x y", NULL};
static const char *const env[] = {"PATH=/usr/bin:/bin", "A=", NULL};

static struct keeper_start example(void)
{
    return (struct keeper_start){.cwd = "/",
                                 .stdout_path = "/dev/null",
                                 .stderr_path = "/dev/null",
                                 .mark = KIN_MARK "/x",
                                 .argv = argv_of_true,
                                 .envp = env,
                                 .about = "{\"a\":\0}",
                                 .about_size = 7,
                                 .stop_timeout_ms = 1234};
}

Test(agent_keeper, takes_a_start_block_as_it_was_packed)
{
    const struct keeper_start start = example();
    struct start_block b;
    int fd = keeper_pack(&start);

    cr_assert_geq(fd, 0);
    cr_assert(start_block_read(&b, fd));
    cr_expect_str_eq(b.start.cwd, "/");
    cr_expect_str_eq(b.start.mark, KIN_MARK "/x");
    cr_expect_str_eq(b.start.argv[1], "");
    cr_expect_str_eq(b.start.argv[2], "x y");
    cr_expect_null(b.start.argv[3]);
    cr_expect_str_eq(b.start.envp[1], "A=");
    cr_expect_null(b.start.envp[2]);
    cr_expect_eq(b.start.about_size, 7);
    cr_expect_eq(memcmp(b.start.about, start.about, 7), 0);
    cr_expect_eq(b.start.stop_timeout_ms, 1234);
    start_block_free(&b);
}

Test(agent_keeper, refuses_a_block_that_is_cut)
{
    const struct keeper_start start = example();
    int fd = keeper_pack(&start);
    size_t size;
    char *bytes = keeper_slurp(fd, &size);

    for (size_t n = 0; n < size; n++) {
        struct start_block b;

        cr_expect(!start_block_read(&b, keeper_pack_text(bytes, n)), "cut to %zu", n);
        start_block_free(&b);
    }
    free(bytes);
}

Test(agent_keeper, passes_messages_with_and_without_descriptors)
{
    struct keeper_message m = {.op = KEEPER_SPAWN, .id = UINT64_MAX, .text = "text"}, got;
    int ends[2], fd, attached;
    size_t size;
    char *text;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    cr_expect_eq(keeper_receive(ends[1], &got, &attached), 0);
    fd = keeper_pack_text("hello", 5);
    cr_assert_eq(keeper_send(ends[0], &m, fd), 0);
    cr_assert_eq(keeper_send(ends[0], &m, -1), 0);
    close(fd);
    cr_assert_eq(keeper_receive(ends[1], &got, &attached), 1);
    cr_expect_eq(got.id, UINT64_MAX);
    cr_expect_str_eq(text = keeper_slurp(attached, &size), "hello");
    free(text);
    cr_assert_eq(keeper_receive(ends[1], &got, &attached), 1);
    cr_expect_eq(attached, -1);
    close(ends[0]);
    cr_expect_eq(keeper_receive(ends[1], &got, &attached), -EPIPE);
    close(ends[1]);
}

Test(agent_keeper, does_not_wait_for_a_full_queue)
{
    struct keeper_message m = {.op = KEEPER_STOP};
    int ends[2], r = 0;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    for (int i = 0; i < 100000 && r == 0; i++)
        r = keeper_send(ends[0], &m, -1);
    cr_expect_eq(r, -EAGAIN);
    close(ends[0]);
    close(ends[1]);
}

Test(agent_keeper, starts_a_process_in_a_session_of_its_own)
{
    static const char *const script[] = {"sh", "-c", "[ $(ps -o sid= -p $$) -eq $$ ] && exit 7",
                                         NULL};
    struct keeper_start start = example();
    char why[256] = "";
    pid_t pid;
    int status;

    start.argv = script;
    cr_assert_eq(start_process(&start, -1, &pid, why, sizeof why), 0, "%s", why);
    waitpid(pid, &status, 0);
    cr_expect_eq(WEXITSTATUS(status), 7);
}

Test(agent_keeper, says_why_a_process_does_not_start)
{
    static const char *const nothing[] = {"no-such-program", NULL};
    struct keeper_start start = example();
    char why[256] = "";
    pid_t pid;

    start.argv = nothing;
    cr_expect_eq(start_process(&start, -1, &pid, why, sizeof why), -ENOENT);
    cr_expect_str_eq(why, "cannot run no-such-program: No such file or directory");
    start = example();
    start.cwd = "/no/such";
    cr_expect_eq(start_process(&start, -1, &pid, why, sizeof why), -ENOENT);
    cr_expect(strstr(why, "cannot enter the directory /no/such"));
    start = example();
    start.stderr_path = "/no/such/log";
    cr_expect_eq(start_process(&start, -1, &pid, why, sizeof why), -ENOENT);
    cr_expect(strstr(why, "/no/such/log"), "it names the file: %s", why);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* ---- kin ---------------------------------------------------------------------------------------
 */

static void count(void *ctx, pid_t pid)
{
    (void)pid;
    ++*(int *)ctx;
}

Test(agent_kin, knows_its_children_and_marks)
{
    struct keeper_start start = example();
    static const char *const sleeper[] = {"sleep", "1000", NULL};
    static const char *const marked[] = {"PATH=/usr/bin:/bin", KIN_MARK "/kin/test/dir/1/s", NULL};
    char why[256];
    struct kin_usage usage;
    pid_t pid;
    int n = 0;

    start.argv = sleeper;
    start.envp = marked;
    cr_assert_eq(start_process(&start, -1, &pid, why, sizeof why), 0);
    kin_children(count, &n);
    cr_expect_eq(n, 1);
    for (int i = 0; i < 10000 && !kin_has_mark(pid, KIN_MARK "/kin/test/dir/"); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* it has just begun */
    cr_expect(kin_has_mark(pid, KIN_MARK "/kin/test/dir/"));
    cr_expect(!kin_has_mark(pid, KIN_MARK "/kin/test/other/"));
    cr_expect(!kin_has_mark(pid, "X" KIN_MARK));
    cr_assert(kin_usage(getpid(), &usage)); /* the kernel counts a small process as nothing */
    cr_expect_gt(usage.rss_bytes, 0);
    cr_expect_eq(kin_kill_marked("/kin/test/other", 100), 0);
    cr_expect_eq(kin_kill_marked("/kin/test/dir", 0), 1);
    waitpid(pid, NULL, 0);
    cr_expect(!kin_usage(pid, &usage));
}
