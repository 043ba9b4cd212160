/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every schedule is proven, for every number of ranks that matters, with every pass, mask and
 * option.
 */
#include "fitting.h"
#include "run_tests.h"
#include "share.h"
#include "verify/verify.h"
#include "verifying.h"

static const uint32_t ranks_proven[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                         12, 13, 14, 15, 16, 24, 25, 32, 33, 36, 64 };

/* How many programs of a schedule were proven: all of them, and those of several ranks. */
typedef struct {
    uint32_t all, several;
} Proven;

static void
prove(const LhSchedule *schedule, const LhProgramParams *params, Proven *proven)
{
    g_autoptr(LhProgram) program = fitting_program(schedule, params);
    g_autoptr(LhVerdict) verdict = NULL;

    if (program == NULL)
        return;
    verdict = lh_verify(program);
    if (verdict->findings_total > 0)
        ck_abort_msg("%s, %u ranks, %u groups of them, pass %d%s%s, %u heads, %u groups: %s",
                     schedule->name, params->ranks, params->data_parallel_size, (int)params->pass,
                     params->mask.causal ? ", causal" : "",
                     lh_pass_overlaps(params) ? ", overlap" : "", program->params.attention.heads,
                     program->params.attention.groups, first_message(verdict));
    ck_assert_msg(verdict->one_queue, "%s, %u ranks, pass %d: %s", schedule->name, params->ranks,
                  (int)params->pass, verdict->queue_cycle);
    ck_assert_uint_eq(verdict->ranks, lh_params_ranks(params));
    ck_assert_uint_gt(verdict->ops, 0);
    proven->all++;
    proven->several += params->ranks > 1;
}

/* All passes, masks and head counts on few ranks, and some of them in turn on many. */
START_TEST(verify_proves_all_schedules)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t i = 0; i < G_N_ELEMENTS(ranks_proven); i++) {
            const uint32_t ranks = ranks_proven[i];
            const uint32_t every = ranks <= 8 ? 1 : ranks <= 16 ? 3 : 11;

            for (uint32_t bits = i % every; bits < 24; bits += every) {
                const LhProgramParams params = params_of(ranks, (LhPass)(3 - bits / 8), bits & 1,
                                                         (bits & 2) != 0, (bits & 4) != 0);

                if (ranks > 4 && !test_takes_of(bits + s, 11))
                    continue;
                prove(lh_schedules[s], &params, &proven);
            }
        }
        ck_assert_msg(proven.several > 0, "%s refuses everything", lh_schedules[s]->name);
    }
}
END_TEST

/* Segments of one token, odd lengths, gradients in either type, the published code's own traffic.
 */
START_TEST(verify_proves_all_variants)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t bits = 0; bits < 2 * 3 * 2 * 7; bits++) {
            LhProgramParams params =
                params_of(2 + 2 * (bits / 12), LH_PASS_BOTH, true, true, bits & 1);

            if (!test_takes_of(bits + s, 7))
                continue;
            set_option(&params, "gradient_wire", (LhWireDtype)(bits / 2 % 3));
            set_option(&params, "published_code", bits / 6 % 2 != 0);
            params.attention.seq_length = params.ranks * (bits / 6 % 2 != 0 ? 6 : 2);
            prove(lh_schedules[s], &params, &proven);
        }
    }
}
END_TEST

/* What only some schedules know changes nothing in the others. */
START_TEST(verify_proves_all_options)
{
    static const struct {
        const char *name; /* NULL: the GPUs of a node */
        uint32_t first;
        bool cuts; /* the ranks, in two factors */
    } options[] = {
        { "grid", 1, true },
        { "grid", 2, true },
        { "grid", 4, true },
        { "hierarchical_context_parallel_sizes", 1, true },
        { "hierarchical_context_parallel_sizes", 2, true },
        { "inner_ring", 1, false },
        { "inner_ring", 2, false },
        { "gather_groups", 1, false },
        { "gather_groups", 2, false },
        { "scan_blocks", 1, false },
        { "scan_blocks", 2, false },
        { NULL, 2, false },
        { "local_kv", 1, false },
        { "gather_delta", 1, false },
        { "state_recompute", 1, false },
        { "unfused", 1, false },
        { "pad_heads", 1, false },
        { "recompute_granularity", 1, false },
        { "recompute_granularity", 2, false },
    };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t i = 0; i < G_N_ELEMENTS(options) * 8; i++) {
            const uint32_t first = options[i / 8].first;
            LhProgramParams params =
                params_of((i & 1) != 0 ? 4 : 8, LH_PASS_BOTH, (i & 2) != 0, true, (i & 4) != 0);

            if (!test_takes_of(i + s, 5))
                continue;
            if (options[i / 8].name == NULL)
                params.gpus_per_node = first;
            else
                set_pair(&params, options[i / 8].name, first,
                         options[i / 8].cuts ? params.ranks / first : 0);
            prove(lh_schedules[s], &params, &proven);
        }
        ck_assert_msg(proven.several > 0, "%s refuses every option", lh_schedules[s]->name);
    }
}
END_TEST

/* Windows shorter and longer than a segment, and documents that end within segments. */
START_TEST(verify_proves_windows_and_documents)
{
    static const uint32_t ranks_few[] = { 1, 2, 3, 4, 6, 8, 16 };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t i = 0; i < G_N_ELEMENTS(ranks_few) * 8; i++) {
            LhProgramParams params =
                params_of(ranks_few[i / 8], LH_PASS_BOTH, true, true, (i & 1) != 0);
            const uint64_t length = params.attention.seq_length;
            const uint64_t ends[] = { 3, length / 2 + 1, length - 2, length };

            if (!test_takes_of(i + s, 3))
                continue;
            if ((i & 2) != 0) {
                params.mask.documents_count = G_N_ELEMENTS(ends);
                params.mask.document_ends = ends;
            } else {
                params.mask.window = (i & 4) != 0 ? 3 : 13;
            }
            params.mask.causal = (i & 2) == 0 || (i & 4) == 0;
            prove(lh_schedules[s], &params, &proven);
        }
        ck_assert_msg(proven.several > 0 || lh_schedules[s]->masks == 0, "%s refuses all masks",
                      lh_schedules[s]->name);
    }
}
END_TEST

static bool
has_slot_like(const LhProgram *program, const LhSlot *wanted)
{
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->role != LH_SLOT_TEMP && slot->kind == wanted->kind &&
            slot->dtype == wanted->dtype && slot->by_heads == wanted->by_heads &&
            slot->parts == wanted->parts && slot->part_bytes == wanted->part_bytes)
            return true;
    }
    return false;
}

/* A forward pass can leave what a backward pass alone is given, but for the gradients. */
START_TEST(verify_proves_what_is_kept)
{
    static const uint32_t ranks_few[] = { 1, 2, 3, 4, 6, 8, 12 };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(ranks_few); i++) {
            LhProgramParams params =
                params_of(ranks_few[i / 2], LH_PASS_BWD, true, true, i % 2 != 0);
            g_autoptr(LhProgram) backward = fitting_program(lh_schedules[s], &params);
            g_autoptr(LhProgram) forward = NULL;

            if (!test_takes_of(i + s, 7))
                continue;
            params.pass = LH_PASS_FWD;
            params.keep_saved = true;
            prove(lh_schedules[s], &params, &proven);
            forward = fitting_program(lh_schedules[s], &params);
            for (uint32_t k = 0; backward != NULL && k < backward->slots_count; k++) {
                const LhSlot *slot = &backward->slots[k];

                if (slot->role == LH_SLOT_INPUT && slot->kind != LH_TENSOR_DO &&
                    slot->kind != LH_TENSOR_HIDDEN)
                    ck_assert_msg(has_slot_like(forward, slot), "%s, %u ranks: %s is not kept",
                                  lh_schedules[s]->name, params.ranks, slot->name);
            }
        }
        ck_assert_uint_gt(proven.several, 0);
    }
}
END_TEST

/* The blocks that a proof lists are those that the mask allows, each once for every slice. */
static void
check_blocks(const LhProgram *program, const char *name)
{
    const uint32_t segments = lh_placement_segments(&program->placement);
    const uint32_t slices = MAX(program->head_slices, 1);
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(LhAttentionBlock));
    g_autoptr(LhVerdict) verdict = lh_verify_blocks(program, blocks);
    g_autofree uint8_t *seen = g_new0(uint8_t, (gsize)slices * segments * segments);

    ck_assert_uint_eq(verdict->findings_total, 0);
    for (guint i = 0; i < blocks->len; i++) {
        const LhAttentionBlock *b = &g_array_index(blocks, LhAttentionBlock, i);

        ck_assert(b->rank < program->params.ranks && b->slice < slices && b->query < segments &&
                  b->key < segments);
        seen[((gsize)b->slice * segments + b->query) * segments + b->key]++;
    }
    for (uint32_t i = 0; i < slices * segments * segments; i++) {
        const LhSegment q = lh_placement_segment(&program->placement, i / segments % segments);
        const LhSegment k = lh_placement_segment(&program->placement, i % segments);
        const uint64_t pairs = lh_mask_pairs(&program->params.mask, q, k);

        ck_assert_msg(seen[i] == (pairs > 0),
                      "%s, %u ranks: block (%u, %u) of slice %u is there %u times", name,
                      program->params.ranks, i / segments % segments, i % segments,
                      i / segments / segments, seen[i]);
    }
}

START_TEST(verify_lists_blocks)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        uint32_t checked = 0;

        for (uint32_t i = 0; i < 3 * 8; i++) {
            LhProgramParams params = params_of(1 + i / 3, LH_PASS_FWD, i % 3 != 0, true, true);
            g_autoptr(LhProgram) program = NULL;

            params.mask.window = i % 3 == 2 ? 5 : 0;
            program = fitting_program(lh_schedules[s], &params);
            if (program == NULL || program->params.attention.linear)
                continue;
            check_blocks(program, lh_schedules[s]->name);
            checked++;
        }
        ck_assert(checked > 0 || !lh_schedule_takes(lh_schedules[s], false));
    }
}
END_TEST

/* Groups of ranks, each with a batch of its own. */
START_TEST(verify_proves_groups)
{
    static const uint32_t shapes[][2] = { { 1, 3 }, { 2, 2 }, { 3, 2 }, { 4, 3 }, { 8, 2 } };

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        Proven proven = { 0 };

        for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(shapes); i++) {
            LhProgramParams params =
                params_of(shapes[i / 2][0], LH_PASS_BOTH, true, (s + i) % 3 != 0, (i & 1) != 0);

            params.data_parallel_size = shapes[i / 2][1];
            prove(lh_schedules[s], &params, &proven);
        }
        ck_assert_msg(proven.several > 0, "%s refuses all groups", lh_schedules[s]->name);
    }
}
END_TEST

/* The contract of every schedule is that its programs of 256 ranks are proven in seconds. */
START_TEST(verify_proves_256_ranks)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        const LhProgramParams params = params_of(256, LH_PASS_FWD, true, true, true);
        Proven proven = { 0 };

        if (test_takes_of(s, 11))
            prove(lh_schedules[s], &params, &proven);
    }
}
END_TEST

/* For odd P the published code of the balanced schedule loses the blocks at distance (P+1)/2 from
 * rank P/2 on. */
START_TEST(verify_finds_the_blocks_that_published_code_loses)
{
    const LhSchedule *schedule = lh_schedule_find("dfa-balanced", NULL);

    ck_assert_ptr_nonnull(schedule);
    for (uint32_t ranks = 3; ranks <= 9; ranks += 2) {
        LhProgramParams params = params_of(ranks, LH_PASS_FWD, true, true, false);
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhVerdict) verdict = NULL;
        uint32_t lost = 0;

        set_option(&params, "published_code", true);
        program = lh_program_new(schedule, &params, NULL);
        ck_assert_ptr_nonnull(program);
        verdict = lh_verify(program);
        for (uint32_t i = 0; i < verdict->findings->len; i++) {
            const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, i);

            if (finding->kind == LH_FINDING_COVERAGE &&
                program->slots[finding->slot].kind == LH_TENSOR_O)
                lost++;
        }
        ck_assert_msg(lost == ranks / 2, "%u ranks: %u blocks lost; %s", ranks, lost,
                      first_message(verdict));
    }
}
END_TEST

LH_TEST_MAIN("verify", verify_proves_all_schedules, verify_proves_all_variants,
             verify_proves_all_options, verify_proves_windows_and_documents,
             verify_proves_what_is_kept, verify_lists_blocks, verify_proves_groups,
             verify_proves_256_ranks, verify_finds_the_blocks_that_published_code_loses)
