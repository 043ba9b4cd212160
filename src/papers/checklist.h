/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of papers, one per line (longhaul.checklist/1). A line names rows of published tables, or
 * tests that check it, or the reason why it is not predicted. A line with none of these, or whose
 * rows select no number, is an error.
 */
#pragma once

#include "papers/reproduce.h"

/* A selection of numbers of one table. */
typedef struct {
    char *table;        /* its name, or the path of its description */
    GPtrArray *where;   /* of char *: conditions on rows, as in a table; NULL: all rows */
    GPtrArray *columns; /* of char *: published columns; NULL: all */
    GPtrArray *metrics; /* of char *: metrics by their names in summaries; NULL: all */
} LhChecklistRows;

typedef struct {
    char *paper;     /* "LightSeq (arXiv 2310.03294v1)" */
    char *what;      /* the claim: "Table 1, Llama-7B, two nodes" */
    GArray *rows;    /* of LhChecklistRows; NULL: none */
    char *command;   /* shows the claim; NULL: longhaul reproduce of the first table */
    GPtrArray *held; /* of char *: tests that check it, "test_balance"; NULL: none */
    char *reason;    /* why it, or part of it, is not predicted; NULL: fully predicted */
} LhChecklistLine;

typedef struct {
    int schema;
    char *description;
    GArray *lines; /* of LhChecklistLine */
    LhJson *json;  /* the file, for errors */
} LhChecklist;

extern const LhField lh_checklist_fields[];

/* Reads @name: a name (a file of scenarios/checklists) or a path. Caller frees. */
LhChecklist *lh_checklist_load(const char *name, GError **error);
LhChecklist *lh_checklist_parse(const char *file, const char *text, gsize length, GError **error);
void lh_checklist_free(LhChecklist *checklist);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhChecklist, lh_checklist_free)

/* Names of the tables used, in order of first use. Caller unrefs. */
GPtrArray *lh_checklist_tables(const LhChecklist *checklist);

/* Sorts @tables (of LhReproducedTable *) into the order of the list; others follow in their present
 * order. */
void lh_checklist_sort(const LhChecklist *checklist, GPtrArray *tables);

/* A line with its predictions. */
typedef struct {
    const LhChecklistLine *line;
    LhPaperSummary summary; /* over its numbers */
    /* The number shown: its only one, or the least of several cases of one lower bound; NULL: it
     * has several numbers. */
    const LhPaperCase *shown;
    const LhPaperMetric *metric; /* of @shown */
    bool several;                /* it has several numbers, and none is shown */
} LhCheckedLine;

/* Evaluates all lines on @tables (of LhReproducedTable *), which are those of
 * lh_checklist_tables(). LH_ERROR_INPUT with the place if a line selects no number. Caller
 * unrefs. */
GArray *lh_checklist_check(const LhChecklist *checklist, const GPtrArray *tables, GError **error);
