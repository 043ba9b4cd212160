/*
 * Configurations of training systems: what a file of Megatron-LM (arguments, or YAML), torchtitan
 * (TOML) or DeepSpeed (JSON) asks for, in the fields of a scenario; and a way of training in that
 * system's words.
 *
 * A configuration has two parts: the question (model, sequence, batch, element type, mask, and what
 * the system can do), and the way in which it is answered so far (parallel sizes, schedule of
 * attention, recomputation, sharding). Settings that no time and no memory depends on are known by
 * name and counted; every other one that is not understood is listed.
 */
#pragma once

#include "base/settings/settings_file.h"
#include "model/framework.h"
#include "scenario/scenario.h"

/* What a system can be told of; one for each, in a file of its own. */
typedef struct _LhConfigSystem LhConfigSystem;

typedef struct {
    const LhConfigSystem *system;
    LhSettingsFile *entries;
    GPtrArray *settings;         /* private */
    GPtrArray *framework_values; /* of char *: where it differs from the framework's file */
    const char *framework_name;  /* of frameworks/; static */
    bool arguments;              /* flags stand alone, as on a command line */
    LhFramework *framework;      /* that file; NULL: there is none */
    uint64_t global_batch_size;  /* sequences of a step; 0: not said */
    uint64_t processes;          /* that the file starts; 0: not said */
    char *model;                 /* longhaul.model/1, made of what the file says; NULL: nothing */
    char *no_model;              /* what is missing of a model; NULL: nothing */
    const LhSettingsEntry *no_model_at; /* where; NULL: the file as a whole */
    GPtrArray *lacks, *unsaid;          /* private: what another file says, and what none does */
    GPtrArray *names;                   /* private: of char *, by entry */
    GPtrArray *notes;                   /* of char *: "file:line:column: warning: ..." */
    GPtrArray *unknown;                 /* of const LhSettingsEntry *: not understood */
    GPtrArray *elsewhere; /* likewise: understood, and as the framework's file has it */
    guint read, without_effect, not_modelled; /* settings */
} LhConfig;

/* Reads a file; its ending says of which system it is: .toml, .json, .yaml or .yml, else arguments.
 * @variables: of char *, "NAME=VALUE", what variables of a script are; NULL: none. Caller frees. */
LhConfig *lh_config_load(const char *path, const GPtrArray *variables, GError **error);
/* As if it stood in a file of this name. */
LhConfig *lh_config_parse(const char *file, const char *text, gsize length,
                          const GPtrArray *variables, GError **error);
void lh_config_free(LhConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhConfig, lh_config_free)

/* "Megatron-LM". */
const char *lh_config_system_name(const LhConfig *config);

/* What is taken from a configuration. */
typedef enum {
    LH_CONFIG_QUESTION = 1 << 0,
    LH_CONFIG_WAY = 1 << 1,      /* all but the schedule of attention */
    LH_CONFIG_SCHEDULE = 1 << 2, /* and that */
    LH_CONFIG_LIMITS = 1 << 3,   /* schedules and policies are those that the system has */
} LhConfigParts;

/* Sets these fields of @scenario, which is a step then. Messages about them name the file's line.
 */
bool lh_config_apply(const LhConfig *config, unsigned parts, LhScenario *scenario, GError **error);

/* Refuses (LH_ERROR_INPUT) a file that says no model, if @scenario, made of it, has none either:
 * what is missing is named. */
bool lh_config_check_model(const LhConfig *config, const LhScenario *scenario, GError **error);

/* Refuses (LH_ERROR_INPUT) a file that leaves to another file how it trains, if that is asked and
 * neither an option nor a value of a sweep says it. */
bool lh_config_check_way(const LhConfig *config, unsigned parts, const LhScenario *scenario,
                         GError **error);

/* Adds notes on what is taken because neither the file nor an option says it. */
void lh_config_note_unsaid(LhConfig *config, unsigned parts, const LhScenario *scenario);

/* ---- a way in the system's words ---- */

/* A way of training a model. */
typedef struct {
    uint32_t tensor, context, data, pipeline;
    int shard, checkpoint, order; /* LhShard, LhCheckpoint, LhPipelineOrder */
    uint32_t chunks, layers_of_chunk;
    bool embedding_counts, loss_counts;
    uint32_t micro_batch_size, micro_batches;
    uint64_t seq_length;
    const char *schedule;   /* of attention, if context > 1 */
    uint32_t heads, others; /* te-a2a-p2p: ranks that exchange heads, and groups of them */
} LhConfigWay;

/* Whether the system can be told to do this: everything but the schedule, which the scenario names.
 */
bool lh_config_allows(const LhConfigSystem *system, const LhConfigWay *way);

/* One setting of a recommendation. */
typedef struct {
    char *line;    /* as it stands in such a file; "[parallelism]" opens a table */
    char *was;     /* what the file has in its place; NULL: the same, or nothing */
    bool added;    /* the file has no such setting */
    bool take_out; /* `line` is to go */
} LhConfigWord;

/* What the file has to say for @way, in its order: of LhConfigWord *. Caller unrefs. */
GPtrArray *lh_config_words(const LhConfig *config, const LhConfigWay *way);
