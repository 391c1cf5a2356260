/* pool_test.c - the nodes that are there, and the slots they offer to the job */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/pool.h"

static struct pool pool(void)
{
    struct pool p;

    pool_init(&p, NULL);
    return p;
}

static struct pool_node *join(struct pool *p, const char *name, uint32_t slots)
{
    struct pool_node *node = NULL;

    cr_assert_eq(pool_join(p, 0, 1, name, NULL, NULL, NULL, 0, slots, &node), 0);
    return node;
}

static void expect_counts(const struct pool *p, uint32_t held, uint32_t offered, uint32_t used,
                          uint32_t used_leaving)
{
    cr_assert_eq(p->n_held, held);
    cr_assert_eq(p->n_offered, offered);
    cr_assert_eq(p->n_used, used);
    cr_assert_eq(p->n_used_leaving, used_leaving);
    cr_assert_eq(pool_n_open(p), offered - (used - used_leaving));
}

/* Rows of a node's slots in its own order. */
static uint32_t slot_row(const struct pool *p, const struct pool_node *node, uint32_t index)
{
    uint32_t row = node->first_slot;

    while (index-- > 0)
        row = p->slots.v[row].next;
    return row;
}

/* ---- joining ---------------------------------------------------------------------------- */

Test(pool, knows_a_node_with_all_that_was_said_of_it)
{
    static const struct pliant_label labels[] = {{"gpu", "a100"}, {"spot", ""}};
    struct pool p = pool();
    struct pool_node *node;

    cr_assert_eq(pool_join(&p, 5, 42, "n1", "zone-a", "rack-7", labels, 2, 3, &node), 0);
    cr_assert_eq(pool_find(&p, "n1"), node);
    cr_assert_eq(pool_node(&p, node->row), node);
    cr_assert_str_eq(node->name, "n1");
    cr_assert_str_eq(node->zone, "zone-a");
    cr_assert_str_eq(node->domain, "rack-7");
    cr_assert_eq(node->n_labels, 2);
    cr_assert_str_eq(node->labels[0].value, "a100");
    cr_assert_str_eq(node->labels[1].key, "spot");
    cr_assert_eq(node->incarnation, 42);
    cr_assert_eq(node->n_slots, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct pool_slot *slot = &p.slots.v[slot_row(&p, node, i)];

        cr_assert_eq(slot->index, i);
        cr_assert_eq(slot->node, node->row);
        cr_assert_eq(slot->idle_since_ms, 5);
        cr_assert_gt(slot->born, i > 0 ? slot[-1].born : node->arrival);
        cr_assert(pool_slot_free(slot));
    }
    expect_counts(&p, 3, 3, 0, 0);
    pool_free(&p);
}

Test(pool, does_not_know_others)
{
    struct pool p = pool();

    cr_assert_null(pool_find(&p, "n1"));
    cr_assert_null(pool_node(&p, 0));
    join(&p, "n1", 0);
    cr_assert_null(pool_find(&p, "n"));
    cr_assert_null(pool_find(&p, "n11"));
    cr_assert_null(pool_node(&p, 1));
    expect_counts(&p, 0, 0, 0, 0);
    pool_free(&p);
}

Test(pool, grants_first_what_was_given_back_then_new_slots)
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 3), *other = join(&p, "n2", 1);

    pool_release(&p, slot_row(&p, node, 0));
    pool_release(&p, slot_row(&p, node, 2));
    expect_counts(&p, 2, 2, 0, 0);
    cr_assert_eq(node->n_slots, 1);
    cr_assert_eq(node->n_rows, 3);
    cr_assert_eq(pool_grant(&p, node, 70, 1), 0);
    cr_assert(p.slots.v[slot_row(&p, node, 0)].held);
    cr_assert_eq(p.slots.v[slot_row(&p, node, 0)].idle_since_ms, 70);
    cr_assert(!p.slots.v[slot_row(&p, node, 2)].held);
    cr_assert_eq(pool_grant(&p, node, 80, 3), 0);
    cr_assert_eq(node->n_slots, 5);
    cr_assert_eq(node->n_rows, 5);
    for (uint32_t i = 0; i < 5; i++)
        cr_assert_eq(p.slots.v[slot_row(&p, node, i)].index, i);
    cr_assert_gt(p.slots.v[slot_row(&p, node, 4)].born, p.slots.v[slot_row(&p, other, 0)].born);
    expect_counts(&p, 6, 6, 0, 0);
    pool_free(&p);
}

Test(pool, grants_slots_to_a_node_that_had_none)
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 0);

    cr_assert_eq(pool_grant(&p, node, 1, 2), 0);
    cr_assert_eq(node->n_slots, 2);
    cr_assert_eq(pool_grant(&p, node, 1, 0), 0);
    expect_counts(&p, 2, 2, 0, 0);
    pool_free(&p);
}

/* ---- use -------------------------------------------------------------------------------- */

Test(pool, frees_a_shared_slot_when_its_last_task_goes)
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 2);
    uint32_t row = slot_row(&p, node, 1);

    pool_occupy(&p, row, 3, 7);
    pool_occupy(&p, row, 3, 7);
    cr_assert_eq(p.slots.v[row].group, 3);
    cr_assert_eq(p.slots.v[row].subtask, 7);
    cr_assert(!pool_slot_free(&p.slots.v[row]));
    cr_assert_eq(node->n_used, 1);
    expect_counts(&p, 2, 2, 1, 0);
    pool_vacate(&p, row, 30);
    expect_counts(&p, 2, 2, 1, 0);
    pool_vacate(&p, row, 40);
    expect_counts(&p, 2, 2, 0, 0);
    cr_assert_eq(p.slots.v[row].idle_since_ms, 40);
    cr_assert_eq(node->n_used, 0);
    pool_free(&p);
}

Test(pool, counts_a_draining_node_for_nothing) /* [S-DRN-1] */
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 3);

    join(&p, "n2", 1);
    pool_occupy(&p, slot_row(&p, node, 0), 0, 0);
    pool_release(&p, slot_row(&p, node, 2));
    pool_drain(&p, node, true, 10);
    pool_drain(&p, node, true, 11); /* again */
    expect_counts(&p, 3, 1, 1, 1);
    cr_assert_eq(p.n_draining, 1);
    cr_assert(!pool_slot_free(&p.slots.v[slot_row(&p, node, 1)]));
    pool_grant(&p, node, 12, 2); /* what comes to it leaves as well */
    expect_counts(&p, 5, 1, 1, 1);
    pool_vacate(&p, slot_row(&p, node, 0), 13);
    expect_counts(&p, 5, 1, 0, 0);
    pool_occupy(&p, slot_row(&p, node, 0), 0, 0);
    expect_counts(&p, 5, 1, 1, 1);
    pool_drain(&p, node, false, 14);
    pool_drain(&p, node, false, 15);
    expect_counts(&p, 5, 5, 1, 0);
    cr_assert_eq(p.n_draining, 0);
    pool_free(&p);
}

Test(pool, gives_back_slots_of_a_draining_node)
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 2);

    pool_drain(&p, node, true, 1);
    pool_release(&p, node->first_slot);
    expect_counts(&p, 1, 0, 0, 0);
    pool_drain(&p, node, false, 2);
    expect_counts(&p, 1, 1, 0, 0);
    pool_free(&p);
}

/* Rows of the free slots, idle for longest first, as text. */
static const char *idle_rows(const struct pool *p)
{
    static char text[128];
    uint32_t before = POOL_NONE;

    text[0] = '\0';
    for (uint32_t row = p->idle_first; row != POOL_NONE; row = p->slots.v[row].idle_after) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u ", row);
        cr_assert_eq(p->slots.v[row].idle_before, before);
        before = row;
    }
    cr_assert_eq(p->idle_last, before);
    return text;
}

Test(pool, lists_free_slots_idle_for_longest_first) /* [S-IDL-1] */
{
    struct pool p = pool();
    struct pool_node *n1 = join(&p, "n1", 3), *n2 = join(&p, "n2", 2);

    cr_assert_str_eq(idle_rows(&p), "0 1 2 3 4 ");
    pool_occupy(&p, 1, 0, 0); /* from the middle */
    cr_assert_str_eq(idle_rows(&p), "0 2 3 4 ");
    pool_occupy(&p, 0, 0, 1); /* the first */
    pool_occupy(&p, 4, 0, 2); /* the last */
    cr_assert_str_eq(idle_rows(&p), "2 3 ");
    pool_vacate(&p, 0, 10);
    pool_vacate(&p, 1, 20);
    cr_assert_str_eq(idle_rows(&p), "2 3 0 1 ");
    pool_drain(&p, n1, true, 30);
    cr_assert_str_eq(idle_rows(&p), "3 ");
    pool_vacate(&p, 4, 40);
    pool_drain(&p, n1, false, 50); /* offered anew */
    cr_assert_str_eq(idle_rows(&p), "3 4 0 1 2 ");
    cr_assert_eq(p.slots.v[2].idle_since_ms, 50);
    pool_release(&p, 4);
    cr_assert_str_eq(idle_rows(&p), "3 0 1 2 ");
    pool_grant(&p, n2, 60, 1);
    cr_assert_str_eq(idle_rows(&p), "3 0 1 2 4 ");
    pool_lose(&p, n1);
    cr_assert_str_eq(idle_rows(&p), "3 4 ");
    pool_lose(&p, n2);
    cr_assert_str_eq(idle_rows(&p), "");
    pool_free(&p);
}

/* ---- leaving ---------------------------------------------------------------------------- */

Test(pool, keeps_the_name_of_a_lost_node_until_it_is_buried)
{
    struct pool p = pool();
    struct pool_node *node = join(&p, "n1", 2);
    uint32_t row = node->row;

    pool_drain(&p, node, true, 1);
    pool_lose(&p, node);
    expect_counts(&p, 0, 0, 0, 0);
    cr_assert_eq(p.n_nodes, 0);
    cr_assert_eq(p.n_draining, 0);
    cr_assert_null(pool_find(&p, "n1"));
    cr_assert_str_eq(pool_node(&p, row)->name, "n1");
    cr_assert_neq(join(&p, "n1", 1)->row, row); /* the next life is another one */
    pool_bury(&p);
    cr_assert_null(pool_node(&p, row));
    cr_assert_eq(join(&p, "n2", 1)->row, row);
    pool_free(&p);
}

Test(pool, uses_rows_again_with_new_births)
{
    struct pool p = pool();
    uint64_t births = 0;

    for (uint32_t i = 0; i < 10000; i++) {
        char name[16];
        struct pool_node *node;

        snprintf(name, sizeof name, "n%u", i);
        node = join(&p, name, 3);
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t born = p.slots.v[slot_row(&p, node, k)].born;

            cr_assert_gt(born, births);
            births = born;
        }
        pool_lose(&p, node);
        pool_bury(&p);
    }
    cr_assert_leq(p.nodes.n, 1); /* memory follows what lives */
    cr_assert_leq(p.slots.n, 3);
    cr_assert_eq(p.births, 10000 * (1 + 3));
    pool_free(&p);
}

/* Also those without a slot, and whatever row they took. */
Test(pool, knows_nodes_in_the_order_of_their_arrival)
{
    static const char *const want[] = {"n2", "n4", "n5"};
    struct pool p = pool();
    const struct pool_node *node;

    join(&p, "n1", 1);
    join(&p, "n2", 0);
    join(&p, "n3", 2);
    pool_lose(&p, pool_find(&p, "n3"));
    pool_lose(&p, pool_find(&p, "n1"));
    pool_bury(&p);
    join(&p, "n4", 0);
    join(&p, "n5", 1);
    node = pool_oldest(&p);
    for (size_t i = 0; i < 3; i++, node = pool_next(node)) {
        cr_assert_str_eq(node->name, want[i]);
        cr_expect(i == 0 || node->arrival > pool_find(&p, want[i - 1])->arrival);
    }
    cr_assert_null(node);
    pool_free(&p);
}

Test(pool, stays_as_small_as_what_ever_lived_at_once)
{
    struct pool p = pool();
    char name[16];

    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        join(&p, name, 1 + i % 4);
        if (i < 10)
            continue;
        snprintf(name, sizeof name, "n%u", i - 10);
        pool_lose(&p, pool_find(&p, name));
        pool_bury(&p);
    }
    cr_assert_leq(p.nodes.n, 11);
    cr_assert_leq(p.slots.n, 44);
    cr_assert_eq(p.n_nodes, 10);
    pool_free(&p);
}

/* ---- want of memory --------------------------------------------------------------------- */

/* Enough nodes for the table of names to grow; they come, get more, and go. */
static int live_a_life(struct pool *p)
{
    static const struct pliant_label labels[] = {{"a", "b"}, {"c", "d"}};
    struct pool_node *node;
    char name[16];

    for (uint32_t i = 0; i < 400; i++) {
        uint32_t before = p->n_held;

        snprintf(name, sizeof name, "n%u", i);
        if (pool_join(p, 0, i, name, "z", "d", labels, 2, 2, &node) < 0) {
            cr_assert_eq(p->n_held, before);
            cr_assert_null(pool_find(p, name));
            return -ENOMEM;
        }
        if (i % 50 == 0 && pool_grant(p, node, 0, 3) < 0) {
            cr_assert_eq(p->n_held, before + 2);
            return -ENOMEM;
        }
        if (i % 3 == 0)
            pool_lose(p, node);
        if (i % 9 == 0)
            pool_bury(p);
    }
    return 0;
}

Test(pool, leaks_nothing_whichever_allocation_fails)
{
    size_t all = SIZE_MAX;

    for (size_t k = 1; k <= all; k += k < 100 ? 1 : 7) {
        FAILING_ALLOC(hook, k);
        struct pool p;
        int error;

        pool_init(&p, &hook.hook);
        error = live_a_life(&p);
        pool_free(&p);
        cr_assert_eq(hook.live, 0, "at allocation %zu", k);
        if (hook.calls < k) {
            cr_assert_eq(error, 0);
            break;
        }
        cr_assert_eq(error, -ENOMEM, "at allocation %zu", k);
    }
}

Test(pool, goes_on_after_a_want_of_memory)
{
    for (size_t k = 1; k < 30; k++) {
        FAILING_ALLOC(hook, k);
        static const struct pliant_label labels[] = {{"a", "b"}};
        struct pool p;
        struct pool_node *node;

        pool_init(&p, &hook.hook);
        while (pool_join(&p, 0, 1, "n1", "z", "d", labels, 1, 4, &node) < 0)
            cr_assert_eq(p.n_nodes, 0);
        cr_assert_eq(p.n_nodes, 1);
        cr_assert_eq(p.n_held, 4);
        cr_assert_eq(pool_find(&p, "n1"), node);
        pool_free(&p);
        cr_assert_eq(hook.live, 0);
    }
}

/* ---- slow nodes ------------------------------------------------------------------------- */

Test(pool, keeps_the_free_slots_of_a_slow_node_closed_until_the_later_of_its_ends) /* [P-SPEC-5] */
{
    struct pool p = pool();
    struct pool_node *slow = join(&p, "slow", 3), *other = join(&p, "other", 2);

    pool_occupy(&p, slot_row(&p, slow, 0), 0, 0);
    pool_block(&p, slow, 0, 100);
    cr_assert_eq(p.n_blocked, 1);
    cr_assert_eq(pool_n_open(&p), 2);
    cr_assert(pool_slot_free(&p.slots.v[slot_row(&p, slow, 1)]));
    cr_assert(!pool_slot_open(&p.slots.v[slot_row(&p, slow, 1)]));
    pool_vacate(&p, slot_row(&p, slow, 0), 10);
    cr_assert_eq(pool_n_open(&p), 2);
    pool_block(&p, other, 0, 300);
    pool_block(&p, slow, 0, 200);
    pool_block(&p, slow, 0, 90); /* an earlier end */
    cr_assert_eq(pool_n_open(&p), 0);
    cr_assert_eq(pool_unblock(&p, 199), 200);
    cr_assert_eq(p.n_blocked, 2);
    cr_assert_eq(pool_unblock(&p, 200), 300);
    cr_assert_eq(pool_n_open(&p), 3);
    cr_assert_eq(pool_unblock(&p, 300), PLIANT_NEVER);
    cr_assert_eq(pool_n_open(&p), 5);
    pool_free(&p);
}

Test(pool, forgets_a_block_with_its_node)
{
    struct pool p = pool();
    struct pool_node *slow = join(&p, "slow", 3);

    pool_block(&p, slow, 0, PLIANT_NEVER);
    pool_release(&p, slot_row(&p, slow, 0));
    cr_assert_eq(pool_n_open(&p), 0);
    cr_assert_eq(pool_grant(&p, slow, 1, 2), 0); /* its new slot is closed as well */
    cr_assert_eq(pool_n_open(&p), 0);
    cr_assert_eq(p.n_free_blocked, 4);
    pool_drain(&p, slow, true, 2);
    cr_assert_eq(p.n_free_blocked, 0);
    pool_drain(&p, slow, false, 3);
    cr_assert_eq(p.n_free_blocked, 4);
    pool_lose(&p, slow);
    cr_assert_eq(p.n_blocked, 0);
    cr_assert_eq(p.n_free_blocked, 0);
    cr_assert_eq(pool_unblock(&p, 10), PLIANT_NEVER);
    join(&p, "slow", 2); /* another life */
    cr_assert_eq(pool_n_open(&p), 2);
    pool_free(&p);
}
