/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario made ready: defaults filled in, files loaded, the cluster built. What commands and
 * reports work on.
 */
#pragma once

#include "model/model.h"
#include "program/explicit/explicit.h"
#include "scenario/documents.h"
#include "scenario/scenario.h"
#include "step/step.h"

/* The cluster and the model of a scenario that names none. */
#define LH_DEFAULT_CLUSTER "dgx-a100-80g"
#define LH_DEFAULT_MODEL "llama-7b"
#define LH_DEFAULT_TOKENS_PER_RANK 4096
#define LH_DEFAULT_KV_CHANNELS 128 /* of heads that are given without a model */

/* A training step made ready. */
typedef struct {
    LhFramework *framework; /* borrowed: the setup's */
    LhModel model; /* as it is run, perhaps padded; texts and layers are the setup's model's */
    LhStepParams params; /* of its first schedule, or of none */
} LhSetupStep;

/* A file that the answer depends on. */
typedef struct {
    /* What it is the file of: a field of scenarios that names it, "device", which the cluster does,
     * or "scenario". */
    const char *of;
    char *path; /* as named; "models/llama-7b.json" for one that comes with longhaul */
    char *sha256;
} LhInput;

typedef struct {
    const LhScenario *scenario; /* borrowed */
    LhModel *model;             /* NULL for an explicit program */
    LhDocuments *documents;     /* NULL: one document */
    LhTopology *topology;       /* with the profile laid over it */
    LhDevice *device;           /* likewise */
    bool cluster_defaulted;     /* no --cluster was given */
    bool model_defaulted;       /* nothing was said of a model */
    LhNetwork network;
    LhProgramParams params; /* of a step: of one of its layers' attention */
    LhSetupStep *step;      /* NULL: one attention module */
    LhFramework *framework; /* of a step, or one that was named; NULL: none */
    LhNetworkModel network_model;
    LhCollectiveModel collectives;
    LhCostMode cost;
    LhProgram *program; /* of --schedule-file; NULL: none */
    /* Of const LhSchedule *: those named; else, without a program, all for this kind of attention.
     */
    GPtrArray *schedules;
    uint64_t asked_length; /* of the sequence, before it was rounded; 0: it was not */
    guint left_out;        /* schedules for the other kind of attention, when none is named */
    GPtrArray *inputs;     /* of LhInput * */
} LhSetup;

/* @scenario must outlive the setup. Caller frees. */
LhSetup *lh_setup_new(const LhScenario *scenario, GError **error);
/* Likewise of its cluster alone, with no model, program or schedule: all of its ranks. */
LhSetup *lh_setup_new_cluster(const LhScenario *scenario, GError **error);
void lh_setup_free(LhSetup *setup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSetup, lh_setup_free)

/* Whether one program, or one schedule or pair, is in question; else LH_ERROR_INPUT. */
bool lh_setup_check_one(const LhSetup *setup, GError **error);

/* The documents of the scenario; NULL without error if it names none. Caller frees. */
LhDocuments *lh_setup_load_documents(const LhScenario *scenario, GError **error);

/* The schedules that the scenario names (borrowed), or all. Caller unrefs. */
GPtrArray *lh_setup_schedules(const LhScenario *scenario, GError **error);

/* The explicit program of the scenario; NULL without error if it names none. Caller frees. */
LhProgram *lh_setup_load_program(const LhScenario *scenario, GError **error);
