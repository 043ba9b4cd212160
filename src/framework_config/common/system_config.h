/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration as it is read: what a training system's settings are to a prediction (the table
 * of each system), and what has been made of them. A configuration has two parts: the question
 * (model, sequence, batch, element type, mask, and what the system can do), and the way in which it
 * is answered so far (parallel sizes, schedule of attention, recomputation, sharding).
 */
#pragma once

#include "base/settings/settings_file.h"
#include "model/framework.h"

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

/* What is taken from a configuration. */
typedef enum {
    LH_CONFIG_QUESTION = 1 << 0,
    LH_CONFIG_WAY = 1 << 1,      /* all but the schedule of attention */
    LH_CONFIG_SCHEDULE = 1 << 2, /* and that */
    LH_CONFIG_LIMITS = 1 << 3,   /* schedules and policies are those that the system has */
} LhConfigParts;

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

/* One setting of a recommendation. */
typedef struct {
    char *line;    /* as it stands in such a file; "[parallelism]" opens a table */
    char *was;     /* what the file has in its place; NULL: the same, or nothing */
    bool added;    /* the file has no such setting */
    bool take_out; /* `line` is to go */
} LhConfigWord;

typedef enum {
    LH_KEY_READ,      /* the system's take() reads it */
    LH_KEY_QUESTION,  /* the scenario's field of the question has its value */
    LH_KEY_WAY,       /* likewise, of the way */
    LH_KEY_FRAMEWORK, /* it says what a value of the framework's file is: `field` has, for each of
                         its values, "VALUE:KEY=TEXT,KEY=TEXT", with spaces between them */
    LH_KEY_NOT_MODELLED, /* with another value than those of `field` the system does what is not
                            predicted: a note says so, with `reason` */
    LH_KEY_NOTHING,      /* nothing that is predicted depends on it */
} LhConfigKeyKind;

typedef struct {
    const char *name; /* of a setting, in lower case and with '-' for '_' */
    LhConfigKeyKind kind;
    const char *field;  /* of the scenario, where its value is the field's; or see the kinds: of
                           LH_KEY_NOT_MODELLED "VALUE,VALUE", which are as predicted */
    const char *reason; /* why it is not modelled: a half-sentence behind the name and a colon */
} LhConfigKey;

/* Rows of these tables. */
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

/* Another name of a setting: the end of its path, in lower case and with '-' for '_'. */
typedef struct {
    const char *path, *name;
} LhConfigAlias;

struct _LhConfigSystem {
    const char *name;
    const char *framework; /* of frameworks/ */
    bool last_word;        /* settings are known by the last word of their path */
    const LhConfigKey *keys;
    const LhConfigSystem *base;               /* whose keys it has beside its own; NULL: none */
    const LhConfigAlias *aliases;             /* up to one without a name; NULL: there are none */
    void (*prepare)(LhSettingsFile *entries); /* works out values, before they are read; or NULL */
    const char *(*framework_of)(const LhConfig *config); /* another than `framework`; or NULL */
    const char *const *schedules;                        /* that it has */
    /* Reads what takes more than a table, adds notes. */
    bool (*take)(LhConfig *config, GError **error);
    bool (*allows)(const LhConfigWay *way);
    /* Appends the words of a way by lh_config_say() and lh_config_unsay(). */
    void (*say)(const LhConfig *config, const LhConfigWay *way, GPtrArray *words);
};

/* Before the path of a setting of DeepSpeed's file that another file names. */
#define LH_CONFIG_BESIDE "deepspeed_config."
