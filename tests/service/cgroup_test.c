/* cgroup_test.c - a real pliant-agent whose tasks have cgroups of their own
 *
 * In a group that the test makes below the mounted cgroup2. Where it may make none, that is said,
 * and what happens then is tested instead.
 */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "service/fake_daemon.h"

static struct fake f;
static char top[CGROUP_PATH];   /* the mounted tree; "": none */
static char group[CGROUP_PATH]; /* ours; "": not possible here */

static void write_to(const char *dir, const char *name, const char *text)
{
    char path[CGROUP_PATH + 32];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        cr_expect(write(fd, text, strlen(text)) > 0, "%s: %s", path, strerror(errno));
        close(fd);
    }
}

static void find_top(void)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    char line[4096];

    while (mounts && !*top && fgets(line, sizeof line, mounts))
        if (strstr(line, " - cgroup2 "))
            sscanf(line, "%*d %*d %*s %*s %511s", top);
    if (mounts)
        fclose(mounts);
}

static void make_group(void)
{
    struct spec_error err;
    char home[CGROUP_PATH];

    find_top();
    if (*top && (size_t)snprintf(group, sizeof group, "%s/test-XXXXXX", top) < sizeof group &&
        mkdtemp(group)) {
        if (cgroup_make_home(group, home, &err) == 0) {
            rmdir(home);
            return;
        }
        rmdir(group);
    }
    *group = '\0';
    printf("cgroups of tasks: not possible here\n");
}

/* The kernel's own files have a dot in their names. */
static bool is_group(const struct dirent *entry)
{
    return !strchr(entry->d_name, '.');
}

static void remove_below(const char *dir)
{
    const struct dirent *entry;
    char path[CGROUP_PATH + 300];
    DIR *d = opendir(dir);

    while (d && (entry = readdir(d)))
        if (is_group(entry) &&
            snprintf(path, sizeof path, "%s/%s", dir, entry->d_name) < (int)sizeof path)
            remove_below(path);
    if (d)
        closedir(d);
    rmdir(dir);
}

static void leave_group(void)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;

    if (!*group)
        return;
    write_to(top, "cgroup.procs", "0"); /* ourselves */
    write_to(group, "cgroup.kill", "1");
    while (cgroup_is_populated(group) && fake_now_ms() < until_ms)
        fake_pause();
    remove_below(group);
    *group = '\0';
}

static void set_up(void)
{
    atexit(leave_group); /* of a test that fails on its way */
    make_group();
    fake_open(&f);
}

static void tear_down(void)
{
    fake_close(&f);
    leave_group();
}

TestSuite(cgroup, .init = set_up, .fini = tear_down, .timeout = 120);

static void start(void)
{
    fake_agent(&f, "--slots", "4", "--cgroup", *group ? group : "off", NULL);
    fake_hello(&f);
}

static bool log_has(const char *text)
{
    char path[128], *log;
    bool found;

    snprintf(path, sizeof path, "%s/log", f.dir);
    log = fake_read_file(path);
    found = strstr(log, text) != NULL;
    free(log);
    return found;
}

static size_t count_groups(const char *dir)
{
    const struct dirent *entry;
    DIR *d = opendir(dir);
    size_t n = 0;

    while (d && (entry = readdir(d)))
        n += is_group(entry);
    if (d)
        closedir(d);
    return n;
}

/* The only home in our group. */
static void find_home(char ret[CGROUP_PATH])
{
    const struct dirent *entry;
    DIR *d = opendir(group);

    *ret = '\0';
    while (d && (entry = readdir(d)))
        if (strncmp(entry->d_name, CGROUP_HOME, strlen(CGROUP_HOME)) == 0)
            snprintf(ret, CGROUP_PATH, "%.200s/%.200s", group, entry->d_name);
    if (d)
        closedir(d);
    cr_assert(*ret, "no home");
}

/* A descendant that left its session, its group, its parent, and what marked its environment. */
#define STRANGER                                                                                   \
    "(setsid env -i sh -c 'echo $$ > daemon; trap \"\" TERM; while :; do sleep 0.05; done' &) ; "  \
    "while [ ! -s daemon ]; do sleep 0.01; done; "
#define DEAF "trap '' TERM; touch ready; while :; do sleep 0.05; done"

Test(cgroup, holds_what_has_cleared_its_environment_until_its_task_ends) /* [W-SIG-5] */
{
    start();
    fake_deploy(&f, 0, 1, STRANGER "touch ready; exec sleep 1000", "");
    fake_deploy(&f, 1, 1, STRANGER "touch ready; exec sleep 1000", "");
    fake_until_ready(&f, 0);
    fake_until_ready(&f, 1);
    fake_stop(&f, 0, 1, 30000);
    fake_state(&f, 0, 1, "ended");
    cr_expect(!fake_lives(fake_daemon_of(&f, 0)), "told as ended only when all of it is gone");
    if (*group)
        cr_expect(fake_lives(fake_daemon_of(&f, 1)), "that of another task lives on");
    fake_deploy(&f, 2, 1, STRANGER "exit 3", "");
    cr_expect_eq(fake_int(fake_state(&f, 2, 1, "ended"), "end.code"), 3);
    cr_expect(!fake_lives(fake_daemon_of(&f, 2)));
}

Test(cgroup, kills_all_of_it_when_the_stop_has_taken_too_long) /* [W-SIG-1, W-SIG-5] */
{
    start();
    fake_deploy(&f, 0, 1, STRANGER DEAF, "");
    fake_until_ready(&f, 0);
    fake_stop(&f, 0, 1, 200);
    cr_expect_str_eq(fake_text(fake_state(&f, 0, 1, "ended"), "end.signal"), "KILL");
    cr_expect(!fake_lives(fake_daemon_of(&f, 0)));
}

Test(cgroup, is_removed_with_its_task_and_the_home_with_the_agent)
{
    char home[CGROUP_PATH];
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;
    const struct doc *d;

    start();
    if (!*group)
        return;
    find_home(home);
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    cr_expect_eq(count_groups(home), 1);
    fake_stop(&f, 0, 1, 30000);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect(!fake_bool(d, "end.oom"));
    cr_expect_eq(count_groups(home), 0);
    fake_send(&f, MESSAGE_DEPLOY,
              "{\"tasks\":[{" FAKE_TASK ",\"slot\":1,\"command\":[\"no-such-program\"]}]}", 1, 1);
    cr_expect(strstr(fake_text(fake_state(&f, 1, 1, "ended"), "end.cause"),
                     "cannot run no-such-program: No such file"));
    fake_signal(&f, SIGTERM);
    cr_expect_eq(fake_wait(&f), 0);
    while (count_groups(group) > 0 && fake_now_ms() < until_ms)
        fake_pause();
    cr_expect_eq(count_groups(group), 0);
}

Test(cgroup, tells_the_next_life_whom_the_last_one_left_behind) /* [W-SIG-5], known trouble 108 */
{
    int64_t stranger;

    start();
    fake_deploy(&f, 0, 1, STRANGER "touch ready; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    fake_until_ready(&f, 0);
    stranger = fake_daemon_of(&f, 0);
    kill(f.agent, SIGSTOP);
    kill(fake_keeper(&f), SIGKILL);
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    cr_assert(fake_lives(stranger));
    start();
    if (*group) {
        cr_expect(!fake_lives(stranger));
        cr_expect_eq(count_groups(group), 1, "the home of the last life is gone");
    } else {
        kill((pid_t)stranger, SIGKILL); /* today nobody else finds it */
    }
    fake_deploy(&f, 0, 2, "exit 3", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 2, "ended"), "end.code"), 3);
}

Test(cgroup, outlives_the_keeper_for_the_agent_to_clear) /* [W-SIG-5] */
{
    int64_t stranger;

    start();
    fake_deploy(&f, 0, 1, STRANGER "touch ready; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    fake_until_ready(&f, 0);
    stranger = fake_daemon_of(&f, 0);
    kill(fake_keeper(&f), SIGKILL);
    cr_expect_str_eq(fake_text(fake_state(&f, 0, 1, "ended"), "end.how"), "killed");
    cr_expect(!fake_lives(stranger));
    fake_deploy(&f, 0, 2, "exit 3", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 2, "ended"), "end.code"), 3);
}

Test(cgroup, is_adopted_with_its_task)
{
    const char *where = *group ? group : "off";
    char home[CGROUP_PATH];

    fake_agent(&f, "--keep-tasks", "--cgroup", where, NULL);
    fake_hello(&f);
    fake_deploy(&f, 0, 1, STRANGER "touch ready; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    fake_until_ready(&f, 0);
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    fake_agent(&f, "--keep-tasks", "--cgroup", where, NULL);
    fake_hello(&f);
    cr_expect(fake_lives(fake_daemon_of(&f, 0)));
    fake_stop(&f, 0, 1, 30000);
    fake_state(&f, 0, 1, "ended");
    cr_expect(!fake_lives(fake_daemon_of(&f, 0)));
    if (!*group)
        return;
    find_home(home);
    cr_expect_eq(count_groups(group), 1);
    cr_expect_eq(count_groups(home), 0);
}

Test(cgroup, is_made_below_the_agents_own_one_or_beside_its_place)
{
    static const char *const places[] = {"", "/" CGROUP_SELF};
    char place[CGROUP_PATH + 32], home[CGROUP_PATH];

    for (size_t i = 0; *group && i < sizeof places / sizeof *places; i++) {
        snprintf(place, sizeof place, "%s%s", group, places[i]);
        cr_assert(mkdir(place, 0755) == 0 || errno == EEXIST);
        write_to(place, "cgroup.procs", "0"); /* ourselves, and so the agent */
        fake_agent(&f, NULL);
        fake_hello(&f);
        find_home(home);
        fake_deploy(&f, 0, (int)i, "exec sleep 1000", "");
        fake_state(&f, 0, (int)i, "running");
        cr_expect_eq(count_groups(home), 1, "%s", place);
        fake_signal(&f, SIGINT);
        fake_signal(&f, SIGTERM);
        fake_wait(&f);
        fake_until_gone(fake_keeper(&f));
        fake_unbind(&f);
        fake_bind(&f);
    }
}

Test(cgroup, does_without_where_none_may_be_made)
{
    if (*group)
        write_to(top, "cgroup.procs", "0"); /* the root of all, which is not ours to divide */
    fake_agent(&f, NULL);
    fake_hello(&f);
    if (*group)
        cr_expect(log_has("tasks have no cgroups of their own"));
    fake_deploy(&f, 0, 1, STRANGER "exit 3", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 1, "ended"), "end.code"), 3);
    cr_expect(!fake_lives(fake_daemon_of(&f, 0)), "the subreaper finds it");
}

Test(cgroup, that_is_named_and_cannot_be_is_an_error)
{
    static const char *const names[] = {"/no/such/directory", "relative", "/tmp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fake_agent(&f, "--cgroup", names[i], NULL);
        cr_expect_eq(fake_wait(&f), 2, "%s", names[i]);
        cr_expect(log_has(names[i]), "%s", names[i]);
    }
    cr_expect(log_has("--cgroup: relative: accepted: auto, off, or the absolute path of a cgroup"));
}
