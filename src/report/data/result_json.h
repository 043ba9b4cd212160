/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results for machines: longhaul.result/3.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/compare.h"
#include "framework_config/configuration.h"

/* How the program was called, for the stamp of every artefact, and what it was asked
 * (query_stamp.h). */
typedef struct {
    const char *const *argv;    /* NULL-terminated; argv[0] is written as "longhaul" */
    const LhScenario *scenario; /* NULL: the command takes none */
    const LhConfig *config;     /* that it is made of; NULL: none */
    const LhField *options;     /* the command's own; NULL: none */
    const void *values;         /* of these */
    unsigned not_asked;         /* flags of those that the answer does not depend on */
    const GPtrArray *inputs;    /* of LhInput *, in place of the setup's; NULL: those */
} LhStamp;

#define LH_RESULT_SCHEMA "longhaul.result/3"

/* The document of a comparison, or of one run as a comparison of one schedule. */
void lh_result_json(const LhSetup *setup, const LhComparison *comparison, const LhStamp *stamp,
                    GString *out);

/* Opens the document's object and writes what every one has: schema, tool, argv, inputs, seed.
 * @setup may be NULL. */
void lh_stamp_json(LhJsonWriter *w, const char *schema, const LhStamp *stamp, const LhSetup *setup);

/* "notes", if there are any of how the model's file was read. Part of the above where there is a
 * setup. */
void lh_notes_json(LhJsonWriter *w, const LhModel *model);

/* The members saved_fraction_low, saved_fraction_high and edit of the open object. */
void lh_what_if_more_json(LhJsonWriter *w, const LhTopology *topology, const LhWhatIf *what_if);

/* The members op, layer, micro_batch and phase of the open object; null before the first op. */
void lh_memory_op_json(LhJsonWriter *w, const LhMemoryOp *op);
