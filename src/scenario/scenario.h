/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to simulate or verify: a scenario file (longhaul.scenario/1), command-line options, or a
 * file with options over it. A scenario is only what was said; lh_setup_new() fills in the rest and
 * loads what it names.
 */
#pragma once

#include "base/json/json.h"
#include "scenario/constant.h"
#include "scenario/scenario_fields.h"
#include "sched/schedule.h"
#include "sim/network/topology_change.h"
#include "sim/sim.h"

/* Of the table of fields, which is made at the start: that options fit is asserted there, that all
 * fields do by the compiler. */
#define LH_SCENARIO_OPTIONS_MAX 64    /* of schedules */
#define LH_SCENARIO_FIELDS_MAX 256    /* these included */
#define LH_TOKENS_MAX 1099511627776.0 /* of a sequence: 2^40 */

/* What a training system can be told; see configuration.h. */
struct _LhConfigSystem;

/* What was given of a schedule's option, by its type. */
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
    GPtrArray *values;    /* of char *, each once: as an option has them; flags "true", "false" */
} LhScenarioAxis;

/* Not given: 0 for numbers, -1 for choices, NULL for strings and lists. */
typedef struct {
    int schema;
    char *description;
    GPtrArray *schedule; /* of char *: names */
    char *schedule_file;
    bool unproven;
    char *cluster;           /* NAME or NAME:NODES */
    LhTopologyChange change; /* what the cluster has otherwise than its file says */
    uint64_t ranks;
    char *model;
    char *assume;          /* the model type that its config.json is read as */
    GPtrArray *ignore_key; /* of char *: its keys that are not read */
    uint64_t seq_length;
    bool round_seq_length;
    uint64_t num_attention_heads;
    uint64_t num_query_groups;
    uint64_t kv_channels;
    uint64_t micro_batch_size;
    int dtype; /* LhDtype */
    int mask;  /* 0 causal, 1 full */
    uint64_t window_size;
    char *document_lengths; /* a file */
    int attention;          /* 0 softmax, 1 linear */
    double linear_decay;
    int pass;        /* LhPass - 1 */
    int cost;        /* LhCostMode */
    int network;     /* LhNetworkModel */
    int collectives; /* LhCollectiveModel */
    uint64_t data_parallel_size;
    bool step; /* a whole training step, not one attention module; it reads the next ones */
    char *framework;
    char *attention_kernel; /* library, or kernel whose curves time all forward attention */
    char *tensor_model_parallel_size; /* a number, or "all" */
    uint64_t context_parallel_size;
    uint64_t pipeline_model_parallel_size;
    uint64_t num_layers_per_virtual_pipeline_stage;
    bool account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split;
    int pipeline_schedule; /* LhPipelineOrder */
    uint64_t num_micro_batches;
    int shard;      /* LhShard */
    int checkpoint; /* LhCheckpoint */
    int pad;        /* LhPad */
    double jitter;
    uint64_t seed;
    GArray *straggler;  /* of LhStraggler */
    GArray *link_fault; /* of LhLinkFault */
    char *profile;
    LhOptionInput options[LH_SCENARIO_OPTIONS_MAX]; /* as lh_schedule_options() has them */
    bool serving; /* kernels are timed one at a time in a serving system; no field of a file */
    /* What a training system's configuration says beside fields; no field of a file. */
    uint64_t global_batch_size;  /* sequences of a step, where num_micro_batches is not given */
    GPtrArray *framework_values; /* of char *, "ddp.overlap=yes": in place of what the framework's
                                    file has; NULL: none */
    char *model_text;            /* longhaul.model/1: the model, where none is named */
    char *model_file;            /* what messages call it */
    const struct _LhConfigSystem *system; /* ways of training are those that it has; NULL: all */
    LhConstants constants; /* to use in place of the data files'; no field of a file */
    LhFieldLater lists[LH_SCENARIO_FIELDS_MAX]; /* "sweep": where its lists stand in the file */
    GPtrArray *axes; /* of LhScenarioAxis *: what these say; NULL: there is none */
    /* Where it came from. */
    char *path;                             /* of the file; NULL: options only */
    LhJson *json;                           /* the file, for messages; NULL likewise */
    bool as_option[LH_SCENARIO_FIELDS_MAX]; /* field i was given on the command line */
    char *places[LH_SCENARIO_FIELDS_MAX]; /* of field i, if another file gave it: what errors about
                                             it begin with, "file:line:column: error: ..." */
} LhScenario;

/* What is made wider where the tensor-parallel size does not divide the heads. */
typedef enum {
    LH_PAD_HEADS, /* the projections of attention */
    LH_PAD_WIDTH, /* and the model, which is as wide as its heads */
} LhPad;

/* An empty scenario: nothing given. Caller frees. */
LhScenario *lh_scenario_new(void);

/*
 * Reads @name: a word (a file of scenarios/) or a path. Files named inside it are relative to it.
 * A longhaul.schedule/1 file stands for the scenario that plays it and says nothing else. Caller
 * frees.
 */
LhScenario *lh_scenario_load(const char *name, GError **error);
LhScenario *lh_scenario_parse(const char *file, const char *text, gsize length, GError **error);
void lh_scenario_free(LhScenario *scenario);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhScenario, lh_scenario_free)

/* Sets an option; the first use of a list option replaces the file's list. */
bool lh_scenario_set(LhScenario *scenario, const LhField *field, const char *text, GError **error);

/* The same for a setting of another file, which errors about it name: @place is taken over. */
bool lh_scenario_set_from(LhScenario *scenario, const LhField *field, const char *text, char *place,
                          GError **error);

/* Makes it as if the field had not been given. @name is the field's. */
void lh_scenario_forget(LhScenario *scenario, const char *name);

/* The same scenario with all that was given as options: files are not named in messages any more.
 * Caller frees. */
LhScenario *lh_scenario_copy(const LhScenario *scenario);

/* Appends "name=value" lines of all that was given: equal scenarios have equal lines. */
void lh_scenario_lines(const LhScenario *scenario, GString *out);

/* Makes @scenario have @value of @field, whatever was given of it; a value that the field takes.
 * @field is its name. */
void lh_scenario_replace(LhScenario *scenario, const char *field, const char *value);

/* What a sweep varies: the axes that no option has given one value. Of LhScenarioAxis *, borrowed;
 * caller unrefs. */
GPtrArray *lh_scenario_axes(const LhScenario *scenario);

/* Makes @scenario, a copy of that of @axis, have value @index of it. */
void lh_scenario_choose(LhScenario *scenario, const LhScenarioAxis *axis, guint index);

/* True if the field was given, in the file or as an option. @name is the field's. */
bool lh_scenario_has(const LhScenario *scenario, const char *name);

/* True if the field was given as an option; if any was. @name is the field's. */
bool lh_scenario_has_option(const LhScenario *scenario, const char *name);
bool lh_scenario_has_options(const LhScenario *scenario);

/* The name of a field that was given though a program of one's own says it itself; NULL: none was.
 */
const char *lh_scenario_program_field(const LhScenario *scenario);

/*
 * Sets @error (LH_ERROR_INPUT) at the place where field @name was given: "file:line:column: error:
 * ..." or
 * "--option: ...". Returns false.
 */
bool lh_scenario_error(const LhScenario *scenario, const char *name, GError **error,
                       const char *format, ...) G_GNUC_PRINTF(4, 5);
