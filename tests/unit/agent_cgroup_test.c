/* agent_cgroup_test.c - what a cgroup's files say */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/cgroup.h"

static char dir[] = "/tmp/pliant-cgroup-XXXXXX";

static void set_up(void)
{
    cr_assert(mkdtemp(dir));
}

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    cr_assert(f);
    fputs(text, f);
    fclose(f);
}

static void tear_down(void)
{
    static const char *const names[] = {"memory.events", "cgroup.events", "cgroup.kill"};
    char path[128];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

TestSuite(cgroup_files, .init = set_up, .fini = tear_down);

Test(cgroup_files, tell_kills_for_want_of_memory)
{
    cr_expect_eq(cgroup_oom_kills(dir), -1, "no memory controller");
    put("memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 9\n");
    cr_expect_eq(cgroup_oom_kills(dir), 2);
    put("memory.events", "low 0\nhigh 0\nmax 7\noom 3\n");
    cr_expect_eq(cgroup_oom_kills(dir), -1, "an old kernel");
}

Test(cgroup_files, tell_whether_anybody_is_in)
{
    cr_expect(!cgroup_is_populated(dir));
    put("cgroup.events", "populated 0\nfrozen 1\n");
    cr_expect(!cgroup_is_populated(dir));
    put("cgroup.events", "frozen 0\npopulated 1\n");
    cr_expect(cgroup_is_populated(dir));
}

Test(cgroup_files, in_a_usual_directory_make_no_home)
{
    char home[CGROUP_PATH];
    struct spec_error err;

    cr_expect_lt(cgroup_make_home(dir, home, &err), 0);
    cr_expect(!cgroup_is_home(home));
    cr_expect_eq(rmdir(dir), 0, "nothing is left in it");
}
