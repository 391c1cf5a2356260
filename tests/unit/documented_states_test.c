/* docs/states.md and its picture show the edges that the code has, no more and no less. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "states/sched.h"

#define LINE_SIZE 1024

static FILE *open_document(const char *path)
{
    FILE *f = fopen(path, "r");

    cr_assert(f, "%s cannot be read; tests run in the source tree's root", path);
    return f;
}

static enum pliant_state state_named(const char *name)
{
    enum pliant_state id = 0;

    while (id < PLIANT_STATES && strcmp(name, pliant_state_name(id)) != 0)
        id++;
    return id; /* PLIANT_STATES: none */
}

/* "| Created | Finished | ..." */
static bool edge_of_row(const char *line, enum pliant_state *from, enum pliant_state *to)
{
    char names[2][64];

    *from = *to = PLIANT_STATES;
    if (sscanf(line, "| %63[A-Za-z] | %63[A-Za-z] |", names[0], names[1]) != 2)
        return false;
    *from = state_named(names[0]);
    *to = state_named(names[1]);
    return *from != PLIANT_STATES && *to != PLIANT_STATES;
}

static bool legal(enum pliant_state from, enum pliant_state to)
{
    return state_ops(to)->may_follow & BIT(from);
}

Test(documented_states, the_table_has_every_edge_of_the_code) /* [S-GEN-3] */
{
    bool documented[PLIANT_STATES][PLIANT_STATES] = {{false}};
    FILE *f = open_document("docs/states.md");
    char line[LINE_SIZE];
    enum pliant_state from, to;

    while (fgets(line, sizeof line, f))
        if (edge_of_row(line, &from, &to)) {
            cr_expect(!documented[from][to], "twice: %s", line);
            documented[from][to] = true;
        }
    fclose(f);
    for (from = 0; from < PLIANT_STATES; from++)
        for (to = 0; to < PLIANT_STATES; to++)
            cr_expect_eq(documented[from][to], legal(from, to), "%s > %s: documented %d, legal %d",
                         pliant_state_name(from), pliant_state_name(to), documented[from][to],
                         legal(from, to));
}

/* To Finished everything leads on a suspend: the picture shows only the edges of those that have
 * run. */
static bool drawn(enum pliant_state from, enum pliant_state to)
{
    return legal(from, to) &&
           (to != PLIANT_FINISHED || (state_ops(from)->has_graph && from != PLIANT_RESTARTING));
}

Test(documented_states, the_picture_has_them_too)
{
    FILE *f = open_document("docs/states.svg");
    char text[32 * LINE_SIZE], id[160];
    size_t n = fread(text, 1, sizeof text - 1, f);

    fclose(f);
    text[n] = '\0';
    for (enum pliant_state from = 0; from < PLIANT_STATES; from++)
        for (enum pliant_state to = 0; to < PLIANT_STATES; to++) {
            snprintf(id, sizeof id, "<path id=\"%s-%s\"", pliant_state_name(from),
                     pliant_state_name(to));
            cr_expect_eq(strstr(text, id) != NULL, drawn(from, to), "%s", id);
        }
}
