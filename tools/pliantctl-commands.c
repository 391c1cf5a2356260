/* pliantctl-commands.c - the table of commands and options: parser, help and completion read it */
#include "pliantctl.h"

/* clang-format off */
const struct ctl_option ctl_common_options[] = {
    {"connect", 'c', "ENDPOINT", "the service, as tcp://HOST:PORT or ipc://PATH", CTL_CONNECT},
    {"state-dir", 0, "DIR", "find the service by endpoints.json in its state directory", CTL_STATE_DIR},
    {"key", 0, "FILE", "own certificate, as keygen makes it; default: $PLIANT_KEY", CTL_KEY},
    {"server-key", 0, "FILE", "the service's public key: a file or 40 characters; default: $PLIANT_SERVER_KEY, else as in endpoints.json", CTL_SERVER_KEY},
    {"timeout", 0, "D", "wait so long for an answer; default: 10 s", CTL_TIMEOUT},
    {"json", 'j', NULL, "print what the service answers, for programs", CTL_JSON},
    {"help", 'h', NULL, "print this", CTL_HELP},
    {"version", 0, NULL, "print the version", CTL_VERSION},
    {0},
};

#define DIR_OPTION(what) {"dir", 0, "DIR", "where to; default: " what, CTL_DIR}
#define SAVEPOINT_DIR DIR_OPTION("the job's execution.checkpointing.savepoint-dir")
#define WAIT_OPTION {"wait", 'w', NULL, "until the job has ended; exit code 1 if it failed", CTL_WAIT}

const struct ctl_command ctl_commands[] = {
    {"submit", "FILE", "hands a job to the service",
     "FILE is the job (YAML or JSON; - is standard input). Prints the job's id.", ctl_submit,
     {{"define", 'D', "NAME=VALUE", "an option; goes before the job's own", CTL_DEFINE},
      {"dry-run", 'n', NULL, "only check the job, and show the plan that it would get now", CTL_DRY_RUN},
      {"id", 0, "ID", "the job's id, 32 hex digits; submitting again with the same id and job is harmless", CTL_ID},
      WAIT_OPTION}},
    {"list", "", "jobs", NULL, ctl_list,
     {{"all", 'a', NULL, "those that have ended as well", CTL_ALL}}},
    {"status", "JOB", "a job: state, parallelism, tasks, what comes next",
     "JOB is a job's name, its id, or how the id begins (4 digits at least).", ctl_status, {{0}}},
    {"watch", "[JOB]", "shows what happens as it happens",
     "In a terminal a live view; q ends it. Elsewhere a line an event, with --json as JSON Lines;\n"
     "then it ends when JOB has ended.", ctl_watch, {{0}}},
    {"scale", "JOB VERTEX=MAX|VERTEX=MIN:MAX...", "sets the bounds of vertices' parallelism",
     "VERTEX=MAX is VERTEX=1:MAX, as in a job file. Other vertices keep their bounds.", ctl_scale, {{0}}},
    {"cancel", "JOB", "ends a job at once", NULL, ctl_cancel, {WAIT_OPTION}},
    {"stop", "JOB", "takes a savepoint, then ends the job", "Prints the savepoint's path once it is there.",
     ctl_stop,
     {SAVEPOINT_DIR, {"drain", 0, NULL, "sources stop, and all that is under way is finished first", CTL_DRAIN}}},
    {"remove", "JOB", "forgets a job that has ended", "Its checkpoints stay. With an id it may be repeated.",
     ctl_remove,
     {{"force", 'f', NULL, "one that is damaged too: what can be read of it is lost, its tasks are stopped", CTL_FORCE}}},
    {"savepoint", "JOB", "takes a savepoint", "Prints the savepoint's path once it is there.", ctl_savepoint,
     {SAVEPOINT_DIR, {"cancel", 0, NULL, "then cancel the job", CTL_CANCEL}}},
    {"checkpoint", "JOB", "asks for a checkpoint now", NULL, ctl_checkpoint, {{0}}},
    {"drain", "NODE", "moves jobs off a node", NULL, ctl_drain,
     {{"deadline", 'd', "D", "the node goes after this time, as 10min; default: when it may", CTL_DEADLINE},
      {"reason", 'r', "preemption|scale-down|upgrade|idle", "why; default: upgrade", CTL_REASON}}},
    {"undrain", "NODE", "lets jobs use a drained node again", NULL, ctl_undrain, {{0}}},
    {"nodes", "", "nodes with their slots", NULL, ctl_nodes, {{0}}},
    {"tasks", "JOB", "a job's tasks: where, since when, what they use", NULL, ctl_tasks, {{0}}},
    {"rescales", "JOB", "why a job was rescaled, or was not", NULL, ctl_rescales, {{0}}},
    {"failures", "JOB", "what failed, and why", NULL, ctl_failures, {{0}}},
    {"checkpoints", "JOB", "checkpoints and savepoints", NULL, ctl_checkpoints, {{0}}},
    {"logs", "JOB VERTEX/SUBTASK", "what a task has printed", NULL, ctl_logs,
     {{"attempt", 0, "N", "of this attempt; default: the last", CTL_ATTEMPT},
      {"stderr", 'e', NULL, "standard error instead of standard output", CTL_STDERR},
      {"follow", 'f', NULL, "go on as it grows, and with the next attempt", CTL_FOLLOW},
      {"tail", 'n', "N", "begin with the last N lines", CTL_TAIL}}},
    {"record", "JOB", "the job's journal, for 'pliant-sim replay'", NULL, ctl_record,
     {{"output", 'o', "FILE", "write it there; default: standard output", CTL_OUTPUT}}},
    {"keygen", "NAME", "makes a key pair",
     "Writes NAME.key_secret, which its owner needs, and NAME.key. Needs no service.\n"
     "'keygen server --role server --keys DIR' makes the daemon's own.", ctl_keygen,
     {{"role", 'r', "agent|operator|viewer|server", "what its owner may do", CTL_ROLE},
      {"node", 'n', "NODE", "of an agent: the one node that its key speaks for", CTL_NODE},
      {"keys", 'k', "DIR", "the daemon's directory of keys: the public key is let in there", CTL_KEYS},
      {"output", 'o', "DIR", "where to write the pair; default: here, of a server: the directory of keys", CTL_OUTPUT}}},
    {"shutdown", "", "ends the service; jobs go on", NULL, ctl_shutdown,
     {{"stop-jobs", 0, NULL, "cancel all jobs first", CTL_STOP_JOBS}}},
    {"ping", "", "is the service there, and well?", NULL, ctl_ping, {{0}}},
    {"completion", "bash|zsh|jobs|nodes", "prints a completion script, or words for one", NULL, ctl_completion, {{0}}},
    {0},
};
/* clang-format on */
