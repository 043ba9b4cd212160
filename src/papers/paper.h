/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables: which options the columns of a table of text mean, and which of its numbers
 * longhaul can predict (longhaul.paper/1). Nothing here knows a row: any table with these columns
 * can be judged.
 *
 * Texts of `set` are options, "seq_length=64K", "pad_heads"; the last one said of an option holds,
 * and "dtype=" takes back what was said. In them '*' stands for what '*' matched in the cell, and
 * {a*b/2+c} for that sum of products of columns and numbers, which must be a whole number. A file
 * of document lengths without '/' in its name is one of scenarios/papers.
 */
#pragma once

#include "base/files/csv.h"
#include "base/json/json.h"
#include "scenario/scenario.h"

#define LH_PAPER_CONSTANTS_MAX 3 /* fitted for one table */

typedef enum {
    /* Of a whole step. */
    LH_METRIC_ITERATION,    /* seconds */
    LH_METRIC_TOKENS_PER_S, /* of the whole job */
    LH_METRIC_TOKENS_PER_S_PER_GPU,
    LH_METRIC_MODEL_TFLOPS_PER_GPU, /* of the model, without recomputation */
    LH_METRIC_PEAK_GIB,             /* of the GPU that needs most */
    LH_METRIC_LONGEST_TOKENS,       /* the longest sequence that fits */
    LH_METRIC_TENSOR_CONTEXT_BYTES, /* of these parallelisms, that a GPU sends, the mean */
    LH_METRIC_HEADS_RATIO,          /* query heads of the model as padded, over the model's */
    /* Of one module of attention. */
    LH_METRIC_ATTENTION, /* seconds */
    LH_METRIC_ITERATIONS_PER_S,
    LH_METRIC_COMPUTE,           /* seconds that the GPU computes which computes longest */
    LH_METRIC_COMMUNICATION,     /* seconds that the module takes beside these */
    LH_METRIC_TIME_OVER_COMPUTE, /* the module's time over these */
    LH_METRIC_IDLE_SHARE,     /* of the module's time in which a GPU computes nothing, the mean */
    LH_METRIC_TFLOPS_PER_GPU, /* of the pairs that the mask allows: 4 d forward, 10 d backward */
    /* Of one collective alone, as NCCL runs it: options cluster, ranks, collective, bytes, nccl. */
    LH_METRIC_COLLECTIVE,              /* microseconds */
    LH_METRIC_COLLECTIVE_LEFT_OUT,     /* likewise, as if this size had not been measured */
    LH_METRIC_COLLECTIVE_LINKS_EDITED, /* likewise, by the file of another cluster, option
                                          edited_from, into which the rates of this one's links in a
                                          node are typed */
    LH_METRICS,
} LhMetric;

/* "iteration_s", ...; NULL-terminated. */
extern const char *const lh_metric_names[];

/* Whether it is of a whole step. */
bool lh_metric_is_step(LhMetric metric);

/* Whether it is known of a step before it is simulated. */
bool lh_metric_is_count(LhMetric metric);

/* Whether it is of one collective. */
bool lh_metric_is_collective(LhMetric metric);

/* One of the cases that a cell stands for. */
typedef struct {
    GPtrArray *set; /* of char * */
} LhPaperEach;

/* What a cell means that matches @value, in which one '*' matches any text. */
typedef struct {
    char *value;
    GPtrArray *where; /* of char *, "column=value": what else must hold; NULL: nothing. Likewise
                         "column!=value", "column>=number" and "column<=number" here and wherever
                         there is a where */
    GPtrArray *set;   /* of char *; NULL: nothing */
    GArray *each;     /* of LhPaperEach: the row is a case for each of them, with its options behind
                         those of `set`; NULL: it is one case */
    char *skip;       /* why rows with this value are left out; NULL: they are not */
} LhPaperValue;

typedef struct {
    char *column;
    GArray *values; /* of LhPaperValue: the first one that matches holds */
} LhPaperColumn;

/* Relative: 0.02 is 2 %; 0: no bound. Errors of a fifth are explained by no model: a bound beyond
 * is none, and what is off by more has a reason instead. */
#define LH_PAPER_BOUND_MAX 0.2

typedef struct {
    double mean, worst;
    double pairs; /* least share of the pairs in order */
} LhPaperTolerance;

typedef struct {
    char *name;       /* in summaries; NULL: the column's */
    GPtrArray *where; /* of char *: rows that have this metric; NULL: all */
    char *column;     /* of the published values */
    char *cell; /* what a cell must look like; '*' is the number, other cells are none. NULL: "*" */
    int metric; /* LhMetric */
    double scale;   /* the metric's unit over the column's: 0.001 for milliseconds */
    double number;  /* what is published, in the column's unit, where the cell says it in
                       words; 0: the cell has the number */
    bool at_least;  /* published is a lower bound, which holds or does not: never an error */
    bool up_to;     /* published is the greatest of the row's cases; the others are not judged */
    GPtrArray *set; /* of char *, beside those of the columns; NULL: nothing */
    GPtrArray *against;   /* likewise: the metric is that of the row with these over that without: a
                             speedup, for times. NULL: the metric itself */
    uint64_t granularity; /* LH_METRIC_LONGEST_TOKENS: multiples of so many; 0: powers of two */
    char *gpu; /* LH_METRIC_PEAK_GIB: of this one, counted from 1, as in `set`; NULL: of the one
                  that needs most */
    LhPaperTolerance tolerance;
    char *not_explained; /* why it is off by more than bounds may allow; NULL: it is not */
} LhPaperMetric;

/* Rows that constants were fitted to: those for which every "column=value" holds. */
typedef struct {
    GPtrArray *where;   /* of char * */
    GPtrArray *columns; /* of char *: published values of these; NULL: all */
    GPtrArray *metrics; /* of char *: names of LhMetric; NULL: all */
} LhPaperFitted;

/* Where the source states another number for what a row is about. */
typedef struct {
    GPtrArray *where;   /* of char *: those rows */
    GPtrArray *columns; /* of char *: published values of these; NULL: all */
    char *value;        /* the other number, as it stands there */
    char *at;           /* where it stands, or what it follows from */
} LhPaperContradiction;

typedef struct {
    int schema;
    char *name; /* of the table, and of its files */
    char *description;
    char *source;
    char *caveat;           /* what to know before judging; NULL: nothing */
    bool serving;           /* rows time one kernel at a time, in a serving system */
    GPtrArray *base;        /* of char *: options of all rows; NULL: none */
    GArray *columns;        /* of LhPaperColumn; NULL: none */
    GArray *metrics;        /* of LhPaperMetric */
    GArray *fitted_on;      /* of LhPaperFitted; NULL: no constant was fitted */
    GArray *contradictions; /* of LhPaperContradiction; NULL: none is known */
    GPtrArray *groups; /* of char *: columns whose cells group the rows in summaries; NULL: none */
    LhPaperTolerance group_tolerance; /* of each group */
    GPtrArray *constants;       /* of char *: names of LhConstant that --fit fits; NULL: none */
    LhPaperTolerance tolerance; /* over all metrics */
    char *not_explained;        /* likewise of all; NULL: they are */
    char *path;
} LhPaper;

extern const LhField lh_paper_fields[];

/* Whether every text of @where, at @path of @json, is "COLUMN=VALUE" or another condition; NULL is
 * right, too. */
bool lh_paper_check_where(const LhJson *json, const char *path, const GPtrArray *where,
                          GError **error);

/* The names of the tables that longhaul knows, sorted; caller frees with g_strfreev. */
char **lh_paper_list(void);

/* Reads @name, one of these, or a path. Caller frees. */
LhPaper *lh_paper_load(const char *name, GError **error);
LhPaper *lh_paper_parse(const char *file, const char *text, gsize length, GError **error);
void lh_paper_free(LhPaper *paper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPaper, lh_paper_free)

/* The table's rows: NAME.csv in @folder, or @folder itself if that is a file, or NAME.csv beside
 * the paper's file if @folder is NULL. Sets @error too if a column that the paper names is not
 * there. Caller frees. */
LhCsv *lh_paper_rows(const LhPaper *paper, const char *folder, GError **error);
char *lh_paper_rows_path(const LhPaper *paper, const char *folder);

/* What @text is beside @pattern: NULL if it does not match, else what '*' stands for ("" without
 * one). Caller frees. */
char *lh_paper_match(const char *pattern, const char *text);
