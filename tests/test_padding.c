/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Padded heads: a step whose heads are padded to divide among the ranks equals the step of a model
 * with that many more heads and that much larger width.
 */
#include "program/explicit/digest.h"
#include "run_tests.h"
#include "scenario/step/setup_step.h"
#include "setups.h"

typedef struct {
    const char *scenario; /* of a model with the first number of heads */
    const char *heads;    /* query and key-value heads, e.g. "33 33" */
    uint64_t hidden_size;
    const char *padded; /* what they are padded to ... */
    uint64_t padded_hidden_size;
} Row;

#define ULYSSES "\"ranks\": 8, \"seq_length\": 64, \"schedule\": [\"ulysses\"]"
#define RING "\"ranks\": 8, \"seq_length\": 64, \"schedule\": [\"ring\"]"
#define PAD_HEADS ", \"pad\": \"heads\""
#define PAD_WIDTH ", \"pad\": \"width\""
#define TENSOR_2 ", \"tensor_model_parallel_size\": \"2\""

static const Row rows[] = {
    { ULYSSES PAD_HEADS, "9 9", 72, "16 16", 72 },
    { ULYSSES PAD_WIDTH, "9 9", 72, "16 16", 128 },
    { ULYSSES PAD_HEADS, "16 16", 128, "16 16", 128 },
    { ULYSSES PAD_HEADS, "6 2", 48, "8 2", 48 }, /* four ranks share a key-value head */
    { ULYSSES PAD_HEADS TENSOR_2, "5 5", 40, "8 8", 40 },
    { ULYSSES PAD_WIDTH TENSOR_2, "9 9", 72, "16 16", 128 },
    /* Rows of a ring hold all heads. */
    { RING PAD_HEADS, "9 9", 72, "9 9", 72 },
    { RING PAD_WIDTH TENSOR_2, "9 9", 72, "10 10", 80 },
    { "\"ranks\": 8, \"seq_length\": 64, \"schedule\": [\"usp\"], "
      "\"hierarchical_context_parallel_sizes\": [4, 2]" PAD_WIDTH,
      "9 9", 72, "12 12", 96 },
};

static char *
model_text(const char *heads, uint64_t hidden_size)
{
    g_auto(GStrv) counts = g_strsplit(heads, " ", 2);

    return g_strdup_printf(
        "{\"schema\": \"longhaul.model/1\", \"name\": \"m\", \"source\": \"x\", \"num_layers\": 2, "
        "\"hidden_size\": %" G_GUINT64_FORMAT ", \"num_attention_heads\": %s, "
        "\"num_query_groups\": %s, \"kv_channels\": 8, \"ffn_hidden_size\": 48, "
        "\"vocab_size\": 64, \"gated_mlp\": true, \"tied_embeddings\": false}",
        hidden_size, counts[0], counts[1]);
}

/* The digest of the step's program. */
static char *
digest_of(const char *scenario, const char *heads, uint64_t hidden_size)
{
    g_autofree char *json = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, "
                                            "\"cluster\": \"dgx-a100-80g\", %s}",
                                            scenario);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) s = lh_scenario_parse("s.json", json, strlen(json), &error);
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) program = NULL;

    ck_assert_msg(s != NULL, "%s", error != NULL ? error->message : "");
    s->model_text = model_text(heads, hidden_size);
    s->model_file = g_strdup("m.json");
    setup = lh_setup_new(s, &error);
    ck_assert_msg(setup != NULL, "%s: %s", scenario, error != NULL ? error->message : "");
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    ck_assert_msg(program != NULL, "%s: %s", scenario, error != NULL ? error->message : "");
    return lh_program_digest(program);
}

START_TEST(padded_step_is_the_wider_models)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const Row *row = &rows[i];
        g_autofree char *padded = digest_of(row->scenario, row->heads, row->hidden_size);
        g_autofree char *wider = digest_of(row->scenario, row->padded, row->padded_hidden_size);

        ck_assert_msg(strcmp(padded, wider) == 0, "row %u: %s", i, row->scenario);
    }
}
END_TEST

/* Each schedule of a comparison is padded separately. */
START_TEST(schedules_pad_for_themselves)
{
    Case both = case_of("\"step\": true, \"cluster\": \"dfa-2node:2\", \"ranks\": 16, "
                        "\"seq_length\": \"32K\", \"model\": \"llama-33h\", \"pad\": \"width\", "
                        "\"schedule\": [\"ring\", \"ulysses\"]");

    for (guint i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhProgram) program =
            lh_setup_program(both.setup, g_ptr_array_index(both.setup->schedules, i), &error);

        ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
        ck_assert_uint_eq(program->params.attention.heads, i == 0 ? 33 : 48);
    }
    case_clear(&both);
}
END_TEST

/* A schedule that is tensor parallelism itself equals the step with that option, padded heads
 * included. */
START_TEST(a_schedule_may_be_tensor_parallelism)
{
#define SAME "\"framework\": \"megatron-lm\", "
#define MEGATRON SAME "\"ranks\": 8, \"seq_length\": 64, \"schedule\": [\"megatron-tp-sp\"]"
#define TENSOR SAME "\"ranks\": 8, \"seq_length\": 64, \"schedule\": [\"ring\"], "
    static const char *const pairs[][2] = {
        { MEGATRON, TENSOR "\"tensor_model_parallel_size\": \"8\"" },
        { MEGATRON PAD_HEADS, TENSOR "\"tensor_model_parallel_size\": \"8\"" PAD_HEADS },
        { MEGATRON ", \"data_parallel_size\": 2",
          TENSOR "\"data_parallel_size\": 2, \"tensor_model_parallel_size\": \"4\"" },
    };
    static const char *const heads[] = { "16 16", "9 9", "8 4" };

    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *schedule = digest_of(pairs[i][0], heads[i], 128);
        g_autofree char *option = digest_of(pairs[i][1], heads[i], 128);

        ck_assert_msg(strcmp(schedule, option) == 0, "%s", pairs[i][0]);
    }
}
END_TEST

LH_TEST_MAIN("padding", padded_step_is_the_wider_models, schedules_pad_for_themselves,
             a_schedule_may_be_tensor_parallelism)
