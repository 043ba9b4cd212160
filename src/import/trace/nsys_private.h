/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the reader of Nsight Systems databases, shared by the files nsys*.c.
 */
#pragma once

#include "import/trace/gpu_trace.h"

#include <sqlite3.h>

/* A host range that marks a step, and the GPU work launched in it. */
typedef struct {
    int64_t start_ns, end_ns; /* on the host */
    uint64_t number, pid;
    int64_t first, last; /* correlation ids of launches */
    int64_t gpu_start_ns, gpu_end_ns;
} LhNsysStep;

/* Span of a step: host times, or correlation ids. */
typedef struct {
    uint64_t pid;
    int64_t from, to; /* inclusive */
    int64_t to_max;   /* largest @to up to this span within its process */
    guint step;
} LhNsysSpan;

/* A process. */
typedef struct {
    uint64_t pid;
    uint32_t rank, ranks; /* of the largest known communicator; ranks 0: none */
} LhNsysProcess;

typedef struct {
    LhGpuTraceRun *run;
    LhGpuTraceFile file;
    sqlite3 *db;
    guint first;          /* index in the run of the file's first kernel */
    GArray *pids;         /* of uint64_t, for each kernel of this file */
    GArray *correlations; /* of int64_t, for each kernel of this file */
    GHashTable *classes;  /* name id to class and transfer */
    GArray *steps;        /* of LhNsysStep, by start */
    GArray *spans;        /* of LhNsysSpan, by process and start; NULL: not sorted yet */
    uint64_t visits;      /* number of spans visited */
    GArray *processes;    /* of LhNsysProcess, by pid */
    uint32_t progress;
} LhNsysReader;

/* A table to read row by row. */
typedef struct {
    const char *name;
    /* NULL-terminated; NULL values for a missing column whose name begins with '?'. */
    const char *columns[8];
    bool needed;
    void (*row)(LhNsysReader *r, sqlite3_stmt *row);
} LhNsysTable;

/* ---- nsys_database.c ---- */

/* Opens the file for reading. The caller closes r->db in any case. */
bool lh_nsys_open(LhNsysReader *r, GError **error);

/* SHA-256 of the file. Caller frees. */
char *lh_nsys_checksum(const char *path);

/* Sets the error to SQLite's message. Returns false. */
bool lh_nsys_fail(const LhNsysReader *r, GError **error);

/* Finds the table @name, or @name with a version: "NAME_V2". NULL if absent. Caller frees. */
char *lh_nsys_find_table(const LhNsysReader *r, const char *name);

bool lh_nsys_has_column(const LhNsysReader *r, const char *table, const char *column);

/* Calls the table's function for every row, in order. */
bool lh_nsys_read_table(LhNsysReader *r, const LhNsysTable *table, GError **error);

/* Reads an integer column; false, leaving @value unchanged, if it has no integer. */
bool lh_nsys_int(sqlite3_stmt *row, int column, int64_t *value);

/* ---- nsys_steps.c ---- */

/* Whether the text of a range names a step; @number is the step's. */
bool lh_nsys_step_number(const char *text, uint64_t *number);

/* Sorts the steps after all have been read. */
void lh_nsys_sort_steps(LhNsysReader *r);

/* Records that the steps of process @pid that span host time @at launched @correlation. */
void lh_nsys_take_launch(LhNsysReader *r, uint64_t pid, int64_t at, int64_t correlation);

/* Adds the steps to the run. A step ends where the next one of its process begins. */
void lh_nsys_take_steps(LhNsysReader *r);

/* False with @error if too many steps overlap to assign kernels to them. */
bool lh_nsys_check_visits(const LhNsysReader *r, GError **error);

/* ---- nsys.c ---- */

/* Entry of a process, created if new; NULL if there would be more than PROCESSES_MAX. */
LhNsysProcess *lh_nsys_process(LhNsysReader *r, uint64_t pid);
