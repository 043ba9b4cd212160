/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a published table as cases: each published number with the options that its row means.
 */
#pragma once

#include "papers/paper.h"
#include "papers/paper_options.h"

typedef enum {
    LH_CASE_JUDGED,
    LH_CASE_FITTED,      /* constants were fitted to it */
    LH_CASE_LEFT_OUT,    /* the description of the table, or the row, says why */
    LH_CASE_UNPREDICTED, /* longhaul refuses it, or cannot say it */
    LH_CASE_LESS, /* what is published is the greatest of the row's cases, and this is another */
} LhCaseState;

/* "judged", "fitted", "left out", "not predicted", "not the greatest"; NULL-terminated. */
extern const char *const lh_case_state_names[];

/* One published number. */
typedef struct {
    guint row, line; /* of the table; of its file */
    guint metric;    /* index in the paper's */
    LhCaseState state;
    bool bound;         /* published is a lower bound, which has no error */
    char *group;        /* the cells of the paper's groups, "a, b"; NULL: it has none */
    char *contradicted; /* other numbers that the source states for it, and where; NULL: none */
    char *reason;       /* of those that are left out or not predicted */
    LhPaperOptions *options;
    LhPaperOptions *against; /* NULL: the metric has no second case */
    uint32_t gpu;            /* whose memory it is, from 1; 0: of the one that needs most */
    double published;        /* in the metric's unit; not set if it is out of memory */
    bool published_fits;     /* false: "OOM" */
    double predicted;        /* likewise */
    bool predicted_fits;
    /* predicted / published - 1; 0 where one of both does not fit in memory. Of a lower bound,
     * which has no error, how far above it is: below 0 it does not hold. */
    double error;
    double error_bar; /* e: four published numbers in five should be between predicted / (1 + e) and
                         predicted * (1 + e) */
} LhPaperCase;

/* Whether all conditions of @where, which may be NULL, hold for @row. None of a column that is not
 * there does. */
bool lh_paper_row_matches(const LhCsv *rows, guint row, const GPtrArray *where);

/* What its number is of; borrowed. */
const LhPaperMetric *lh_paper_case_metric(const LhPaper *paper, const LhPaperCase *c);

/* Whether it is played: what is predicted is then known, unless its state has become another. */
bool lh_paper_case_is_asked(const LhPaperCase *c);

/* All of a table, row by row; cells without a number are no cases. Fails, with file and line, if a
 * number or an option is broken. Caller unrefs, elements are LhPaperCase *. */
GPtrArray *lh_paper_cases(const LhPaper *paper, const LhCsv *rows, GError **error);
