/* agent_errands_test.c - files are dealt with in a thread */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/errands.h"

#define MANY 3000

static char root[64];
static struct errands *errands;

static void set_up(void)
{
    strcpy(root, "/tmp/pliant-errands-XXXXXX");
    cr_assert(mkdtemp(root));
    errands = errands_open();
}

static void tear_down(void)
{
    char command[100];

    errands_close(&errands);
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert(system(command) == 0);
}

TestSuite(agent_errands, .init = set_up, .fini = tear_down, .timeout = 60);

static const char *path_of(const char *name)
{
    static char path[160];

    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_job(int files)
{
    char name[32];

    cr_assert(mkdir(path_of("job"), 0700) == 0);
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "job/%d", i);
        close(open(path_of(name), O_WRONLY | O_CREAT, 0600));
    }
}

static struct errand *removal(void)
{
    struct errand *e = errand_new(ERRAND_REMOVE);

    e->root = strdup(root);
    e->job = strdup("job");
    return e;
}

static struct errand *preparation(const char *input, const char *output)
{
    struct errand *e = errand_new(ERRAND_PREPARE);

    if (input)
        *(struct place *)vec_push(NULL, &e->in) = (struct place){.path = strdup(path_of(input))};
    if (output)
        *(struct place *)vec_push(NULL, &e->out) = (struct place){.path = strdup(path_of(output))};
    return e;
}

static struct errand *next_done(void)
{
    struct pollfd p = {.fd = errands_fd(errands), .events = POLLIN};
    struct errand *e;

    while (!(e = errands_take(errands)))
        cr_assert(poll(&p, 1, 30000) == 1);
    return e;
}

static void expect_done(enum errand_kind kind, int error)
{
    struct errand *e = next_done();

    cr_expect_eq(e->kind, kind);
    cr_expect_eq(e->error, error, "%s", strerror(-e->error));
    errand_free(e);
}

Test(agent_errands, tasks_do_not_wait_for_what_is_deleted)
{
    make_job(MANY);
    errands_give(errands, removal());
    errands_give(errands, preparation(NULL, "a/b/c"));
    expect_done(ERRAND_PREPARE, 0);
    expect_done(ERRAND_REMOVE, 0);
    cr_expect(access(path_of("job"), F_OK) != 0);
    cr_expect(access(path_of("a/b/c"), F_OK) == 0);
}

Test(agent_errands, the_end_does_not_wait_for_what_is_deleted)
{
    make_job(MANY);
    errands_give(errands, removal());
    errands_close(&errands);
    cr_expect(access(path_of("job"), F_OK) == 0, "the next agent is asked again");
    errands = errands_open();
    errands_give(errands, removal());
    expect_done(ERRAND_REMOVE, 0);
    errands_give(errands, removal());
    expect_done(ERRAND_REMOVE, 0);
}

Test(agent_errands, tell_what_cannot_be_prepared)
{
    make_job(1);
    errands_give(errands, preparation("job", "job/0/x"));
    expect_done(ERRAND_PREPARE, -ENOTDIR);
    errands_give(errands, preparation("job/0", NULL));
    expect_done(ERRAND_PREPARE, -ENOTDIR);
    errands_give(errands, preparation("nowhere", "made"));
    expect_done(ERRAND_PREPARE, -ENOENT);
    cr_expect(access(path_of("made"), F_OK) != 0, "nothing is made for a task that can't start");
}
