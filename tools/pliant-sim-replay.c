/* pliant-sim-replay.c - pliant-sim replay: does a recorded run come out the same? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pliant-sim.h"
#include "sim/replay.h"

static enum exit_code tell_difference(const char *path, const struct replay_result *result)
{
    printf("%s:%" PRIu32 ": the actions at %" PRId64 " differ\n"
           "  recorded: %s\n"
           "  replayed: %s\n",
           path, result->line, result->at_ms, result->recorded, result->replayed);
    return finish(ANSWER_IS_NO);
}

static enum exit_code tell_json(const struct replay_result *result)
{
    struct json j;
    int error;

    json_init(&j, stdout);
    json_begin(&j, NULL, '{');
    json_uint(&j, "steps", result->steps);
    json_bool(&j, "same", result->same);
    if (!result->same) {
        json_uint(&j, "line", result->line);
        json_int(&j, "t", result->at_ms);
        json_string(&j, "recorded", result->recorded);
        json_string(&j, "replayed", result->replayed);
    }
    json_end(&j, '}');
    json_line(&j);
    error = json_flush(&j);
    json_free(&j);
    if (error)
        return complain(NO_RESOURCES, "output: %s", strerror(-error));
    return result->same ? DONE : ANSWER_IS_NO;
}

static enum exit_code replay_file(const char *path, bool json)
{
    struct recording *rec = NULL;
    struct replay_result result = {.steps = 0};
    struct spec_error err = {.text = ""};
    enum exit_code code;
    int r = recording_open(path, &rec, &err);

    if (!r)
        r = replay(rec, &result, &err);
    if (r) {
        code = input_error(r, err.text);
    } else if (json) {
        code = tell_json(&result);
    } else if (!result.same) {
        code = tell_difference(path, &result);
    } else {
        printf("%" PRIu64 " steps, all the same\n", result.steps);
        code = finish(DONE);
    }
    replay_free(&result);
    recording_close(&rec);
    return code;
}

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, COMMON_OPTIONS};
    enum exit_code code;
    bool json = false;
    int option;

    while ((option = next_option(argc, argv, options, self, &code)) != -1) {
        if (option == '?')
            return code;
        json |= option == 'j';
    }
    if (optind != argc - 1)
        return usage(self, "replay: name one recording");
    return replay_file(argv[optind], json);
}

const struct command replay_command = {
    .name = "replay",
    .run = run,
    .summary = "runs a recording again and compares every action",
    .usage = "[--json] RECORDING\n"
             "Feed the events of a recording to the scheduler and compare its actions, byte for\n"
             "byte. A recording that was cut at the end of a line is a prefix, and fine.\n\n"
             "Exit code 1: there is a difference; the first one is shown.\n",
};
