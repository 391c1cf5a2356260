/* batch.c - see batch.h */
#include "allocator/batch.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "allocator/batch_cut.h"
#include "util/sort.h"

#define SLICES_PER_TASK 32 /* of pointwise inputs, at most */

/* One decision at work. Per input: what each task reads, as batch_plan wants it. */
struct decision {
    const struct pliant_alloc *a;
    const struct batch_limits *limits;
    const struct batch_input *inputs;
    size_t n_inputs;
    int64_t *totals;            /* [n_inputs] bytes */
    int64_t estimate, min, max; /* parallelism */
    uint32_t *tasks;            /* [n_inputs] how many tasks read it, 0: not decided yet */
    struct VEC(struct reads) reads;
};

/* Something that a task reads of an input. */
struct reads {
    uint32_t input, task;
    struct batch_range range;
};

/* ---- sizes ------------------------------------------------------------------------------------
 */

bool batch_needs_matrix(const struct batch_input *input)
{
    return !input->broadcast && (input->pattern == PLIANT_POINTWISE || !input->intra);
}

static int64_t bytes_of(const struct batch_input *in, uint32_t p, uint32_t s)
{
    return in->bytes[(size_t)p * in->subpartitions + s];
}

/* A subpartition over all partitions. */
static int64_t column(const struct batch_input *in, uint32_t s)
{
    int64_t sum = 0;

    if (!in->bytes)
        return in->sums[s];
    for (uint32_t p = 0; p < in->partitions; p++)
        sum += bytes_of(in, p, s);
    return sum;
}

static void columns(const struct batch_input *in, int64_t *add_to)
{
    const int64_t *row = in->bytes;

    for (uint32_t s = 0; !in->bytes && s < in->subpartitions; s++)
        add_to[s] += in->sums[s];
    for (uint32_t p = 0; in->bytes && p < in->partitions; p++, row += in->subpartitions)
        for (uint32_t s = 0; s < in->subpartitions; s++)
            add_to[s] += row[s];
}

static int64_t total(const struct batch_input *in)
{
    int64_t sum = 0;

    if (in->single)
        return column(in, 0);
    for (uint32_t s = 0; !in->bytes && s < in->subpartitions; s++)
        sum += in->sums[s];
    for (size_t i = 0; in->bytes && i < (size_t)in->partitions * in->subpartitions; i++)
        sum += in->bytes[i];
    return sum;
}

/* Which inputs are meant. */
typedef bool chosen(const struct batch_input *in);

static bool any_input(const struct batch_input *in)
{
    (void)in;
    return true;
}

static bool is_pointwise(const struct batch_input *in)
{
    return in->pattern == PLIANT_POINTWISE;
}

static bool is_all_to_all(const struct batch_input *in)
{
    return in->pattern == PLIANT_ALL_TO_ALL;
}

static bool is_correlated(const struct batch_input *in)
{
    return is_all_to_all(in) && in->inter;
}

static bool is_alone(const struct batch_input *in)
{
    return is_all_to_all(in) && !in->inter;
}

static bool is_shared_out(const struct batch_input *in)
{
    return !in->broadcast;
}

static bool is_shuffled(const struct batch_input *in)
{
    return is_all_to_all(in) && !in->broadcast;
}

static size_t how_many(const struct decision *d, chosen *which)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n_inputs; i++)
        n += which(&d->inputs[i]);
    return n;
}

static int64_t total_of(const struct decision *d, chosen *which)
{
    int64_t sum = 0;

    for (size_t i = 0; i < d->n_inputs; i++)
        if (which(&d->inputs[i]))
            sum += d->totals[i];
    return sum;
}

/* The part of a volume that belongs to some of the bytes. */
static int64_t share(int64_t volume, int64_t of, int64_t all)
{
    double part = all == 0 ? 0 : (double)of / (double)all * (double)volume;

    return part >= (double)INT64_MAX ? INT64_MAX : (int64_t)part;
}

/* ---- what a task reads --------------------------------------------------------------------------
 */

static int add_reads(struct decision *d, size_t input, uint32_t task, struct batch_range range)
{
    struct reads *reads = vec_push(d->a, &d->reads);

    if (!reads)
        return -ENOMEM;
    *reads = (struct reads){(uint32_t)input, task, range};
    return 0;
}

static struct batch_range whole(const struct batch_input *in)
{
    uint32_t last = in->single ? 0 : in->subpartitions - 1;

    return (struct batch_range){0, in->partitions - 1, 0, last};
}

static int everybody_reads_all(struct decision *d, size_t input, uint32_t tasks)
{
    d->tasks[input] = tasks;
    for (uint32_t task = 0; task < tasks; task++)
        if (add_reads(d, input, task, whole(&d->inputs[input])) < 0)
            return -ENOMEM;
    return 0;
}

/* Part `number` (any, it is taken modulo) of `parts` of the subpartitions. */
static int subpartitions_of(const struct batch_input *in, uint64_t number, uint64_t parts,
                            struct batch_range *range)
{
    uint64_t s = in->subpartitions, k = number % parts;

    if (parts > s)
        return -EINVAL;
    range->s0 = (uint32_t)(k * s / parts);
    range->s1 = (uint32_t)((k + 1) * s / parts) - 1;
    return 0;
}

/* Partitions and subpartitions of a task by number alone [5.6]. */
static int by_count(const struct batch_input *in, bool pointwise, uint32_t tasks, uint64_t task,
                    struct batch_range *ret)
{
    uint64_t p = in->partitions;
    uint64_t producer = task * p / tasks;

    if (!pointwise) {
        *ret = whole(in);
        return subpartitions_of(in, task, tasks, ret);
    }
    if (p >= tasks) {
        *ret = (struct batch_range){(uint32_t)producer, (uint32_t)((task + 1) * p / tasks) - 1, 0,
                                    in->subpartitions - 1};
        return 0;
    }
    ret->p0 = ret->p1 = (uint32_t)producer;
    return subpartitions_of(
        in, task, ((producer + 1) * tasks + p - 1) / p - (producer * tasks + p - 1) / p, ret);
}

static int distribute(struct decision *d, size_t input, bool pointwise, uint32_t tasks)
{
    const struct batch_input *in = &d->inputs[input];

    if (in->broadcast)
        return everybody_reads_all(d, input, tasks);
    d->tasks[input] = tasks;
    for (uint32_t task = 0; task < tasks; task++) {
        struct batch_range range;
        int rc = by_count(in, pointwise, tasks, task, &range);

        if (rc == 0)
            rc = add_reads(d, input, task, range);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- from pieces to reads
 * ------------------------------------------------------------------------ */

static uint64_t pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* The same with the roles of partitions and subpartitions exchanged, or not. */
static struct batch_range turned(struct batch_range r, bool turn)
{
    return turn ? (struct batch_range){r.s0, r.s1, r.p0, r.p1} : r;
}

/* Join ranges with equal p where their s touch. `list` is sorted by p, then s0. */
static size_t join_touching(struct batch_range *list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct batch_range *last = kept ? &list[kept - 1] : NULL;

        if (last && last->p0 == list[i].p0 && last->p1 == list[i].p1 &&
            list[i].s0 <= (uint64_t)last->s1 + 1)
            last->s1 = last->s1 > list[i].s1 ? last->s1 : list[i].s1;
        else
            list[kept++] = list[i];
    }
    return kept;
}

/* Room for n items each in `items` and `scratch`, for n in `copy`. */
struct sorting {
    struct sort_item *items, *scratch;
    struct batch_range *copy;
};

/* By p0, then p1 where ranges with equal ones shall come together, then s0. */
static void sort_ranges(struct batch_range *list, size_t n, bool by_end, const struct sorting *room)
{
    for (size_t i = 0; i < n; i++)
        room->items[i] =
            (struct sort_item){pair(list[i].p0, by_end ? list[i].p1 : 0), list[i].s0, (uint32_t)i};
    sort_items(room->items, room->scratch, n);
    memcpy(room->copy, list, n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = room->copy[room->items[i].value];
}

static void turn_all(struct batch_range *list, size_t n, bool turn)
{
    for (size_t i = 0; i < n; i++)
        list[i] = turned(list[i], turn);
}

/* Join what touches, first along the one direction, then along the other [5.10]. */
static size_t join_ranges(struct batch_range *list, size_t n, bool pointwise,
                          const struct sorting *room)
{
    turn_all(list, n, !pointwise);
    sort_ranges(list, n, true, room);
    n = join_touching(list, n);
    turn_all(list, n, true);
    sort_ranges(list, n, true, room);
    n = join_touching(list, n);
    turn_all(list, n, pointwise);
    sort_ranges(list, n, false, room);
    return n;
}

static bool make_sorting(struct sorting *room, size_t n, const struct pliant_alloc *a)
{
    room->items = mem_resize(a, NULL, n + 1, sizeof *room->items);
    room->scratch = mem_resize(a, NULL, n + 1, sizeof *room->scratch);
    room->copy = mem_resize(a, NULL, n + 1, sizeof *room->copy);
    return room->items && room->scratch && room->copy;
}

static void free_sorting(struct sorting *room, const struct pliant_alloc *a)
{
    mem_free(a, room->items);
    mem_free(a, room->scratch);
    mem_free(a, room->copy);
}

/* A list of slices and where it was cut. */
struct pieces {
    const struct slice_lists *lists;
    uint32_t list;
    const uint32_t *bounds;
    uint32_t n;
};

/* Slices may reach over the partitions of other inputs of the type. */
static int gather(const struct pieces *pieces, uint32_t piece, const struct batch_input *in,
                  struct batch_range *list)
{
    const struct slice_lists *l = pieces->lists;
    size_t n = 0;

    for (uint32_t k = pieces->bounds[piece]; k < pieces->bounds[piece + 1]; k++) {
        struct batch_range r = l->slices.v[l->at.v[(size_t)pieces->list * l->n + k]].range;

        if (r.p1 >= in->partitions)
            r.p1 = in->partitions - 1;
        if (r.p0 <= r.p1)
            list[n++] = r;
    }
    return (int)n;
}

static int build_task(struct decision *d, size_t input, uint32_t task, struct batch_range *list,
                      size_t n, const struct sorting *room)
{
    if (n == 0)
        return -EINVAL;
    n = join_ranges(list, n, d->inputs[input].pattern == PLIANT_POINTWISE, room);
    for (size_t i = 0; i < n; i++)
        if (add_reads(d, input, task, list[i]) < 0)
            return -ENOMEM;
    return 0;
}

static int build(struct decision *d, size_t input, const struct pieces *pieces)
{
    struct batch_range *list = mem_resize(d->a, NULL, (size_t)pieces->lists->n + 1, sizeof *list);
    struct sorting room = {0};
    int rc = list && make_sorting(&room, pieces->lists->n, d->a) ? 0 : -ENOMEM;

    d->tasks[input] = pieces->n;
    for (uint32_t task = 0; rc == 0 && task < pieces->n; task++)
        rc = build_task(d, input, task, list, (size_t)gather(pieces, task, &d->inputs[input], list),
                        &room);
    free_sorting(&room, d->a);
    mem_free(d->a, list);
    return rc;
}

/* ---- slices
 * -------------------------------------------------------------------------------------- */

/* A new slice at the next position of the list that is being filled. */
static int add_slice(struct slice_lists *l, const struct pliant_alloc *a, struct batch_range range,
                     int64_t bytes)
{
    struct slice *slice = vec_push(a, &l->slices);
    uint32_t *at = slice ? vec_push(a, &l->at) : NULL;

    if (!at)
        return -ENOMEM;
    *slice = (struct slice){.range = range, .bytes = bytes};
    *at = (uint32_t)(l->slices.n - 1);
    return 0;
}

static int64_t bytes_in(const struct batch_input *in, struct batch_range r)
{
    int64_t sum = 0;

    for (uint32_t p = r.p0; p <= r.p1; p++)
        for (uint32_t s = r.s0; s <= r.s1; s++)
            sum += bytes_of(in, p, s);
    return sum;
}

static int add_measured(struct slice_lists *l, const struct pliant_alloc *a,
                        const struct batch_input *in, struct batch_range range)
{
    return add_slice(l, a, range, bytes_in(in, range));
}

/* Cut, and let each input of a list be read accordingly. *ret_n: how many tasks; 0: no way. */
static int cut(struct decision *d, struct slice_lists *l, int64_t min, int64_t max, int64_t volume,
               uint32_t **ret_bounds, uint32_t *ret_n)
{
    *ret_bounds = mem_resize(d->a, NULL, (size_t)l->n + 2, sizeof **ret_bounds);
    if (!*ret_bounds)
        return -ENOMEM;
    *ret_n = batch_cut(l, min, max, volume, *ret_bounds);
    return 0;
}

/* ---- pointwise inputs [5.7]
 * ----------------------------------------------------------------------- */

static int pointwise_slices(const struct decision *d, uint64_t *ret)
{
    uint64_t n = UINT64_MAX, most = (uint64_t)SLICES_PER_TASK * (uint64_t)d->max;
    bool intra = false;

    for (size_t i = 0; i < d->n_inputs; i++) {
        const struct batch_input *in = &d->inputs[i];

        if (!is_pointwise(in) || !in->intra)
            continue;
        if (intra && n != in->partitions)
            return -EINVAL;
        intra = true;
        n = in->partitions;
    }
    for (size_t i = 0; !intra && i < d->n_inputs; i++) {
        const struct batch_input *in = &d->inputs[i];
        uint64_t cells = (uint64_t)in->partitions * in->subpartitions;

        if (is_pointwise(in) && cells < n)
            n = cells;
    }
    *ret = !intra && n > most ? most : n;
    return 0;
}

static int slice_partitions(struct slice_lists *l, const struct pliant_alloc *a,
                            const struct batch_input *in, uint64_t n)
{
    uint64_t p = in->partitions;

    for (uint64_t k = 0; k < n; k++) {
        struct batch_range r = {(uint32_t)(k * p / n), (uint32_t)((k + 1) * p / n) - 1, 0,
                                in->subpartitions - 1};

        if (add_measured(l, a, in, r) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int slice_subpartitions(struct slice_lists *l, const struct pliant_alloc *a,
                               const struct batch_input *in, uint64_t n)
{
    for (uint64_t p = 0; p < in->partitions; p++) {
        uint64_t parts = (p + 1) * n / in->partitions - p * n / in->partitions;

        for (uint64_t j = 0; j < parts; j++) {
            struct batch_range r = {.p0 = (uint32_t)p, .p1 = (uint32_t)p};

            if (subpartitions_of(in, j, parts, &r) < 0)
                return -EINVAL;
            if (add_measured(l, a, in, r) < 0)
                return -ENOMEM;
        }
        if (parts == 0)
            return -EINVAL;
    }
    return 0;
}

static int fill_pointwise(const struct decision *d, struct slice_lists *l)
{
    uint64_t n = 0;
    int rc = pointwise_slices(d, &n);

    for (size_t i = 0; rc == 0 && i < d->n_inputs; i++) {
        const struct batch_input *in = &d->inputs[i];

        if (!is_pointwise(in))
            continue;
        rc = in->partitions >= n ? slice_partitions(l, d->a, in, n)
                                 : slice_subpartitions(l, d->a, in, n);
        l->n_lists++;
    }
    l->n = (uint32_t)n;
    return rc;
}

static int read_pointwise(struct decision *d, const struct slice_lists *l, const uint32_t *bounds,
                          uint32_t n)
{
    struct pieces pieces = {l, 0, bounds, n};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < d->n_inputs; i++) {
        if (!is_pointwise(&d->inputs[i]))
            continue;
        rc = n ? build(d, i, &pieces) : distribute(d, i, true, (uint32_t)d->estimate);
        pieces.list++;
    }
    return rc;
}

static uint32_t tasks_of(const struct decision *d, chosen *which)
{
    for (size_t i = 0; i < d->n_inputs; i++)
        if (which(&d->inputs[i]))
            return d->tasks[i];
    return 0;
}

static int decide_pointwise(struct decision *d, int64_t volume)
{
    struct slice_lists l = {0};
    uint32_t *bounds = NULL, n = 0;
    int rc = fill_pointwise(d, &l);

    if (rc == 0)
        rc = cut(d, &l, d->min, d->max, volume, &bounds, &n);
    if (rc == 0)
        rc = read_pointwise(d, &l, bounds, n);
    mem_free(d->a, bounds);
    slice_lists_free(&l, d->a);
    if (rc == 0 && how_many(d, is_all_to_all) > 0)
        d->estimate = d->min = d->max = tasks_of(d, is_pointwise);
    return rc;
}

/* ---- correlated inputs [5.8]
 * ---------------------------------------------------------------------- */

/* Inputs of one logical side. */
struct side {
    int64_t type;
    bool intra, equal_partitions;
    uint32_t partitions, subpartitions; /* partitions: the most */
    int64_t *sums;                      /* [subpartitions] */
    int64_t limit, target;              /* of a subpartition: skewed above it; of its parts */
    size_t first_input;
    uint32_t n_offers; /* for the subpartition at hand */
    uint32_t offered;  /* first of its slices */
};

struct sides {
    struct VEC(struct side) all; /* by type */
};

static struct side *side_of(struct sides *sides, int64_t type)
{
    for (size_t i = 0; i < sides->all.n; i++)
        if (sides->all.v[i].type == type)
            return &sides->all.v[i];
    return NULL;
}

/* Keep them sorted by type: they are few. */
static struct side *new_side(struct sides *sides, const struct decision *d, size_t input)
{
    const struct batch_input *in = &d->inputs[input];
    struct side *side = vec_push(d->a, &sides->all);

    if (!side)
        return NULL;
    while (side > sides->all.v && side[-1].type > in->type) {
        *side = side[-1];
        side--;
    }
    *side = (struct side){.type = in->type,
                          .intra = in->intra,
                          .equal_partitions = true,
                          .partitions = in->partitions,
                          .subpartitions = in->subpartitions,
                          .sums = mem_zero(d->a, (size_t)in->subpartitions + 1, sizeof *side->sums),
                          .first_input = input};
    return side->sums ? side : NULL;
}

static int add_to_side(struct sides *sides, const struct decision *d, size_t input)
{
    const struct batch_input *in = &d->inputs[input];
    struct side *side = side_of(sides, in->type);

    if (!side)
        side = new_side(sides, d, input);
    if (!side)
        return -ENOMEM;
    if (side->intra != in->intra || side->subpartitions != in->subpartitions)
        return -EINVAL;
    side->equal_partitions = side->equal_partitions && side->partitions == in->partitions;
    if (side->partitions < in->partitions)
        side->partitions = in->partitions;
    columns(in, side->sums);
    return 0;
}

static int find_sides(struct sides *sides, const struct decision *d)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < d->n_inputs; i++)
        if (is_correlated(&d->inputs[i]) && !d->inputs[i].broadcast)
            rc = add_to_side(sides, d, i);
    for (size_t i = 1; rc == 0 && i < sides->all.n; i++)
        if (sides->all.v[i].subpartitions != sides->all.v[0].subpartitions)
            rc = -EINVAL;
    return rc;
}

static void sides_free(struct sides *sides, const struct pliant_alloc *a)
{
    for (size_t i = 0; i < sides->all.n; i++)
        mem_free(a, sides->all.v[i].sums);
    vec_free(a, &sides->all);
}

/* The middle one; the whole mean of the two middle ones. */
static int median(const int64_t *v, uint32_t n, const struct pliant_alloc *a, int64_t *ret)
{
    struct sort_item *items = mem_resize(a, NULL, 2 * (size_t)n, sizeof *items);

    if (!items)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct sort_item){.major = (uint64_t)v[i]};
    sort_items(items, items + n, n);
    *ret = (int64_t)items[n / 2].major;
    if (n % 2 == 0)
        *ret = (*ret + (int64_t)items[n / 2 - 1].major) / 2;
    mem_free(a, items);
    return 0;
}

static int judge_skew(const struct decision *d, struct side *side, int64_t volume)
{
    double limit;
    int64_t middle, sum = 0, n = 0;

    if (median(side->sums, side->subpartitions, d->a, &middle) < 0)
        return -ENOMEM;
    limit = (double)(middle > 1 ? middle : 1) * d->limits->skew_factor;
    if (limit < (double)d->limits->skew_threshold)
        limit = (double)d->limits->skew_threshold;
    side->limit = limit >= (double)INT64_MAX ? INT64_MAX : (int64_t)limit;
    for (uint32_t s = 0; s < side->subpartitions; s++) {
        if (side->sums[s] > side->limit)
            continue;
        sum += side->sums[s];
        n++;
    }
    side->target = n > 0 && sum / n > volume ? sum / n : volume;
    return 0;
}

/* A partition of a subpartition over all inputs of the side. */
static int64_t cell(const struct decision *d, const struct side *side, uint32_t p, uint32_t s)
{
    int64_t sum = 0;

    for (size_t i = side->first_input; i < d->n_inputs; i++) {
        const struct batch_input *in = &d->inputs[i];

        if (is_correlated(in) && !in->broadcast && in->type == side->type)
            sum += bytes_of(in, p, s);
    }
    return sum;
}

static int offer(struct slice_lists *l, const struct pliant_alloc *a, struct side *side,
                 struct batch_range range, int64_t bytes)
{
    struct slice *slice = vec_push(a, &l->slices);

    if (!slice)
        return -ENOMEM;
    *slice = (struct slice){.range = range, .bytes = bytes};
    side->n_offers++;
    return 0;
}

/* Ranges of partitions, each as near to the target as comes from the left. */
static int offer_parts(const struct decision *d, struct slice_lists *l, struct side *side,
                       uint32_t s)
{
    struct batch_range range = {0, 0, s, s};
    int64_t sum = cell(d, side, 0, s);

    for (uint32_t p = 1; p < side->partitions; p++) {
        int64_t more = cell(d, side, p, s);

        if (sum < side->target && more < side->target - sum) {
            sum += more;
            range.p1 = p;
            continue;
        }
        if (offer(l, d->a, side, range, sum) < 0)
            return -ENOMEM;
        range.p0 = range.p1 = p;
        sum = more;
    }
    return offer(l, d->a, side, range, sum);
}

static int offer_all(const struct decision *d, struct slice_lists *l, struct sides *sides,
                     uint32_t s)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sides->all.n; i++) {
        struct side *side = &sides->all.v[i];
        bool splittable = !side->intra && side->equal_partitions;

        side->offered = (uint32_t)l->slices.n;
        side->n_offers = 0;
        rc = splittable && side->sums[s] > side->limit
                 ? offer_parts(d, l, side, s)
                 : offer(l, d->a, side, (struct batch_range){0, side->partitions - 1, s, s},
                         side->sums[s]);
    }
    return rc;
}

/* Every offer of a side with every one of the others, the first side outermost. Positions are put
 * one after the other, a slice of each side; transpose() makes lists of them. */
static int combine(struct slice_lists *l, const struct pliant_alloc *a, const struct sides *sides)
{
    uint64_t n = 1;

    for (size_t i = 0; i < sides->all.n; i++) {
        n *= sides->all.v[i].n_offers;
        if (n > UINT32_MAX / 2)
            return -EINVAL;
    }
    for (uint64_t k = 0; k < n; k++) {
        uint64_t left = n, rest = k;

        for (size_t i = 0; i < sides->all.n; i++) {
            uint32_t *at = vec_push(a, &l->at);

            if (!at)
                return -ENOMEM;
            left /= sides->all.v[i].n_offers;
            *at = sides->all.v[i].offered + (uint32_t)(rest / left);
            rest %= left;
        }
    }
    return 0;
}

static int transpose(struct slice_lists *l, const struct pliant_alloc *a)
{
    size_t n = l->at.n;
    uint32_t *lists = mem_resize(a, NULL, n + 1, sizeof *lists);

    if (!lists)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        lists[(i % l->n_lists) * l->n + i / l->n_lists] = l->at.v[i];
    memcpy(l->at.v, lists, n * sizeof *lists);
    mem_free(a, lists);
    return 0;
}

static int fill_correlated(const struct decision *d, struct slice_lists *l, struct sides *sides,
                           int64_t volume)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sides->all.n; i++)
        rc = judge_skew(d, &sides->all.v[i], volume);
    for (uint32_t s = 0; rc == 0 && s < sides->all.v[0].subpartitions; s++) {
        rc = offer_all(d, l, sides, s);
        if (rc == 0)
            rc = combine(l, d->a, sides);
    }
    l->n_lists = (uint32_t)sides->all.n;
    l->n = (uint32_t)(l->at.n / l->n_lists);
    return rc == 0 ? transpose(l, d->a) : rc;
}

static int read_correlated(struct decision *d, const struct slice_lists *l, struct sides *sides,
                           const uint32_t *bounds, uint32_t n)
{
    uint32_t tasks = n ? n : (uint32_t)d->estimate;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < d->n_inputs; i++) {
        const struct batch_input *in = &d->inputs[i];

        if (!is_correlated(in))
            continue;
        if (in->broadcast)
            rc = everybody_reads_all(d, i, tasks);
        else if (n == 0)
            rc = distribute(d, i, false, tasks);
        else
            rc = build(d, i,
                       &(struct pieces){l, (uint32_t)(side_of(sides, in->type) - sides->all.v),
                                        bounds, n});
    }
    return rc;
}

static int cut_correlated(struct decision *d, struct sides *sides, int64_t volume)
{
    struct slice_lists l = {0};
    uint32_t *bounds = NULL, n = 0;
    int rc = fill_correlated(d, &l, sides, volume);

    if (rc == 0)
        rc = cut(d, &l, d->min, d->max, volume, &bounds, &n);
    if (rc == 0)
        rc = read_correlated(d, &l, sides, bounds, n);
    mem_free(d->a, bounds);
    slice_lists_free(&l, d->a);
    return rc;
}

static int decide_correlated(struct decision *d, int64_t volume)
{
    struct sides sides = {0};
    int rc = find_sides(&sides, d);

    if (rc == 0)
        rc = sides.all.n > 0 ? cut_correlated(d, &sides, volume)
                             : read_correlated(d, NULL, &sides, NULL, 0);
    sides_free(&sides, d->a);
    if (rc == 0)
        d->estimate = tasks_of(d, is_correlated);
    return rc;
}

/* ---- inputs without correlation [5.9]
 * --------------------------------------------------------------- */

/* Running sums over subpartitions where keys stay together, else over all that there is, partition
 * after partition. */
static int64_t *running_sums(const struct decision *d, const struct batch_input *in,
                             uint32_t *ret_n)
{
    uint64_t n = in->intra ? in->subpartitions : (uint64_t)in->partitions * in->subpartitions;
    int64_t *sums = n < UINT32_MAX ? mem_resize(d->a, NULL, (size_t)n + 1, sizeof *sums) : NULL;

    *ret_n = (uint32_t)n;
    if (!sums)
        return NULL;
    if (in->intra) {
        memset(sums, 0, ((size_t)n + 1) * sizeof *sums);
        columns(in, sums + 1);
    } else {
        memcpy(sums + 1, in->bytes, (size_t)n * sizeof *sums);
    }
    sums[0] = 0;
    for (uint64_t k = 0; k < n; k++)
        sums[k + 1] += sums[k];
    return sums;
}

/* Partitions p0..p1 of subpartitions s0..s1, unless one of them is empty. */
static int add_block(struct decision *d, size_t input, uint32_t task, int64_t p0, int64_t p1,
                     int64_t s0, int64_t s1)
{
    if (p0 > p1 || s0 > s1)
        return 0;
    return add_reads(d, input, task,
                     (struct batch_range){(uint32_t)p0, (uint32_t)p1, (uint32_t)s0, (uint32_t)s1});
}

/* A run of cells, partition after partition, as blocks with as many partitions as there are for
 * each subpartition: the first row may begin late, the last one end early. */
static int read_cells(struct decision *d, size_t input, uint32_t task, uint32_t first, uint32_t end)
{
    int64_t row = d->inputs[input].subpartitions, last = (int64_t)end - 1;
    int64_t p0 = first / row, s0 = first % row, p1 = last / row, s1 = last % row;
    int rc;

    if (s0 <= s1) { /* without the last row on the right, without the first on the left */
        rc = add_block(d, input, task, p0, p1, s0, s1);
        if (rc == 0)
            rc = add_block(d, input, task, p0, p1 - 1, s1 + 1, row - 1);
        return rc < 0 ? rc : add_block(d, input, task, p0 + 1, p1, 0, s0 - 1);
    }
    rc = add_block(d, input, task, p0, p1 - 1, s0, row - 1);
    if (rc == 0)
        rc = add_block(d, input, task, p0 + 1, p1, 0, s1);
    return rc < 0 ? rc : add_block(d, input, task, p0 + 1, p1 - 1, s1 + 1, s0 - 1);
}

static int read_alone(struct decision *d, size_t input, const uint32_t *bounds, uint32_t n)
{
    const struct batch_input *in = &d->inputs[input];
    int rc = 0;

    d->tasks[input] = n;
    for (uint32_t task = 0; rc == 0 && task < n; task++)
        rc = in->intra ? add_block(d, input, task, 0, in->partitions - 1, bounds[task],
                                   (int64_t)bounds[task + 1] - 1)
                       : read_cells(d, input, task, bounds[task], bounds[task + 1]);
    return rc;
}

static int cut_alone(struct decision *d, size_t input, int64_t volume)
{
    uint32_t n = 0, tasks = (uint32_t)d->estimate;
    int64_t *sums = running_sums(d, &d->inputs[input], &n);
    uint32_t *bounds = sums ? mem_resize(d->a, NULL, (size_t)n + 2, sizeof *bounds) : NULL;
    int rc = -ENOMEM;

    if (bounds)
        rc = batch_cut_sums(sums, n, tasks, tasks, volume, bounds)
                 ? read_alone(d, input, bounds, tasks)
                 : distribute(d, input, true, tasks);
    mem_free(d->a, bounds);
    mem_free(d->a, sums);
    return rc;
}

static int decide_alone(struct decision *d, size_t input, int64_t volume)
{
    return d->inputs[input].broadcast ? everybody_reads_all(d, input, (uint32_t)d->estimate)
                                      : cut_alone(d, input, volume);
}

/* ---- the steps [5.4]
 * --------------------------------------------------------------------------------- */

static bool sound_bounds(const struct batch_limits *l, const struct batch_vertex *v,
                         size_t n_inputs)
{
    return l->min >= 1 && l->max >= l->min && l->default_source_parallelism >= 1 &&
           l->skew_factor > 0 && l->skew_threshold > 0 && l->volume > 0 && v->max >= 1 &&
           v->max <= PLIANT_MAX_PARALLELISM && v->max >= v->parallelism && v->max >= v->min &&
           (n_inputs == 0 || v->parallelism == -1);
}

static bool sound_input(const struct batch_input *in)
{
    return in->partitions > 0 && in->subpartitions > 0 &&
           (in->bytes || (in->sums && !batch_needs_matrix(in)));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t first_estimate(const struct decision *d)
{
    double wanted, bytes = (double)total_of(d, is_shared_out);
    int64_t whole_part;

    if (how_many(d, is_shared_out) == 0)
        return d->min;
    wanted = bytes / (double)d->limits->volume;
    if (wanted >= (double)d->max)
        return d->max;
    whole_part = (int64_t)wanted;
    return most(d->min, least(d->max, whole_part + ((double)whole_part < wanted)));
}

static int decide_all_to_all(struct decision *d, int64_t volume)
{
    int64_t all = total_of(d, is_all_to_all), alone = total_of(d, is_alone);
    int rc = 0;

    if (how_many(d, is_correlated) > 0)
        rc = decide_correlated(d, share(volume, total_of(d, is_correlated), all));
    for (size_t i = 0; rc == 0 && i < d->n_inputs; i++)
        if (is_alone(&d->inputs[i]))
            rc = decide_alone(d, i, share(share(volume, alone, all), d->totals[i], alone));
    return rc;
}

static int decide_inputs(struct decision *d)
{
    int64_t volume = d->limits->volume, all = total_of(d, any_input);
    bool mixed = how_many(d, is_pointwise) > 0 && how_many(d, is_shuffled) > 0;
    int rc = 0;

    d->estimate = first_estimate(d);
    if (mixed)
        d->min = d->max = d->estimate;
    if (how_many(d, is_pointwise) > 0)
        rc = decide_pointwise(d, share(volume, total_of(d, is_pointwise), all));
    if (rc == 0 && how_many(d, is_all_to_all) > 0)
        rc = decide_all_to_all(d, share(volume, total_of(d, is_all_to_all), all));
    return rc;
}

/* ---- the plan
 * ----------------------------------------------------------------------------------------- */

static int fill_plan(struct decision *d, struct batch_plan *ret)
{
    size_t n_first, row;

    ret->parallelism = d->tasks[0];
    for (size_t i = 1; i < d->n_inputs; i++)
        if (d->tasks[i] != ret->parallelism)
            return -EINVAL;
    row = (size_t)ret->parallelism + 1;
    n_first = d->n_inputs * row;
    ret->first = mem_zero(d->a, n_first + 2, sizeof *ret->first);
    if (!ret->first || !vec_reserve(d->a, &ret->ranges, d->reads.n + 1))
        return -ENOMEM;
    /* counted two places further on: one for the running start, one for its end */
    for (size_t i = 0; i < d->reads.n; i++)
        ret->first[d->reads.v[i].input * row + d->reads.v[i].task + 2]++;
    for (size_t i = 0; i < n_first; i++)
        ret->first[i + 2] += ret->first[i + 1];
    for (size_t i = 0; i < d->reads.n; i++) {
        const struct reads *reads = &d->reads.v[i];

        ret->ranges.v[ret->first[reads->input * row + reads->task + 1]++] = reads->range;
    }
    ret->ranges.n = d->reads.n;
    return 0;
}

static int finish(struct decision *d, int rc, struct batch_plan *ret)
{
    struct batch_plan plan = {0};

    if (rc == 0)
        rc = fill_plan(d, &plan);
    mem_free(d->a, d->tasks);
    mem_free(d->a, d->totals);
    vec_free(d->a, &d->reads);
    if (rc == 0)
        *ret = plan;
    else
        batch_plan_free(&plan, d->a);
    return rc;
}

int batch_decide(const struct batch_limits *limits, const struct batch_vertex *vertex,
                 const struct batch_input *inputs, size_t n_inputs, const struct pliant_alloc *a,
                 struct batch_plan *ret)
{
    struct decision d = {.a = a, .limits = limits, .inputs = inputs, .n_inputs = n_inputs};

    if (!sound_bounds(limits, vertex, n_inputs))
        return -EINVAL;
    for (size_t i = 0; i < n_inputs; i++)
        if (!sound_input(&inputs[i]))
            return -EINVAL;
    if (n_inputs == 0) {
        *ret = (struct batch_plan){
            .parallelism =
                (uint32_t)(vertex->parallelism > 0
                               ? vertex->parallelism
                               : least(limits->default_source_parallelism, vertex->max))};
        return 0;
    }
    d.min = least(most(limits->min, vertex->min), vertex->max);
    d.max = least(limits->max, vertex->max);
    if (d.max < d.min)
        return -EINVAL;
    d.tasks = mem_zero(a, n_inputs, sizeof *d.tasks);
    d.totals = mem_resize(a, NULL, n_inputs, sizeof *d.totals);
    for (size_t i = 0; d.totals && i < n_inputs; i++)
        d.totals[i] = total(&inputs[i]);
    return finish(&d, d.tasks && d.totals ? decide_inputs(&d) : -ENOMEM, ret);
}

int batch_distribute(uint32_t parallelism, const struct batch_input *inputs, size_t n_inputs,
                     const struct pliant_alloc *a, struct batch_plan *ret)
{
    struct decision d = {.a = a, .inputs = inputs, .n_inputs = n_inputs};
    int rc = 0;

    if (n_inputs == 0) {
        *ret = (struct batch_plan){.parallelism = parallelism};
        return 0;
    }
    d.tasks = mem_zero(a, n_inputs, sizeof *d.tasks);
    if (!d.tasks)
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n_inputs; i++)
        rc = distribute(&d, i, is_pointwise(&inputs[i]), parallelism);
    return finish(&d, rc, ret);
}

void batch_plan_free(struct batch_plan *plan, const struct pliant_alloc *a)
{
    vec_free(a, &plan->ranges);
    mem_free(a, plan->first);
    *plan = (struct batch_plan){0};
}

uint32_t batch_subpartitions(enum pliant_pattern pattern, bool broadcast, uint32_t producers,
                             int64_t consumer_parallelism, int64_t consumer_max)
{
    int64_t n = consumer_parallelism > 0 ? consumer_parallelism : consumer_max;

    if (broadcast)
        return 1;
    if (pattern == PLIANT_ALL_TO_ALL)
        return (uint32_t)n;
    return (uint32_t)((n + producers - 1) / producers);
}
