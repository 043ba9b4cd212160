/*
 * Schedule synthesis: counters against a recount, programs of random assignments against the
 * verifier, the simulator and real data, bounds against everything that is found or published.
 */
#include "base/rng.h"
#include "plan/compare.h"
#include "plan/execute.h"
#include "run_tests.h"
#include "share.h"
#include "synth/anneal.h"
#include "synth/bound.h"
#include "synth/emit.h"
#include "verify/verify.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
} Case;

/* A scenario of the forward pass: @fields are members of its JSON. */
static Case
case_of(const char *fields)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"pass\": \"fwd\", %s}", fields);
    g_autoptr(GError) error = NULL;
    Case c = { .scenario = lh_scenario_parse("s.json", text, strlen(text), &error) };

    ck_assert_msg(c.scenario != NULL, "%s", error != NULL ? error->message : "");
    c.setup = lh_setup_new(c.scenario, &error);
    ck_assert_msg(c.setup != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_msg(lh_synth_check(c.setup, &error), "%s", error != NULL ? error->message : "");
    return c;
}

static void
case_clear(Case *c)
{
    lh_setup_free(c->setup);
    lh_scenario_free(c->scenario);
}

/* Two to five nodes of four GPUs, or eight GPUs of one; full masks, windows and documents. */
static const char *const cases[] = {
    "\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 2048, \"num_attention_heads\": 16, "
    "\"num_query_groups\": 16, \"kv_channels\": 64",
    "\"cluster\": \"azure-nc96-a100:3\", \"seq_length\": 1536, \"num_attention_heads\": 16, "
    "\"num_query_groups\": 4, \"kv_channels\": 64",
    "\"cluster\": \"azure-nc96-a100:5\", \"seq_length\": 2560, \"num_attention_heads\": 8, "
    "\"num_query_groups\": 8, \"kv_channels\": 64, \"mask\": \"full\"",
    "\"cluster\": \"azure-nc96-a100:4\", \"seq_length\": 2048, \"num_attention_heads\": 32, "
    "\"num_query_groups\": 8, \"kv_channels\": 64, \"window_size\": 700",
    "\"cluster\": \"dgx-a100-80g:1\", \"seq_length\": 1024, \"num_attention_heads\": 8, "
    "\"num_query_groups\": 2, \"kv_channels\": 64, \"micro_batch_size\": 2",
    "\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 2048, \"num_attention_heads\": 16, "
    "\"num_query_groups\": 16, \"kv_channels\": 64, \"document_lengths\": \"%s\"",
};

/* Documents that end within segments, one of them of one token. */
#define DOCUMENTS "300 1 723 512 511 1\n"

/* Case @index, with a file of documents if it needs one, which is removed at once. */
static Case
numbered_case(guint index)
{
    g_autofree char *path = NULL;
    g_autofree char *fields = NULL;
    Case c;
    int file;

    if (strchr(cases[index], '%') == NULL)
        return case_of(cases[index]);
    file = g_file_open_tmp("documents-XXXXXX", &path, NULL);
    ck_assert_int_ge(file, 0);
    g_close(file, NULL);
    ck_assert(g_file_set_contents(path, DOCUMENTS, -1, NULL));
    fields = g_strdup_printf("\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 2048, "
                             "\"num_attention_heads\": 16, \"num_query_groups\": 16, "
                             "\"kv_channels\": 64, \"document_lengths\": \"%s\"",
                             path);
    c = case_of(fields);
    g_unlink(path);
    return c;
}

/* A grain that the case allows, by chance. */
static LhSynthProblem *
random_problem(const Case *c, uint64_t seed)
{
    static const uint32_t slices[] = { 1, 2, 4 };

    for (uint64_t i = 0;; i++) {
        const LhSynthGrain grain = { .zigzag = lh_rng_bits(seed, i, 0) % 2 != 0,
                                     .slices = slices[lh_rng_bits(seed, i, 1) % 3],
                                     .fine = 1 + (uint32_t)(lh_rng_bits(seed, i, 2) % 2) };
        LhSynthProblem *p = lh_synth_problem_new(c->setup, grain);

        if (p != NULL)
            return p;
    }
}

static void
move_randomly(LhSynthState *s, uint64_t moves, uint64_t seed)
{
    const LhSynthProblem *p = s->problem;

    for (uint64_t i = 0; i < moves; i++)
        lh_synth_state_move(s, (uint32_t)(lh_rng_bits(seed, i, 1) % p->blocks_count),
                            (uint32_t)(lh_rng_bits(seed, i, 2) % p->places),
                            (uint32_t)(lh_rng_bits(seed, i, 3) % s->rounds));
}

static LhSynthState *
random_state(const LhSynthProblem *p, uint64_t seed)
{
    LhSynthState *s =
        lh_synth_state_new(p, 1 + (uint32_t)(lh_rng_bits(seed, 0, 9) % 4));

    for (uint32_t b = 0; b < p->blocks_count; b++)
        lh_synth_state_move(s, b, (uint32_t)(lh_rng_bits(seed, b, 10) % p->places),
                            (uint32_t)(lh_rng_bits(seed, b, 11) % s->rounds));
    return s;
}

/* The same assignment, counted from the beginning. */
static LhSynthState *
recounted(const LhSynthState *s)
{
    LhSynthState *fresh = lh_synth_state_new(s->problem, s->rounds);

    for (uint32_t b = 0; b < s->problem->blocks_count; b++)
        lh_synth_state_move(fresh, b, s->owners[b], s->turns[b]);
    return fresh;
}

/* Bytes over the network, by what places need: a second way, without counters. */
static uint64_t
bytes_needed(const LhSynthState *s)
{
    const LhSynthProblem *p = s->problem;
    g_autoptr(GHashTable) needed = g_hash_table_new(g_direct_hash, g_direct_equal);
    uint64_t bytes = 0;

    for (uint32_t b = 0; b < p->blocks_count; b++) {
        const LhSynthBlock *block = &p->blocks[b];
        const gsize row =
            1 + 2 * (((gsize)s->owners[b] * p->chunks + block->row) * p->grain.slices +
                     block->slice);
        const gsize column =
            2 + 2 * (((gsize)s->owners[b] * p->chunks + block->column) * p->grain.slices +
                     lh_synth_kv_slice(p, block->slice));

        if (p->homes[block->row] != s->owners[b] &&
            g_hash_table_add(needed, GSIZE_TO_POINTER(row)))
            bytes += p->q_bytes + p->result_bytes;
        if (p->homes[block->column] != s->owners[b] &&
            g_hash_table_add(needed, GSIZE_TO_POINTER(column)))
            bytes += p->kv_bytes;
    }
    return bytes;
}

START_TEST(counters_equal_a_recount)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c = numbered_case(i);
        g_autoptr(LhSynthProblem) p = random_problem(&c, i);
        g_autoptr(LhSynthState) s = lh_synth_state_new(p, 3);
        g_autoptr(LhSynthState) fresh = NULL;
        const gsize slots = 5 * (gsize)p->places * sizeof(int64_t);

        move_randomly(s, 10000, i);
        fresh = recounted(s);
        ck_assert_mem_eq(s->in, fresh->in, slots);
        ck_assert_mem_eq(s->out, fresh->out, slots);
        ck_assert_mem_eq(s->work_ps, fresh->work_ps, 4 * (gsize)p->places * sizeof(int64_t));
        ck_assert_mem_eq(s->load_ps, fresh->load_ps, p->places * sizeof(int64_t));
        ck_assert_uint_eq(lh_synth_state_bytes(s), bytes_needed(s));
        case_clear(&c);
    }
}
END_TEST

/* Proves @program. */
static void
prove(const LhProgram *program, guint number)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    ck_assert_msg(verdict->findings_total == 0, "case %u: %s", number,
                  verdict->findings->len > 0
                      ? g_array_index(verdict->findings, LhFinding, 0).message
                      : "");
}

static uint64_t
bytes_between_places(const LhSynthProblem *p, const LhProgram *program)
{
    const LhExplicit *all = program->plan;
    uint64_t bytes = 0;

    for (uint32_t rank = 0; rank < all->ranks_count; rank++)
        for (uint32_t i = 0; i < all->ranks[rank].parts_count; i++) {
            const LhPart *part = &all->ranks[rank].parts[i];

            if (part->send && part->peer / p->gpus != rank / p->gpus)
                bytes += part->wire_bytes;
        }
    return bytes;
}

START_TEST(any_assignment_is_proven)
{
    const guint count = (guint)test_share(30);

    for (guint i = 0; i < count; i++) {
        Case c = numbered_case(i % G_N_ELEMENTS(cases));
        g_autoptr(LhSynthProblem) p = random_problem(&c, 100 + i);
        g_autoptr(LhSynthState) s = random_state(p, i);

        for (int kernels = 0; kernels < LH_SYNTH_KERNELS; kernels++) {
            g_autoptr(LhProgram) program = lh_synth_emit(s, (LhSynthKernels)kernels);

            prove(program, i);
            if (kernels == LH_SYNTH_BLOCKS)
                ck_assert_uint_eq(bytes_between_places(p, program), lh_synth_state_bytes(s));
        }
        case_clear(&c);
    }
}
END_TEST

LH_TEST_MAIN("synth", counters_equal_a_recount, any_assignment_is_proven)
