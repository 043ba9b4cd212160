/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A framework's configuration: the meaning of each setting (a key table per framework), and the
 * results of reading it. A configuration has two parts: the question (model, sequence, batch,
 * element type, mask, and what the framework supports), and the way of training (parallel sizes,
 * attention schedule, recomputation, sharding).
 */
#pragma once

#include "base/settings/settings_file.h"
#include "model/framework.h"
#include "model/recomputation.h"

/* A framework and its configuration format; one per framework, each in a file of its own. */
typedef struct _LhConfigSystem LhConfigSystem;

typedef struct {
    const LhConfigSystem *system;
    LhSettingsFile *entries;
    GPtrArray *settings;                /* private */
    GPtrArray *framework_values;        /* of char *: values that differ from the framework file */
    const char *framework_name;         /* file of frameworks/; static */
    bool arguments;                     /* flags have no value, as on a command line */
    LhFramework *framework;             /* that file; NULL: none */
    uint64_t global_batch_size;         /* sequences of a step; 0: not given */
    uint64_t processes;                 /* that the launcher starts; 0: not given */
    char *model;                        /* longhaul.model/1, built from the settings; NULL: none */
    char *no_model;                     /* what is missing for a model; NULL: nothing */
    const LhSettingsEntry *no_model_at; /* its place; NULL: the whole file */
    /* Private: settings that another file would state, and defaults. */
    GPtrArray *lacks, *unsaid;
    GPtrArray *names;     /* private: of char *: name of each entry */
    GPtrArray *notes;     /* of char *: "file:line:column: warning: ..." */
    GPtrArray *unknown;   /* of const LhSettingsEntry *: not understood */
    GPtrArray *elsewhere; /* likewise: understood, and equal to the framework file */
    guint read, without_effect, not_modelled; /* numbers of settings */
} LhConfig;

/* Parts of a configuration to apply. */
typedef enum {
    LH_CONFIG_QUESTION = 1 << 0,
    LH_CONFIG_WAY = 1 << 1,      /* all but the attention schedule */
    LH_CONFIG_SCHEDULE = 1 << 2, /* the attention schedule */
    LH_CONFIG_LIMITS = 1 << 3,   /* restrict schedules and policies to those of the framework */
} LhConfigParts;

/* A way of training a model. */
typedef struct {
    uint32_t tensor, context, data, pipeline;
    int shard, checkpoint, order; /* LhShard, LhCheckpoint, LhPipelineOrder */
    LhRecompute recompute;
    uint32_t chunks, layers_of_chunk;
    bool embedding_counts, loss_counts;
    uint32_t micro_batch_size, micro_batches;
    uint64_t seq_length;
    const char *schedule; /* attention schedule, if context > 1 */
    /* te-a2a-p2p: ranks of a group that exchange heads, and number of groups. */
    uint32_t heads, others;
} LhConfigWay;

/* One line of a recommendation. */
typedef struct {
    char *line;    /* as written in the file; "[parallelism]" opens a table */
    char *was;     /* the file's present value; NULL: the same, or none */
    bool added;    /* the file does not have this setting */
    bool take_out; /* remove `line` */
} LhConfigWord;

typedef enum {
    LH_KEY_READ,     /* read by the framework's take() */
    LH_KEY_QUESTION, /* sets the scenario's field, part of the question */
    LH_KEY_WAY,      /* sets the scenario's field, part of the way of training */
    /* Sets values of the framework file: `field` lists them for each value of the setting,
     * "VALUE:KEY=TEXT,KEY=TEXT", space-separated. */
    LH_KEY_FRAMEWORK,
    /* A value other than those of `field` is not modelled: a note with `reason` is added. */
    LH_KEY_NOT_MODELLED,
    LH_KEY_NOTHING, /* has no effect on predictions */
} LhConfigKeyKind;

typedef struct {
    const char *name; /* of the setting, in lower case and with '-' for '_' */
    LhConfigKeyKind kind;
    /* The scenario's field that gets the value; LH_KEY_FRAMEWORK: see there; LH_KEY_NOT_MODELLED:
     * "VALUE,VALUE", the values that are as predicted. */
    const char *field;
    const char *reason; /* what is predicted instead: a half-sentence after the name and a colon */
} LhConfigKey;

/* Macros for rows of these tables. */
#define LH_CONFIG_READ(name)                                                                       \
    {                                                                                              \
        name, LH_KEY_READ, NULL, NULL                                                              \
    }
#define LH_CONFIG_VALUE(name, effects)                                                             \
    {                                                                                              \
        name, LH_KEY_FRAMEWORK, effects, NULL                                                      \
    }
#define LH_CONFIG_NOT(name, as_predicted, reason)                                                  \
    {                                                                                              \
        name, LH_KEY_NOT_MODELLED, as_predicted, reason                                            \
    }
#define LH_CONFIG_NOTHING(name)                                                                    \
    {                                                                                              \
        name, LH_KEY_NOTHING, NULL, NULL                                                           \
    }

/* Another spelling of a setting: the end of its path, in lower case and with '-' for '_'. */
typedef struct {
    const char *path, *name;
} LhConfigAlias;

struct _LhConfigSystem {
    const char *name;
    const char *framework; /* of frameworks/ */
    bool last_word;        /* settings are known by the last component of their path */
    const LhConfigKey *keys;
    const LhConfigSystem *base;               /* a framework whose keys it has, too; NULL: none */
    const LhConfigAlias *aliases;             /* up to one without a name; NULL: none */
    void (*prepare)(LhSettingsFile *entries); /* computes values before they are read; or NULL */
    /* Chooses another file than `framework`; or NULL. */
    const char *(*framework_of)(const LhConfig *config);
    const char *const *schedules; /* schedules that it supports */
    /* Reads settings that need more than a table row, and adds notes. */
    bool (*take)(LhConfig *config, GError **error);
    bool (*allows)(const LhConfigWay *way);
    /* Appends the settings of a way of training, with lh_config_say() and lh_config_unsay(). */
    void (*say)(const LhConfig *config, const LhConfigWay *way, GPtrArray *words);
};

/* Prefix of settings from a DeepSpeed file that another file names. */
#define LH_CONFIG_BESIDE "deepspeed_config."
