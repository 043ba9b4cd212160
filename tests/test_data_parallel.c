/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequence-parallel groups within data parallelism: each rank acts by its position in its group and
 * no message leaves a group, while all groups share the cluster's links.
 */
#include "execute/execute.h"
#include "fitting.h"
#include "recording.h"
#include "run_tests.h"
#include "sim_world.h"
#include "verifying.h"

static LhProgram *
make(const char *name, uint32_t ranks, uint32_t groups, uint64_t tokens)
{
    LhProgramParams p = attention(ranks, ranks * tokens, 8, 8, 32);
    LhProgram *program;

    p.data_parallel_size = groups;
    program = fitting_program(lh_schedule_find(name, NULL), &p);
    ck_assert_msg(program != NULL, "%s does not support %u groups of %u ranks", name, groups,
                  ranks);
    return program;
}

/* ---- lasp, two groups of eight ---- */

/* Bytes a rank sends: a state of 8 heads of 32 x 32 in fp32 to the next rank, and backward one to
 * the previous. */
static uint64_t
lasp_bytes(uint32_t rank)
{
    const uint64_t state = 8 * 32 * 32 * 4;

    return rank % 8 == 0 || rank % 8 == 7 ? state : 2 * state;
}

START_TEST(groups_send_what_one_group_sends)
{
    g_autoptr(LhProgram) program = make("lasp", 8, 2, 16);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autoptr(LhProgram) one = make("lasp", 8, 1, 16);
    g_autoptr(LhVerdict) alone = lh_verify(one);

    ck_assert_msg(verdict->findings_total == 0, "%s", first_message(verdict));
    ck_assert_uint_eq(verdict->ranks, 16);
    ck_assert_uint_eq(verdict->ops, 2 * alone->ops);
    ck_assert_uint_eq(verdict->messages, 2 * alone->messages);
    ck_assert(verdict->pairs_checked == 2 * alone->pairs_checked);
    for (uint32_t rank = 0; rank < 16; rank++) {
        ck_assert_uint_eq(verdict->bytes_sent[rank], lasp_bytes(rank));
        ck_assert_uint_eq(verdict->flops[rank], alone->flops[rank % 8]);
        ck_assert_uint_eq(verdict->peak_bytes[rank], alone->peak_bytes[rank % 8]);
    }
}
END_TEST

START_TEST(groups_execute)
{
    static const char *const names[] = { "lasp", "ulysses", "usp", "dfa-balanced" };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LhProgram) program = make(names[i], 4 + 4 * (i == 0), 2, 8);
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSetup) setup = NULL;
        g_autoptr(LhExecuted) executed = NULL;
        const LhExecuteParams params = { .backend = &lh_backend_cpu };

        scenario->ranks = lh_program_ranks(program);
        setup = lh_setup_new(scenario, &error);
        ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
        executed = lh_execute_program(setup, program, &params, &error);
        ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
        ck_assert_msg(lh_executed_ok(executed), "%s", names[i]);
        ck_assert_uint_eq(executed->run->ranks_count, lh_program_ranks(program));
        for (uint32_t rank = 0; i == 0 && rank < 16; rank++)
            ck_assert_uint_eq(executed->run->ranks[rank].bytes_sent, lasp_bytes(rank));
    }
}
END_TEST

/* ---- links ---- */

static LhSimResult *
play(const char *topology, const char *name, uint32_t ranks, uint32_t groups)
{
    World w;
    LhSimResult *result;

    world_init(&w, topology, make(name, ranks, groups, 512));
    result = world_run(&w);
    world_clear(&w);
    ck_assert_uint_eq(result->ranks_count, ranks * groups);
    return result;
}

/* A group in a node of its own takes the time it takes alone, to the picosecond. */
START_TEST(groups_apart_do_not_meet)
{
    static const char *const names[] = { "lasp", "lasp2", "zigzag", "ulysses", "attention2d-o" };
    static const char *const topologies[] = { "bench-platform", "dgx-a100-80g", "fat-tree-a100" };

    for (guint i = 0; i < G_N_ELEMENTS(names) * G_N_ELEMENTS(topologies); i++) {
        const char *name = names[i % G_N_ELEMENTS(names)];
        const char *topology = topologies[i / G_N_ELEMENTS(names)];
        const uint32_t ranks = i % 2 == 0 ? 8 : 4; /* one or two groups per node */
        g_autoptr(LhSimResult) alone = play(topology, name, ranks, 1);
        g_autoptr(LhSimResult) groups = play(topology, name, ranks, 3);

        ck_assert_msg(groups->makespan_ps == alone->makespan_ps, "%s on %s", name, topology);
        for (uint32_t rank = 0; rank < 3 * ranks; rank++) {
            const LhRankResult *a = &groups->ranks[rank], *b = &alone->ranks[rank % ranks];

            ck_assert_uint_eq(a->bytes_sent, b->bytes_sent);
            ck_assert_uint_eq(a->peak_bytes, b->peak_bytes);
            ck_assert_int_eq(a->busy_ps, b->busy_ps);
            ck_assert_int_eq(a->finish_ps, b->finish_ps);
        }
    }
}
END_TEST

/* Two groups of twelve share the one NIC of the second of three nodes, in the same direction if
 * they are rings. */
START_TEST(groups_share_links)
{
    static const char *const rings[] = { "ring", "te-p2p", "lasp2" };

    for (guint i = 0; i < G_N_ELEMENTS(rings); i++) {
        g_autoptr(LhSimResult) alone = play("bench-platform", rings[i], 12, 1);
        g_autoptr(LhSimResult) shared = play("bench-platform", rings[i], 12, 2);

        ck_assert_msg(shared->makespan_ps > alone->makespan_ps,
                      "%s: %" G_GINT64_FORMAT " ps alone, %" G_GINT64_FORMAT, rings[i],
                      alone->makespan_ps, shared->makespan_ps);
        for (uint32_t rank = 0; rank < 24; rank++)
            ck_assert_uint_eq(shared->ranks[rank].bytes_sent, alone->ranks[rank % 12].bytes_sent);
    }
}
END_TEST

/* ---- damage ---- */

static const LhFinding *
only_coverage(const LhVerdict *verdict)
{
    ck_assert_uint_gt(verdict->findings->len, 0);
    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *finding = &g_array_index(verdict->findings, LhFinding, i);

        ck_assert_msg(finding->kind == LH_FINDING_COVERAGE, "%s", finding->message);
    }
    return &g_array_index(verdict->findings, LhFinding, 0);
}

/* Redirects the first message of @rank in the direction @send to @peer. */
static void
redirect(const Recording *recording, uint32_t rank, bool send, uint32_t peer)
{
    for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
        const LhOp *op = recording_op(recording, rank, id);

        for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
            LhPart *part = recording_part(recording, rank, op, i);

            if (part->send != send)
                continue;
            part->peer = peer;
            return;
        }
    }
    ck_abort_msg("rank %u has no such message", rank);
}

/* Two groups of a ring swap their first blocks: the same rows, but of another batch. */
START_TEST(groups_crossed_messages_are_found)
{
    g_autoptr(LhProgram) program = make("ring", 3, 2, 8);
    Recording *recording = recording_new(program);
    g_autoptr(LhVerdict) intact = lh_verify(&recording->program);
    g_autoptr(LhVerdict) verdict = NULL;
    const LhFinding *finding;

    ck_assert_msg(intact->findings_total == 0, "%s", first_message(intact));
    redirect(recording, 0, true, 4);
    redirect(recording, 3, true, 1);
    redirect(recording, 1, false, 3);
    redirect(recording, 4, false, 0);
    verdict = lh_verify(&recording->program);
    finding = only_coverage(verdict);
    ck_assert_ptr_nonnull(strstr(finding->message, ", whose group has another batch"));
    ck_assert_ptr_nonnull(strstr(finding->message, finding->rank == 1 ? "from rank 3" : "rank 0"));
    recording_free(recording);
}
END_TEST

/* Ranks 0 and 2 gather, and 1 and 3, instead of 0 and 1, and 2 and 3. */
START_TEST(groups_crossed_collectives_are_found)
{
    static const char *const names[] = { "lasp2", "allgather-kv", "ulysses" };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LhProgram) program = make(names[i], 2, 2, 8);
        Recording *recording = recording_new(program);
        g_autoptr(LhVerdict) verdict = NULL;

        for (uint32_t rank = 0; rank < 4; rank++) {
            for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
                LhOp *op = recording_op(recording, rank, id);

                if (op->kind == LH_OP_COLLECTIVE)
                    op->collective.group =
                        (LhGroup){ .base = rank % 2, .stride = 2, .count = 2, .outer_count = 1 };
            }
        }
        verdict = lh_verify(&recording->program);
        ck_assert_ptr_nonnull(strstr(only_coverage(verdict)->message, "whose group has another"));
        recording_free(recording);
    }
}
END_TEST

/* ---- sizes ---- */

START_TEST(groups_have_limits)
{
    LhProgramParams p = attention(1024, 1024 * UINT64_C(8), 8, 8, 32);
    g_autoptr(GError) error = NULL;

    p.data_parallel_size = 1025;
    ck_assert_ptr_null(lh_program_new(lh_schedule_find("ring", NULL), &p, &error));
    ck_assert_str_eq(error->message,
                     "1025 groups of 1024 ranks; 1048576 ranks are allowed in total");
    p.data_parallel_size = 8;
    {
        g_autoptr(LhProgram) program = lh_program_new(lh_schedule_find("ring", NULL), &p, NULL);
        g_autoptr(LhVerdict) verdict = lh_verify(program);

        ck_assert_str_eq(first_message(verdict),
                         "the program has 8192 ranks; the verifier supports 1 to 4096");
    }
}
END_TEST

LH_TEST_MAIN("data_parallel", groups_send_what_one_group_sends, groups_execute,
             groups_apart_do_not_meet, groups_share_links, groups_crossed_messages_are_found,
             groups_crossed_collectives_are_found, groups_have_limits)
