/*
 * Private to configuration*.c: what a system's file says of it, and what these share.
 */
#pragma once

#include "framework_config/configuration.h"

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

extern const LhConfigKey lh_config_megatron_keys[];
extern const LhConfigKey lh_config_launch_keys[]; /* beside those of any system */
extern const LhConfigSystem lh_config_megatron, lh_config_torchtitan, lh_config_deepspeed,
    lh_config_trainer, lh_config_nemo;
extern const char *const lh_config_megatron_schedules[];

/* Before the path of a setting of DeepSpeed's file that another file names. */
#define LH_CONFIG_BESIDE "deepspeed_config."

/* Lays the files that settings name under them; refuses one without which nothing can be said. */
bool lh_config_take_beside(LhSettingsFile *entries, GError **error);

/* The stage of ZeRO, and what is not modelled of it; @shard stays if it is not said. */
bool lh_config_deepspeed_zero(LhConfig *config, int *shard, GError **error);

/* How many processes start; what contradicts itself is noted. */
void lh_config_launch(LhConfig *config);

/* Words of Megatron-LM for all but how data-parallel ranks shard. */
void lh_config_megatron_say_sizes(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);

/* All of them; NULL-terminated. */
extern const LhConfigSystem *const lh_config_systems[];

/* The last setting of this name, or NULL. Null counts as absent. */
const LhSettingsEntry *lh_config_entry(const LhConfig *config, const char *name);

/* These read a setting, if it is there, and leave @value alone if it is not. */
bool lh_config_count(const LhConfig *config, const char *name, uint64_t *value, GError **error);
bool lh_config_flag(const LhConfig *config, const char *name, bool *value, GError **error);
bool lh_config_word(const LhConfig *config, const char *name, const char **value, GError **error);

/* Of @word in the NULL-terminated @words; -1: it is none of them. */
int lh_config_index(const char *const *words, const char *word);

/* Sets field @field of the scenario to @value (NULL: a flag) for the sake of @entry. */
void lh_config_set(LhConfig *config, const LhSettingsEntry *entry, unsigned part, const char *field,
                   const char *value);
void lh_config_set_count(LhConfig *config, const LhSettingsEntry *entry, unsigned part,
                         const char *field, uint64_t value);

/* The model of models/ that a published name is ("org/Name-8B-Instruct"), without who published it
 * and what it was tuned for. Caller frees; NULL: none. */
char *lh_config_model_of(const char *published);

/* What is missing of a model, as a half-sentence: "its vocab-size is not said; add --vocab-size N".
 * It is an error if nothing else names a model. */
void lh_config_lacks_model(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Likewise of another field of the scenario, which is an error where nothing says that either. */
void lh_config_lacks(LhConfig *config, const LhSettingsEntry *entry, const char *field,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

/* What is taken where nothing says it, which is noted then. */
void lh_config_unsaid(LhConfig *config, unsigned part, const char *field, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* A value of the framework's file, "ddp.overlap", is @text; true if it was another. */
bool lh_config_set_framework(LhConfig *config, const char *key, const char *text);

/* A warning about @entry, or about the file as a whole (NULL). */
void lh_config_note(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Sets @error at @entry; returns false. */
bool lh_config_fail(const LhConfig *config, const LhSettingsEntry *entry, GError **error,
                    const char *format, ...) G_GNUC_PRINTF(4, 5);

/* A setting that the way needs: @value NULL for a flag. Words in quotes where syntax has them. */
void lh_config_say(const LhConfig *config, GPtrArray *words, const char *path, LhSettingsKind kind,
                   const char *value);
void lh_config_say_count(const LhConfig *config, GPtrArray *words, const char *path,
                         uint64_t value);

/* A setting that must not be there, if it is. */
void lh_config_unsay(const LhConfig *config, GPtrArray *words, const char *path);

/* What no setting says. */
void lh_config_remark(const LhConfig *config, GPtrArray *words, const char *text);
