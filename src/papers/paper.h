/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables (longhaul.paper/1): the options that the columns of a text table imply, and
 * which of its numbers longhaul can predict. No row is special-cased: any table with these columns
 * can be judged.
 *
 * Entries of `set` are options, "seq_length=64K", "pad_heads". The last setting of an option wins;
 * "dtype=" unsets it. In them '*' stands for the text that '*' matched in the cell, and {a*b/2+c}
 * for that sum of products of columns and numbers, which must be a whole number. A file of document
 * lengths whose name has no '/' is one of scenarios/papers.
 */
#pragma once

#include "base/files/csv.h"
#include "base/json/json.h"
#include "scenario/scenario.h"

#define LH_PAPER_CONSTANTS_MAX 3 /* most constants fitted per table */

typedef enum {
    /* Of a whole training step. */
    LH_METRIC_ITERATION,    /* seconds */
    LH_METRIC_TOKENS_PER_S, /* of the whole job */
    LH_METRIC_TOKENS_PER_S_PER_GPU,
    LH_METRIC_MODEL_TFLOPS_PER_GPU, /* model flops, without recomputation */
    LH_METRIC_PEAK_GIB,             /* of the GPU with the highest peak */
    LH_METRIC_LONGEST_TOKENS,       /* the longest sequence that fits */
    LH_METRIC_TENSOR_CONTEXT_BYTES, /* bytes that a GPU sends for these parallelisms, mean */
    LH_METRIC_HEADS_RATIO,          /* query heads of the padded model over the model's */
    /* Of one attention module. */
    LH_METRIC_ATTENTION, /* seconds */
    LH_METRIC_ITERATIONS_PER_S,
    LH_METRIC_COMPUTE,           /* compute time of the busiest GPU, seconds */
    LH_METRIC_COMMUNICATION,     /* the module's time less this, seconds */
    LH_METRIC_TIME_OVER_COMPUTE, /* the module's time over this */
    LH_METRIC_IDLE_SHARE,        /* idle fraction of the module's time, mean over GPUs */
    /* Flops of the pairs that the mask allows: 4 d forward, 10 d backward. */
    LH_METRIC_TFLOPS_PER_GPU,
    /* Of a single collective, as NCCL runs it: options cluster, ranks, collective, bytes, nccl. */
    LH_METRIC_COLLECTIVE, /* microseconds */
    /* Microseconds, with the measurement of this size held out. */
    LH_METRIC_COLLECTIVE_LEFT_OUT,
    /* Microseconds, by another cluster's file (option edited_from) with the link rates of this
     * cluster's nodes. */
    LH_METRIC_COLLECTIVE_LINKS_EDITED,
    LH_METRICS,
} LhMetric;

/* "iteration_s", ...; NULL-terminated. */
extern const char *const lh_metric_names[];

/* Whether it belongs to a whole training step. */
bool lh_metric_is_step(LhMetric metric);

/* Whether it is known without simulating the step. */
bool lh_metric_is_count(LhMetric metric);

/* Whether it belongs to a single collective. */
bool lh_metric_is_collective(LhMetric metric);

/* One of the cases that a cell implies. */
typedef struct {
    GPtrArray *set; /* of char * */
} LhPaperEach;

/* Meaning of a cell that matches @value, in which one '*' matches any text. */
typedef struct {
    char *value;
    /* Of char *, "column=value": further conditions; NULL: none. Every `where` also allows
     * "column!=value", "column>=number" and "column<=number" */
    GPtrArray *where;
    GPtrArray *set; /* of char *; NULL: nothing */
    /* Of LhPaperEach: the row is one case per element, with its options after those of `set`; NULL:
     * a single case. */
    GArray *each;
    char *skip; /* why rows with this value are left out; NULL: they are used */
} LhPaperValue;

typedef struct {
    char *column;
    GArray *values; /* of LhPaperValue: the first match is used */
} LhPaperColumn;

/* Relative errors: 0.02 is 2 %; 0: no bound. A larger bound than this is not allowed: no model
 * explains errors of a fifth. Larger errors need a reason instead. */
#define LH_PAPER_BOUND_MAX 0.2

typedef struct {
    double mean, worst;
    double pairs; /* least fraction of pairs in the right order */
} LhPaperTolerance;

typedef struct {
    char *name;       /* in summaries; NULL: the column's name */
    GPtrArray *where; /* of char *: conditions on rows; NULL: all rows */
    char *column;     /* with the published values */
    char *cell;       /* pattern of cells; '*' is the number, other cells are ignored. NULL: "*" */
    int metric;       /* LhMetric */
    double scale;     /* factor from the column's unit to the metric's: 0.001 for milliseconds */
    /* The published number, in the column's unit, if the cell expresses it in words; 0: the cell
     * has the number. */
    double number;
    bool at_least; /* the published number is a lower bound, which holds or does not: no error */
    /* The published number is the maximum over the row's cases; the others are not judged. */
    bool up_to;
    GPtrArray *set; /* of char *, in addition to those of the columns; NULL: none */
    /* Of char *: the metric is the value with these options over the value without: for times, a
     * speedup. NULL: the value itself. */
    GPtrArray *against;
    /* LH_METRIC_LONGEST_TOKENS: lengths are multiples of this; 0: powers of two. */
    uint64_t granularity;
    /* LH_METRIC_PEAK_GIB: the GPU, from 1, as in `set`; NULL: the GPU with the highest peak. */
    char *gpu;
    LhPaperTolerance tolerance;
    char *not_explained; /* why its errors exceed the largest bounds; NULL: they do not */
} LhPaperMetric;

/* Rows that constants were fitted to: those that meet all conditions. */
typedef struct {
    GPtrArray *where;   /* of char * */
    GPtrArray *columns; /* of char *: published columns; NULL: all */
    GPtrArray *metrics; /* of char *: names of LhMetric; NULL: all */
} LhPaperFitted;

/* Another number that the source states for a row. */
typedef struct {
    GPtrArray *where;   /* of char *: conditions on the rows */
    GPtrArray *columns; /* of char *: published columns; NULL: all */
    char *value;        /* the other number, as printed */
    char *at;           /* where it is stated, or what it follows from */
} LhPaperContradiction;

typedef struct {
    int schema;
    char *name; /* of the table, and of its files */
    char *description;
    char *source;
    char *caveat;           /* caveats of the comparison; NULL: none */
    bool serving;           /* rows time single kernels in a serving system */
    GPtrArray *base;        /* of char *: options of all rows; NULL: none */
    GArray *columns;        /* of LhPaperColumn; NULL: none */
    GArray *metrics;        /* of LhPaperMetric */
    GArray *fitted_on;      /* of LhPaperFitted; NULL: no constant was fitted */
    GArray *contradictions; /* of LhPaperContradiction; NULL: none is known */
    GPtrArray *groups;      /* of char *: columns to group rows by in summaries; NULL: none */
    LhPaperTolerance group_tolerance; /* of each group */
    GPtrArray *constants;       /* of char *: names of LhConstant that --fit fits; NULL: none */
    LhPaperTolerance tolerance; /* over all metrics */
    /* Why errors of all metrics exceed the largest bounds; NULL: they do not. */
    char *not_explained;
    char *path;
} LhPaper;

extern const LhField lh_paper_fields[];

/* Checks that every text of @where, at @path of @json, is a condition such as "COLUMN=VALUE". NULL
 * is valid. */
bool lh_paper_check_where(const LhJson *json, const char *path, const GPtrArray *where,
                          GError **error);

/* Names of the tables that come with longhaul, sorted; caller frees with g_strfreev. */
char **lh_paper_list(void);

/* Reads @name: one of these names, or a path. Caller frees. */
LhPaper *lh_paper_load(const char *name, GError **error);
LhPaper *lh_paper_parse(const char *file, const char *text, gsize length, GError **error);
void lh_paper_free(LhPaper *paper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPaper, lh_paper_free)

/* Reads the table's rows: NAME.csv in @folder, or @folder itself if it is a file, or NAME.csv
 * beside the paper's file if @folder is NULL. Also fails if a column that the paper names is
 * missing. Caller frees. */
LhCsv *lh_paper_rows(const LhPaper *paper, const char *folder, GError **error);
char *lh_paper_rows_path(const LhPaper *paper, const char *folder);

/* Matches @text against @pattern: NULL if it does not match, else the text for '*' ("" without
 * one). Caller frees. */
char *lh_paper_match(const char *pattern, const char *text);
