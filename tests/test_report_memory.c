/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of memory over time, for a step of a few layers written by hand, with known sizes.
 */
#include "base/json/json.h"
#include "options.h"
#include "program/emit.h"
#include "report/data/memory_limit.h"
#include "report/draw/figure.h"
#include "report/draw/memory_figure.h"
#include "report/draw/memory_timeline.h"
#include "report/text/describe.h"
#include "report/text/describe_sim.h"
#include "run_tests.h"

#include <glib/gstdio.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MS INT64_C(1000000000)

/* ---- a step by hand ---- */

#define LAYERS 12

enum { SLOT_WEIGHTS, SLOT_OPTIMIZER, SLOT_SAVED, SLOT_WORKING, SLOT_GRADIENTS, SLOT_LOGITS };

/* Sizes of the slots in GiB: one part each, except saved, which has one per layer. */
static const struct {
    const char *name;
    LhCategory category;
    LhSlotRole role;
    uint64_t gib;
} slots[] = {
    [SLOT_WEIGHTS] = { "weights", LH_CATEGORY_WEIGHTS, LH_SLOT_STATE, 8 },
    [SLOT_OPTIMIZER] = { "optimizer", LH_CATEGORY_OPTIMIZER, LH_SLOT_STATE, 16 },
    [SLOT_SAVED] = { "saved", LH_CATEGORY_SAVED, LH_SLOT_TEMP, 3 },
    [SLOT_WORKING] = { "working", LH_CATEGORY_WORKING, LH_SLOT_TEMP, 4 },
    [SLOT_GRADIENTS] = { "gradients", LH_CATEGORY_GRADIENTS, LH_SLOT_TEMP, 8 },
    [SLOT_LOGITS] = { "logits", LH_CATEGORY_LOGITS, LH_SLOT_TEMP, 6 },
};

#define PEAK_GIB (8 + 16 + 3 * LAYERS + 6 + 8)

static uint32_t
step_count(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 2 * LAYERS + 1;
}

static void
emit_layer(LhEmitter *e, uint16_t layer)
{
    const LhKernelArgs args = {
        .batch = 1, .nq = 1048576, .heads = 32, .groups = 32, .head_dim = 128
    };

    e->layer = layer;
    lh_emit_alloc(e, SLOT_WORKING);
    lh_emit_compute(e, 0, LH_KERNEL_ID_copy, &args);
    lh_emit_sync(e);
    lh_emit_free(e, SLOT_WORKING);
}

/* Forward layers, the loss with its logits, backward layers: gradients are allocated with the
 * first of these, while the logits are still live. */
static void
emit_step(LhEmitter *e, uint32_t step)
{
    const uint16_t layer = (uint16_t)(step < LAYERS ? step : 2 * LAYERS - step);

    if (step < LAYERS) {
        lh_emit_alloc_region(e, (LhRegion){ .slot = SLOT_SAVED, .part = layer, .count = 1 });
        emit_layer(e, layer);
    } else if (step == LAYERS) {
        e->layer = LAYERS - 1;
        lh_emit_alloc(e, SLOT_LOGITS);
        e->phase = LH_PHASE_BACKWARD;
        lh_emit_alloc(e, SLOT_GRADIENTS);
        lh_emit_free(e, SLOT_LOGITS);
    } else {
        e->phase = LH_PHASE_BACKWARD;
        emit_layer(e, layer);
        lh_emit_free_region(e, (LhRegion){ .slot = SLOT_SAVED, .part = layer, .count = 1 });
        if (layer == 0)
            lh_emit_free(e, SLOT_GRADIENTS);
    }
}

static const LhGenerator step_generator = { .steps = step_count, .emit = emit_step };

static LhProgram *
step_program(const LhSetup *setup)
{
    LhProgram *program =
        lh_program_create("a step", &step_generator, &setup->params, LH_PLACE_CONTIGUOUS);

    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    for (guint i = 0; i < G_N_ELEMENTS(slots); i++) {
        const LhSlotParams slot = { .name = slots[i].name,
                                    .kind = LH_TENSOR_Q,
                                    .role = slots[i].role,
                                    .dtype = LH_DTYPE_BF16,
                                    .category = slots[i].category,
                                    .parts = i == SLOT_SAVED ? LAYERS : 1,
                                    .part_bytes = slots[i].gib * GIB };

        lh_program_add_slot(program, slot);
    }
    return program;
}

/* The step on a cluster, simulated. */
typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
    LhProgram *program;
    LhCompareRow *row;
} Step;

static Step
step_of(const char *cluster, LhMemorySink memory, void *data)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"%s\", \"ranks\": 2, "
                        "\"schedule\": [\"ring\"]}",
                        cluster);
    Step step = { .scenario = lh_scenario_parse("s.json", text, strlen(text), NULL) };
    const LhHooks hooks = { .memory = memory, .memory_data = data };

    ck_assert_ptr_nonnull(step.scenario);
    step.setup = lh_setup_new(step.scenario, NULL);
    ck_assert_ptr_nonnull(step.setup);
    step.program = step_program(step.setup);
    step.row = g_new0(LhCompareRow, 1);
    step.row->name = step.program->name;
    step.row->program = step.program;
    lh_compare_play(step.row, step.setup, &hooks);
    ck_assert_ptr_nonnull(step.row->result);
    return step;
}

static void
step_clear(Step *step)
{
    lh_compare_row_free(step->row);
    lh_program_free(step->program);
    lh_setup_free(step->setup);
    lh_scenario_free(step->scenario);
}

/* ---- words and JSON ---- */

START_TEST(report_memory_is_told_by_category)
{
    Step step = step_of("hgx-h200", NULL, NULL);
    g_autoptr(LhTable) table = lh_describe_categories(step.row->result);
    g_autoptr(GString) out = g_string_new(NULL);

    ck_assert_int_eq(step.row->state, LH_ROW_RAN);
    ck_assert_uint_eq(step.row->result->ranks[0].peak_bytes, PEAK_GIB * GIB);
    lh_table_print(table, LH_FORMAT_CSV, out);
    ck_assert_str_eq(out->str, "category,bytes,fraction\n"
                               "weights,8589934592,0.10810810810810811\n"
                               "gradients,8589934592,0.10810810810810811\n"
                               "optimizer,17179869184,0.21621621621621623\n"
                               "saved,38654705664,0.4864864864864865\n"
                               "logits,6442450944,0.08108108108108109\n"
                               "total,79456894976,1\n");
    /* A single category is not printed as a table. */
    for (uint32_t i = 0; i < step.program->slots_count; i++)
        step.program->slots[i].category = LH_CATEGORY_ATTENTION;
    g_clear_pointer(&step.row->result, lh_sim_result_free);
    lh_compare_play(step.row, step.setup, NULL);
    ck_assert_ptr_null(lh_describe_categories(step.row->result));
    step_clear(&step);
}
END_TEST

/* Out of memory: 40 GiB, less the libraries' share, hold three forward layers; of the fourth,
 * saved activations still fit and the workspace does not. */
START_TEST(report_memory_that_is_not_there_is_told)
{
    static const char *const argv[] = { "longhaul", "sim", NULL };
    const LhStamp stamp = { argv };
    Step step = step_of("dgx-a100-40g", NULL, NULL);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    const LhComparison one = { .rows = rows };
    g_autoptr(GString) json = g_string_new(NULL);
    g_autofree char *reason = lh_describe_memory_limit(step.setup, step.row->result);
    const LhOutOfMemory *oom = step.row->result->out_of_memory;
    g_autofree char *limit = lh_format_bytes(oom->limit_bytes);
    g_autofree char *time = lh_format_time(oom->time_ps);
    g_autofree char *expected = g_strdup_printf(
        "rank 0 needs 74 GiB of %s: saved 36 GiB, optimizer 16 GiB, weights 8 GiB, gradients 8 "
        "GiB, logits 6 GiB; first exceeded at %s for working, at op 16 (forward, layer 3, "
        "micro-batch 0)",
        limit, time);

    ck_assert_int_eq(step.row->state, LH_ROW_NO_MEMORY);
    ck_assert_uint_eq(oom->limit_bytes,
                      lh_device_usable_bytes(step.setup->device, LH_MEMORY_MARGIN));
    ck_assert_int_gt(oom->time_ps, 0);
    ck_assert_str_eq(reason, expected);
    g_ptr_array_add(rows, step.row);
    lh_result_json(step.setup, &one, &stamp, json);
    ck_assert_ptr_nonnull(strstr(json->str, "      \"peak\": {\n"
                                            "        \"op\": 61,\n"
                                            "        \"layer\": 11,\n"
                                            "        \"micro_batch\": 0,\n"
                                            "        \"phase\": \"backward\",\n"
                                            "        \"by_category\": {\n"
                                            "          \"weights\": 8589934592,\n"
                                            "          \"gradients\": 8589934592,\n"
                                            "          \"optimizer\": 17179869184,\n"
                                            "          \"saved\": 38654705664,\n"
                                            "          \"logits\": 6442450944\n"
                                            "        }\n"));
    ck_assert_ptr_nonnull(strstr(json->str, "        \"needed_bytes\": 79456894976,\n"));
    ck_assert_ptr_nonnull(strstr(json->str, "          \"op\": 16,\n"
                                            "          \"layer\": 3,\n"
                                            "          \"micro_batch\": 0,\n"
                                            "          \"phase\": \"forward\",\n"
                                            "          \"category\": \"working\",\n"
                                            "          \"held_bytes\": 42949672960\n"));
    step_clear(&step);
}
END_TEST

/* ---- rows ---- */

static char *
new_folder(void)
{
    return g_dir_make_tmp("longhaul-XXXXXX", NULL);
}

static char *
text_of(const char *path)
{
    char *text = NULL;

    ck_assert_msg(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

static LhMemoryRecord
record_of(uint32_t rank, LhTime time_ps, uint32_t op, uint64_t saved, uint64_t bytes)
{
    return (LhMemoryRecord){ .rank = rank,
                             .time_ps = time_ps,
                             .op = { .op = op,
                                     .layer = 2,
                                     .micro_batch = 1,
                                     .phase = LH_PHASE_RECOMPUTE,
                                     .category = LH_CATEGORY_SAVED },
                             .category_bytes = saved,
                             .bytes = bytes };
}

/* Written as CSV and JSON; an unfinished file leaves the old one in place. */
START_TEST(report_memory_timelines_are_whole_or_not_at_all)
{
    static const char *const argv[] = { "longhaul", "sim", NULL };
    static const char *const names[] = { "m.csv", "m.json" };
    const LhStamp stamp = { argv };
    const LhMemoryTimelineOf of = { .schedule = "mine", .stamp = &stamp };
    const LhMemoryRecord records[] = { record_of(3, 0, LH_OP_NONE, 5, 7),
                                       record_of(3, 1500 * MS, 12, 6, 8) };
    g_autofree char *folder = new_folder();

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(folder, names[i], NULL);

        ck_assert(g_file_set_contents(path, "before", -1, NULL));
        for (int finished = 0; finished < 2; finished++) {
            g_autoptr(LhMemoryTimeline) timeline = lh_memory_timeline_new(path, &of, NULL);
            g_autofree char *before = NULL;

            ck_assert_ptr_nonnull(timeline);
            for (guint k = 0; k < G_N_ELEMENTS(records); k++)
                lh_memory_timeline_add(timeline, &records[k]);
            before = text_of(path);
            ck_assert_str_eq(before, "before");
            if (finished)
                ck_assert(lh_memory_timeline_finish(timeline, NULL));
        }
    }
    {
        g_autofree char *csv_path = g_build_filename(folder, names[0], NULL);
        g_autofree char *json_path = g_build_filename(folder, names[1], NULL);
        g_autofree char *csv = text_of(csv_path);
        g_autofree char *json = text_of(json_path);

        ck_assert_str_eq(csv, "rank,time_s,op,layer,micro_batch,phase,category,category_bytes,"
                              "total_bytes\n3,0,,,,,saved,5,7\n"
                              "3,1.5,12,2,1,recompute,saved,6,8\n");
        ck_assert_ptr_nonnull(strstr(json, "\"schema\": \"longhaul.memory-timeline/1\""));
        ck_assert_ptr_nonnull(strstr(json, "      \"rank\": 3,\n"
                                           "      \"time_s\": 1.5,\n"
                                           "      \"op\": 12,\n"
                                           "      \"layer\": 2,\n"
                                           "      \"micro_batch\": 1,\n"
                                           "      \"phase\": \"recompute\",\n"
                                           "      \"category\": \"saved\",\n"
                                           "      \"category_bytes\": 6,\n"
                                           "      \"total_bytes\": 8\n"));
        ck_assert_ptr_nonnull(strstr(json, "\"op\": null,"));
        g_unlink(csv_path);
        g_unlink(json_path);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* A file longer than the buffer in memory: every row arrives once, in order. */
START_TEST(report_memory_timelines_may_be_long)
{
    const guint count = 20000;
    static const char *const argv[] = { "longhaul", NULL };
    const LhStamp stamp = { argv };
    const LhMemoryTimelineOf of = { .schedule = "mine", .stamp = &stamp };
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "m.json", NULL);
    g_autoptr(LhMemoryTimeline) timeline = lh_memory_timeline_new(path, &of, NULL);
    g_autoptr(LhJson) json = NULL;
    g_autofree char *last = g_strdup_printf("records[%u].total_bytes", count - 1);
    g_autofree char *beyond = g_strdup_printf("records[%u]", count);
    g_autofree char *text = NULL;
    const char *at;

    for (guint i = 0; i < count; i++) {
        const LhMemoryRecord record = record_of(0, i, i, i, i);

        lh_memory_timeline_add(timeline, &record);
    }
    ck_assert(lh_memory_timeline_finish(timeline, NULL));
    json = lh_json_load(path, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert(lh_json_has(json, last));
    ck_assert(!lh_json_has(json, beyond));
    text = text_of(path);
    at = text;
    for (guint i = 0; i < count; i++) {
        g_autofree char *row = g_strdup_printf("\"op\": %u,", i);

        at = g_strstr_len(at, 1000, row); /* a sanitizer's strstr reads to the end */
        ck_assert_msg(at != NULL, "%s", row);
    }
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* ---- the figure ---- */

static void
add(LhMemoryEnvelope *e, LhTime time_ps, LhCategory category, uint64_t bytes, uint64_t all)
{
    const LhMemoryRecord record = { .rank = 1,
                                    .time_ps = time_ps,
                                    .op = { .category = (uint8_t)category },
                                    .category_bytes = bytes,
                                    .bytes = all };
    LhMemoryRecord other = record;

    other.rank = 0; /* is skipped */
    other.bytes = UINT64_MAX;
    lh_memory_envelope_add(e, &other);
    lh_memory_envelope_add(e, &record);
}

/* Maxima of different categories at different moments of a bin are never added up. */
START_TEST(report_memory_envelopes_keep_moments)
{
    const LhTime width = 10;
    LhMemoryEnvelope *e = lh_memory_envelope_new(1, width * LH_MEMORY_BINS);

    add(e, 0, LH_CATEGORY_WEIGHTS, 100, 100);
    add(e, 5 * width, LH_CATEGORY_SAVED, 50, 150);
    add(e, 5 * width + 1, LH_CATEGORY_SAVED, 0, 100);
    add(e, 5 * width + 2, LH_CATEGORY_WORKING, 60, 160);
    add(e, 5 * width + 3, LH_CATEGORY_WORKING, 10, 110);
    add(e, 8 * width - 1, LH_CATEGORY_WORKING, 0, 100);
    add(e, 9 * width * LH_MEMORY_BINS, LH_CATEGORY_OTHER, 7, 107); /* after the end */
    lh_memory_envelope_finish(e);
    for (uint32_t bin = 0; bin < LH_MEMORY_BINS; bin++) {
        const uint64_t working = bin == 5 ? 60 : bin == 6 || bin == 7 ? 10 : 0;

        ck_assert_uint_eq(e->most[bin][LH_CATEGORY_WEIGHTS], 100);
        ck_assert_uint_eq(e->most[bin][LH_CATEGORY_SAVED], 0);
        ck_assert_uint_eq(e->most[bin][LH_CATEGORY_WORKING], working);
        ck_assert_uint_eq(e->most[bin][LH_CATEGORY_OTHER], bin == LH_MEMORY_BINS - 1 ? 7 : 0);
        ck_assert_uint_eq(e->most_bytes[bin], 100 + working + (bin == LH_MEMORY_BINS - 1 ? 7 : 0));
    }
    g_free(e);
}
END_TEST

/* Draws the step on @cluster and returns the script. Caller frees. */
static char *
draw(const char *cluster, const char *path)
{
    Step first = step_of(cluster, NULL, NULL);
    const LhTime end_ps = first.row->result->makespan_ps;
    g_autofree LhMemoryEnvelope *envelope = lh_memory_envelope_new(1, end_ps);
    Step again = step_of(cluster, lh_memory_envelope_add, envelope);
    const LhMemoryFigure figure = { .setup = again.setup,
                                    .name = again.row->name,
                                    .program = again.program,
                                    .result = again.row->result,
                                    .envelope = envelope };
    g_autofree char *script_path = lh_figure_script_path(path);
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    uint64_t most = 0;

    lh_memory_envelope_finish(envelope);
    for (uint32_t bin = 0; bin < LH_MEMORY_BINS; bin++)
        most = MAX(most, envelope->most_bytes[bin]);
    ck_assert_uint_eq(most, PEAK_GIB * GIB);
    ck_assert(lh_memory_figure_draw(&figure, (LhFigureTo){ .path = path }, NULL) ==
              (gnuplot != NULL));
    step_clear(&first);
    step_clear(&again);
    return text_of(script_path);
}

START_TEST(report_memory_is_drawn)
{
    static const char *const titles[] = { "weights", "optimizer", "gradients",
                                          "saved",   "working",   "logits" };
    g_autofree char *folder = new_folder();
    g_autofree char *path = g_build_filename(folder, "m.png", NULL);
    g_autofree char *script_path = lh_figure_script_path(path);
    g_autofree char *near = draw("dgx-a100-80g", path);
    const char *at = strstr(near, "plot $data");
    g_autofree char *far = NULL;

    ck_assert_ptr_nonnull(at);
    for (guint i = 0; i < G_N_ELEMENTS(titles); i++) {
        g_autofree char *title = g_strdup_printf("title '%s'", titles[i]);

        ck_assert_msg((at = strstr(at, title)) != NULL, "%s", title);
    }
    ck_assert_ptr_null(strstr(near, "title 'communication'"));
    ck_assert_ptr_nonnull(strstr(near, "'usable: 77.05 GiB'"));
    ck_assert_ptr_nonnull(strstr(near, "'peak: 74 GiB' at "));
    ck_assert_ptr_nonnull(strstr(near, "nohead"));
    ck_assert_ptr_nonnull(strstr(near, "'rank 1 has the highest peak: 74 GiB at "));
    ck_assert_ptr_nonnull(strstr(near, ", op 61 (backward, layer 11, micro-batch 0)'"));
    far = draw("this-machine", path);
    ck_assert_ptr_null(strstr(far, "nohead")); /* it would be far above */
    ck_assert_ptr_nonnull(strstr(far, "'usable: 1004 GiB'"));
    g_unlink(script_path);
    g_unlink(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

LH_TEST_MAIN("report_memory", report_memory_is_told_by_category,
             report_memory_that_is_not_there_is_told,
             report_memory_timelines_are_whole_or_not_at_all, report_memory_timelines_may_be_long,
             report_memory_envelopes_keep_moments, report_memory_is_drawn)
