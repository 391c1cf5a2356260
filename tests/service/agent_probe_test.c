/* agent_probe_test.c - pliant-agent asks whether its node will be taken away; the metadata services
 * are a stand-in on loopback */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/fake_daemon.h"

static struct fake f;
static pid_t service;
static unsigned service_port;

static void set_up(void)
{
    fake_open(&f);
}

static void tear_down(void)
{
    if (service > 0) {
        kill(service, SIGKILL);
        waitpid(service, NULL, 0);
    }
    fake_close(&f);
}

TestSuite(agent_probe, .init = set_up, .fini = tear_down, .timeout = 240);

/* ---- a stand-in
 * ------------------------------------------------------------------------------------ */

struct canned {
    const char *begins; /* of the request */
    const char *has;    /* a header that it must have, else 401 */
    const char *quiet;  /* the reply, */
    const char *notice; /* and once the file `notice` is there */
};

static void reply(int client, const char *text)
{
    if (write(client, text, strlen(text)) < 0)
        _exit(1);
}

static void serve_one(int client, const struct canned *table)
{
    char request[4096] = "", path[96];
    size_t n = 0;
    ssize_t got;

    while (!strstr(request, "\r\n\r\n") && n < sizeof request - 1 &&
           (got = read(client, request + n, sizeof request - 1 - n)) > 0)
        n += (size_t)got;
    snprintf(path, sizeof path, "%s/notice", f.dir);
    for (; table->begins; table++) {
        if (strncmp(request, table->begins, strlen(table->begins)) != 0)
            continue;
        if (!strstr(request, table->has))
            reply(client, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        else
            reply(client, access(path, F_OK) == 0 ? table->notice : table->quiet);
        return;
    }
    reply(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void start_service(const struct canned *table)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[64];

    cr_assert(bind(door, (const struct sockaddr *)&at, sizeof at) == 0 && listen(door, 8) == 0);
    getsockname(door, (struct sockaddr *)&at, &size);
    service_port = ntohs(at.sin_port);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", service_port);
    setenv("PLIANT_METADATA_URL", url, 1);
    service = fork();
    if (service > 0) {
        close(door);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int client = accept(door, NULL, NULL);

        serve_one(client, table);
        close(client);
    }
}

static void give_notice(void)
{
    char path[96];

    snprintf(path, sizeof path, "%s/notice", f.dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void take_notice_back(void)
{
    char path[96];

    snprintf(path, sizeof path, "%s/notice", f.dir);
    unlink(path);
}

static void start(const char *probe)
{
    fake_agent(&f, "--preemption-probe", probe, "--preemption-probe-interval", "100 ms", NULL);
    fake_hello(&f);
}

/* A session without notice, then one; its deadline. */
static int64_t until_notice(void)
{
    for (int i = 0; i < 3; i++)
        fake_next(&f, MESSAGE_HEARTBEAT);
    give_notice();
    return fake_int(fake_next(&f, MESSAGE_DRAIN), "deadline_unix_ms");
}

/* ---- services
 * ----------------------------------------------------------------------------------------- */

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

Test(agent_probe, asks_aws)
{
    static const struct canned table[] = {
        {"PUT /latest/api/token ", "X-aws-ec2-metadata-token-ttl-seconds: ", OK "t0ken",
         OK "t0ken"},
        {"GET /latest/meta-data/spot/instance-action ", "X-aws-ec2-metadata-token: t0ken\r\n",
         "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
         OK "{\"action\":\"terminate\",\"time\":\"2027-09-18T08:22:00Z\"}"},
        {0},
    };

    start_service(table);
    start("aws");
    cr_expect_eq(until_notice(), 1821255720000);
    take_notice_back();
    fake_next(&f, MESSAGE_DRAIN_WITHDRAWN);
}

Test(agent_probe, asks_gcp)
{
    static const struct canned table[] = {
        {"GET /computeMetadata/v1/instance/preempted ", "Metadata-Flavor: Google\r\n", OK "FALSE",
         OK "TRUE"},
        {0},
    };
    struct timespec now;
    int64_t left_ms;

    start_service(table);
    start("gcp");
    left_ms = until_notice();
    clock_gettime(CLOCK_REALTIME, &now);
    left_ms -= (int64_t)now.tv_sec * 1000;
    cr_expect(left_ms > 10000 && left_ms <= 31000, "%lld", (long long)left_ms);
}

Test(agent_probe, asks_azure_for_this_machine)
{
    static const struct canned table[] = {
        {"GET /metadata/instance/compute/name?", "Metadata: true\r\n", OK "vm_7", OK "vm_7"},
        {"GET /metadata/scheduledevents?", "Metadata: true\r\n",
         OK "{\"DocumentIncarnation\":1,\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"vm_"
            "8\"],"
            "\"NotBefore\":\"\"},{\"EventType\":\"Reboot\",\"Resources\":[\"vm_7\"]}]}",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "62\r\n{\"Events\":[{\"EventType\":\"Preempt\",\"Resources\":[\"vm_7\"],"
         "\"NotBefore\":\"Mon, 19 Sep 2016 18:29:47 GMT\"\r\n3\r\n}]}\r\n0\r\n\r\n"},
        {0},
    };

    start_service(table);
    start("azure");
    cr_expect_eq(until_notice(), 1474309787000);
}

Test(agent_probe, goes_on_when_the_service_is_not_there)
{
    setenv("PLIANT_METADATA_URL", "http://127.0.0.1:1", 1);
    start("aws");
    fake_deploy(&f, 0, 1, "exit 0", "");
    fake_state(&f, 0, 1, "ended");
    for (int i = 0; i < 3; i++)
        fake_next(&f, MESSAGE_HEARTBEAT);
    cr_expect(!fake_has_ended(&f));
}

/* The port at which a request to the stand-in was made that has no reply yet; 0: there is none. */
static unsigned request_under_way(void)
{
    enum { ESTABLISHED = 1 }; /* as the kernel counts states */
    char line[256];
    unsigned from, to, state, found = 0;
    FILE *in = fopen("/proc/net/tcp", "r");

    cr_assert(in);
    while (fgets(line, sizeof line, in))
        if (sscanf(line, " %*u: %*8x:%x %*8x:%x %x", &from, &to, &state) == 3 &&
            to == service_port && state == ESTABLISHED)
            found = from;
    fclose(in);
    return found;
}

Test(agent_probe, does_not_wait_for_a_service_that_says_nothing)
{
    static const struct canned table[] = {{"PUT ", "", "", ""}, {0}};
    unsigned before;
    int attempt = 0;

    start_service(table);
    kill(service, SIGSTOP);
    start("aws");
    do { /* until a task comes and goes while one request waits, which is given up after a while */
        while ((before = request_under_way()) == 0)
            fake_pause();
        cr_assert_lt(++attempt, 30, "the loop goes on meanwhile");
        fake_deploy(&f, 0, attempt, "exit 0", "");
        fake_state(&f, 0, attempt, "ended");
    } while (request_under_way() != before);
}

/* ---- commands
 * -------------------------------------------------------------------------------------------- */

static const char *command(const char *format)
{
    static char text[512];

    snprintf(text, sizeof text, format, f.dir);
    return text;
}

Test(agent_probe, runs_a_command_that_answers_by_its_exit_code)
{
    start(command("test ! -e %s/notice"));
    cr_expect_eq(until_notice(), -1, "no deadline");
    take_notice_back();
    fake_next(&f, MESSAGE_DRAIN_WITHDRAWN);
}

Test(agent_probe, runs_a_command_that_answers_in_json)
{
    start(
        command("if test -e %s/notice; then echo '{\"preempt\":true,\"deadline_unix_ms\":12345}'; "
                "else echo '{\"preempt\":false}'; exit 1; fi"));
    cr_expect_eq(until_notice(), 12345);
}

Test(agent_probe, does_not_take_a_broken_command_for_a_notice)
{
    start("no-such-command");
    for (int i = 0; i < 5; i++)
        fake_next(&f, MESSAGE_HEARTBEAT);
    fake_send(&f, MESSAGE_RESYNC, "{}");
    cr_expect_eq(doc_get(fake_hello(&f), "drain")->kind, DOC_NULL);
}
