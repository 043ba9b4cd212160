/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every parameter of a case has a single source: a change by an option, a scenario file, a model or
 * a framework affects the program and its reference alike. Each row changes one parameter; program
 * and reference agree within the gates before and after.
 */
#include "execute/execute.h"
#include "execute/step_numerics.h"
#include "program/explicit/digest.h"
#include "reference/numerics.h"
#include "run_tests.h"
#include "scenario/step/setup_step.h"
#include "setups.h"

#include <glib/gstdio.h>

/* What must change: the program, or the reference's numbers. A framework decides how a step is
 * done, not what it computes. */
typedef enum { PROGRAM = 1, REFERENCE = 2, BOTH = 3 } Moves;

/* Replaces @before, which occurs once in the text, by @after. */
typedef struct {
    enum { OPTION, SCENARIO, MODEL, FRAMEWORK } where;
    const char *before, *after; /* OPTION: a field and its value */
    Moves moves;
} Change;

#define MODEL_HEAD                                                                                 \
    "{\"schema\": \"longhaul.model/1\", \"name\": \"m\", \"source\": \"x\", \"hidden_size\": 32, " \
    "\"num_attention_heads\": 4, \"num_query_groups\": 4, \"kv_channels\": 8, "                    \
    "\"ffn_hidden_size\": 48, \"vocab_size\": 64, \"gated_mlp\": true, "                           \
    "\"tied_embeddings\": false, \"biases\": false, \"rotary_base\": 10000, "

#define SOFTMAX_MODEL                                                                              \
    MODEL_HEAD "\"num_layers\": 2, \"sliding_window\": 24, \"layers\": [{\"attention\": "          \
               "\"softmax\"}, {\"attention\": \"softmax\", \"whole_sequence\": true}]}"
#define LINEAR_MODEL                                                                               \
    MODEL_HEAD                                                                                     \
    "\"num_layers\": 2, \"layers\": [{\"attention\": \"linear\", \"output_gate\": true}]}"
#define EXPERTS_MODEL                                                                              \
    MODEL_HEAD "\"num_layers\": 2, \"num_experts\": 5, \"experts_per_token\": 3, "                 \
               "\"shared_experts\": 1, \"dense_layers\": 1, \"dense_ffn_hidden_size\": 40}"

#define FACT(name, value)                                                                          \
    "\"" name "\": {\"value\": " value ", \"provenance\": \"assumed\", \"source\": \"x\"}"
#define NO_PREFETCH FACT("prefetch", "0")
#define REDUCED_IN_FP32 FACT("gradient_reduce", "\"fp32\"")
#define NOT_RESHARDED FACT("reshard_after_forward", "false")
#define NOTHING_AGAIN FACT("checkpoint", "\"none\"")
#define SHARDED FACT("shard", "\"fsdp\"")
#define LOGITS_AS_THEY_ARE FACT("fp32_bytes", "0")

static const char a_framework[] =
    "{\"schema\": \"longhaul.framework/1\", \"name\": \"f\", \"source\": \"x\", \"fsdp\": "
    "{" NO_PREFETCH ", " REDUCED_IN_FP32 ", " NOT_RESHARDED "}, \"states\": "
    "{" NOTHING_AGAIN ", " SHARDED "}, \"logits\": {" LOGITS_AS_THEY_ARE "}}";

#define MODULE                                                                                     \
    "\"cluster\": \"dgx-a100-80g\", \"ranks\": 2, \"seq_length\": 32, \"micro_batch_size\": 1, "   \
    "\"seed\": 3"
#define STEP                                                                                       \
    "\"step\": true, \"cluster\": \"dgx-a100-80g\", \"ranks\": 2, \"seq_length\": 32, "            \
    "\"micro_batch_size\": 1, \"seed\": 3"

typedef struct {
    const char *scenario, *model;
    const Change *changes;
    unsigned count;
} Family;

static const Change softmax_changes[] = {
    { OPTION, "window_size", "5", BOTH },
    { OPTION, "window_size", "0", BOTH },
    { OPTION, "mask", "full", BOTH },
    { OPTION, "dtype", "fp32", BOTH }, /* weights are rounded to it */
    { OPTION, "dtype", "fp16", BOTH },
    { OPTION, "micro_batch_size", "2", BOTH },
    { OPTION, "num_micro_batches", "2", BOTH },
    { OPTION, "seq_length", "64", BOTH },
    { OPTION, "num_attention_heads", "2", BOTH },
    { OPTION, "num_query_groups", "2", BOTH },
    { OPTION, "kv_channels", "4", BOTH },
    { OPTION, "data_parallel_size", "2", BOTH },
    { OPTION, "tensor_model_parallel_size", "2", PROGRAM },
    { OPTION, "pipeline_model_parallel_size", "2", PROGRAM },
    { OPTION, "shard", "zero1", PROGRAM },
    { OPTION, "checkpoint", "layer", PROGRAM },
    { OPTION, "seed", "4", REFERENCE },
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 32, \"window_size\": 5", BOTH },
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 32, \"mask\": \"full\"", BOTH },
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 48", BOTH },
    { SCENARIO, "\"micro_batch_size\": 1", "\"micro_batch_size\": 3", BOTH },
    { SCENARIO, "\"seed\": 3", "\"seed\": 5", REFERENCE },
    { MODEL, "\"sliding_window\": 24", "\"sliding_window\": 6", BOTH },
    { MODEL, ", \"whole_sequence\": true", "", BOTH },
    { MODEL, "\"num_layers\": 2", "\"num_layers\": 4", BOTH },
    { MODEL, "\"hidden_size\": 32", "\"hidden_size\": 48", BOTH },
    { MODEL, "\"num_attention_heads\": 4", "\"num_attention_heads\": 8", BOTH },
    { MODEL, "\"num_query_groups\": 4", "\"num_query_groups\": 1", BOTH },
    { MODEL, "\"kv_channels\": 8", "\"kv_channels\": 6", BOTH },
    { MODEL, "\"ffn_hidden_size\": 48", "\"ffn_hidden_size\": 64", BOTH },
    { MODEL, "\"vocab_size\": 64", "\"vocab_size\": 61", BOTH },
    { MODEL, "\"gated_mlp\": true", "\"gated_mlp\": false", BOTH },
    { MODEL, "\"tied_embeddings\": false", "\"tied_embeddings\": true", BOTH },
    { MODEL, "\"biases\": false", "\"biases\": true", BOTH },
    { MODEL, "\"rotary_base\": 10000", "\"rotary_base\": 10", BOTH },
    { MODEL, "\"rotary_base\": 10000", "\"rotary_base\": 0", BOTH },
    { MODEL, "{\"attention\": \"softmax\"}", "{\"attention\": \"softmax\", \"output_gate\": true}",
      BOTH },
    { FRAMEWORK, REDUCED_IN_FP32, FACT("gradient_reduce", "\"activation\""), PROGRAM },
    { FRAMEWORK, NO_PREFETCH, FACT("prefetch", "1"), PROGRAM },
    { FRAMEWORK, NOT_RESHARDED, FACT("reshard_after_forward", "true"), PROGRAM },
    { FRAMEWORK, NOTHING_AGAIN, FACT("checkpoint", "\"remat\""), PROGRAM },
    { FRAMEWORK, SHARDED, FACT("shard", "\"ddp\""), PROGRAM },
    { FRAMEWORK, LOGITS_AS_THEY_ARE, FACT("fp32_bytes", "4"), PROGRAM },
};

static const Change linear_changes[] = {
    { OPTION, "linear_decay", "0.8", BOTH },
    { OPTION, "kv_channels", "4", BOTH },
    { OPTION, "tensor_model_parallel_size", "2", BOTH }, /* each rank normalises its own heads */
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 32, \"linear_decay\": 0.9", BOTH },
    { MODEL, ", \"output_gate\": true", "", BOTH },
};

static const Change experts_changes[] = {
    { MODEL, "\"num_experts\": 5", "\"num_experts\": 7", BOTH },
    { MODEL, "\"experts_per_token\": 3", "\"experts_per_token\": 2", BOTH },
    { MODEL, "\"shared_experts\": 1", "\"shared_experts\": 2", BOTH },
    { MODEL, "\"dense_layers\": 1", "\"dense_layers\": 2", BOTH },
    { MODEL, "\"dense_ffn_hidden_size\": 40", "\"dense_ffn_hidden_size\": 24", BOTH },
    { MODEL, "\"ffn_hidden_size\": 48", "\"ffn_hidden_size\": 32", BOTH },
};

static const Change module_changes[] = {
    { OPTION, "window_size", "5", BOTH },
    { OPTION, "mask", "full", BOTH },
    { OPTION, "dtype", "fp16", BOTH },
    { OPTION, "micro_batch_size", "2", BOTH },
    { OPTION, "num_attention_heads", "2", BOTH },
    { OPTION, "num_query_groups", "2", BOTH },
    { OPTION, "kv_channels", "4", BOTH },
    { OPTION, "pass", "fwd", BOTH },
    { OPTION, "seed", "4", REFERENCE },
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 48", BOTH },
    { SCENARIO, "\"seq_length\": 32", "\"seq_length\": 32, \"window_size\": 5", BOTH },
    { MODEL, ", \"whole_sequence\": true", "", BOTH },
    { MODEL, "\"num_attention_heads\": 4", "\"num_attention_heads\": 8", BOTH },
    { MODEL, "\"num_query_groups\": 4", "\"num_query_groups\": 1", BOTH },
    { MODEL, "\"kv_channels\": 8", "\"kv_channels\": 6", BOTH },
};

static const Family families[] = {
    { MODULE ", \"schedule\": [\"ring\"]", SOFTMAX_MODEL, module_changes,
      G_N_ELEMENTS(module_changes) },
    { STEP ", \"schedule\": [\"ring\"]", SOFTMAX_MODEL, softmax_changes,
      G_N_ELEMENTS(softmax_changes) },
    { STEP ", \"schedule\": [\"lasp2\"]", LINEAR_MODEL, linear_changes,
      G_N_ELEMENTS(linear_changes) },
    { STEP ", \"schedule\": [\"ring\"]", EXPERTS_MODEL, experts_changes,
      G_N_ELEMENTS(experts_changes) },
};

/* ---- one case ---- */

static char *
replaced(const char *text, const char *before, const char *after)
{
    g_auto(GStrv) parts = g_strsplit(text, before, -1);

    ck_assert_msg(g_strv_length(parts) == 2, "\"%s\" does not occur exactly once: %s", before,
                  text);
    return g_strjoinv(after, parts);
}

/* The outcome of a case. */
typedef struct {
    char *program; /* digests, owned */
    char *reference;
} Outcome;

static void
outcome_clear(Outcome *o)
{
    g_free(o->program);
    g_free(o->reference);
}

static void
add_numbers(GChecksum *sum, const double *numbers, uint64_t count)
{
    g_checksum_update(sum, (const guchar *)numbers, (gssize)(count * sizeof(double)));
}

/* The digest of the reference's results of a module, or of the first training step. */
static char *
digest_of_reference(const LhProgram *program, uint64_t seed)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(LhStepNumerics) n = NULL;

    if (lh_step_params(program) == NULL) {
        g_autoptr(LhNumerics) m = lh_numerics_new(&program->params, seed, LH_INPUTS_NORMAL);
        const LhReference *r = &m->reference;

        add_numbers(sum, r->o, lh_reference_q_rows(&r->attention) * r->stride);
        add_numbers(sum, r->dq, lh_reference_q_rows(&r->attention) * r->stride);
        return g_strdup(g_checksum_get_string(sum));
    }
    n = lh_step_numerics_new(program, seed, false);
    lh_step_numerics_advance(n, 1);
    add_numbers(sum, &n->reference->loss, 1);
    add_numbers(sum, &n->reference->squares, 1);
    return g_strdup(g_checksum_get_string(sum));
}

static void
check_run(const LhSetup *setup, const char *what)
{
    const LhExecuteParams params = { .backend = &lh_backend_cpu };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = lh_execute_setup(setup, &params, &error);

    ck_assert_msg(executed != NULL, "%s: %s", what, error != NULL ? error->message : "");
    for (uint32_t i = 0; i < executed->errors.rows_count; i++)
        ck_assert_msg(executed->errors.rows[i].ok, "%s: %s: %g units", what,
                      executed->errors.rows[i].name, executed->errors.rows[i].mean);
    ck_assert(executed->counts_ok && executed->errors.rows_count > 0);
}

/* @change may be NULL. */
static Outcome
outcome_of(const Family *f, const Change *change, const char *framework)
{
    char *texts[] = { NULL, g_strdup(f->scenario), g_strdup(f->model), g_strdup(a_framework) };
    g_autofree char *what = g_strdup_printf("%s -> %s", change != NULL ? change->before : "base",
                                            change != NULL ? change->after : "");
    g_autofree char *json = NULL;
    g_autoptr(LhScenario) s = NULL;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GError) error = NULL;
    Outcome o;

    if (change != NULL && texts[change->where] != NULL) {
        char *changed = replaced(texts[change->where], change->before, change->after);

        g_free(texts[change->where]);
        texts[change->where] = changed;
    }
    json = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", %s}", texts[SCENARIO]);
    s = lh_scenario_parse("s.json", json, strlen(json), &error);
    ck_assert_msg(s != NULL, "%s", error != NULL ? error->message : "");
    ck_assert(g_file_set_contents(framework, texts[FRAMEWORK], -1, NULL));
    lh_scenario_replace(s, "framework", framework);
    if (change != NULL && change->where == OPTION)
        lh_scenario_replace(s, change->before, change->after);
    s->model_text = g_steal_pointer(&texts[MODEL]);
    s->model_file = g_strdup("m.json");
    setup = lh_setup_new(s, &error);
    ck_assert_msg(setup != NULL, "%s: %s", what, error != NULL ? error->message : "");
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    ck_assert_msg(program != NULL, "%s: %s", what, error != NULL ? error->message : "");
    check_run(setup, what);
    o = (Outcome){ lh_program_digest(program), digest_of_reference(program, s->seed) };
    g_free(texts[SCENARIO]);
    g_free(texts[FRAMEWORK]);
    return o;
}

START_TEST(program_and_reference_change_alike)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-sources-XXXXXX", NULL);
    g_autofree char *framework = g_build_filename(folder, "f.json", NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(families); i++) {
        Outcome base = outcome_of(&families[i], NULL, framework);

        for (unsigned k = 0; k < families[i].count; k++) {
            const Change *change = &families[i].changes[k];
            Outcome changed = outcome_of(&families[i], change, framework);

            ck_assert_msg((strcmp(base.program, changed.program) != 0) ==
                              ((change->moves & PROGRAM) != 0),
                          "%s -> %s: the program", change->before, change->after);
            ck_assert_msg((strcmp(base.reference, changed.reference) != 0) ==
                              ((change->moves & REFERENCE) != 0),
                          "%s -> %s: the reference", change->before, change->after);
            outcome_clear(&changed);
        }
        outcome_clear(&base);
    }
    g_remove(framework);
    g_rmdir(folder);
}
END_TEST

LH_TEST_MAIN("step_sources", program_and_reference_change_alike)
