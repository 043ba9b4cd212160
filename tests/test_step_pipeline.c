/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines in time and memory: equal stages idle as published; a stage holds the micro-batches
 * that its order keeps in flight, and the weights of no other stage; indivisible configurations are
 * refused.
 */
#include "program/cursor.h"
#include "program/live.h"
#include "run_tests.h"
#include "scenario/setup.h"
#include "scenario/setup_simulate.h"
#include "scenario/step/setup_step.h"
#include "step/formulas.h"
#include "step/pipeline/pipeline_exchanges.h"
#include "steps.h"

#include <string.h>

/* ---- time ---- */

/* A scenario with free communication: a block of attention takes one second, all else no time.
 * @order is an order of both passes, or "fwd" for the forward pass alone. */
static double
bubble_of(uint32_t stages, uint32_t chunks, const char *order, uint32_t micro_batches)
{
    const char *field = strcmp(order, "fwd") == 0 ? "pass" : "pipeline_schedule";
    g_autofree char *json = g_strdup_printf(
        "{ \"schema\": \"longhaul.scenario/1\", \"step\": true, \"cost\": \"unit\", \"ranks\": %u, "
        "\"cluster\": \"dgx-a100-80g\", \"model\": \"gpt3-125m\", \"schedule\": [\"ring\"], "
        "\"seq_length\": 1024, \"context_parallel_size\": 1, "
        "\"pipeline_model_parallel_size\": %u, \"num_layers_per_virtual_pipeline_stage\": %u, "
        "\"%s\": \"%s\", \"num_micro_batches\": %u }",
        stages, stages, 12 / stages / chunks, field, order, micro_batches);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_parse("test", json, strlen(json), &error);
    g_autoptr(LhSetup) setup = scenario == NULL ? NULL : lh_setup_new(scenario, &error);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhSimResult) result = NULL;
    double busy = 0;

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), &error);
    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    result = lh_setup_simulate(setup, program, NULL, NULL, NULL, &error);
    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    for (uint32_t r = 0; r < result->ranks_count; r++)
        busy += (double)result->ranks[r].busy_ps;
    return 1 - busy / (double)result->makespan_ps / result->ranks_count;
}

/* Bubble (p - 1) / (m + p - 1) of p equal stages and m micro-batches (arXiv 1811.06965,
 * 2104.04473); with v virtual stages per stage each piece of work is 1/v as long. */
START_TEST(equal_stages_idle_as_they_must)
{
    for (uint32_t stages = 2; stages <= 4; stages++) {
        for (uint32_t m = 1; m <= 9; m++) {
            const double want = (double)(stages - 1) / (m + stages - 1);

            ck_assert_double_eq_tol(bubble_of(stages, 1, "1f1b", m), want, 1e-12);
            ck_assert_double_eq_tol(bubble_of(stages, 1, "gpipe", m), want, 1e-12);
            ck_assert_double_eq_tol(bubble_of(stages, 1, "fwd", m), want, 1e-12);
        }
        for (uint32_t m = stages; m <= 3 * stages; m += stages) {
            for (uint32_t chunks = 2; chunks <= 12 / stages; chunks++) {
                const double want = (double)(stages - 1) / (chunks * m + stages - 1);

                if (12 / stages % chunks != 0)
                    continue;
                ck_assert_double_eq_tol(bubble_of(stages, chunks, "1f1b", m), want, 1e-12);
                ck_assert_double_eq_tol(bubble_of(stages, chunks, "fwd", m), want, 1e-12);
            }
        }
    }
}
END_TEST

/* ---- memory ---- */

/* The peak memory of a category on @rank. */
static uint64_t
most_of(const LhProgram *program, uint32_t rank, LhCategory category)
{
    LhOpBuffer buffer = { 0 };
    uint64_t most = 0;
    LhCursor cursor;
    LhLive live;

    lh_live_init(&live, program, rank);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE)
                lh_live_change(&live, program, op->memory.region, op->kind == LH_OP_ALLOC);
            most = MAX(most, live.by_category[category]);
        }
    }
    lh_op_buffer_clear(&buffer);
    return most;
}

/* With recomputation a pipeline saves only the inputs of layers per micro-batch; the last stage
 * saves the head's, too. A stage may already have received the input of its next work. */
START_TEST(stages_hold_what_is_in_flight)
{
    static const LhPipelineOrder orders[] = { LH_PIPELINE_1F1B, LH_PIPELINE_GPIPE };

    for (uint32_t i = 0; i < 24; i++) {
        const uint32_t stages = 2 + i % 3, chunks = i % 4 == 3 ? 2 : 1;
        const TinyStep tiny = { .schedule = "ring",
                                .stages = stages,
                                .chunks = chunks,
                                .order = chunks > 1 ? LH_PIPELINE_1F1B : orders[i % 2],
                                .layers = 2 * stages * chunks,
                                .micro_batches = chunks > 1 ? 2 * stages : 1 + i / 3,
                                .checkpoint = LH_CHECKPOINT_LAYER };
        g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
        const LhStepParams *p = lh_step_params(program);
        const uint64_t rows = 16 * 64 * 2; /* tokens x width x bytes */

        for (uint32_t stage = 0; stage < stages; stage++) {
            const uint64_t inputs = most_of(program, stage, LH_CATEGORY_SAVED) / rows;
            const uint64_t want = 2 * lh_step_in_flight(p, stage); /* layers of a chunk */

            ck_assert_uint_ge(inputs, want);
            ck_assert_uint_le(inputs,
                              want + 1 + (stage + 1 == stages ? lh_step_in_flight(p, stage) : 0));
        }
    }
}
END_TEST

START_TEST(stages_in_flight_are_as_published)
{
    const LhStepParams plain = { .pipeline_parallel = 4, .micro_batches = 8 };
    const LhStepParams few = { .pipeline_parallel = 4, .micro_batches = 2 };
    const LhStepParams gpipe = { .pipeline_parallel = 4,
                                 .micro_batches = 8,
                                 .pipeline_order = LH_PIPELINE_GPIPE };
    const LhStepParams chunks = { .pipeline_parallel = 4, .micro_batches = 8, .chunks = 2 };

    for (uint32_t stage = 0; stage < 4; stage++) {
        ck_assert_uint_eq(lh_step_in_flight(&plain, stage), 4 - stage);
        ck_assert_uint_eq(lh_step_in_flight(&few, stage), MIN(2, 4 - stage));
        ck_assert_uint_eq(lh_step_in_flight(&gpipe, stage), 8);
        ck_assert_uint_eq(lh_step_in_flight(&chunks, stage), 2 * (3 - stage) + 4 + 1);
    }
}
END_TEST

/* With p stages of v chunks of n layers and m micro-batches there are m v pieces of work, and
 * the bubble is p - 1 more (arXiv 2104.04473, sections 2.2 and 2.3). Recomputation does not wait
 * for gradients: a chunk's last layer may be recomputed before the gradient arrives. */
START_TEST(bubbles_are_as_published)
{
    const uint32_t p = 4, m = 8;

    for (uint32_t v = 1; v <= 3; v++) {
        for (uint32_t n = 1; n <= 2; n++) {
            const LhModel model = { .num_layers = (uint64_t)p * v * n };
            const LhStepParams params = {
                .model = &model, .pipeline_parallel = p, .micro_batches = m, .chunks = v
            };
            const LhStepLayerTimes of = { .forward_ps = 3, .backward_ps = 5 };
            const LhStepLayerTimes again = { .forward_ps = 3, .recompute_ps = 3, .backward_ps = 5 };

            ck_assert_int_eq(lh_step_pipeline_least(&params, &of), (m * v + p - 1) * n * 8);
            ck_assert_int_le(lh_step_pipeline_least(&params, &again), (m * v + p - 1) * n * 11);
            ck_assert_int_ge(lh_step_pipeline_least(&params, &again),
                             m * v * n * 11 + (p - 1) * (n * 11 - 3));
        }
    }
}
END_TEST

/* A single micro-batch goes through all layers, the head and back; its rows and gradients cross the
 * borders between stages. Only the last layer of a stage may be recomputed before its gradient
 * arrives, and accumulation follows the gradient that is sent. */
START_TEST(one_micro_batch_crosses_all_borders)
{
    const LhTime rows_ps[] = { 7, 11, 13, 1000 }, gradients_ps[] = { 1000, 17, 19, 23 };
    const LhStepStageTimes ends = { .head_ps = 29, .message_ps = { rows_ps, gradients_ps } };
    const LhStepLayerTimes of = {
        .forward_ps = 3, .recompute_ps = 2, .backward_ps = 50, .accumulate_ps = 4
    };
    const LhTime p = 4;

    for (int64_t n = 1; n <= 3; n++) {
        for (uint32_t overlap = 0; overlap < 2; overlap++) {
            const LhModel model = { .num_layers = (uint64_t)(p * n) };
            const LhStepParams params = { .model = &model,
                                          .pipeline_parallel = (uint32_t)p,
                                          .micro_batches = 1,
                                          .chunks = 1,
                                          .behaviour.overlap_reduce = overlap == 1 };
            const LhTime after_ps = (overlap == 1 ? 1 : n) * 4;
            const LhTime there_ps = p * n * 3 + 7 + 11 + 13 + 29;
            const LhTime back_ps =
                n * 52 + (p - 1) * (n * 50 + (n - 1) * 2 - after_ps) + 17 + 19 + 23;

            ck_assert_int_eq(lh_step_pipeline_exchanged(&params, &of, &ends), there_ps + back_ps);
        }
    }
}
END_TEST

/* Messages only add to a pipeline, by no more than if nothing else went on during any of them. If
 * they take no time, nothing is added to 1F1B without chunks, and with chunks nothing that grows
 * with the micro-batches, although backward work takes longer than forward work. */
START_TEST(messages_add_to_pipelines)
{
    const LhTime none_ps[6] = { 0 }, some_ps[6] = { 5, 1, 4, 2, 3, 6 };

    for (uint32_t seed = 0; seed < 6 * 3 * 2 * 6; seed++) {
        const LhStepLayerTimes of = {
            .forward_ps = 3, .recompute_ps = 1, .backward_ps = 5, .accumulate_ps = seed % 4
        };
        const uint32_t p = 2 + seed % 5, v = 1 + seed / 6 % 3, rounds = 1 + seed / 36;
        const uint32_t n = 1 + seed / 18 % 2; /* layers of a chunk */
        const LhModel model = { .num_layers = (uint64_t)p * v * n };
        const LhStepParams params = { .model = &model,
                                      .pipeline_parallel = p,
                                      .micro_batches = p * rounds,
                                      .chunks = v,
                                      .behaviour.overlap_reduce = seed % 7 < 3 };
        const LhStepStageTimes none = { .message_ps = { none_ps, none_ps } };
        const LhStepStageTimes some = { .message_ps = { some_ps, some_ps } };
        const LhTime least_ps = lh_step_pipeline_least(&params, &of);
        const LhTime at_once_ps = lh_step_pipeline_exchanged(&params, &of, &none);
        const LhTime with_ps = lh_step_pipeline_exchanged(&params, &of, &some);

        ck_assert_int_ge(at_once_ps, least_ps);
        if (v == 1)
            ck_assert_int_eq(at_once_ps, least_ps);
        ck_assert_int_le(at_once_ps,
                         least_ps + (LhTime)(p - 1) * (n * of.accumulate_ps + of.recompute_ps));
        ck_assert_int_ge(with_ps, at_once_ps);
        ck_assert_int_le(with_ps, at_once_ps + 2 * 6 * (LhTime)(p * v * p * rounds));
    }
}
END_TEST

/* The first stage has the embedding, the last one the head. Together the stages have every
 * parameter once, or the embedding twice if it is tied to the head. */
START_TEST(stages_share_the_weights)
{
    for (uint32_t tied = 0; tied < 2; tied++) {
        const TinyStep tiny = {
            .schedule = "ring", .stages = 4, .layers = 8, .micro_batches = 2, .tied = tied == 1
        };
        g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
        const LhStepParameters all = lh_step_parameters(program);
        const uint64_t embedding = 64 * 64; /* vocabulary x width */
        uint64_t bytes[4], sum = 0;

        for (uint32_t stage = 0; stage < 4; stage++) {
            bytes[stage] = most_of(program, stage, LH_CATEGORY_WEIGHTS);
            ck_assert_uint_eq(bytes[stage], lh_step_state_bytes(program, stage).weights);
            sum += bytes[stage];
        }
        ck_assert_uint_eq(bytes[0], bytes[1] + 2 * embedding);
        ck_assert_uint_eq(bytes[1], bytes[2]);
        ck_assert_uint_eq(bytes[3], bytes[2] + 2 * (embedding + 64)); /* and the final norm */
        ck_assert_uint_eq(sum,
                          2 * (all.matrices + all.norms + (tied == 1 ? embedding : all.embedding)));
    }
}
END_TEST

/* ---- refusals ---- */

static void
check_refusal(const TinyStep *tiny, const char *message)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(tiny_step(tiny, &error));
    ck_assert_str_eq(error->message, message);
}

/* Llama 3.1 405B has 126 layers: counting the embedding and the loss, 16 stages have 8 each. */
START_TEST(ends_count_as_layers)
{
    const LhModel model = { .num_layers = 126 };
    const LhStepParams both = {
        .model = &model, .pipeline_parallel = 16, .embedding_counts = true, .loss_counts = true
    };
    LhStepParams chunks = both;

    for (uint32_t stage = 0; stage < 16; stage++)
        ck_assert_uint_eq(lh_step_stage_layers(&both, stage), stage % 15 == 0 ? 7 : 8);
    ck_assert_uint_eq(lh_step_chunk_begins(&both, 1), 7);
    ck_assert_uint_eq(lh_step_chunk_begins(&both, 15), 119);
    ck_assert_uint_eq(lh_step_chunk_begins(&both, 16), 126);
    chunks.chunks = 4; /* two layers each */
    ck_assert_uint_eq(lh_step_stage_layers(&chunks, 0), 7);
    ck_assert_uint_eq(lh_step_stage_layers(&chunks, 1), 8);
    ck_assert_uint_eq(lh_step_chunk_begins(&chunks, 63), 125);
}
END_TEST

START_TEST(what_cannot_be_cut_is_refused)
{
    check_refusal(
        &(TinyStep){ .schedule = "ring", .stages = 3, .layers = 4, .embedding_counts = true },
        "the number of layers, with the embedding, 5, must be a multiple of the number of pipeline "
        "stages, 3; there are no legal numbers of stages for these ranks");
    check_refusal(
        &(TinyStep){ .schedule = "ring", .layers = 4, .loss_counts = true },
        "the embedding and the loss can count as layers only with several pipeline stages");
    check_refusal(
        &(TinyStep){ .schedule = "ring", .stages = 3, .layers = 4 },
        "the number of layers, 4, must be a multiple of the number of pipeline stages, 3; "
        "nearest legal numbers of stages: 1");
    check_refusal(
        &(TinyStep){ .schedule = "ring", .stages = 4, .layers = 2 },
        "2 layers cannot be shared among 4 pipeline stages; nearest legal numbers of stages: "
        "2");
    check_refusal(&(TinyStep){ .schedule = "ring", .chunks = 2, .layers = 4 },
                  "several chunks of layers need several pipeline stages");
    check_refusal(&(TinyStep){ .schedule = "ring",
                               .stages = 2,
                               .chunks = 2,
                               .layers = 4,
                               .micro_batches = 2,
                               .order = LH_PIPELINE_GPIPE },
                  "several chunks of layers on a pipeline stage need the order 1f1b");
    check_refusal(
        &(TinyStep){
            .schedule = "ring", .stages = 2, .chunks = 2, .layers = 4, .micro_batches = 3 },
        "with several chunks of layers on a stage, the number of micro-batches, 3, must "
        "be a multiple of the number of pipeline stages, 2; nearest legal numbers of "
        "micro-batches: 2, 4");
}
END_TEST

LH_TEST_MAIN("step_pipeline", equal_stages_idle_as_they_must, stages_hold_what_is_in_flight,
             stages_in_flight_are_as_published, bubbles_are_as_published,
             one_micro_batch_crosses_all_borders, messages_add_to_pipelines,
             stages_share_the_weights, ends_count_as_layers, what_cannot_be_cut_is_refused)
