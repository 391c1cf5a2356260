/* names_test.c - the fixed texts of states, reasons, kinds: as users see them */
#include <criterion/criterion.h>
#include <string.h>

#include <pliant/pliant.h>

/* A table has a text for each value, no text twice, and "" beyond. */
#define EXPECT_TABLE(name, first, end)                                                             \
    do {                                                                                           \
        for (unsigned i = (first); i < (end); i++) {                                               \
            cr_expect_str_not_empty(name(i), #name " of %u", i);                                   \
            for (unsigned k = (first); k < i; k++)                                                 \
                cr_expect_str_neq(name(i), name(k), #name " of %u and %u", i, k);                  \
        }                                                                                          \
        cr_expect_str_empty(name((end)), #name);                                                   \
        cr_expect_str_empty(name(UINT32_MAX), #name);                                              \
    } while (0)

Test(names, are_there_for_each_value_and_differ)
{
    EXPECT_TABLE(pliant_state_name, 0, PLIANT_STATES);
    EXPECT_TABLE(pliant_job_status_name, 0, PLIANT_JOB_SUSPENDED + 1);
    EXPECT_TABLE(pliant_task_state_name, 0, PLIANT_TASK_FAILED + 1);
    EXPECT_TABLE(pliant_reason_name, 0, PLIANT_REASONS);
    EXPECT_TABLE(pliant_event_name, 0, PLIANT_EVENTS);
    EXPECT_TABLE(pliant_action_name, 0, PLIANT_ACTIONS);
    EXPECT_TABLE(pliant_checkpoint_cause_name, 0, PLIANT_CHECKPOINT_STOP + 1);
    EXPECT_TABLE(pliant_drain_reason_name, 0, PLIANT_DRAIN_IDLE + 1);
    EXPECT_TABLE(pliant_rescale_trigger_name, 0, PLIANT_TRIGGER_RECLAIM + 1);
    EXPECT_TABLE(pliant_rescale_end_name, 0, PLIANT_RESCALE_JOB_SUSPENDED + 1);
    EXPECT_TABLE(pliant_rescale_terminal_name, 0, PLIANT_TERMINALS);
}

Test(names, keep_the_spelling_that_users_know) /* [S-TML-18] */
{
    cr_assert_str_eq(pliant_state_name(PLIANT_WAITING_FOR_RESOURCES), "WaitingForResources");
    cr_assert_str_eq(pliant_job_status_name(PLIANT_JOB_CANCELLING), "CANCELLING");
    cr_assert_str_eq(pliant_job_status_name(PLIANT_JOB_CANCELED), "CANCELED");
    cr_assert_str_eq(pliant_rescale_trigger_name(PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE),
                     "NEW_RESOURCE_AVAILABLE");
    cr_assert_str_eq(pliant_rescale_end_name(PLIANT_RESCALE_NO_CHANGE),
                     "NO_RESOURCES_OR_PARALLELISMS_CHANGE");
    cr_assert_str_eq(pliant_rescale_end_name(PLIANT_RESCALE_REQUIREMENTS_UPDATED),
                     "RESOURCE_REQUIREMENTS_UPDATED");
}

Test(names, tell_the_version)
{
    int dots = 0;

    for (const char *c = pliant_version(); *c; c++)
        dots += *c == '.';
    cr_assert_eq(dots, 2);
}
