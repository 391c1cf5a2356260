/* pliant-sim-options.c - pliant-sim options: the table of options */
#include <stdio.h>
#include <string.h>

#include "pliant-sim.h"
#include "spec/options.h"

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    static const struct option options[] = {
        FORMAT_OPTIONS, {"markdown", no_argument, NULL, 'm'}, COMMON_OPTIONS};
    static const enum options_format formats[] = {
        [REPORT_TEXT] = OPTIONS_TEXT, [REPORT_JSON] = OPTIONS_JSON, [REPORT_CSV] = OPTIONS_CSV};
    enum report_format format = REPORT_TEXT;
    enum exit_code code;
    bool markdown = false;
    int option, r;

    while ((option = next_option(argc, argv, options, self, &code)) != -1) {
        if (option == '?')
            return code;
        markdown |= option == 'm';
        if (option != 'm' && !take_format(option, &format))
            return BAD_INPUT;
    }
    if (optind < argc)
        return usage(self, "options: \"%s\" is not an option", argv[optind]);
    r = options_print(stdout, markdown ? OPTIONS_MARKDOWN : formats[format]);
    if (r)
        return complain(NO_RESOURCES, "standard output: %s", strerror(-r));
    return finish(DONE);
}

const struct command options_command = {
    .name = "options",
    .run = run,
    .summary = "the table of options",
    .usage = "[--format text|json|csv | --markdown]\n"
             "Print all options: names, defaults, what is accepted, what they do.\n",
};
