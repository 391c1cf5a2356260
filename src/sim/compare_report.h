/* compare_report.h - a comparison as tables for people, JSON Lines or CSV for programs
 *
 * Errors  -errno of the write that failed, -ENOMEM
 */
#ifndef PLIANT_SIM_COMPARE_REPORT_H
#define PLIANT_SIM_COMPARE_REPORT_H

#include <stdio.h>

#include "sim/compare.h"

int compare_text(const struct compare *c, FILE *out);
int compare_json(const struct compare *c, FILE *out);
int compare_csv(const struct compare *c, FILE *out);

/* ---- what the tables say ------------------------------------------------------------------ */

#define COMPARE_ALL SIZE_MAX /* tapes or costs: each of them */

/* The mean share of the bound over the cells of a tape and a cost. */
double compare_mean(const struct compare *c, size_t policy, size_t tape, size_t cost);

/* A policy that learns against those that don't; false: one of both is missing. */
struct compare_verdict {
    size_t policy;   /* that learns */
    size_t best;     /* of the fixed ones, by the mean share */
    double regret;   /* 1 - mean share of `policy`, over that of `best`; 1 where that is 0 */
    double worst;    /* the least that it is ahead of the best fixed one of a cell ... */
    size_t cell, by; /* ... where, and of which */
};
bool compare_judge(const struct compare *c, struct compare_verdict *ret);

#endif
