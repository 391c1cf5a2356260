/* pliant-agent.c - the program of a node: its command line */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pliant/pliant.h>

#include "agent/agent.h"
#include "spec/options.h"
#include "util/ascii.h"
#include "util/duration.h"

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:6180"
#define SYSTEM_WORK_DIR "/var/lib/pliant/agent"
#define BAD_INPUT 2

static const char usage_text[] =
    "Usage: pliant-agent [--slots N] [--connect ENDPOINT]... [OPTION]...\n"
    "\n"
    "Offers this machine's slots to pliantd and runs the tasks that it places in them.\n"
    "\n"
    "      --slots N             slots to offer (default: processors)\n"
    "      --connect ENDPOINT    where pliantd listens for agents; of several the first that\n"
    "                            answers (default: $PLIANT_CONNECT, else\n"
    "                            " DEFAULT_ENDPOINT ")\n"
    "      --config FILE         options, YAML or JSON\n"
    "  -D NAME=VALUE             one option: pliant.agent.keep-tasks, pliant.agent.orphan-timeout\n"
    "      --node NAME           name of the node (default: the host's)\n"
    "      --zone Z, --domain D  where it is; nodes of a domain are lost together\n"
    "      --label NAME=VALUE    a label, repeatable\n"
    "      --address A           where other nodes reach this one (default: the host's name)\n"
    "      --work-dir DIR        tasks, logs, lock (default: $PLIANT_WORK_DIR, else\n"
    "                            $XDG_RUNTIME_DIR/pliant, else " SYSTEM_WORK_DIR ")\n"
    "      --key FILE            own certificate, with --server-key\n"
    "      --server-key KEY      the daemon's public key, or the file that holds it\n"
    "      --cgroup auto|off|PATH\n"
    "                            where each task gets a cgroup (version 2) of its own: below the\n"
    "                            agent's, if that may be (default); nowhere; below PATH\n"
    "      --keep-tasks          tasks outlive the agent; its next start adopts them\n"
    "      --preemption-probe P  aws, gcp, azure, or a command: exit code 0 no notice, 1 notice,\n"
    "                            or {\"preempt\":true,\"deadline_unix_ms\":N} on its output\n"
    "      --preemption-probe-interval D\n"
    "                            how often it is asked (default: 5 s)\n"
    "      --drain-timeout D     from SIGTERM to the end of the last task (default: 30 s)\n"
    "      --forward-signals LIST\n"
    "                            also handed to the tasks, as in USR1,USR2 (INT, HUP and QUIT\n"
    "                            always are)\n"
    "      --help, --version\n"
    "\n"
    "SIGTERM drains the node: the agent ends when its last task has moved away. A second one\n"
    "ends everything at once.\n";

/* ---- errors
 * ----------------------------------------------------------------------------------------- */

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
    va_list args;

    fputs("pliant-agent: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\nTry 'pliant-agent --help'.\n", stderr);
    return BAD_INPUT;
}

/* ---- values
 * ------------------------------------------------------------------------------------------ */

static int read_slots(const char *text, struct agent_options *o)
{
    char *end;

    errno = 0;
    o->slots = strtoll(text, &end, 10);
    if (*text && !*end && !errno && o->slots >= 1 && o->slots <= AGENT_SLOTS_MAX)
        return 0;
    return complain("--slots: %s: accepted: a number from 1 to %d", text, AGENT_SLOTS_MAX);
}

static int read_span(const char *name, const char *text, int64_t min_ms, int64_t *ret)
{
    int64_t ms;

    if (duration_parse(text, &ms) == 0 && ms >= min_ms) {
        *ret = ms;
        return 0;
    }
    return complain("%s: %s: accepted: a duration of at least %lld ms, as in 5 s", name, text,
                    (long long)min_ms);
}

static int read_name(const char *name, const char *text, const char **ret)
{
    if (*text && strlen(text) <= AGENT_NAME_MAX) {
        *ret = text;
        return 0;
    }
    return complain("%s: accepted: a text of 1 to %u bytes", name, AGENT_NAME_MAX);
}

static int read_endpoint(const char *text, struct agent_options *o)
{
    if ((strncmp(text, "tcp://", 6) != 0 && strncmp(text, "ipc://", 6) != 0) ||
        strlen(text) >= KEEPER_TEXT)
        return complain("--connect: %s: accepted: tcp://HOST:PORT or ipc://PATH", text);
    *(const char **)must(vec_push(NULL, &o->endpoints)) = text;
    return 0;
}

static int read_label(const char *text, struct agent_options *o)
{
    const char *value = strchr(text, '=');
    struct agent_label label;

    if (!value || value == text || strlen(text) > 2 * AGENT_NAME_MAX)
        return complain("--label: %s: accepted: NAME=VALUE", text);
    label = (struct agent_label){.key = must_copy_bytes(text, (size_t)(value - text)),
                                 .value = value + 1};
    *(struct agent_label *)must(vec_push(NULL, &o->labels)) = label;
    return 0;
}

static int read_cgroup(const char *text, struct agent_options *o)
{
    o->cgroup = text;
    if (*text == '/' || strcmp(text, CGROUP_AUTO) == 0 || strcmp(text, CGROUP_OFF) == 0)
        return 0;
    return complain("--cgroup: %s: accepted: auto, off, or the absolute path of a cgroup", text);
}

static int read_probe(const char *text, struct agent_options *o)
{
    static const struct {
        const char *name;
        enum probe_kind kind;
    } ready[] = {{"aws", PROBE_AWS}, {"gcp", PROBE_GCP}, {"azure", PROBE_AZURE}};

    if (!*text)
        return complain("--preemption-probe: accepted: aws, gcp, azure, or a command");
    o->probe = PROBE_COMMAND;
    o->probe_command = text;
    for (size_t i = 0; i < sizeof ready / sizeof *ready; i++)
        if (strcmp(text, ready[i].name) == 0)
            o->probe = ready[i].kind;
    return 0;
}

/* Signals that may be caught and that mean nothing else to the agent. */
static int signal_number(const char *name, size_t n)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGTERM, SIGCHLD, SIGSEGV, SIGBUS,
                                SIGFPE,  SIGILL,  SIGTRAP, SIGABRT, SIGSYS,  SIGPIPE};
    int signal;

    if (n > 3 && strncmp(name, "SIG", 3) == 0) {
        name += 3;
        n -= 3;
    }
    signal = signal_by_name(name, n);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (signal == never[i])
            return 0;
    return signal;
}

static int read_signals(const char *text, struct agent_options *o)
{
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        int signal = signal_number(at, n);

        if (signal == 0)
            return complain("--forward-signals: %.*s: accepted: names as in USR1,USR2", (int)n, at);
        sigaddset(&o->forwarded, signal);
        at += n + (at[n] == ',');
    }
    return 0;
}

/* ---- the command line
 * ---------------------------------------------------------------------------------- */

enum option_code {
    OPT_SLOTS = 256,
    OPT_CONNECT,
    OPT_CONFIG,
    OPT_NODE,
    OPT_ZONE,
    OPT_DOMAIN,
    OPT_LABEL,
    OPT_ADDRESS,
    OPT_WORK_DIR,
    OPT_KEY,
    OPT_SERVER_KEY,
    OPT_CGROUP,
    OPT_KEEP_TASKS,
    OPT_PROBE,
    OPT_PROBE_INTERVAL,
    OPT_DRAIN_TIMEOUT,
    OPT_FORWARD,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option known[] = {
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"connect", required_argument, NULL, OPT_CONNECT},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"node", required_argument, NULL, OPT_NODE},
    {"zone", required_argument, NULL, OPT_ZONE},
    {"domain", required_argument, NULL, OPT_DOMAIN},
    {"label", required_argument, NULL, OPT_LABEL},
    {"address", required_argument, NULL, OPT_ADDRESS},
    {"work-dir", required_argument, NULL, OPT_WORK_DIR},
    {"key", required_argument, NULL, OPT_KEY},
    {"server-key", required_argument, NULL, OPT_SERVER_KEY},
    {"cgroup", required_argument, NULL, OPT_CGROUP},
    {"keep-tasks", no_argument, NULL, OPT_KEEP_TASKS},
    {"preemption-probe", required_argument, NULL, OPT_PROBE},
    {"preemption-probe-interval", required_argument, NULL, OPT_PROBE_INTERVAL},
    {"drain-timeout", required_argument, NULL, OPT_DRAIN_TIMEOUT},
    {"forward-signals", required_argument, NULL, OPT_FORWARD},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

struct command_line {
    struct agent_options agent;
    struct options options;
    const char *work_dir;
};

static int read_option_file(struct command_line *c, const char *path)
{
    struct spec_error err;

    return options_read(&c->options, path, &err) == 0 ? 0 : complain("%s", err.text);
}

static int define(struct command_line *c, const char *assignment)
{
    struct spec_error err;

    return options_define(&c->options, assignment, &err) == 0 ? 0 : complain("%s", err.text);
}

static int take_option(struct command_line *c, int code)
{
    struct agent_options *o = &c->agent;

    switch (code) {
    case OPT_SLOTS:
        return read_slots(optarg, o);
    case OPT_CONNECT:
        return read_endpoint(optarg, o);
    case OPT_CONFIG:
        return read_option_file(c, optarg);
    case 'D':
        return define(c, optarg);
    case OPT_NODE:
        if (!ascii_is_plain(optarg))
            return complain("--node: %s: accepted: visible ASCII characters but \" \\ /", optarg);
        return read_name("--node", optarg, &o->node);
    case OPT_ZONE:
        return read_name("--zone", optarg, &o->zone);
    case OPT_DOMAIN:
        return read_name("--domain", optarg, &o->domain);
    case OPT_LABEL:
        return read_label(optarg, o);
    case OPT_ADDRESS:
        return read_name("--address", optarg, &o->address);
    case OPT_WORK_DIR:
        c->work_dir = optarg;
        return 0;
    case OPT_KEY:
        o->key_file = optarg;
        return 0;
    case OPT_SERVER_KEY:
        o->server_key = optarg;
        return 0;
    case OPT_CGROUP:
        return read_cgroup(optarg, o);
    case OPT_KEEP_TASKS:
        return define(c, "pliant.agent.keep-tasks=true");
    case OPT_PROBE:
        return read_probe(optarg, o);
    case OPT_PROBE_INTERVAL:
        return read_span("--preemption-probe-interval", optarg, 100, &o->probe_interval_ms);
    case OPT_DRAIN_TIMEOUT:
        return read_span("--drain-timeout", optarg, 0, &o->drain_timeout_ms);
    case OPT_FORWARD:
        return read_signals(optarg, o);
    case OPT_HELP:
        fputs(usage_text, stdout);
        exit(fflush(stdout) == 0 ? 0 : 4);
    case OPT_VERSION:
        printf("pliant-agent %s\n", pliant_version());
        exit(fflush(stdout) == 0 ? 0 : 4);
    default:
        fputs("Try 'pliant-agent --help'.\n", stderr);
        return BAD_INPUT;
    }
}

/* ---- defaults
 * --------------------------------------------------------------------------------------------- */

/* Absolute, because tasks have directories of their own. */
static char *absolute(const char *path)
{
    char *here, *whole;

    if (*path == '/')
        return must_copy(path);
    here = must(getcwd(NULL, 0));
    whole = must_format("%s/%s", here, path);
    free(here);
    return whole;
}

static char *find_work_dir(const char *given)
{
    const char *own = getenv("PLIANT_WORK_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");

    if (given)
        return absolute(given);
    if (own && *own)
        return absolute(own);
    return runtime && *runtime ? must_format("%s/pliant", runtime) : must_copy(SYSTEM_WORK_DIR);
}

static int fill_in(struct command_line *c, char host[HOST_NAME_MAX + 1])
{
    struct agent_options *o = &c->agent;
    const char *connect = getenv("PLIANT_CONNECT");
    size_t n;

    if (gethostname(host, HOST_NAME_MAX) != 0 || !*host)
        snprintf(host, HOST_NAME_MAX, "localhost");
    o->host = host;
    if (!o->node)
        o->node = host;
    if (o->slots == 0)
        o->slots = sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    if ((o->key_file != NULL) != (o->server_key != NULL))
        return complain("--key and --server-key: one without the other");
    if (c->work_dir && !*c->work_dir)
        return complain("--work-dir: accepted: a directory");
    o->work_dir = find_work_dir(c->work_dir);
    for (n = strlen(o->work_dir); n > 1 && o->work_dir[n - 1] == '/';)
        ((char *)(uintptr_t)o->work_dir)[--n] = '\0';
    o->keep_tasks = strcmp(options_text(&c->options, "pliant.agent.keep-tasks"), "true") == 0;
    o->orphan_timeout_ms = options_duration_ms(&c->options, "pliant.agent.orphan-timeout");
    if (o->endpoints.n > 0)
        return 0;
    return read_endpoint(connect && *connect ? connect : DEFAULT_ENDPOINT, o);
}

static void release(struct command_line *c)
{
    for (size_t i = 0; i < c->agent.labels.n; i++)
        free((void *)(uintptr_t)c->agent.labels.v[i].key);
    vec_free(NULL, &c->agent.labels);
    vec_free(NULL, &c->agent.endpoints);
    free((void *)(uintptr_t)c->agent.work_dir);
    options_free(&c->options);
}

int main(int argc, char **argv)
{
    struct command_line c = {
        .agent = {.cgroup = CGROUP_AUTO, .probe_interval_ms = 5000, .drain_timeout_ms = 30000}};
    char host[HOST_NAME_MAX + 1] = "";
    int code = 0, option;

    rpc_prepare_process();
    if (argc > 1 && strcmp(argv[1], KEEPER_GOODBYE) == 0)
        return session_goodbye_for(argc - 2, argv + 2);
    sigemptyset(&c.agent.forwarded);
    while (code == 0 && (option = getopt_long(argc, argv, "D:", known, NULL)) != -1)
        code = take_option(&c, option);
    if (code == 0 && optind < argc)
        code = complain("%s: no argument is expected", argv[optind]);
    if (code == 0)
        code = fill_in(&c, host);
    if (code == 0)
        code = agent_run(&c.agent);
    release(&c);
    return code;
}
