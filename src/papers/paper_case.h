/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a published table as cases: each published number with the options that its row implies.
 */
#pragma once

#include "papers/paper.h"
#include "papers/paper_options.h"

typedef enum {
    LH_CASE_JUDGED,
    LH_CASE_FITTED,      /* constants were fitted to it */
    LH_CASE_LEFT_OUT,    /* for the reason given by the table's description or the row */
    LH_CASE_UNPREDICTED, /* rejected by longhaul, or a scenario cannot express it */
    LH_CASE_LESS,        /* not the maximum of the row's cases, which is published */
} LhCaseState;

/* "judged", "fitted", "left out", "not predicted", "not the greatest"; NULL-terminated. */
extern const char *const lh_case_state_names[];

/* One published number. */
typedef struct {
    guint row, line; /* of the table; of its file */
    guint metric;    /* index in the paper's */
    LhCaseState state;
    bool bound;         /* the published number is a lower bound: no error */
    char *group;        /* the cells of the columns to group by, "a, b"; NULL: no groups */
    char *contradicted; /* other numbers that the source states, and where; NULL: none */
    char *reason;       /* of cases that are left out or not predicted */
    LhPaperOptions *options;
    LhPaperOptions *against; /* NULL: the metric has no second case */
    uint32_t gpu;            /* the GPU for peak memory, from 1; 0: the one with the highest peak */
    double published;        /* in the metric's unit; not set if it is out of memory */
    bool published_fits;     /* false: "OOM" */
    double predicted;        /* not set if it is out of memory */
    bool predicted_fits;
    /* predicted / published - 1; 0 where a side does not fit in memory. For a lower bound: how far
     * the prediction is above it; negative if the bound does not hold. */
    double error;
    /* E: 80 % of published numbers should be between predicted / (1 + e) and predicted * (1 +
     * e). */
    double error_bar;
} LhPaperCase;

/* Whether @row meets all conditions of @where (may be NULL). A condition on a missing column is
 * false. */
bool lh_paper_row_matches(const LhCsv *rows, guint row, const GPtrArray *where);

/* The metric of the case's number; borrowed. */
const LhPaperMetric *lh_paper_case_metric(const LhPaper *paper, const LhPaperCase *c);

/* Whether the case is simulated. Its prediction is then known afterwards, unless its state
 * changes. */
bool lh_paper_case_is_asked(const LhPaperCase *c);

/* All cases of a table, row by row; cells without a number are skipped. Fails with file and line
 * for an invalid number or option. Caller unrefs, elements are LhPaperCase *. */
GPtrArray *lh_paper_cases(const LhPaper *paper, const LhCsv *rows, GError **error);
