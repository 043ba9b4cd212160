/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedule synthesis: counters against a recount; programs of random assignments against the
 * verifier, the simulator and real data; lower bounds against everything found or published.
 */
#include "base/error.h"
#include "base/rng.h"
#include "compare/totals.h"
#include "execute/execute.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"
#include "run_tests.h"
#include "scenario/step/setup_step.h"
#include "setups.h"
#include "share.h"
#include "synth/anneal.h"
#include "synth/generator.h"
#include "synth/schedule_bound.h"
#include "synth/synth.h"
#include "verify/verify.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

/* A scenario of the forward pass, or of both; @fields are members of its JSON. */
static Case
pass_of(const char *fields, bool backward)
{
    g_autofree char *members =
        g_strdup_printf("\"pass\": \"%s\", %s", backward ? "both" : "fwd", fields);
    g_autoptr(GError) error = NULL;
    const Case c = case_of(members);

    ck_assert_msg(lh_synth_check(c.setup, &error), "%s", error != NULL ? error->message : "");
    return c;
}

static Case
forward_of(const char *fields)
{
    return pass_of(fields, false);
}

/* Two slow GPUs in the second node. */
#define SLOW "\"straggler\": [{\"rank\": 5, \"factor\": 1.7}, {\"rank\": 6, \"factor\": 1.25}]"

/* Two to five nodes of four GPUs, or eight GPUs of one; full masks and windows; slow GPUs. The
 * last one gets documents. */
static const char *const cases[] = {
    ("\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 512, \"num_attention_heads\": 16, "
     "\"num_query_groups\": 16, \"kv_channels\": 64"),
    ("\"cluster\": \"azure-nc96-a100:3\", \"seq_length\": 384, \"num_attention_heads\": 16, "
     "\"num_query_groups\": 4, \"kv_channels\": 64"),
    ("\"cluster\": \"azure-nc96-a100:5\", \"seq_length\": 640, \"num_attention_heads\": 8, "
     "\"num_query_groups\": 8, \"kv_channels\": 64, \"mask\": \"full\""),
    ("\"cluster\": \"azure-nc96-a100:4\", \"seq_length\": 512, \"num_attention_heads\": 16, "
     "\"num_query_groups\": 8, \"kv_channels\": 64, \"window_size\": 170, " SLOW),
    ("\"cluster\": \"dgx-a100-80g:1\", \"seq_length\": 256, \"num_attention_heads\": 8, "
     "\"num_query_groups\": 2, \"kv_channels\": 64, \"micro_batch_size\": 2"),
    ("\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 512, \"num_attention_heads\": 16, "
     "\"num_query_groups\": 16, \"kv_channels\": 64"),
};

/* Documents that end within segments; one has a single token. */
#define DOCUMENTS "75 1 181 127 127 1\n"

#define CASES (2 * G_N_ELEMENTS(cases)) /* forward, then with the backward pass */

/* Case @number, below CASES; removes the file of its documents at once. */
static Case
numbered_case(guint number)
{
    const guint index = number % G_N_ELEMENTS(cases);
    const bool backward = number >= G_N_ELEMENTS(cases);
    g_autofree char *path = NULL;
    g_autofree char *fields = NULL;
    Case c;
    int file;

    if (index + 1 < G_N_ELEMENTS(cases))
        return pass_of(cases[index], backward);
    file = g_file_open_tmp("documents-XXXXXX", &path, NULL);
    ck_assert_int_ge(file, 0);
    g_close(file, NULL);
    ck_assert(g_file_set_contents(path, DOCUMENTS, -1, NULL));
    fields = g_strdup_printf("%s, \"document_lengths\": \"%s\"", cases[index], path);
    c = pass_of(fields, backward);
    g_unlink(path);
    return c;
}

/* A random grain that the case allows. */
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
move_randomly(LhSynthAssignment *s, uint64_t moves, uint64_t seed)
{
    const LhSynthProblem *p = s->problem;

    for (uint64_t i = 0; i < moves; i++)
        lh_synth_assignment_move(s, (uint32_t)(lh_rng_bits(seed, i, 1) % p->blocks_count),
                                 (uint32_t)(lh_rng_bits(seed, i, 2) % p->places),
                                 (uint32_t)(lh_rng_bits(seed, i, 3) % s->rounds));
}

static LhSynthAssignment *
random_state(const LhSynthProblem *p, uint64_t seed)
{
    LhSynthAssignment *s = lh_synth_assignment_new(p, 1 + (uint32_t)(lh_rng_bits(seed, 0, 9) % 4));

    for (uint32_t b = 0; b < p->blocks_count; b++)
        lh_synth_assignment_move(s, b, (uint32_t)(lh_rng_bits(seed, b, 10) % p->places),
                                 (uint32_t)(lh_rng_bits(seed, b, 11) % s->rounds));
    return s;
}

/* The same assignment, counted from scratch. */
static LhSynthAssignment *
recounted(const LhSynthAssignment *s)
{
    LhSynthAssignment *fresh = lh_synth_assignment_new(s->problem, s->rounds);

    for (uint32_t b = 0; b < s->problem->blocks_count; b++)
        lh_synth_assignment_move(fresh, b, s->owners[b], s->turns[b]);
    return fresh;
}

/* Bytes by slot and place, as in LhSynthAssignment. */
typedef struct {
    GArray *in, *out; /* of int64_t */
} Traffic;

/* Traffic of both passes. */
typedef struct {
    Traffic forward, backward;
} Travel;

static Traffic
traffic_new(guint slots)
{
    const Traffic traffic = { g_array_new(FALSE, TRUE, sizeof(int64_t)),
                              g_array_new(FALSE, TRUE, sizeof(int64_t)) };

    g_array_set_size(traffic.in, slots);
    g_array_set_size(traffic.out, slots);
    return traffic;
}

static void
traffic_clear(Traffic *traffic)
{
    g_array_unref(traffic->in);
    g_array_unref(traffic->out);
}

static void
ck_assert_traffic(const LhSynthAssignment *s, const Traffic *traffic,
                  const LhSynthCounters *counters)
{
    const gsize bytes = (s->rounds + 2) * (gsize)s->problem->places * sizeof(int64_t);

    ck_assert_mem_eq(counters->in, traffic->in->data, bytes);
    ck_assert_mem_eq(counters->out, traffic->out->data, bytes);
}

static void
add_bytes(const LhSynthAssignment *s, uint32_t slot, uint32_t from, uint32_t to, uint64_t bytes,
          Traffic *traffic)
{
    g_array_index(traffic->out, int64_t, slot * s->problem->places + from) += (int64_t)bytes;
    g_array_index(traffic->in, int64_t, slot * s->problem->places + to) += (int64_t)bytes;
}

/* Adds the bytes that @place needs of row or column chunk @chunk, and their rounds, by scanning
 * all blocks. */
static void
add_need(const LhSynthAssignment *s, bool row, uint32_t place, uint32_t chunk, uint32_t slice,
         Travel *travel)
{
    const LhSynthProblem *p = s->problem;
    uint32_t first = UINT32_MAX, last = 0, home;

    for (uint32_t b = 0; b < p->blocks_count; b++) {
        const LhSynthBlock *block = &p->blocks[b];
        const bool needs =
            row ? block->row == chunk && block->slice == slice
                : block->column == chunk && lh_synth_kv_slice(p, block->slice) == slice;

        if (!needs || s->owners[b] != place)
            continue;
        first = MIN(first, s->turns[b]);
        last = MAX(last, s->turns[b]);
    }
    if (first == UINT32_MAX || p->homes[chunk] == place)
        return;
    home = p->homes[chunk];
    add_bytes(s, first, home, place, row ? p->q_bytes : p->kv_bytes, &travel->forward);
    if (row)
        add_bytes(s, last + 2, place, home, p->result_bytes, &travel->forward);
    if (!p->backward)
        return;
    if (row)
        add_bytes(s, first, home, place, p->do_bytes, &travel->backward);
    add_bytes(s, row ? first + 2 : last + 2, place, home, row ? p->q_bytes : p->kv_bytes,
              &travel->backward);
}

/* Traffic over the network derived from what places need, independently of the counters. */
static Travel
travel_needed(const LhSynthAssignment *s)
{
    const LhSynthProblem *p = s->problem;
    const guint slots = (s->rounds + 2) * p->places;
    Travel travel = { traffic_new(slots), traffic_new(slots) };

    for (uint32_t place = 0; place < p->places; place++) {
        for (uint32_t chunk = 0; chunk < p->chunks; chunk++) {
            for (uint32_t slice = 0; slice < p->grain.slices; slice++)
                add_need(s, true, place, chunk, slice, &travel);
            for (uint32_t slice = 0; slice < p->kv_slices; slice++)
                add_need(s, false, place, chunk, slice, &travel);
        }
    }
    return travel;
}

static void
ck_assert_counters(const LhSynthAssignment *s, const LhSynthCounters *a, const LhSynthCounters *b)
{
    const gsize places = s->problem->places;

    ck_assert_mem_eq(a->in, b->in, (s->rounds + 2) * places * sizeof(int64_t));
    ck_assert_mem_eq(a->out, b->out, (s->rounds + 2) * places * sizeof(int64_t));
    ck_assert_mem_eq(a->work_ps, b->work_ps, (s->rounds + 1) * places * sizeof(int64_t));
}

START_TEST(counters_equal_a_recount)
{
    for (guint i = 0; i < CASES; i++) {
        Case c = numbered_case(i);
        g_autoptr(LhSynthProblem) p = random_problem(&c, i);
        g_autoptr(LhSynthAssignment) s = lh_synth_assignment_new(p, 3);
        g_autoptr(LhSynthAssignment) fresh = NULL;
        Travel travel;

        move_randomly(s, 10000, i);
        fresh = recounted(s);
        travel = travel_needed(s);
        ck_assert_counters(s, &s->forward, &fresh->forward);
        ck_assert_counters(s, &s->backward, &fresh->backward);
        ck_assert_traffic(s, &travel.forward, &s->forward);
        ck_assert_traffic(s, &travel.backward, &s->backward);
        ck_assert_mem_eq(s->load_ps, fresh->load_ps, p->places * sizeof(int64_t));
        traffic_clear(&travel.forward);
        traffic_clear(&travel.backward);
        case_clear(&c);
    }
}
END_TEST

/* Time of work at @place: its slowest GPU decides. */
static int64_t
work_at(const Case *c, uint32_t place, LhTime work_ps)
{
    const bool slow = c->setup->scenario->straggler != NULL && place == 1;

    return slow ? (int64_t)((double)work_ps * 1.7) : work_ps;
}

/* Every block's work counts where it is computed, in entry 0 if it waits for no remote data:
 * neither row nor column; in the backward pass, where columns are kept, no row. */
START_TEST(work_is_that_of_all_blocks)
{
    for (guint i = 0; i < CASES; i++) {
        Case c = numbered_case(i);
        g_autoptr(LhSynthProblem) p = random_problem(&c, 50 + i);
        g_autoptr(LhSynthAssignment) s = random_state(p, i);
        const gsize entries = (s->rounds + 1) * (gsize)p->places;
        g_autofree int64_t *forward = g_new0(int64_t, entries);
        g_autofree int64_t *backward = g_new0(int64_t, entries);
        g_autofree int64_t *load = g_new0(int64_t, p->places);

        for (uint32_t b = 0; b < p->blocks_count; b++) {
            const LhSynthBlock *block = &p->blocks[b];
            const uint32_t place = s->owners[b], later = (s->turns[b] + 1) * p->places + place;
            const bool row = p->homes[block->row] == place;
            const bool column = p->homes[block->column] == place;

            ck_assert_int_gt(block->work_ps, 0);
            ck_assert_int_eq(block->back_ps > 0, p->backward);
            forward[row && column ? place : later] += work_at(&c, place, block->work_ps);
            backward[row ? place : later] += work_at(&c, place, block->back_ps);
            load[place] += work_at(&c, place, block->work_ps) + work_at(&c, place, block->back_ps);
        }
        ck_assert_mem_eq(forward, s->forward.work_ps, entries * sizeof(int64_t));
        ck_assert_mem_eq(backward, s->backward.work_ps, entries * sizeof(int64_t));
        ck_assert_mem_eq(load, s->load_ps, p->places * sizeof(int64_t));
        case_clear(&c);
    }
}
END_TEST

/* Proves @program. */
static void
prove(const LhProgram *program, guint number)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    ck_assert_msg(
        verdict->findings_total == 0, "case %u: %s", number,
        verdict->findings->len > 0 ? g_array_index(verdict->findings, LhFinding, 0).message : "");
}

/* The bytes of @program's messages into and out of each place equal the counters. */
static void
check_traffic(const LhSynthAssignment *s, const LhProgram *program)
{
    const LhExplicit *all = program->plan;
    const uint32_t places = s->problem->places, gpus = s->problem->gpus;
    g_autofree int64_t *in = g_new0(int64_t, places), *out = g_new0(int64_t, places);
    uint64_t sent = 0;

    for (uint32_t rank = 0; rank < all->ranks_count; rank++)
        for (uint32_t i = 0; i < all->ranks[rank].parts_count; i++) {
            const LhPart *part = &all->ranks[rank].parts[i];

            if (!part->send || part->peer / gpus == rank / gpus)
                continue;
            out[rank / gpus] += (int64_t)part->wire_bytes;
            in[part->peer / gpus] += (int64_t)part->wire_bytes;
            sent += part->wire_bytes;
        }
    ck_assert_uint_eq(sent, lh_synth_assignment_bytes(s));
    for (uint32_t place = 0; place < places; place++) {
        for (uint32_t slot = 0; slot < s->rounds + 2; slot++) {
            in[place] -= s->forward.in[slot * places + place];
            in[place] -= s->backward.in[slot * places + place];
            out[place] -= s->forward.out[slot * places + place];
            out[place] -= s->backward.out[slot * places + place];
        }
        ck_assert_int_eq(in[place], 0);
        ck_assert_int_eq(out[place], 0);
    }
}

/* Executes @program with real data: results within the gates, and the counts of verifier and
 * simulator. */
static void
execute(const Case *c, const LhProgram *program, guint number)
{
    const LhExecuteParams how = { .backend = &lh_backend_cpu, .check_tokens = 8 };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = lh_execute_program(c->setup, program, &how, &error);

    ck_assert_msg(executed != NULL, "case %u: %s", number, error != NULL ? error->message : "");
    ck_assert_msg(lh_executed_ok(executed), "case %u", number);
}

START_TEST(any_assignment_is_proven_and_runs)
{
    for (guint i = 0; i < 100; i += (guint)MIN(test_every(), 37)) {
        Case c = numbered_case(i % CASES);
        g_autoptr(LhSynthProblem) p = random_problem(&c, 100 + i);
        g_autoptr(LhSynthAssignment) s = random_state(p, i);

        for (uint32_t style = 0; style < LH_SYNTH_STYLES; style++) {
            g_autoptr(LhProgram) program = lh_synth_emit(s, lh_synth_styles[style]);

            prove(program, i);
            if (style == i / CASES % LH_SYNTH_STYLES)
                execute(&c, program, i);
            if (lh_synth_styles[style].kernels == LH_SYNTH_BLOCKS)
                check_traffic(s, program);
        }
        case_clear(&c);
    }
}
END_TEST

/* --- lower bounds
 * -------------------------------------------------------------------------------- */

/* Every assignment, however unbalanced, has at least the traffic of the cut. */
START_TEST(no_assignment_moves_less_than_the_cut)
{
    for (guint i = 0; i < CASES; i++) {
        Case c = numbered_case(i);
        const LhSynthBound bound = lh_synth_bound(c.setup);
        g_autoptr(LhSynthProblem) p = random_problem(&c, 200 + i);

        for (int start = 0; start <= LH_SYNTH_STARTS; start++) {
            g_autoptr(LhSynthAssignment) s =
                start < LH_SYNTH_STARTS ? lh_synth_assignment_new(p, 3) : random_state(p, i);
            const LhSynthCooling cooling = { .moves = 20000 / MIN(test_every(), 8),
                                             .seed = i,
                                             .weights = { 0.5, 0 },
                                             .hot = 0.03,
                                             .cold = 0.0002 };

            if (start < LH_SYNTH_STARTS)
                lh_synth_assignment_start(s, (LhSynthStart)start);
            ck_assert_double_ge((double)lh_synth_assignment_bytes(s), bound.cut_bytes);
            lh_synth_anneal(s, &cooling);
            ck_assert_double_ge((double)lh_synth_assignment_bytes(s), bound.cut_bytes);
        }
        case_clear(&c);
    }
}
END_TEST

/* Fractions of a node's tokens, for the independent computation. */
#define STEPS 8

/* The maximum of price x pairs - traffic, over sets of rows and columns in whole steps. */
static double
best_sets(uint32_t nodes, double price, double row, double column)
{
    const double step = 1.0 / STEPS;
    double best = 0;

    for (uint32_t i = 0; i <= nodes * STEPS; i++)
        for (uint32_t j = 0; j <= nodes * STEPS; j++)
            for (uint32_t x = 0; x <= MIN(i, STEPS); x++)
                for (uint32_t y = 0; y <= MIN(j, STEPS); y++) {
                    const double a = i * step, b = j * step;
                    const double both = fmax(fmax(a + b - nodes, (x + y) * step - 1), 0);

                    best = fmax(best, price * (a * b - both * both / 2) - (i - x) * step * row -
                                          (j - y) * step * column);
                }
    return best;
}

/* Whole steps allow fewer sets: the result is at least the cut, and close to it. */
static double
cut_by_steps(uint32_t nodes, double row, double column)
{
    double cut = 0;

    for (int i = 0; i < 250; i++) {
        const double price = 0.05 * pow(1.02, i);

        cut = fmax(cut, price * nodes / 2 - best_sets(nodes, price, row, column));
    }
    return cut;
}

START_TEST(the_cut_is_that_of_all_sets)
{
    static const struct {
        double row, column;
    } costs[] = { { 2, 2 }, { 2, 0.5 }, { 1, 3 } };
    static const uint32_t ones[] = { 1, 1, 1, 1 }, twos[] = { 2, 2, 2 }, unlike[] = { 3, 1 };

    for (gsize i = 0; i < G_N_ELEMENTS(costs); i++) {
        for (uint32_t nodes = 2; nodes <= 3; nodes++) {
            const uint64_t many = UINT64_C(1) << 40;
            const double cut = lh_synth_cut(ones, nodes, many, true, costs[i].row, costs[i].column);
            const double steps = nodes * cut_by_steps(nodes, costs[i].row, costs[i].column);
            const double whole =
                lh_synth_cut(twos, nodes, many, true, costs[i].row, costs[i].column);

            ck_assert_double_le(cut, steps * 1.02);
            ck_assert_double_ge(cut, steps * 0.9);
            ck_assert_double_ge(
                lh_synth_cut(ones, nodes, 4096, false, costs[i].row, costs[i].column), cut);
            /* A place of two nodes is a node with twice the tokens. */
            ck_assert_double_eq_tol(whole / cut, 2, 0.01);
        }
        /* Bytes that leave a node may stay within its pair of nodes; bytes that leave a pair
         * leave a node. */
        ck_assert_double_lt(lh_synth_cut(twos, 2, 4096, true, costs[i].row, costs[i].column),
                            lh_synth_cut(ones, 4, 4096, true, costs[i].row, costs[i].column));
        ck_assert_double_gt(lh_synth_cut(unlike, 2, 4096, true, costs[i].row, costs[i].column), 0);
    }
    ck_assert_double_eq(lh_synth_cut(ones, 2, 4096, true, 0, 2), 0);
}
END_TEST

static const char *const bounded[] = {
    "\"cluster\": \"dfa-2node:2\", \"seq_length\": \"16K\"",
    "\"cluster\": \"azure-nc96-a100:4\", \"seq_length\": \"32K\", \"network\": \"fifo\"",
    "\"cluster\": \"hgx-h100:2\", \"model\": \"llama-3-8b\", \"seq_length\": \"64K\"",
    ("\"cluster\": \"azure-nc96-a100:4\", \"seq_length\": \"16K\", \"mask\": \"full\", "
     "\"jitter\": 0.2, \"straggler\": [{\"rank\": 3, \"factor\": 2}], "
     "\"link_fault\": [{\"tier\": \"nic\", \"node\": 1, \"factor\": 0.5}]"),
    "\"cluster\": \"dgx-a100-80g\", \"seq_length\": \"32K\", \"cost\": \"device\"",
};

START_TEST(nothing_published_is_below_the_bound)
{
    const guint count = (guint)test_share(2 * G_N_ELEMENTS(bounded));

    for (guint i = 0; i < count; i++) {
        Case c = pass_of(bounded[i / 2], i % 2 != 0);
        const LhSynthBound bound = lh_synth_bound(c.setup);

        ck_assert_int_gt(bound.bound_ps, 0);
        for (guint k = 0; k < c.setup->schedules->len; k++) {
            g_autoptr(LhCompareRow) row =
                lh_compare_run(c.setup, g_ptr_array_index(c.setup->schedules, k), NULL);

            if (row->result != NULL)
                ck_assert_msg(row->result->makespan_ps >= bound.bound_ps, "case %u: %s", i,
                              row->name);
        }
        case_clear(&c);
    }
}
END_TEST

/* A random value of the list, by @draw. */
#define ANY(values, draw) (values)[lh_rng_bits(seed, draw, 20) % G_N_ELEMENTS(values)]

/*
 * Members of a random scenario: cluster and nodes, length, heads, mask, network, slow ranks and
 * links. Not all have a synthesis. Caller frees.
 */
static char *
random_fields(uint64_t seed)
{
    static const struct {
        const char *name;
        uint32_t gpus, nodes_max;
    } clusters[] = { { "azure-nc96-a100", 4, 5 }, { "dfa-2node", 8, 3 }, { "hgx-h100", 8, 3 },
                     { "dgx-a100-80g", 8, 3 },    { "pcie-a800", 8, 1 }, { "hgx-b200", 8, 3 } };
    static const uint32_t tokens[] = { 64, 128, 512, 2048 }, heads[] = { 8, 16, 32 };
    static const uint32_t shared[] = { 1, 1, 2, 4 }, channels[] = { 64, 128 }, batches[] = { 1, 2 };
    static const char *const networks[] = { "fair", "fair", "fifo" };
    static const char *const jitters[] = { "0", "0", "0.1", "0.3" };
    const gsize cluster = lh_rng_bits(seed, 0, 20) % G_N_ELEMENTS(clusters);
    const uint32_t gpus = clusters[cluster].gpus;
    const uint32_t nodes = 1 + (uint32_t)(lh_rng_bits(seed, 1, 20) % clusters[cluster].nodes_max);
    const uint32_t length = ANY(tokens, 4) * gpus * nodes;
    const uint32_t query_heads = ANY(heads, 5);
    const uint32_t groups = MAX(query_heads / ANY(shared, 6), 1);
    const uint64_t mask = lh_rng_bits(seed, 2, 20) % 4, slow = lh_rng_bits(seed, 12, 20) % 4;
    g_autofree char *masked = mask == 0   ? g_strdup(", \"mask\": \"full\"")
                              : mask == 1 ? g_strdup_printf(", \"window_size\": %u", length / 3)
                                          : g_strdup("");

    return g_strdup_printf(
        "\"cluster\": \"%s:%u\", \"seq_length\": %u, \"num_attention_heads\": %u, "
        "\"num_query_groups\": %u, \"kv_channels\": %u, \"micro_batch_size\": %u, "
        "\"network\": \"%s\", \"jitter\": %s, \"pass\": \"%s\"%s%s",
        clusters[cluster].name, nodes, length, query_heads, groups, ANY(channels, 7),
        ANY(batches, 8), ANY(networks, 9), ANY(jitters, 11),
        lh_rng_bits(seed, 3, 20) % 2 != 0 ? "both" : "fwd", masked,
        slow == 0 ? ", \"straggler\": [{\"rank\": 2, \"factor\": 1.7}]"
        : slow == 1 && nodes > 1
            ? ", \"link_fault\": [{\"tier\": \"nic\", \"node\": 0, \"factor\": 0.4}]"
            : "");
}

/* Neither a published nor a synthesised schedule is below the lower bound. */
static void
hold_bound(const Case *c, const char *fields, uint64_t seed)
{
    const LhSynthOptions options = { .budget = 2, .seed = seed, .moves = 300, .task.jobs = 1 };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSynthesis) s = lh_synth(c->setup, &options, &error);

    ck_assert_msg(s != NULL, "%s: %s", fields, error != NULL ? error->message : "");
    ck_assert_int_gt(s->bound.bound_ps, 0);
    ck_assert_msg(s->best->result->makespan_ps >= s->bound.bound_ps, "%s: found", fields);
    ck_assert_msg(s->candidate_ps >= s->bound.bound_ps, "%s: a candidate", fields);
    for (guint i = 0; i < s->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(s->rows, i);

        ck_assert_msg(row->result == NULL || row->result->makespan_ps >= s->bound.bound_ps,
                      "%s: %s", fields, row->name);
    }
}

START_TEST(nothing_is_below_the_bound_of_a_random_problem)
{
    const guint wanted = (guint)test_share(500);
    guint held = 0, crossing = 0;
    uint64_t seed = 0;

    for (; held < wanted && seed < UINT64_C(4) * wanted + 50; seed++) {
        g_autofree char *fields = random_fields(seed);
        Case c = case_of(fields);

        if (lh_synth_check(c.setup, NULL)) {
            hold_bound(&c, fields, seed);
            crossing += lh_synth_bound(c.setup).cut_ps > 0;
            held++;
        }
        case_clear(&c);
    }
    ck_assert_uint_eq(held, wanted);
    ck_assert_uint_ge(crossing, wanted / 10); /* both bounds are tested */
}
END_TEST

/* Nodes behind oversubscribed trunks: no result is below the trunks' lower bound. */
START_TEST(nothing_is_below_the_bound_of_trunks)
{
    const guint count = (guint)test_share(24);
    guint bound_by_trunks = 0;

    for (uint64_t seed = 0; seed < count; seed++) {
        const uint32_t nodes = 5 + (uint32_t)(lh_rng_bits(seed, 0, 21) % 5);
        const uint32_t over = 1U << lh_rng_bits(seed, 1, 21) % 6;
        const bool causal = lh_rng_bits(seed, 2, 21) % 2 != 0;
        const uint32_t sizes[] = { 4, MIN(nodes - 4, 4), nodes - MIN(nodes, 8) };
        const uint32_t tokens = 64U << lh_rng_bits(seed, 3, 21) % 6;
        g_autofree char *fields = g_strdup_printf(
            "\"cluster\": \"fat-tree-a100:%u\", \"seq_length\": %u, \"num_attention_heads\": 16, "
            "\"oversubscription\": %u, \"mask\": \"%s\", \"pass\": \"fwd\"",
            nodes, 8 * nodes * tokens, over, causal ? "causal" : "full");
        Case c = case_of(fields);
        const LhAttention *a = &c.setup->params.attention;
        const double trunk = 4.0 * (double)c.setup->topology->nics_per_node *
                             c.setup->topology->nic.bandwidth / over;
        const double rows = lh_synth_cut(sizes, nodes > 8 ? 3 : 2, 8 * tokens, causal, 4, 4);
        const double bytes = rows * 8 * tokens * a->heads * a->head_dim;
        const LhSynthBound bound = lh_synth_bound(c.setup);

        ck_assert_double_eq_tol(
            (double)bound.trunk_ps / (bytes / trunk / (nodes > 8 ? 3 : 2) * 1e12), 1, 1e-6);
        ck_assert_int_ge(bound.bound_ps, bound.trunk_ps);
        bound_by_trunks += bound.bound_ps == bound.trunk_ps;
        hold_bound(&c, fields, seed);
        case_clear(&c);
    }
    ck_assert_uint_ge(bound_by_trunks, count / 4);
}
END_TEST

/* --- the search ---------------------------------------------------------------------------------
 */

/* Two nodes with slow NICs: half of the heads of each sequence part need not cross them. */
#define SMALL                                                                                      \
    "\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 2048, \"num_attention_heads\": 8, "       \
    "\"num_query_groups\": 8, \"kv_channels\": 64, "                                               \
    "\"schedule\": [\"usp\", \"te-a2a-p2p\", \"ulysses\", \"zigzag\"]"

static LhSynthesis *
synth(const Case *c, const LhSynthOptions *options)
{
    g_autoptr(GError) error = NULL;
    LhSynthesis *s = lh_synth(c->setup, options, &error);

    ck_assert_msg(s != NULL, "%s", error != NULL ? error->message : "");
    return s;
}

static GString *
text_of(const LhProgram *program)
{
    GString *text = g_string_new(NULL);

    ck_assert(lh_program_write(program, text, NULL));
    return text;
}

/* The assignment has every block once, and each place the work of its ranks. */
static void
hold_cells(const Case *c, const LhSynthesis *s, bool both)
{
    const LhAttention *a = &c->setup->params.attention;
    const LhSynthPlaces at = lh_synth_places(c->setup);
    const uint32_t slices = s->recipe.grain.slices;
    const uint64_t pair_flops = UINT64_C(4) * a->batch * a->heads / at.gpus / slices * a->head_dim;
    g_autofree uint64_t *pairs = g_new0(uint64_t, at.places);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autofree gint64 *keys = g_new(gint64, s->cells->len);

    for (guint i = 0; i < s->cells->len; i++) {
        const LhSynthCell *cell = &g_array_index(s->cells, LhSynthCell, i);
        const uint32_t *homes = &g_array_index(s->homes, uint32_t, 0);
        const bool local = homes[cell->row] == cell->place && homes[cell->column] == cell->place;

        ck_assert_uint_lt(cell->place, at.places);
        ck_assert_uint_lt(cell->slice, slices);
        ck_assert_uint_le(cell->round, s->recipe.rounds);
        ck_assert_int_eq(cell->round == 0, local);
        pairs[cell->place] += cell->pairs;
        keys[i] = ((gint64)cell->row * s->homes->len + cell->column) * slices + cell->slice;
        ck_assert(g_hash_table_add(seen, &keys[i]));
    }
    for (uint32_t rank = 0; rank < s->best->result->ranks_count; rank++)
        ck_assert_uint_eq(s->best->result->ranks[rank].flops * (both ? 2 : 7),
                          pairs[rank / at.gpus] * pair_flops * 7);
}

START_TEST(cells_are_what_runs)
{
    for (int both = 0; both < 2; both++) {
        Case c = both != 0 ? case_of(SMALL ", \"pass\": \"both\"") : forward_of(SMALL);
        const LhSynthOptions options = { .budget = 12, .moves = 3000, .task.jobs = 2 };
        g_autoptr(LhSynthesis) s = synth(&c, &options);

        ck_assert_int_eq(s->origin, LH_SYNTH_FOUND);
        ck_assert_uint_gt(s->cells->len, 4);
        hold_cells(&c, s, both != 0);
        case_clear(&c);
    }
}
END_TEST

START_TEST(threads_change_nothing)
{
    Case c = forward_of(SMALL);
    LhSynthOptions options = { .budget = 20, .seed = 5, .moves = 2000 };
    g_autoptr(LhSynthesis) one = NULL;
    g_autoptr(LhSynthesis) two = NULL;
    g_autoptr(LhSynthesis) other = NULL;

    options.task.jobs = 1;
    one = synth(&c, &options);
    options.task.jobs = 2;
    two = synth(&c, &options);
    ck_assert_int_eq(one->origin, LH_SYNTH_FOUND);
    {
        g_autoptr(GString) a = text_of(one->best->program);
        g_autoptr(GString) b = text_of(two->best->program);

        ck_assert_str_eq(a->str, b->str);
    }
    ck_assert_uint_eq(one->simulated, two->simulated);
    ck_assert_uint_eq(one->candidates, 20);
    options.from = two->best->program;
    options.budget = 1;
    other = synth(&c, &options);
    ck_assert_int_le(other->best->result->makespan_ps, two->best->result->makespan_ps);
    case_clear(&c);
}
END_TEST

/* A result is found, written, read back, proven, and executed with real data. It is faster than
 * the published schedules, and has the counts of verifier and simulator. */
static void
find_and_run(bool backward)
{
    Case c = pass_of(SMALL, backward);
    const LhSynthOptions options = { .budget = 16,
                                     .moves = 10000 / MIN(test_every(), 4),
                                     .task.jobs = 2 };
    g_autoptr(LhSynthesis) s = synth(&c, &options);
    g_autoptr(GString) text = text_of(s->best->program);
    g_autoptr(LhProgram) read = lh_program_parse("synth", text->str, text->len, NULL);
    g_autoptr(LhSimResult) again = NULL;

    ck_assert_int_eq(s->origin, LH_SYNTH_FOUND);
    ck_assert(lh_synthesis_wins(s));
    ck_assert_int_lt(s->best->result->makespan_ps, s->published->result->makespan_ps);
    ck_assert_int_ge(s->best->result->makespan_ps, s->bound.bound_ps);
    ck_assert_ptr_nonnull(read);
    prove(read, 0);
    again = lh_setup_simulate(c.setup, read, NULL, NULL, NULL, NULL);
    ck_assert_int_eq(again->makespan_ps, s->best->result->makespan_ps);
    execute(&c, read, 0);
    case_clear(&c);
}

START_TEST(beats_the_published_and_runs)
{
    find_and_run(false);
    find_and_run(true);
}
END_TEST

/* Cases of docs/results/synthesis.md, whose times were first found by a prototype, with the
 * accepted shortfall. */
START_TEST(finds_what_is_known_to_be_there)
{
    static const struct {
        const char *fields;
        bool backward;
        uint32_t budget;
        double known_ms; /* 0: that of the published schedule */
        double share;
    } rows[] = {
        { "\"cluster\": \"dfa-2node:2\", \"model\": \"llama-7b\", \"seq_length\": \"16K\", "
          "\"schedule\": [\"usp\"]",
          false, 24, 1.188, 1.05 },
        { "\"cluster\": \"dfa-2node:2\", \"model\": \"llama-7b\", \"seq_length\": \"16K\", "
          "\"schedule\": [\"te-a2a-p2p\"]",
          true, 64, 3.586, 1.05 },
        { "\"cluster\": \"hgx-h100:4\", \"model\": \"llama-3-8b\", \"seq_length\": \"32K\", "
          "\"schedule\": [\"te-a2a-p2p\"]",
          false, 64, 0.538, 1.05 },
        { "\"cluster\": \"hgx-h100:8\", \"model\": \"llama-3-70b\", \"seq_length\": \"64K\", "
          "\"schedule\": [\"te-a2a-p2p\"]",
          false, 4, 0, 1.005 },
        { "\"cluster\": \"hgx-h100:4\", \"model\": \"llama-3-8b\", \"seq_length\": \"32K\", "
          "\"schedule\": [\"te-a2a-p2p\"]",
          true, 64, 2.088, 1.05 },
        /* One of sixteen GPUs has half speed: its node gets half as much work. */
        { "\"cluster\": \"hgx-h100:2\", \"model\": \"llama-3-8b\", \"seq_length\": \"64K\", "
          "\"schedule\": [\"allgather-kv\"], \"straggler\": [{\"rank\": 3, \"factor\": 2}]",
          false, 16, 0, 0.72 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        Case c = pass_of(rows[i].fields, rows[i].backward);
        const LhSynthOptions options = { .budget = rows[i].budget };
        g_autoptr(LhSynthesis) s = NULL;

        if (test_takes(i + 1)) {
            const double scale = (double)LH_PS_PER_S / 1000;
            double known_ms;

            s = synth(&c, &options);
            known_ms = rows[i].known_ms > 0 ? rows[i].known_ms
                                            : (double)s->published->result->makespan_ps / scale;
            ck_assert_msg((double)s->candidate_ps / scale <= rows[i].share * known_ms,
                          "row %zu: %.4f ms, known are %.4f ms", i, (double)s->candidate_ps / scale,
                          known_ms);
        }
        case_clear(&c);
    }
}
END_TEST

/* Without published schedules the search finds the same as beside them. */
START_TEST(alone_the_best_candidate_is_the_answer)
{
    Case c = forward_of(SMALL);
    LhSynthOptions options = { .budget = 4, .moves = 2000, .task.jobs = 2 };
    g_autoptr(LhSynthesis) beside = synth(&c, &options);
    g_autoptr(LhSynthesis) alone = NULL;

    options.alone = true;
    alone = synth(&c, &options);
    ck_assert_uint_eq(beside->rows->len, 4);
    ck_assert_uint_eq(alone->rows->len, 0);
    ck_assert_ptr_null(alone->published);
    ck_assert_int_eq(alone->origin, LH_SYNTH_FOUND);
    ck_assert_int_eq(alone->candidate_ps, beside->candidate_ps);
    ck_assert_int_eq(alone->best->result->makespan_ps, beside->candidate_ps);
    case_clear(&c);
}
END_TEST

static uint64_t
peak_of(const LhSimResult *result)
{
    LhTotals totals;

    lh_totals(result, &totals);
    return totals.peak_bytes;
}

START_TEST(keeps_the_memory_limit)
{
    Case c = forward_of(SMALL);
    LhSynthOptions options = { .budget = 8, .moves = 2000, .task.jobs = 2 };
    g_autoptr(LhSynthesis) free_one = synth(&c, &options);
    g_autoptr(LhSynthesis) limited = NULL;
    g_autoptr(GError) error = NULL;

    options.memory_limit_bytes = peak_of(free_one->best->result) - 1;
    limited = synth(&c, &options);
    ck_assert_uint_le(peak_of(limited->best->result), options.memory_limit_bytes);
    options.memory_limit_bytes = 1;
    ck_assert_ptr_null(lh_synth(c.setup, &options, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    case_clear(&c);
}
END_TEST

static bool
stop(void *data, const LhProgress *at)
{
    uint32_t *calls = data;

    (void)at;
    return ++*calls < 12;
}

START_TEST(an_interrupted_search_has_an_answer)
{
    Case c = forward_of(SMALL);
    uint32_t calls = 0;
    const LhSynthOptions options = { .budget = 1000,
                                     .moves = 500,
                                     .task = { .jobs = 1, .progress = stop, .data = &calls } };
    g_autoptr(LhSynthesis) s = synth(&c, &options);

    ck_assert(s->interrupted);
    ck_assert_uint_lt(s->candidates, 12);
    prove(s->best->program, 0);
    case_clear(&c);
}
END_TEST

START_TEST(programs_of_other_cases_are_refused)
{
    Case c = forward_of(SMALL);
    const LhProgramParams own = c.setup->params;
    g_autoptr(LhProgram) program =
        lh_setup_program(c.setup, g_ptr_array_index(c.setup->schedules, 0), NULL);

    ck_assert(lh_synth_fits(c.setup, program, NULL));
    c.setup->params.attention.heads++;
    ck_assert(!lh_synth_fits(c.setup, program, NULL));
    c.setup->params = own;
    c.setup->params.attention.seq_length *= 2;
    ck_assert(!lh_synth_fits(c.setup, program, NULL));
    c.setup->params = own;
    c.setup->params.mask.window = 5;
    ck_assert(!lh_synth_fits(c.setup, program, NULL));
    c.setup->params = own;
    c.setup->params.pass = LH_PASS_BOTH;
    ck_assert(!lh_synth_fits(c.setup, program, NULL));
    c.setup->params = own;
    c.setup->network.ranks++;
    ck_assert(!lh_synth_fits(c.setup, program, NULL));
    c.setup->network.ranks--;
    case_clear(&c);
}
END_TEST

/* --- robustness trials
 * --------------------------------------------------------------------------- */

/* Three published schedules: few enough that jitter is tested for all of them. */
#define JUDGED                                                                                     \
    "\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 2048, \"num_attention_heads\": 8, "       \
    "\"num_query_groups\": 8, \"kv_channels\": 64, \"pass\": \"fwd\""
#define THREE ", \"schedule\": [\"usp\", \"te-a2a-p2p\", \"ulysses\"]"

#define SEED 11

static LhSynthesis *
judged(const char *fields, guint threads)
{
    const LhSynthOptions options = {
        .budget = 12, .seed = SEED, .moves = 4000, .task.jobs = threads, .robust = true
    };
    Case c = case_of(fields);
    LhSynthesis *s = synth(&c, &options);

    /* The result borrows nothing from the setup. */
    case_clear(&c);
    return s;
}

static int
by_time(const void *a, const void *b)
{
    const LhTime x = *(const LhTime *)a, y = *(const LhTime *)b;

    return (x > y) - (x < y);
}

/* Times of a program, of the fastest published schedule per run, and of the one with the least
 * median, from scenarios with the trial's network and jitter. */
typedef struct {
    LhTime times_ps[LH_SYNTH_SEEDS], published_ps[LH_SYNTH_SEEDS], median_ps, worst_ps;
} Replayed;

/* One program with all seeds. */
static void
replay_one(const char *fields, const LhSynthTrial *trial, const LhProgram *program,
           LhTime times_ps[LH_SYNTH_SEEDS])
{
    for (uint32_t run = 0; run < trial->runs; run++) {
        g_autofree char *said = g_strdup_printf(
            "%s, \"network\": \"%s\", \"jitter\": %g, \"seed\": %u", fields,
            lh_network_model_names[trial->network_model], trial->jitter, SEED + run);
        Case c = case_of(said);
        g_autoptr(LhSimResult) result = lh_setup_simulate(c.setup, program, NULL, NULL, NULL, NULL);

        ck_assert_ptr_nonnull(result);
        times_ps[run] = result->makespan_ps;
        case_clear(&c);
    }
}

static void
replay(const char *fields, const LhSynthTrial *trial, const LhProgram *program, Replayed *all)
{
    const uint32_t runs = trial->runs;
    Case c = case_of(fields);

    ck_assert(runs >= 1 && runs <= LH_SYNTH_SEEDS);
    replay_one(fields, trial, program, all->times_ps);
    all->median_ps = all->worst_ps = LH_TIME_NEVER;
    for (uint32_t run = 0; run < runs; run++)
        all->published_ps[run] = LH_TIME_NEVER;
    for (guint i = 0; i < c.setup->schedules->len; i++) {
        g_autoptr(LhProgram) published =
            lh_setup_program(c.setup, g_ptr_array_index(c.setup->schedules, i), NULL);
        LhTime times_ps[LH_SYNTH_SEEDS] = { 0 };

        if (published == NULL)
            continue;
        replay_one(fields, trial, published, times_ps);
        for (uint32_t run = 0; run < runs; run++)
            all->published_ps[run] = MIN(all->published_ps[run], times_ps[run]);
        qsort(times_ps, runs, sizeof(LhTime), by_time);
        if (times_ps[(runs - 1) / 2] < all->median_ps) {
            all->median_ps = times_ps[(runs - 1) / 2];
            all->worst_ps = times_ps[runs - 1];
        }
    }
    case_clear(&c);
}

/* The trials' numbers equal those of scenarios with the same settings. */
static void
hold_trials(const char *fields, const LhSynthesis *s)
{
    bool holds = true;

    ck_assert(s->robust.asked);
    for (int j = 0; j < LH_SYNTH_JUDGES; j++) {
        const LhSynthTrial *trial = &s->robust.trials[j];
        Replayed all = { .median_ps = 0 };
        uint32_t wins = 0;

        replay(fields, trial, s->best->program, &all);
        for (uint32_t run = 0; run < trial->runs; run++)
            wins += all.times_ps[run] < all.published_ps[run];
        qsort(all.times_ps, trial->runs, sizeof(LhTime), by_time);
        ck_assert_uint_eq(trial->wins, wins);
        ck_assert_int_eq(trial->median_ps, all.times_ps[(trial->runs - 1) / 2]);
        ck_assert_int_eq(trial->worst_ps, all.times_ps[trial->runs - 1]);
        ck_assert_int_eq(trial->published_median_ps, all.median_ps);
        ck_assert_int_eq(trial->published_worst_ps, all.worst_ps);
        holds = holds && wins == trial->runs;
    }
    ck_assert_int_eq(s->robust.holds, holds);
}

static void
check_judges(const LhSynthRobust *r, LhNetworkModel own, LhNetworkModel other, double jitter)
{
    ck_assert_int_eq(r->trials[0].network_model, own);
    ck_assert_int_eq(r->trials[1].network_model, other);
    ck_assert_int_eq(r->trials[2].network_model, other);
    ck_assert_double_eq(r->trials[0].jitter, jitter);
    ck_assert_double_eq(r->trials[2].jitter, jitter);
    ck_assert_uint_eq(r->trials[0].runs, LH_SYNTH_SEEDS);
    ck_assert_uint_eq(r->trials[1].runs, 1);
    ck_assert_uint_eq(r->trials[2].runs, LH_SYNTH_SEEDS);
}

START_TEST(what_holds_wins_under_every_judge)
{
    g_autoptr(LhSynthesis) s = judged(JUDGED THREE, 2);

    check_judges(&s->robust, LH_NETWORK_FAIR, LH_NETWORK_FIFO, LH_SYNTH_JITTER);
    hold_trials(JUDGED THREE, s);
    ck_assert(s->robust.holds);
    ck_assert_int_eq(s->origin, LH_SYNTH_FOUND);
    prove(s->best->program, 0);
}
END_TEST

/* Jitter is tested for those published schedules that may be the fastest of a network. usp is
 * the fastest of the scenario but not with jitter; the fastest under fifo is not among the three
 * fastest of the scenario. */
START_TEST(the_fastest_of_each_network_meet_jitter)
{
    static const char fields[] =
        "\"cluster\": \"azure-nc96-a100:2\", \"seq_length\": 8192, \"num_attention_heads\": 8, "
        "\"num_query_groups\": 8, \"kv_channels\": 64, \"pass\": \"fwd\"";
    g_autoptr(LhSynthesis) s = judged(fields, 2);
    const LhCompareRow *fourth = NULL;
    guint before = 0;

    hold_trials(fields, s);
    ck_assert_str_eq(s->published->name, "usp");
    ck_assert_str_ne(s->robust.trials[0].published, "usp");
    ck_assert_str_eq(s->robust.trials[2].published, "te-allgather");
    for (guint i = 0; i < s->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(s->rows, i);

        if (g_str_equal(row->name, "te-allgather"))
            fourth = row;
    }
    ck_assert(fourth != NULL && fourth->result != NULL);
    for (guint i = 0; i < s->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(s->rows, i);

        before += row->result != NULL && row->result->makespan_ps < fourth->result->makespan_ps;
    }
    ck_assert_uint_ge(before, LH_SYNTH_RIVALS);
}
END_TEST

/* A tie is no win. Measured times of collectives apply with fair links only. */
START_TEST(a_tie_is_no_win)
{
    static const char fields[] = "\"cluster\": \"hgx-h100:1\", \"seq_length\": 16384, "
                                 "\"pass\": \"fwd\", \"schedule\": [\"te-allgather\"]";
    Case c = case_of(fields);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    g_autoptr(LhCompareRow) row =
        lh_compare_run(c.setup, g_ptr_array_index(c.setup->schedules, 0), NULL);
    const LhSynthCourt court = {
        .setup = c.setup, .seed = SEED, .task.jobs = 2, .published = rows, .contenders = rows
    };
    LhSynthRobust answer = { 0 };

    ck_assert_ptr_nonnull(row->result);
    g_ptr_array_add(rows, row);
    lh_synth_test_robustness(&court, &answer);
    ck_assert(answer.asked && !answer.holds && !answer.fastest_holds);
    ck_assert_uint_eq(answer.chosen, 0);
    for (int j = 0; j < LH_SYNTH_JUDGES; j++) {
        const LhSynthTrial *trial = &answer.trials[j];
        Replayed all = { .median_ps = 0 };

        replay(fields, trial, row->program, &all);
        ck_assert_uint_eq(trial->wins, 0);
        ck_assert_int_eq(trial->median_ps, all.median_ps);
        ck_assert_int_eq(trial->published_median_ps, all.median_ps);
        ck_assert_str_eq(trial->published, row->name);
    }
    case_clear(&c);
}
END_TEST

/* Gathered keys and values need one message per link; small messages queue behind others. */
START_TEST(what_does_not_hold_is_said)
{
    static const char fields[] = JUDGED ", \"schedule\": [\"usp\", \"te-allgather\", \"ulysses\"]";
    g_autoptr(LhSynthesis) s = judged(fields, 2);

    hold_trials(fields, s);
    ck_assert(!s->robust.holds && !s->robust.fastest_holds);
    ck_assert_uint_eq(s->robust.chosen, 0);
    ck_assert_int_eq(s->best->result->makespan_ps, s->robust.fastest_ps);
    ck_assert(lh_synthesis_wins(s));
    ck_assert_uint_eq(s->robust.trials[0].wins, LH_SYNTH_SEEDS);
    ck_assert_uint_eq(s->robust.trials[1].wins, 0);
    ck_assert_str_eq(s->robust.trials[1].published, "te-allgather");
}
END_TEST

/* Trials use the scenario's jitter if it is larger, and fair if the scenario has fifo. */
START_TEST(judges_differ_from_the_scenario)
{
    static const char fifo[] = JUDGED THREE ", \"network\": \"fifo\"";
    static const char alone[] = JUDGED THREE ", \"network\": \"alpha-beta\"";
    g_autoptr(LhSynthesis) f = judged(fifo, 2);
    g_autoptr(LhSynthesis) a = judged(alone, 2);
    g_autoptr(LhSynthesis) j = judged(JUDGED THREE ", \"jitter\": 0.25, \"seed\": 11", 2);

    check_judges(&f->robust, LH_NETWORK_FIFO, LH_NETWORK_FAIR, LH_SYNTH_JITTER);
    hold_trials(JUDGED THREE, f);
    check_judges(&a->robust, LH_NETWORK_ALPHA_BETA, LH_NETWORK_FIFO, LH_SYNTH_JITTER);
    hold_trials(JUDGED THREE, a);
    check_judges(&j->robust, LH_NETWORK_FAIR, LH_NETWORK_FIFO, 0.25);
    ck_assert_double_eq(j->robust.trials[1].jitter, 0.25);
    hold_trials(JUDGED THREE, j);
}
END_TEST

/* The program's worst time relative to the fastest published one. */
static double
worst_share(const char *fields, const LhSynthesis *s, const LhProgram *program, LhTime own_ps)
{
    double worst = (double)own_ps / (double)s->published->result->makespan_ps;

    for (int k = 0; k < LH_SYNTH_JUDGES; k++) {
        const LhSynthTrial *trial = &s->robust.trials[k];
        Replayed all = { .median_ps = 0 };

        replay(fields, trial, program, &all);
        for (uint32_t run = 0; run < trial->runs; run++)
            worst = fmax(worst, (double)all.times_ps[run] / (double)all.published_ps[run]);
    }
    return worst;
}

/* The chosen program may not be the fastest one; the fastest is still reported, and the search
 * is unaffected. */
START_TEST(the_chosen_one_wins_by_most_at_the_least)
{
    guint others = 0;

    for (uint64_t seed = 0; seed < 4 && (others == 0 || !test_is_short()); seed++) {
        const LhSynthOptions plain = { .budget = 12, .seed = SEED, .moves = 500 + 500 * seed };
        LhSynthOptions robust = plain;
        static const char fields[] = JUDGED THREE;
        Case c = case_of(JUDGED THREE ", \"network\": \"fifo\"");
        g_autoptr(LhSynthesis) p = synth(&c, &plain);
        g_autoptr(LhSynthesis) r = NULL;
        double share, fastest_share;

        robust.robust = true;
        r = synth(&c, &robust);
        ck_assert_int_eq(r->candidate_ps, p->candidate_ps);
        ck_assert_uint_eq(r->moves, p->moves);
        ck_assert_int_eq(r->robust.fastest_ps, p->best->result->makespan_ps);
        ck_assert_int_ge(r->best->result->makespan_ps, r->robust.fastest_ps);
        ck_assert(!p->robust.asked);
        share = worst_share(fields, r, r->best->program, r->best->result->makespan_ps);
        fastest_share = worst_share(fields, r, p->best->program, r->robust.fastest_ps);
        ck_assert_int_eq(r->robust.fastest_holds, fastest_share < 1);
        ck_assert_int_eq(r->robust.holds, share < 1);
        ck_assert_double_le(share, fastest_share);
        if (r->robust.chosen > 0)
            ck_assert(r->robust.holds && share < fastest_share);
        others += r->robust.chosen > 0;
        case_clear(&c);
    }
    ck_assert_uint_gt(others, 0);
}
END_TEST

/* Of two that are equal in every trial, the faster one in the scenario is chosen. */
START_TEST(the_scenario_is_among_the_judges)
{
    static const char fields[] = JUDGED THREE ", \"network\": \"fifo\"";
    Case c = case_of(fields);
    g_autoptr(LhSynthesis) s = judged(fields, 2);
    g_autoptr(GPtrArray) contenders = g_ptr_array_new();
    LhSimResult slow = *s->best->result; /* borrows */
    LhCompareRow first = *s->best;
    const LhSynthCourt court = { .setup = c.setup,
                                 .seed = SEED,
                                 .task.jobs = 2,
                                 .published = s->rows,
                                 .contenders = contenders };
    LhSynthRobust answer = { 0 };

    slow.makespan_ps = s->published->result->makespan_ps - 1;
    first.result = &slow;
    g_ptr_array_add(contenders, &first);
    g_ptr_array_add(contenders, s->best);
    lh_synth_test_robustness(&court, &answer);
    ck_assert(answer.holds && answer.fastest_holds);
    ck_assert_uint_eq(answer.chosen, 1);
    case_clear(&c);
}
END_TEST

START_TEST(threads_change_no_judgement)
{
    g_autoptr(LhSynthesis) one = judged(JUDGED THREE ", \"network\": \"fifo\"", 1);
    g_autoptr(LhSynthesis) two = judged(JUDGED THREE ", \"network\": \"fifo\"", 2);
    g_autoptr(GString) a = text_of(one->best->program);
    g_autoptr(GString) b = text_of(two->best->program);

    ck_assert_str_eq(a->str, b->str);
    ck_assert_uint_eq(one->robust.chosen, two->robust.chosen);
    ck_assert_uint_eq(one->robust.contenders, two->robust.contenders);
    ck_assert_uint_gt(one->robust.contenders, 1);
    for (int j = 0; j < LH_SYNTH_JUDGES; j++) {
        const LhSynthTrial *x = &one->robust.trials[j], *y = &two->robust.trials[j];

        ck_assert_str_eq(x->published, y->published);
        ck_assert_uint_eq(x->wins, y->wins);
        ck_assert_int_eq(x->median_ps, y->median_ps);
        ck_assert_int_eq(x->worst_ps, y->worst_ps);
        ck_assert_int_eq(x->published_median_ps, y->published_median_ps);
        ck_assert_int_eq(x->published_worst_ps, y->published_worst_ps);
    }
}
END_TEST

/* Stops after all candidates, before a trial tests the next program. */
static bool
stop_judges(void *data, const LhProgress *at)
{
    uint32_t *left = data;

    return at->done < at->total || --*left > 0;
}

START_TEST(interrupted_judges_leave_the_fastest)
{
    Case c = case_of(JUDGED THREE ", \"network\": \"fifo\"");
    uint32_t left = 10;
    LhSynthOptions options = { .budget = 12, .seed = SEED, .moves = 500, .task.jobs = 1 };
    g_autoptr(LhSynthesis) plain = synth(&c, &options);
    g_autoptr(LhSynthesis) s = NULL;

    options.robust = true;
    options.task.progress = stop_judges;
    options.task.data = &left;
    s = synth(&c, &options);
    ck_assert_uint_eq(left, 0);
    ck_assert(s->interrupted && s->robust.interrupted);
    ck_assert(!s->robust.asked && !s->robust.holds);
    ck_assert_int_eq(s->best->result->makespan_ps, plain->best->result->makespan_ps);
    case_clear(&c);
}
END_TEST

/* A program continued from a file takes part; without results there are no trials. */
START_TEST(judges_hear_what_is_gone_on_from)
{
    Case c = case_of(JUDGED THREE);
    LhSynthOptions options = { .budget = 12, .seed = SEED, .moves = 4000, .robust = true };
    g_autoptr(LhSynthesis) before = synth(&c, &options);
    g_autoptr(LhSynthesis) s = NULL;
    g_autoptr(LhSynthesis) none = NULL;
    Case huge = case_of("\"cluster\": \"dgx-a100-80g:1\", \"ranks\": 2, \"seq_length\": 262144, "
                        "\"num_attention_heads\": 2, \"pass\": \"fwd\", "
                        "\"schedule\": [\"zigzag\"]");

    ck_assert(before->robust.holds);
    options.from = before->best->program;
    options.budget = 1;
    options.moves = 1;
    s = synth(&c, &options);
    ck_assert_int_eq(s->origin, LH_SYNTH_FROM);
    ck_assert(s->robust.asked && s->robust.holds);
    ck_assert_int_eq(s->best->result->makespan_ps, before->best->result->makespan_ps);
    options.from = NULL;
    none = synth(&huge, &options);
    ck_assert_int_eq(none->origin, LH_SYNTH_PUBLISHED);
    ck_assert(!none->robust.asked && !none->robust.holds && !none->robust.interrupted);
    case_clear(&c);
    case_clear(&huge);
}
END_TEST

LH_TEST_MAIN("synth", counters_equal_a_recount, work_is_that_of_all_blocks,
             any_assignment_is_proven_and_runs, no_assignment_moves_less_than_the_cut,
             the_cut_is_that_of_all_sets, nothing_published_is_below_the_bound,
             nothing_is_below_the_bound_of_a_random_problem, nothing_is_below_the_bound_of_trunks,
             cells_are_what_runs, threads_change_nothing, beats_the_published_and_runs,
             finds_what_is_known_to_be_there, alone_the_best_candidate_is_the_answer,
             keeps_the_memory_limit, an_interrupted_search_has_an_answer,
             programs_of_other_cases_are_refused, what_holds_wins_under_every_judge,
             the_fastest_of_each_network_meet_jitter, a_tie_is_no_win, what_does_not_hold_is_said,
             judges_differ_from_the_scenario, the_chosen_one_wins_by_most_at_the_least,
             the_scenario_is_among_the_judges, threads_change_no_judgement,
             interrupted_judges_leave_the_fastest, judges_hear_what_is_gone_on_from)
