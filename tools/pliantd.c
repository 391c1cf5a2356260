/* pliantd.c - the daemon's program: options, state directory, run */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/daemon.h"

enum { BAD_INPUT = 2, NO_RESOURCES = 4 };

static const char help[] =
    "Usage: pliantd [OPTION]...\n"
    "Runs jobs on the nodes whose agents connect, and goes on after a restart where it was.\n"
    "\n"
    "  -c, --config FILE     options, YAML or JSON (docs/options.md)\n"
    "  -D NAME=VALUE         one option; goes before the file\n"
    "  -s, --state-dir DIR   what outlives the daemon (pliant.daemon.state-dir); else\n"
    "                        $PLIANT_STATE_DIR, else /var/lib/pliant as root, else\n"
    "                        $XDG_STATE_HOME/pliant\n"
    "      --agents E        endpoint for agents, tcp://HOST:PORT or ipc://PATH; port * is any\n"
    "      --clients E       endpoint for clients\n"
    "      --events E        endpoint of the event stream\n"
    "      --keys DIR        the daemon's key and those of its peers (pliantctl keygen)\n"
    "      --insecure-bind   listen on other addresses than loopback without keys\n"
    "  -h, --help            show this\n"
    "  -V, --version         show the version\n"
    "\n"
    "Where it listens stands in endpoints.json in the state directory. SIGTERM ends it, jobs go\n"
    "on; SIGHUP reads the keys again. Exit code: 0 ended on request, 2 bad usage or input,\n"
    "4 no memory, full disk.\n";

static int complain(int code, const char *text)
{
    fprintf(stderr, "pliantd: %s\n", text);
    return code;
}

static int try_help(void)
{
    fputs("Try 'pliantd --help'.\n", stderr);
    return BAD_INPUT;
}

/* ---- the command line ----------------------------------------------------------------------- */

/* Options of the command line that stand for an option of the table. */
enum { OPT_AGENTS = 256, OPT_CLIENTS, OPT_EVENTS, OPT_KEYS, OPT_INSECURE };

static const char *stands_for(int c)
{
    switch (c) {
    case 's':
        return "pliant.daemon.state-dir";
    case OPT_AGENTS:
        return "pliant.daemon.agents";
    case OPT_CLIENTS:
        return "pliant.daemon.clients";
    case OPT_EVENTS:
        return "pliant.daemon.events";
    case OPT_KEYS:
        return "pliant.security.keys";
    default:
        return NULL;
    }
}

static int define(struct options *o, const char *key, const char *value, struct spec_error *err)
{
    char *text;
    int r;

    if (asprintf(&text, "%s=%s", key, value) < 0)
        return -ENOMEM;
    r = options_define(o, text, err);
    free(text);
    return r;
}

static int take_option(struct daemon_options *o, int c, struct spec_error *err)
{
    if (c == 'c')
        return options_read(&o->all, optarg, err);
    if (c == 'D')
        return options_define(&o->all, optarg, err);
    if (stands_for(c))
        return define(&o->all, stands_for(c), optarg, err);
    o->insecure = true;
    return 0;
}

static int wrong(int r, const struct spec_error *err)
{
    return r == -ENOMEM ? complain(NO_RESOURCES, "no memory") : complain(BAD_INPUT, err->text);
}

/* -1: run; else the exit code. */
static int read_command_line(int argc, char **argv, struct daemon_options *o)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'},
        {"state-dir", required_argument, NULL, 's'},
        {"agents", required_argument, NULL, OPT_AGENTS},
        {"clients", required_argument, NULL, OPT_CLIENTS},
        {"events", required_argument, NULL, OPT_EVENTS},
        {"keys", required_argument, NULL, OPT_KEYS},
        {"insecure-bind", no_argument, NULL, OPT_INSECURE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    struct spec_error err = {""};
    int c, r;

    while ((c = getopt_long(argc, argv, "c:D:s:hV", longs, NULL)) != -1) {
        if (c == '?')
            return try_help();
        if (c == 'h')
            return fputs(help, stdout) < 0 || fflush(stdout) ? NO_RESOURCES : 0;
        if (c == 'V')
            return printf("pliantd %s\n", pliant_version()) < 0 || fflush(stdout) ? NO_RESOURCES
                                                                                  : 0;
        r = take_option(o, c, &err);
        if (r < 0)
            return wrong(r, &err);
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, "pliantd: %s: no such argument\n", argv[optind]);
    return try_help();
}

/* ---- the state directory -------------------------------------------------------------------- */

static char *below(const char *dir, const char *rest)
{
    char *path;

    return need(asprintf(&path, "%s/%s", dir, rest) < 0 ? NULL : path);
}

static char *usual_state_dir(void)
{
    const char *named = getenv("PLIANT_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");

    if (named && *named)
        return need_text(named);
    if (geteuid() == 0)
        return need_text("/var/lib/pliant");
    if (xdg && *xdg)
        return below(xdg, "pliant");
    return below(home && *home ? home : ".", ".local/state/pliant");
}

/* The directories above it; the store makes the last one, for us alone. */
static void make_above(char *path)
{
    for (char *c = path + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(path, 0755);
        *c = '/';
    }
}

static char *state_dir(const struct options *o)
{
    const char *set = options_text(o, "pliant.daemon.state-dir");
    char *dir = *set ? need_text(set) : usual_state_dir();
    char *absolute;

    make_above(dir);
    if (*dir == '/')
        return dir;
    absolute = need(getcwd(NULL, 0));
    set = below(absolute, dir);
    free(absolute);
    free(dir);
    return (char *)set;
}

/* ---- running -------------------------------------------------------------------------------- */

static void warn(void *ctx, const char *text)
{
    (void)ctx;
    log_line(4, "msg=%s", log_quoted(text).v);
}

static int exit_code_of(int r)
{
    return r == -ENOMEM || r == -ENOSPC || r == -EIO || r == -EROFS ? NO_RESOURCES : BAD_INPUT;
}

static int run(struct daemon *d)
{
    struct spec_error err = {""};
    int r = daemon_open(d, &err), code;

    if (r < 0)
        code = complain(exit_code_of(r), *err.text ? err.text : strerror(-r));
    else
        code = daemon_run(d);
    daemon_close(d);
    return code;
}

int main(int argc, char **argv)
{
    struct pliant_config cfg;
    struct daemon d = {0};
    struct spec_error err;
    char *dir;
    int code, r;

    rpc_prepare_process();
    setlocale(LC_CTYPE, "C.UTF-8");
    code = read_command_line(argc, argv, &d.opts);
    if (code < 0) {
        r = options_resolve(&d.opts.all, &cfg, &err);
        code = r < 0 ? wrong(r, &err) : -1;
    }
    if (code < 0) {
        options_warn(&d.opts.all, warn, NULL);
        dir = state_dir(&d.opts.all);
        d.opts.state_dir = dir;
        code = run(&d);
        free(dir);
    }
    options_free(&d.opts.all);
    return code;
}
