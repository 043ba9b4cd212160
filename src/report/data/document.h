/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of every document: its format, the program, the command line and the inputs. A document
 * is a struct with an LhDocumentHead, and a table of fields that begins with LH_DOCUMENT_HEAD.
 */
#pragma once

#include "base/json/json_encode.h"
#include "framework_config/configuration.h"
#include "scenario/setup.h"

/* Command line and query, for the stamp of every output. */
typedef struct {
    const char *const *argv;    /* NULL-terminated; argv[0] is written as "longhaul" */
    const LhScenario *scenario; /* NULL: the command takes none */
    const LhConfig *config;     /* source of the scenario; NULL: none */
    const LhField *options;     /* table of the command's own options; NULL: none */
    const void *values;         /* values of these options */
    unsigned not_asked;         /* flags of options that do not affect the answer */
    const GPtrArray *inputs;    /* of LhInput *, replacing the setup's; NULL: the setup's */
    const LhModel *model;       /* replacing the setup's, likewise */
} LhStamp;

typedef struct {
    char *name, *version;
} LhDocumentTool;

typedef struct {
    GArray *scenario, *options; /* of LhFieldMember */
} LhDocumentAsked;

typedef struct {
    char *schema;
    LhDocumentTool tool;
    char *date; /* from SOURCE_DATE_EPOCH; NULL: not set */
    GPtrArray *argv;
    GPtrArray *inputs;      /* of LhInput * */
    char *seed;             /* as text: many readers hold numbers as doubles */
    GPtrArray *notes;       /* how the model's file was read */
    GPtrArray *link_notes;  /* contradictions in the cluster's tables */
    LhDocumentAsked *asked; /* NULL: the command takes no scenario */
} LhDocumentHead;

/* Head of a document of format @schema. @setup (NULL: none) is borrowed. Caller clears. */
LhDocumentHead lh_document_head(const char *schema, const LhStamp *stamp, const LhSetup *setup);
void lh_document_head_clear(LhDocumentHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhDocumentHead, lh_document_head_clear)

/* For a streamed document: opens its object and writes the head, with @asked also the query. */
void lh_document_begin(LhJsonWriter *w, const char *schema, const LhStamp *stamp,
                       const LhSetup *setup, bool asked);

extern const LhField lh_document_tool_fields[], lh_document_input_fields[],
    lh_document_asked_fields[];

/* Rows for `member`, an LhDocumentHead of the struct `of`. `words`: the format's name and NULL.
 * Documents of commands with scenarios add LH_DOCUMENT_ASKED. */
#define LH_DOCUMENT_HEAD(of, member, words) LH_DOCUMENT_HEAD_ROWS(of, member, words, IF_ANY)

/* The same for documents that always have a setup, and so a seed. */
#define LH_DOCUMENT_HEAD_OF_SETUP(of, member, words)                                               \
    LH_DOCUMENT_HEAD_ROWS(of, member, words, ALWAYS)

#define LH_DOCUMENT_HEAD_ROWS(of, member, words, seeded)                                           \
    LH_FIELD_ROW(STRING, of, member.schema, "schema", ALWAYS, .choices = words),                   \
        LH_FIELD_ROW(OBJECT, of, member.tool, "tool", ALWAYS, .fields = lh_document_tool_fields),  \
        LH_FIELD_ROW(STRING, of, member.date, "date", IF_ANY,                                      \
                     .description = "Date from SOURCE_DATE_EPOCH, if set."),                       \
        LH_FIELD_ROW(STRINGS, of, member.argv, "argv", ALWAYS,                                     \
                     .description = "The command line."),                                          \
        LH_FIELD_ROW(POINTERS, of, member.inputs, "inputs", ALWAYS,                                \
                     .fields = lh_document_input_fields,                                           \
                     .description = "Files that affect the answer."),                              \
        LH_FIELD_ROW(STRING, of, member.seed, "seed", seeded,                                      \
                     .description = "Seed, as text: many readers hold numbers as doubles."),       \
        LH_FIELD_ROW(STRINGS, of, member.notes, "notes", IF_ANY,                                   \
                     .description = "Notes on how the model's file was read."),                    \
        LH_FIELD_ROW(STRINGS, of, member.link_notes, "link_notes", IF_ANY,                         \
                     .description =                                                                \
                         "Contradictions of measured collectives with links or each other, and "   \
                         "links for which a profile found other values than the topology file.")

#define LH_DOCUMENT_ASKED(of, member)                                                              \
    LH_FIELD_ROW(POINTER, of, member.asked, "asked", IF_ANY, .fields = lh_document_asked_fields,   \
                 .description =                                                                    \
                     "The query. Absent in results of earlier versions, which are read as if "     \
                     "only the values in their case and command line had been given.")
