/* worth.h - what a restart costs, what it brings, and how often to take a checkpoint
 *
 * The job's own past, as decaying averages: what a restart and a checkpoint cost, how often the
 * job is stopped by a loss (its work since the last checkpoint is gone) or by a planned move
 * (nothing is gone). Until something was measured, the options' priors stand for it.
 *
 *   calm      for how long no node came, went or got notice. The longer nothing has changed, the
 *             longer nothing will: stops and losses come c / (calm + some minutes) times a ms, each
 *             with a c of its own that is learned
 *   horizon   how far ahead a gain is counted: a share of the mean time to the next stop
 *   gain      (q - p) x horizon     in slot-ms, for a rescale from p to q slots
 *   cost      q x (restart + checkpoint, unless one has just completed); where none can be asked
 *             for: q x restart + p x the work since the last
 *   interval  sqrt(2 x checkpoint x mean time to the next loss): what checkpoints cost and losses
 *             take is least
 *
 * Pure: plain values, no pointers; O(1).
 * Units   ms, slot-ms
 * Source  docs/states.md
 */
#ifndef PLIANT_TRANSITION_WORTH_H
#define PLIANT_TRANSITION_WORTH_H

#include <pliant/pliant.h>

#define WORTH_GRIDS 5u

#define WORTH_GAPS_FEW 2u /* so many are needed to tell whether they come at a rate */

struct worth_limits {
    int64_t restart_ms, checkpoint_ms; /* until they are measured */
    int64_t between_losses_ms;         /* ... */
    int64_t min_restart_ms;            /* whatever is measured */
    int64_t memory_ms;                 /* what is older counts half */
    int64_t min_interval_ms, max_interval_ms;
};

/* What comes the more rarely the longer nothing has changed. */
struct worth_rate {
    double seen; /* episodes */
    double risk; /* in which they came: ms / (calm + some minutes), summed up */
};

struct worth {
    struct worth_rate losses;    /* of work without notice; each slot of the job runs the risk */
    struct worth_rate stops;     /* of Executing, by losses and by planned moves */
    double moves;                /* planned ones, away from nodes under notice; episodes */
    double units;                /* slots that the job takes */
    double on_grid[WORTH_GRIDS]; /* share of the losses a whole number of periods after another */
    uint32_t grid;               /* 1 + that of the grid that checkpoints keep to; 0: to none */
    double early;                /* share of the nodes under notice that went before their end */
    double gap_ms, gap_off_ms;   /* between two arrivals: mean, and mean distance from it */
    uint32_t gaps;               /* seen, up to WORTH_GAPS_FEW */
    int64_t changed_at_ms;       /* a node came, went or was to go; a loss */
    int64_t arrived_at_ms;       /* the last arrival; PLIANT_UNSET: none */
    int64_t counted_to_ms;       /* up to here, in Executing; PLIANT_UNSET: not in Executing */
    bool working;                /* all tasks run */
    int64_t forgot_to_ms;        /* up to here everything has decayed; PLIANT_UNSET: nothing yet */
    int64_t stopped_at_ms;       /* the first stop of the last episode; PLIANT_UNSET: none */
    int64_t lost_at_ms;          /* the last loss; PLIANT_UNSET: none */
    int64_t restart_ms, checkpoint_ms; /* PLIANT_UNSET: not measured */
    int64_t reports_ms;  /* from one checkpoint that workers report to the next; ... */
    int64_t stopping_ms; /* the first part of the restart that is under way */
};

/* A rescale from p to q slots, as it looks now. */
struct worth_view {
    uint64_t p, q;
    bool running;         /* all tasks do; else they will in `left_ms` at the soonest */
    int64_t left_ms;      /* of the restart that is under way */
    int64_t unsafe_ms;    /* of work since the last checkpoint */
    int64_t report_in_ms; /* so soon workers should report the next one; PLIANT_UNSET: who knows */
    int64_t since_arrival_ms;
    int64_t missed;      /* slot-ms that stood idle since the first of these arrivals */
    bool can_checkpoint; /* else what is unsafe is lost, or was told to be no loss: then it is 0 */
};

struct worth_judgement {
    enum pliant_judgement reason;
    int64_t gain, cost;  /* slot-ms */
    int64_t again_in_ms; /* > 0 for REPORT, SETTLES, STARTING, COST */
};

void worth_start(struct worth *w);
/* Executing is entered with tasks in so many slots, and left. */
void worth_enter(struct worth *w, const struct worth_limits *l, int64_t now_ms, uint64_t units);
void worth_leave(struct worth *w, const struct worth_limits *l, int64_t now_ms);
/* All tasks run. */
void worth_running(struct worth *w, const struct worth_limits *l, int64_t now_ms);
/* A restart is measured in two parts: tasks went down in so long, and came to work. */
void worth_stopped(struct worth *w, int64_t took_ms);
void worth_restarted(struct worth *w, int64_t took_ms);
void worth_checkpointed(struct worth *w, int64_t took_ms); /* one has completed */
/* Workers reported one, so long after the last of the same run. */
void worth_reported(struct worth *w, int64_t gap_ms);
/* A run that worked for `worked_ms` ended: by a loss, a planned move, or of the policy's will. */
enum worth_end { WORTH_LOST, WORTH_MOVED, WORTH_RESCALED };
void worth_ended(struct worth *w, const struct worth_limits *l, int64_t now_ms, int64_t worked_ms,
                 enum worth_end how);

/* A node came, went or is to go, whether the job used it or not. */
void worth_changed(struct worth *w, const struct worth_limits *l, int64_t now_ms);
void worth_arrived(struct worth *w, int64_t now_ms); /* slots that the job could use */
/* A node under notice is gone, and the job had not had to leave it yet (early), or had. */
void worth_drained(struct worth *w, bool early);

/* At a notice: is a checkpoint now worth what it costs, when another one comes before the move? */
bool worth_checkpoint_at_notice(const struct worth *w, const struct worth_limits *l,
                                int64_t unsafe_ms, int64_t until_move_ms);
/* The tasks still start, on nodes that will go: is a start on the q others worth more now? */
bool worth_moving_early(uint64_t p, uint64_t q, int64_t left_ms, int64_t until_move_ms);

struct worth_judgement worth_judge(const struct worth *w, const struct worth_limits *l,
                                   const struct worth_view *view, int64_t now_ms);
/* When to trigger the next checkpoint, after a start or another one at `now_ms`. */
int64_t worth_next_checkpoint(const struct worth *w, const struct worth_limits *l, int64_t now_ms);

/* How long the tasks will yet need to come up, after `started_ms`. */
int64_t worth_left_ms(const struct worth *w, const struct worth_limits *l, int64_t started_ms);
/* How long a restart and a checkpoint take. */
int64_t worth_restart_ms(const struct worth *w, const struct worth_limits *l);
int64_t worth_checkpoint_ms(const struct worth *w, const struct worth_limits *l);

#endif
