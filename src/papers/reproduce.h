/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables with their predictions and errors.
 */
#pragma once

#include "papers/paper_fit.h"

/* Summary of the cases of a table or of one metric. Errors are relative, over judged cases with a
 * number on both sides. */
typedef struct {
    guint cases, judged, fitted, left_out, unpredicted;
    double mean_abs_error, worst_abs_error;
    double bias;       /* mean error */
    guint within_bars; /* judged cases within the prediction's error bar */
    /* Lower bounds, which are not judged: all, those that hold, and the worst relative shortfall of
     * the others. */
    guint bounds, bounds_held;
    double worst_missed;
    /* Cases in which at least one side does not fit in memory, and those in which both sides
     * agree. */
    guint memory_judged, memory_right;
    /* Pairs that differ only in how the work is divided, and those predicted in the published order
     * (papers/paper_pairs.h). */
    guint pairs, pairs_in_order;
    bool beyond; /* an error bound is exceeded */
} LhPaperSummary;

/* Add a case; after the last one, turn sums into means. */
void lh_paper_summary_add(LhPaperSummary *summary, const LhPaperCase *c);
void lh_paper_summary_finish(LhPaperSummary *summary);

/* Cases whose rows have the same cells in the columns to group by. */
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
    GArray *metrics;   /* of LhPaperSummary, one per metric of the paper */
    GArray *groups;    /* of LhPaperGroup, in the order of the rows; empty: no groups */
    GArray *constants; /* of LhFittedConstant; NULL: not fitted */
    /* Of LhFittedConstant, fitted to the judged rows (cross-validation); NULL: not fitted. */
    GArray *cross_constants;
    /* Of the rows that the files' constants were fitted to: by the files, and by
     * @cross_constants. */
    LhPaperSummary own, cross;
} LhReproducedTable;

/* What to reproduce. */
typedef struct {
    const GPtrArray *names; /* of char *: tables; NULL or empty: all that have rows */
    /* Folder with the rows, or a file of rows; NULL: those that come with longhaul. */
    const char *folder;
    bool fit;       /* refit the constants of the tables */
    bool cross_fit; /* also fit to the judged rows, to judge the others */
    guint jobs;     /* threads; 0: as cores and memory allow */
} LhReproduceParams;

/* LH_ERROR_INPUT for an invalid table, LH_ERROR_USAGE for an unknown one. Caller unrefs, elements
 * are LhReproducedTable *. */
GPtrArray *lh_reproduce(const LhReproduceParams *params, GError **error);

/* Number of judged cases of all @tables, and of those within their error bars. */
void lh_reproduced_bars(const GPtrArray *tables, guint *within, guint *judged);

/* Whether 70 to 90 % are within, as expected for error bars of 80 %. */
bool lh_reproduced_bars_hold(guint within, guint judged);

/* Whether no table exceeds its error bounds. */
bool lh_reproduced_within(const GPtrArray *tables);
