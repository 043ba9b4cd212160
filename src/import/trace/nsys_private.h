/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database of Nsight Systems that is being read: what the files nsys*.c share.
 */
#pragma once

#include "import/trace/gpu_trace.h"

#include <sqlite3.h>

/* A range of the host, and the work that was launched in it. */
typedef struct {
    int64_t start_ns, end_ns; /* of the host */
    uint64_t number, pid;
    int64_t first, last; /* correlations */
    int64_t gpu_start_ns, gpu_end_ns;
} LhNsysStep;

/* What a step spans: times of the host, or correlations. */
typedef struct {
    uint64_t pid;
    int64_t from, to; /* both are within */
    int64_t to_max;   /* of this one and those of its process before it */
    guint step;
} LhNsysSpan;

/* A process. */
typedef struct {
    uint64_t pid;
    uint32_t rank, ranks; /* of the largest communicator that is known; ranks 0: none is */
} LhNsysProcess;

typedef struct {
    LhGpuTraceRun *run;
    LhGpuTraceFile file;
    sqlite3 *db;
    guint first;          /* of its kernels in the run */
    GArray *pids;         /* of uint64_t: by kernel of this file */
    GArray *correlations; /* of int64_t: likewise */
    GHashTable *classes;  /* by id of name: class, transfer */
    GArray *steps;        /* of LhNsysStep, by start */
    GArray *spans;        /* of LhNsysSpan, by process and beginning; NULL: not yet */
    uint64_t visits;      /* of spans */
    GArray *processes;    /* of LhNsysProcess, by pid */
    uint32_t progress;
} LhNsysReader;

/* A table to read, row by row. */
typedef struct {
    const char *name;
    const char
        *columns[8]; /* NULL-terminated; one that begins with '?' may be missing: NULL then */
    bool needed;
    void (*row)(LhNsysReader *r, sqlite3_stmt *row);
} LhNsysTable;

/* ---- nsys_database.c ---- */

/* Opens the file for reading. The caller closes r->db, opened or not. */
bool lh_nsys_open(LhNsysReader *r, GError **error);

/* Of the file as it is. Caller frees. */
char *lh_nsys_checksum(const char *path);

/* Sets the error: what SQLite says. Returns false. */
bool lh_nsys_fail(const LhNsysReader *r, GError **error);

/* The table called @name, or @name and a number: "NAME_V2". NULL if there is none. Caller frees. */
char *lh_nsys_find_table(const LhNsysReader *r, const char *name);

bool lh_nsys_has_column(const LhNsysReader *r, const char *table, const char *column);

/* Calls the table's function for every row, in their order. */
bool lh_nsys_read_table(LhNsysReader *r, const LhNsysTable *table, GError **error);

/* False, and @value is left alone, if the column has no integer. */
bool lh_nsys_int(sqlite3_stmt *row, int column, int64_t *value);

/* ---- nsys_steps.c ---- */

/* Whether a range's text is that of a step, and of which. */
bool lh_nsys_step_number(const char *text, uint64_t *number);

/* Puts the steps in order, when all have been read. */
void lh_nsys_sort_steps(LhNsysReader *r);

/* The steps of process @pid that span @at, a time of the host, have launched @correlation. */
void lh_nsys_take_launch(LhNsysReader *r, uint64_t pid, int64_t at, int64_t correlation);

/* A step lasts until the next one of its process begins. */
void lh_nsys_take_steps(LhNsysReader *r);

/* False with @error: steps overlap so much that nothing was told apart. */
bool lh_nsys_check_visits(const LhNsysReader *r, GError **error);

/* ---- nsys.c ---- */

/* NULL for one more than PROCESSES_MAX. */
LhNsysProcess *lh_nsys_process(LhNsysReader *r, uint64_t pid);
