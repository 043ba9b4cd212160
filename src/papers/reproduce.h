/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables beside predictions: every number of them, and how far off they are.
 */
#pragma once

#include "papers/paper_fit.h"

/* Of the cases of one table, or of one of its metrics. Errors are relative, of those that are
 * judged and on which both sides have a number. */
typedef struct {
    guint cases, judged, fitted, left_out, unpredicted;
    double mean_abs_error, worst_abs_error;
    double bias;       /* mean of the errors */
    guint within_bars; /* of the judged: so many are within the prediction's error bar */
    /* Lower bounds, which are none of the judged: all, those that hold, and by how much the worst
     * of the others is below. */
    guint bounds, bounds_held;
    double worst_missed;
    /* Cases in which one side at least does not fit in memory, and how many sides agree. */
    guint memory_judged, memory_right;
    /* Of pairs that answer one question in two ways: all, and those that are predicted in the
     * published order (papers/paper_pairs.h). */
    guint pairs, pairs_in_order;
    bool beyond; /* of the table's tolerance */
} LhPaperSummary;

/* Counts a case; behind the last one, sums become means. */
void lh_paper_summary_add(LhPaperSummary *summary, const LhPaperCase *c);
void lh_paper_summary_finish(LhPaperSummary *summary);

/* Cases whose rows have the same cells in the columns that the paper groups by. */
typedef struct {
    const char *name; /* "H100, fa3"; of the first case */
    LhPaperSummary summary;
} LhPaperGroup;

typedef struct {
    LhPaper *paper;
    char *rows_path;
    LhCsv *csv;       /* its rows */
    GPtrArray *cases; /* of LhPaperCase * */
    LhPaperSummary all;
    GArray *metrics;   /* of LhPaperSummary, as the paper's metrics */
    GArray *groups;    /* of LhPaperGroup, in the order of the rows; empty: the paper has none */
    GArray *constants; /* of LhFittedConstant; NULL: not fitted */
    GArray *cross_constants;   /* likewise, fitted to the rows that are judged; NULL: not fitted */
    LhPaperSummary own, cross; /* of the rows that files' constants were fitted to: by the files,
                                  and by @cross_constants */
} LhReproducedTable;

/* What to reproduce. */
typedef struct {
    const GPtrArray *names; /* of char *: tables; NULL or empty: all that there are rows of */
    const char *folder;     /* with the rows, or their file; NULL: those that come with longhaul */
    bool fit;               /* fit the constants of the tables anew */
    bool cross_fit;         /* and to the rows that are judged, to judge the others */
    guint jobs;             /* threads; 0: as the cores and the memory allow */
} LhReproduceParams;

/* LH_ERROR_INPUT for a broken table, LH_ERROR_USAGE for one that there is not. Caller unrefs,
 * elements are LhReproducedTable *. */
GPtrArray *lh_reproduce(const LhReproduceParams *params, GError **error);

/* The judged numbers of all @tables, and how many are within the error bars of their predictions.
 */
void lh_reproduced_bars(const GPtrArray *tables, guint *within, guint *judged);

/* Whether 70 to 90 per cent of so many are, as is right for error bars of 80. */
bool lh_reproduced_bars_hold(guint within, guint judged);

/* Whether no table is beyond its tolerance. */
bool lh_reproduced_within(const GPtrArray *tables);
