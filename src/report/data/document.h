/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every document begins with: its format, the program, how it was called and what it read. A
 * document is a struct with an LhDocumentHead, and a table of fields that begins with
 * LH_DOCUMENT_HEAD.
 */
#pragma once

#include "base/json/json_encode.h"
#include "framework_config/configuration.h"
#include "scenario/setup.h"

/* How the program was called, for the stamp of every artefact, and what it was asked. */
typedef struct {
    const char *const *argv;    /* NULL-terminated; argv[0] is written as "longhaul" */
    const LhScenario *scenario; /* NULL: the command takes none */
    const LhConfig *config;     /* that it is made of; NULL: none */
    const LhField *options;     /* the command's own; NULL: none */
    const void *values;         /* of these */
    unsigned not_asked;         /* flags of those that the answer does not depend on */
    const GPtrArray *inputs;    /* of LhInput *, in place of the setup's; NULL: those */
    const LhModel *model;       /* likewise, whose file was read */
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
    char *date; /* of SOURCE_DATE_EPOCH; NULL: it is not set */
    GPtrArray *argv;
    GPtrArray *inputs;      /* of LhInput * */
    char *seed;             /* as text: many readers hold numbers as doubles */
    GPtrArray *notes;       /* how the model's file was read */
    GPtrArray *link_notes;  /* what the cluster's tables contradict */
    LhDocumentAsked *asked; /* NULL: the command takes no scenario */
} LhDocumentHead;

/* Of the format @schema; @setup (NULL: there is none) is borrowed. Caller clears. */
LhDocumentHead lh_document_head(const char *schema, const LhStamp *stamp, const LhSetup *setup);
void lh_document_head_clear(LhDocumentHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhDocumentHead, lh_document_head_clear)

/* Of a document that is a stream: opens its object, and writes the head; with @asked that, too. */
void lh_document_begin(LhJsonWriter *w, const char *schema, const LhStamp *stamp,
                       const LhSetup *setup, bool asked);

extern const LhField lh_document_tool_fields[], lh_document_input_fields[],
    lh_document_asked_fields[];

/* The rows of `member`, an LhDocumentHead of the struct `of`. `words`: the format's name and NULL.
 * Those that take scenarios have LH_DOCUMENT_ASKED behind it. */
#define LH_DOCUMENT_HEAD(of, member, words) LH_DOCUMENT_HEAD_ROWS(of, member, words, IF_ANY)

/* The same of documents that always have a setup, and its seed. */
#define LH_DOCUMENT_HEAD_OF_SETUP(of, member, words)                                               \
    LH_DOCUMENT_HEAD_ROWS(of, member, words, ALWAYS)

#define LH_DOCUMENT_HEAD_ROWS(of, member, words, seeded)                                           \
    LH_FIELD_ROW(STRING, of, member.schema, "schema", ALWAYS, .choices = words),                   \
        LH_FIELD_ROW(OBJECT, of, member.tool, "tool", ALWAYS, .fields = lh_document_tool_fields),  \
        LH_FIELD_ROW(STRING, of, member.date, "date", IF_ANY,                                      \
                     .description = "SOURCE_DATE_EPOCH, if it is set."),                           \
        LH_FIELD_ROW(STRINGS, of, member.argv, "argv", ALWAYS,                                     \
                     .description = "How the program was called."),                                \
        LH_FIELD_ROW(POINTERS, of, member.inputs, "inputs", ALWAYS,                                \
                     .fields = lh_document_input_fields,                                           \
                     .description = "The files that the answer depends on."),                      \
        LH_FIELD_ROW(STRING, of, member.seed, "seed", seeded,                                      \
                     .description = "As text: many readers hold numbers as doubles."),             \
        LH_FIELD_ROW(STRINGS, of, member.notes, "notes", IF_ANY,                                   \
                     .description = "How the model's file was read, where that may surprise."),    \
        LH_FIELD_ROW(STRINGS, of, member.link_notes, "link_notes", IF_ANY,                         \
                     .description = "What measured collectives of the cluster contradict, its "    \
                                    "links or each other, and where a profile found other links "  \
                                    "than its file has.")

#define LH_DOCUMENT_ASKED(of, member)                                                              \
    LH_FIELD_ROW(POINTER, of, member.asked, "asked", IF_ANY, .fields = lh_document_asked_fields,   \
                 .description = "What was asked: absent in results of before it was told, which "  \
                                "are read as if nothing else had been given than their case and "  \
                                "command line say.")
