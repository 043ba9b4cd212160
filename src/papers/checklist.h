/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What papers state, line by line: which rows of published tables a line is about, or which test
 * holds it, or why nothing predicts it (longhaul.checklist/1). A line that says none of the three
 * is broken, as is one whose rows select no number.
 */
#pragma once

#include "papers/reproduce.h"

/* Numbers of one table. */
typedef struct {
    char *table;        /* its name, or the path of its description */
    GPtrArray *where;   /* of char *, as a table's: which of its rows; NULL: all */
    GPtrArray *columns; /* of char *: which of its published columns; NULL: all */
    GPtrArray *metrics; /* likewise by what summaries call them; NULL: all */
} LhChecklistRows;

typedef struct {
    char *paper;     /* "LightSeq (arXiv 2310.03294v1)" */
    char *what;      /* what it states: "Table 1, Llama-7B, two nodes" */
    GArray *rows;    /* of LhChecklistRows; NULL: none */
    char *command;   /* that shows it; NULL: longhaul reproduce of the first table */
    GPtrArray *held; /* of char *: tests that hold it, "test_balance"; NULL: none */
    char *reason;    /* why it is not predicted, or not all of it; NULL: all is */
} LhChecklistLine;

typedef struct {
    int schema;
    char *description;
    GArray *lines; /* of LhChecklistLine */
    LhJson *json;  /* where it was read, for errors */
} LhChecklist;

extern const LhField lh_checklist_fields[];

/* Reads @name, one of those in scenarios/checklists, or a path. Caller frees. */
LhChecklist *lh_checklist_load(const char *name, GError **error);
LhChecklist *lh_checklist_parse(const char *file, const char *text, gsize length, GError **error);
void lh_checklist_free(LhChecklist *checklist);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhChecklist, lh_checklist_free)

/* The names of its tables, in the order in which it first names them. Caller unrefs. */
GPtrArray *lh_checklist_tables(const LhChecklist *checklist);

/* Puts @tables (of LhReproducedTable *) in the order of the list; those that it does not name
 * follow as they are. */
void lh_checklist_sort(const LhChecklist *checklist, GPtrArray *tables);

/* A line beside what is predicted. */
typedef struct {
    const LhChecklistLine *line;
    LhPaperSummary summary; /* of its numbers */
    /* The number that it is about, or of several cases of one lower bound the least; NULL: several
     * numbers. */
    const LhPaperCase *shown;
    const LhPaperMetric *metric; /* of @shown */
    bool several;                /* numbers, so that none is shown */
} LhCheckedLine;

/* All lines, by the numbers of @tables (of LhReproducedTable *), those of lh_checklist_tables().
 * LH_ERROR_INPUT, with the place, if a line selects no number. Caller unrefs. */
GArray *lh_checklist_check(const LhChecklist *checklist, const GPtrArray *tables, GError **error);
