/* check.h - does a case come out as it must?
 *
 * Runs the case's job on its trace and holds the run against what the case expects. The checks
 * are those of the cases' schema (tests/data/cases/README.md); the first one that does not hold
 * is the verdict.
 *
 * Owner   plain values
 * Errors  -EINVAL with *err, -ENOMEM: there is no verdict
 */
#ifndef PLIANT_SIM_CHECK_H
#define PLIANT_SIM_CHECK_H

#include "spec/case.h"

struct check_verdict {
    bool pass;
    char why[1024]; /* "rescales[1]: wanted src 4 at 16800..18300, got src 2 at 20000" */
};

int check_case(const struct case_file *c, struct check_verdict *ret, struct spec_error *err);

#endif
