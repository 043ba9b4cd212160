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

/* Called now and then by long runs: false aborts. */
typedef bool (*LhProgress)(void *data, const char *what, uint64_t events, LhTime now_ps);

typedef struct {
    LhProgress progress; /* may be NULL */
    void *progress_data;
    LhTimelineSink timeline; /* may be NULL */
    void *timeline_data;
    uint32_t timeline_stride; /* as LhSimParams has it */
    LhMemorySink memory;      /* may be NULL */
    void *memory_data;
    LhLinkSink links; /* may be NULL */
    void *links_data;
    bool path;       /* find the critical path */
    bool precedence; /* and keep what waits for what, as LhSimParams says */
    /* How much of its time an op takes, likewise; may be NULL. */
    double (*time_share)(void *data, uint32_t rank, uint32_t op);
    void *time_share_data;
    const _Atomic LhTime *limit_ps; /* of simulated time, as LhSimParams says; may be NULL */
    const GArray *tails;            /* likewise */
    LhTime *ended_ps;               /* likewise */
} LhHooks;

/* Why the cluster @text, "NAME:NODES", cannot have what @scenario says of NICs and links, in the
 * words of the error; NULL: it can, or there is no such cluster. Caller frees. */
char *lh_setup_refusal_of_cluster(const LhScenario *scenario, const char *text);

/* Whether the cluster @text says how many nodes it has: "NAME:NODES". */
bool lh_setup_cluster_has_nodes(const char *text);

/* @scenario must outlive the setup. Caller frees. */
LhSetup *lh_setup_new(const LhScenario *scenario, GError **error);
/* Likewise of its cluster alone, with no model, program or schedule: all of its ranks. */
LhSetup *lh_setup_new_cluster(const LhScenario *scenario, GError **error);
void lh_setup_free(LhSetup *setup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSetup, lh_setup_free)

/* What a scenario names, loaded. */
typedef struct {
    const LhModel *model;
    const LhDocuments *documents; /* NULL: one document */
    uint32_t gpus_per_node;       /* 0: unknown */
} LhSources;

/* What the scenario says of the program, for @ranks ranks in all. Its documents are borrowed. */
bool lh_setup_params(const LhScenario *scenario, const LhSources *from, uint32_t ranks,
                     LhProgramParams *params, GError **error);

/* Whether attention is linear: as was said, else as the model named, else as the schedules named
 * have it, linear if one of them has nothing else and all have that, else as @model, the default.
 */
bool lh_setup_is_linear(const LhScenario *scenario, const LhModel *model);

/* Whether the mask is the model's sliding window: all its layers of softmax attention have it, the
 * sequence is longer, and nothing was said of the mask. */
bool lh_setup_takes_window(const LhScenario *scenario, const LhModel *model, const LhAttention *a);

/* How collectives of @ranks ranks run under @network_model, as the scenario says or by default. The
 * setup's topology is there. */
LhCollectiveModel lh_setup_collectives(const LhSetup *setup, LhNetworkModel network_model,
                                       uint32_t ranks);

/* The number of ranks in all that options of the scenario ask for (--grid 4x8: 32 in every group);
 * 0 if none does. */
bool lh_setup_ranks(const LhScenario *scenario, uint64_t *ranks, GError **error);

/* Whether one program, or one schedule or pair, is in question; else LH_ERROR_INPUT. */
bool lh_setup_check_one(const LhSetup *setup, GError **error);

/* Bytes of the model's weights in the element type of the run; 0: not known, for a program of its
 * own or heads that are not the model's. UINT64_MAX: at least so many. */
uint64_t lh_setup_weight_bytes(const LhSetup *setup);

/* The least of them that one of the ranks holds, however they are cut. */
uint64_t lh_setup_weight_bytes_per_rank(const LhSetup *setup);

/*
 * What a rank may hold. Of a program that accounts for everything: what is usable of a GPU's
 * memory. Of attention alone, of which only what surely does not fit is refused: all of it but the
 * share above. 1 if nothing is left; 0: no limit, where the device does not count.
 */
uint64_t lh_setup_memory_limit_bytes(const LhSetup *setup, const LhProgram *program);

/* The model that the scenario names, or the default; where sizes of attention are given and no
 * model, they alone are it. Caller frees. */
LhModel *lh_setup_load_model(const LhScenario *scenario, GError **error);

/* Whether sizes of attention are given; whether nothing is said of a model, so that the default is
 * taken, which every output says first. */
bool lh_setup_has_sizes(const LhScenario *scenario);
bool lh_setup_takes_default_model(const LhScenario *scenario);

/* The documents of the scenario; NULL without error if it names none. Caller frees. */
LhDocuments *lh_setup_load_documents(const LhScenario *scenario, GError **error);

/* The schedules that the scenario names (borrowed), or all. Caller unrefs. */
GPtrArray *lh_setup_schedules(const LhScenario *scenario, GError **error);

/*
 * The program of the setup with @schedule: one attention module, or a whole step with it. A step of
 * a model that has layers of softmax and of linear attention takes the other kind's from the
 * scenario. Refusals are LH_ERROR_NO. Caller frees.
 */
LhProgram *lh_setup_program(const LhSetup *setup, const LhSchedule *schedule, GError **error);

/* What the program of a step is made with. In *@model, which must live as long as the parameters,
 * the model as it is run with @schedule; all but its heads and width are the setup's. */
LhStepParams lh_setup_step_params(const LhSetup *setup, const LhSchedule *schedule, LhModel *model);

/* The same of a scenario that describes a step, of which files are loaded already, for @ranks
 * ranks.
 */
LhProgram *lh_setup_step_program(const LhScenario *scenario, const LhSources *from,
                                 const LhSchedule *schedule, uint32_t ranks, GError **error);

/* The explicit program of the scenario; NULL without error if it names none. Caller frees. */
LhProgram *lh_setup_load_program(const LhScenario *scenario, GError **error);

/* What @program is simulated with on the setup's cluster, without hooks; all of it is borrowed. */
LhSimParams lh_setup_sim_params(const LhSetup *setup, const LhProgram *program);

/* Plays @program on the setup's cluster, or on @network and @device where they are not NULL. Caller
 * frees. */
LhSimResult *lh_setup_simulate(const LhSetup *setup, const LhProgram *program,
                               const LhNetwork *network, const LhDevice *device,
                               const LhHooks *hooks, GError **error);
