/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to simulate or verify: a scenario file (longhaul.scenario/1), command-line options, or
 * options over a file. A scenario contains only what was given; lh_setup_new() adds the defaults
 * and loads the files that it names.
 */
#pragma once

#include "base/json/json.h"
#include "scenario/constant.h"
#include "scenario/scenario_fields.h"
#include "sched/schedule.h"
#include "sim/network/topology_change.h"
#include "sim/sim.h"

/* Limits of the field table, which is built at start. An assertion at start checks the number of
 * options, the compiler the number of fields. */
#define LH_SCENARIO_OPTIONS_MAX 64    /* of schedules */
#define LH_SCENARIO_FIELDS_MAX 256    /* the options of schedules included */
#define LH_TOKENS_MAX 1099511627776.0 /* tokens of a sequence: 2^40 */

/* A training framework's configuration format; see configuration.h. */
struct _LhConfigSystem;

/* Value given for an option of schedules, by its type. */
typedef union {
    bool flag;
    uint64_t count;
    int choice;    /* -1: not given */
    char *grid;    /* "ROWSxCOLUMNS" */
    GArray *sizes; /* of uint64_t */
} LhOptionInput;

/* A field that a sweep varies. */
typedef struct {
    const LhField *field; /* of lh_scenario_options() */
    /* Of char *, distinct: as written on the command line; flags are "true" or "false". */
    GPtrArray *values;
} LhScenarioAxis;

/* Absent values are 0 for numbers, -1 for choices, NULL for strings and lists. */
typedef struct {
    int schema;
    char *description;
    GPtrArray *schedule; /* of char *: names */
    char *schedule_file;
    bool unproven;
    char *cluster;           /* NAME or NAME:NODES */
    LhTopologyChange change; /* changes to the topology file */
    uint64_t ranks;
    char *model;
    char *assume;          /* the model type to read its config.json as */
    GPtrArray *ignore_key; /* of char *: keys of config.json to ignore */
    uint64_t seq_length;
    bool round_seq_length;
    uint64_t num_attention_heads;
    uint64_t num_query_groups;
    uint64_t kv_channels;
    uint64_t micro_batch_size;
    int dtype; /* LhDtype */
    int mask;  /* 0 causal, 1 full */
    uint64_t window_size;
    char *document_lengths;      /* a file */
    char *document_distribution; /* of lengths */
    int attention;               /* 0 softmax, 1 linear */
    double linear_decay;
    int pass;        /* LhPass - 1 */
    int cost;        /* LhCostMode */
    int network;     /* LhNetworkModel */
    int collectives; /* LhCollectiveModel */
    uint64_t data_parallel_size;
    bool step; /* a whole training step, not one attention module */
    char *framework;
    char *attention_kernel; /* library, or kernel whose curves time all forward attention */
    char *tensor_model_parallel_size; /* a number, or "all" */
    uint64_t context_parallel_size;
    uint64_t pipeline_model_parallel_size;
    uint64_t num_layers_per_virtual_pipeline_stage;
    bool account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split;
    int pipeline_schedule; /* LhPipelineOrder */
    uint64_t num_micro_batches;
    int shard;                       /* LhShard */
    int checkpoint;                  /* LhCheckpoint */
    char *cpu_offloading_num_layers; /* a number, or "all" */
    bool optimizer_cpu_offload;
    double optimizer_offload_fraction;
    bool overlap_cpu_optimizer_d2h_h2d;
    bool offload_param;
    char *recompute_modules;
    int recompute_method; /* LhRecomputeMethod */
    uint64_t recompute_num_layers;
    char *loss;            /* a kind of loss, perhaps with :ROWS */
    char *tiled_mlp;       /* rows, or "auto" */
    int pad;               /* LhPad */
    int main_params_dtype; /* LhMainParams */
    int main_grads_dtype;  /* LhDtype */
    int exp_avg_dtype;     /* LhExpAvg */
    uint64_t lora_rank;    /* 0: no LoRA */
    char *lora_targets;
    int optimizer; /* LhOptimizer */
    int muon_tp_mode, muon_scale_mode, muon_coefficient_type;
    uint64_t muon_num_ns_steps;
    double muon_momentum, muon_extra_scale_factor;
    bool muon_nesterov;
    double jitter;
    uint64_t seed;
    GArray *straggler;  /* of LhStraggler */
    GArray *link_fault; /* of LhLinkFault */
    char *profile;
    LhOptionInput options[LH_SCENARIO_OPTIONS_MAX]; /* as lh_schedule_options() has them */
    bool serving; /* kernels are timed one at a time in a serving system; not a field of files */
    /* What a framework's configuration gives beside fields; not fields of files. */
    /* Sequences of a step, used where num_micro_batches is not given. */
    uint64_t global_batch_size;
    /* Of char *, "ddp.overlap=yes": override values of the framework file; NULL: none. */
    GPtrArray *framework_values;
    char *model_text; /* longhaul.model/1: the model if none is named */
    char *model_file; /* its name in messages */
    /* Restricts the search to what this framework supports; NULL: no restriction. */
    const struct _LhConfigSystem *system;
    LhConstants constants; /* override the data files' values; not a field of files */
    LhFieldLater lists[LH_SCENARIO_FIELDS_MAX]; /* "sweep": where its lists are in the file */
    GPtrArray *axes; /* of LhScenarioAxis *: the lists of "sweep"; NULL: none */
    /* Origin of the values. */
    char *path;                             /* of the file; NULL: options only */
    LhJson *json;                           /* the file, for messages; NULL: options only */
    bool as_option[LH_SCENARIO_FIELDS_MAX]; /* field i was given on the command line */
    /* Prefix of errors about field i if another file gave it: "file:line:column: error: ...". */
    char *places[LH_SCENARIO_FIELDS_MAX];
} LhScenario;

/* What is padded where the tensor-parallel size does not divide the heads. */
typedef enum {
    LH_PAD_HEADS, /* the attention projections */
    LH_PAD_WIDTH, /* the whole model: its hidden size follows the heads */
} LhPad;

/* An empty scenario: nothing given. Caller frees. */
LhScenario *lh_scenario_new(void);

/*
 * Reads @name: a name (a file of scenarios/) or a path. Paths inside a file are relative to it. A
 * longhaul.schedule/1 file is read as a scenario whose only field is that schedule file. Caller
 * frees.
 */
LhScenario *lh_scenario_load(const char *name, GError **error);
LhScenario *lh_scenario_parse(const char *file, const char *text, gsize length, GError **error);
void lh_scenario_free(LhScenario *scenario);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhScenario, lh_scenario_free)

/* Sets an option; the first value of a list option replaces the file's list. */
bool lh_scenario_set(LhScenario *scenario, const LhField *field, const char *text, GError **error);

/* Sets a field from a setting of another file. Errors about the field begin with @place, which is
 * taken over. */
bool lh_scenario_set_from(LhScenario *scenario, const LhField *field, const char *text, char *place,
                          GError **error);

/* Resets the field named @name to not given. */
void lh_scenario_forget(LhScenario *scenario, const char *name);

/* Copies the scenario, with every given value as an option, so that messages no longer name files.
 * Caller frees. */
LhScenario *lh_scenario_copy(const LhScenario *scenario);

/* Appends every given value as a line "name=value". Equal scenarios have equal lines. */
void lh_scenario_lines(const LhScenario *scenario, GString *out);

/* Replaces the value of the field named @field by @value, which must be valid for it. */
void lh_scenario_replace(LhScenario *scenario, const char *field, const char *value);

/* The axes that a sweep varies: those that no option has fixed. Of LhScenarioAxis *, borrowed;
 * caller unrefs. */
GPtrArray *lh_scenario_axes(const LhScenario *scenario);

/* Sets @scenario, a copy of the one that owns @axis, to value @index of the axis. */
void lh_scenario_choose(LhScenario *scenario, const LhScenarioAxis *axis, guint index);

/* True if the field was given, in the file or as an option. @name is the field's. */
bool lh_scenario_has(const LhScenario *scenario, const char *name);

/* True if the field named @name was given as an option; true if any was. */
bool lh_scenario_has_option(const LhScenario *scenario, const char *name);
bool lh_scenario_has_options(const LhScenario *scenario);

/* The name of a given field that an explicit program defines itself; NULL: none. */
const char *lh_scenario_program_field(const LhScenario *scenario);

/*
 * Sets @error (LH_ERROR_INPUT) with the place where the field named @name was given:
 * "file:line:column: error: ..." or "--option: ...". Returns false.
 */
bool lh_scenario_error(const LhScenario *scenario, const char *name, GError **error,
                       const char *format, ...) G_GNUC_PRINTF(4, 5);
