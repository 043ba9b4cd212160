/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario ready to run: defaults filled in, files loaded, the cluster built. Commands and
 * reports work on it.
 */
#pragma once

#include "model/model.h"
#include "program/explicit/explicit.h"
#include "scenario/documents.h"
#include "scenario/scenario.h"
#include "step/step.h"

/* Defaults: the cluster and the model, tokens per rank, and the head dimension of heads given
 * without a model. */
#define LH_DEFAULT_CLUSTER "dgx-a100-80g"
#define LH_DEFAULT_MODEL "llama-7b"
#define LH_DEFAULT_TOKENS_PER_RANK 4096
#define LH_DEFAULT_KV_CHANNELS 128

/* The training step of a setup. */
typedef struct {
    LhFramework *framework; /* borrowed: the setup's */
    /* As it is run, perhaps padded; its texts and layers belong to the setup's model. */
    LhModel model;
    LhStepParams params; /* with the first schedule, or none */
    LhDocuments *drawn;  /* of --document-distribution; NULL: none */
} LhSetupStep;

/* A file that the result depends on. */
typedef struct {
    /* The field of scenarios that names the file; "device" (named by the cluster); or
     * "scenario". */
    const char *of;
    char *path; /* as named; "models/llama-7b.json" for one that comes with longhaul */
    char *sha256;
} LhInput;

typedef struct {
    const LhScenario *scenario; /* borrowed */
    LhModel *model;             /* NULL for an explicit program */
    LhDocuments *documents;     /* of --document-lengths; NULL: none */
    LhTopology *topology;       /* with the profile laid over it */
    LhDevice *device;           /* likewise */
    bool cluster_defaulted;     /* no --cluster was given */
    bool model_defaulted;       /* the scenario gives no model and no sizes */
    LhNetwork network;
    LhProgramParams params; /* of the attention module; in a step, of the attention of one layer */
    LhSetupStep *step;      /* NULL: one attention module */
    LhFramework *framework; /* of the step, or the one named; NULL: none */
    LhNetworkModel network_model;
    LhCollectiveModel collectives;
    LhCostMode cost;
    LhProgram *program; /* of --schedule-file; NULL: none */
    /* Of const LhSchedule *. The named ones; else, without an explicit program, all for this kind
     * of attention. */
    GPtrArray *schedules;
    uint64_t asked_length; /* sequence length before rounding; 0: not rounded */
    /* Unnamed schedules dropped since they are for the other kind of attention. */
    guint left_out;
    GPtrArray *inputs; /* of LhInput * */
} LhSetup;

/* @scenario must outlive the setup. Caller frees. */
LhSetup *lh_setup_new(const LhScenario *scenario, GError **error);
/* The same for the cluster alone, with all its ranks and without model, program or schedule. */
LhSetup *lh_setup_new_cluster(const LhScenario *scenario, GError **error);
void lh_setup_free(LhSetup *setup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSetup, lh_setup_free)

/* Checks that the setup has one program, one schedule or one pair; else LH_ERROR_INPUT. */
bool lh_setup_check_one(const LhSetup *setup, GError **error);

/* The documents of the scenario; NULL without error if it names none. Caller frees. */
LhDocuments *lh_setup_load_documents(const LhScenario *scenario, GError **error);

/* The schedules that the scenario names (borrowed), or all. Caller unrefs. */
GPtrArray *lh_setup_schedules(const LhScenario *scenario, GError **error);

/* The explicit program of the scenario; NULL without error if it names none. Caller frees. */
LhProgram *lh_setup_load_program(const LhScenario *scenario, GError **error);
