/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that read ahead of the ops that they issue: results equal those of hosts that issue every
 * op as soon as they may, in every bit, and so do errors. The same programs show that exposed
 * communication is what it is by definition.
 */
#include "base/rng.h"
#include "compare/step_watch.h"
#include "exposed_spans.h"
#include "run_tests.h"
#include "share.h"
#include "sim_schedules.h"

/* What a timeline has told. */
typedef struct {
    uint64_t hash; /* of everything */
    ExposedSpans spans;
} Told;

static void
note_op(void *data, const LhTimelineRecord *op)
{
    Told *told = data;
    const uint64_t words[] = { op->rank,
                               op->op,
                               op->kind,
                               op->stream,
                               op->step,
                               op->tier,
                               op->kernel,
                               (uint64_t)op->issued_ps,
                               (uint64_t)op->start_ps,
                               (uint64_t)op->end_ps,
                               op->bytes,
                               op->flops };

    for (uint32_t i = 0; i < G_N_ELEMENTS(words); i++)
        told->hash = lh_rng_bits(told->hash, words[i], i);
    exposed_spans_note(&told->spans, op);
}

static void
check_rank(uint32_t r, const LhRankResult *a, const LhRankResult *b)
{
    ck_assert_msg(a->finish_ps == b->finish_ps && a->busy_ps == b->busy_ps &&
                      a->comm_ps == b->comm_ps,
                  "rank %u ends at %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, r, a->finish_ps,
                  b->finish_ps);
    ck_assert_mem_eq(a->idle_ps, b->idle_ps, sizeof(a->idle_ps));
    ck_assert_mem_eq(a->bytes_by_tier, b->bytes_by_tier, sizeof(a->bytes_by_tier));
    ck_assert_uint_eq(a->flops, b->flops);
    ck_assert_uint_eq(a->peak_bytes, b->peak_bytes);
    ck_assert_mem_eq(a->peak->by_category, b->peak->by_category, sizeof(a->peak->by_category));
    ck_assert_msg(a->peak_at_ps == b->peak_at_ps,
                  "rank %u has its peak at %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, r,
                  a->peak_at_ps, b->peak_at_ps);
    ck_assert_uint_eq(a->peak_op.op, b->peak_op.op);
}

static void
check_same(const LhSimResult *a, const LhSimResult *b)
{
    ck_assert_int_eq(a->makespan_ps, b->makespan_ps);
    for (uint32_t r = 0; r < b->ranks_count; r++)
        check_rank(r, &a->ranks[r], &b->ranks[r]);
    ck_assert_mem_eq(a->exposed_ps, b->exposed_ps, sizeof(a->exposed_ps));
    ck_assert_uint_eq(a->events, b->events);
    ck_assert_uint_eq(a->ops, b->ops);
    ck_assert_double_eq(a->compute_error, b->compute_error);
    ck_assert_double_eq(a->compute_judged, b->compute_judged);
    ck_assert_mem_eq(&a->beyond, &b->beyond, sizeof(a->beyond));
    ck_assert_int_eq((int)a->provenance, (int)b->provenance);
    ck_assert_double_eq(a->busiest_link_utilisation, b->busiest_link_utilisation);
    ck_assert_int_eq(a->out_of_memory == NULL, b->out_of_memory == NULL);
    if (b->out_of_memory == NULL)
        return;
    ck_assert_uint_eq(a->out_of_memory->rank, b->out_of_memory->rank);
    ck_assert_int_eq(a->out_of_memory->time_ps, b->out_of_memory->time_ps);
    ck_assert_uint_eq(a->out_of_memory->op.op, b->out_of_memory->op.op);
    ck_assert_uint_eq(a->out_of_memory->needed_bytes, b->out_of_memory->needed_bytes);
}

/* Asserts that the exposed communication of all ranks is that of the spans of all ops. */
static void
check_exposed(const LhSimResult *result, const LhProgram *program, const ExposedSpans *spans)
{
    LhTime sum_ps[LH_EXPOSED_DIMENSIONS] = { 0 };

    for (uint32_t r = 0; r < spans->ranks; r++)
        exposed_spans_add(spans, program, r, sum_ps);
    ck_assert_mem_eq(result->exposed_ps, sum_ps, sizeof(sum_ps));
}

static LhSimResult *
run(World *w, bool at_once, Told *told, GError **error)
{
    LhHooks hooks = { 0 };

    lh_step_watch(w->program, &hooks);
    w->params.unfolded = w->params.unskipped = true;
    w->params.at_once = at_once;
    w->params.timeline = note_op;
    w->params.timeline_data = told;
    w->params.exposed_stride = 1;
    w->params.exposed_dimension = hooks.exposed_dimension; /* by stream */
    told->spans = exposed_spans_new(lh_program_ranks(w->program));
    return world_try(w, error);
}

/* Simulates both ways; returns whether the program ends. */
static bool
check(World *w, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) expected = NULL;
    Told told = { 0 }, told_early = { 0 };
    g_autoptr(LhSimResult) late = run(w, false, &told, &error);
    g_autoptr(LhSimResult) early = run(w, true, &told_early, &expected);

    ck_assert_msg((late != NULL) == (early != NULL), "%s: %s", name,
                  late == NULL ? error->message : expected->message);
    ck_assert_msg(told.hash == told_early.hash, "%s: ops run at other times", name);
    if (early != NULL) {
        check_same(late, early);
        check_exposed(early, w->program, &told_early.spans);
    } else {
        ck_assert_str_eq(error->message, expected->message);
    }
    exposed_spans_clear(&told.spans);
    exposed_spans_clear(&told_early.spans);
    return early != NULL;
}

/* ---- random programs ---- */

/*
 * Some steps are the same on all ranks, so that their messages match; others are a rank's own. Each
 * stream is used in some stretches of the program only.
 */
typedef struct {
    uint64_t seed;
    uint32_t steps, streams;
    uint32_t stretch; /* steps */
    bool syncs, collectives, loose;
} Plan;

enum { OF_KIND, OF_STREAM, OF_USE, OF_SIZE, OF_AFTER, OF_FAR, OF_SLOT, OF_COUNT, OF_PLAN = 100 };

static uint32_t
steps_of(const LhProgram *program, uint32_t rank)
{
    (void)rank;
    return ((const Plan *)program->plan)->steps;
}

/* Whether a stream is used in the stretch of @step. */
static bool
is_used(const Plan *plan, uint32_t stream, uint32_t step)
{
    return lh_rng_bits(plan->seed, OF_USE + 16 * stream, step / plan->stretch) % 3 == 0;
}

/* Names the last op of some streams, and now and then the op before. */
static void
emit_afters(LhEmitter *e, const Plan *plan, uint64_t own, uint32_t id)
{
    for (uint32_t s = 0; s < plan->streams; s++) {
        if (lh_rng_bits(own, OF_AFTER, s) % 4 == 0)
            lh_emit_after(e, e->marks[s]);
    }
    if (id > 0 && lh_rng_bits(own, OF_FAR, 0) % 8 == 0 &&
        lh_emit_last(e)->after_count < LH_OP_AFTER_MAX)
        lh_emit_after(e, (uint32_t)(lh_rng_bits(own, OF_FAR, 1) % id));
}

static void
emit_exchange(LhEmitter *e, uint8_t stream, uint64_t shared)
{
    const uint32_t ranks = e->program->params.ranks;
    const uint32_t distance = 1 + (uint32_t)(lh_rng_bits(shared, OF_SIZE, 1) % (ranks - 1));
    const uint64_t bytes = lh_rng_bits(shared, OF_SIZE, 2) % 5000000;

    lh_emit_exchange(e, stream);
    lh_emit_part(e, true, (e->rank + distance) % ranks, 0, bytes);
    lh_emit_part(e, false, (e->rank + ranks - distance) % ranks, 0, bytes);
}

static void
emit_kernel(LhEmitter *e, uint8_t stream, uint64_t own)
{
    const uint32_t sizes[] = { 0, 16, 4096, 65536, 1048576 };
    const LhKernelArgs args = { .nq = sizes[lh_rng_bits(own, OF_SIZE, 0) % G_N_ELEMENTS(sizes)],
                                .batch = 1,
                                .heads = 8,
                                .groups = 8,
                                .head_dim = 128 };

    lh_emit_compute(e, stream, LH_KERNEL_ID_copy, &args);
    lh_emit_operand(e, 0, 0, 1);
    lh_emit_operand(e, 0, 0, 1);
}

static void
emit_memory(LhEmitter *e, uint64_t own)
{
    const LhRegion region = { .slot = 0, .part = 0, .count = 1 };

    if (lh_rng_bits(own, OF_SLOT, 0) % 2 == 0)
        lh_emit_alloc_region(e, region);
    else
        lh_emit_free_region(e, region);
}

static void
emit_op(LhEmitter *e, const Plan *plan, uint32_t step, uint32_t i)
{
    const uint64_t shared = lh_rng_bits(plan->seed, step, i);
    const uint64_t own = lh_rng_bits(shared, e->rank, 0);
    const uint32_t stream = (uint32_t)(lh_rng_bits(shared, OF_STREAM, 0) % plan->streams);
    const uint64_t kind = lh_rng_bits(shared, OF_KIND, 0) % 256;
    const uint32_t id = e->state->next_id;

    if (plan->syncs && kind == 0) {
        lh_emit_sync(e);
        return;
    }
    if (lh_rng_bits(own, OF_KIND, 1) % 8 == 0)
        emit_memory(e, own);
    if (!is_used(plan, stream, step))
        return;
    if (e->program->streams[stream].kind == LH_STREAM_COMPUTE) {
        if (lh_rng_bits(own, OF_KIND, 2) % 3 == 0)
            return;
        emit_kernel(e, (uint8_t)stream, own);
    } else if (plan->collectives && kind % 4 == 0) {
        lh_emit_collective(e, (uint8_t)stream, LH_COLL_ALL_GATHER,
                           (LhGroup){ 0, 1, e->program->params.ranks, 0, 1 });
        lh_emit_last(e)->collective.wire_bytes = kind * 1000;
    } else {
        emit_exchange(e, (uint8_t)stream, shared);
    }
    emit_afters(e, plan, plan->loose ? own : shared, id);
    e->marks[stream] = lh_emit_last(e)->id;
}

static void
emit_steps(LhEmitter *e, uint32_t step)
{
    const Plan *plan = e->program->plan;
    const uint32_t count = (uint32_t)(lh_rng_bits(plan->seed, OF_COUNT, step) % 4);

    for (uint32_t i = 0; i < count; i++)
        emit_op(e, plan, step, i);
}

static const LhGenerator random_generator = { .steps = steps_of, .emit = emit_steps };

static LhProgram *
random_program(Plan *plan, uint64_t seed, uint32_t ranks)
{
    const LhProgramParams params = attention(ranks, ranks, 1, 1, 1);
    const uint32_t stretches[] = { 3, 40, 300, 900 };
    LhProgram *program =
        lh_program_create("random", &random_generator, &params, LH_PLACE_CONTIGUOUS);

    *plan = (Plan){ .seed = seed,
                    .steps = 200 + (uint32_t)(lh_rng_bits(seed, OF_PLAN, 0) % 4000),
                    .streams = 2 + (uint32_t)(lh_rng_bits(seed, OF_PLAN, 1) % 5),
                    .stretch = stretches[lh_rng_bits(seed, OF_PLAN, 2) % 4],
                    .syncs = lh_rng_bits(seed, OF_PLAN, 3) % 4 == 0,
                    .collectives = lh_rng_bits(seed, OF_PLAN, 4) % 3 == 0,
                    .loose = lh_rng_bits(seed, OF_PLAN, 5) % 2 == 0 };
    program->plan = plan;
    for (uint32_t s = 0; s < plan->streams; s++) {
        const char name[] = { (char)('a' + s), '\0' };

        lh_program_add_stream(program, name, s % 2 == 0 ? LH_STREAM_COMPUTE : LH_STREAM_COMM);
    }
    lh_pass_add_slot(program, "kept", LH_TENSOR_KV, LH_SLOT_TEMP, 2, 1 << 20, 2);
    return program;
}

static bool
check_random(uint64_t seed)
{
    static const LhTime launches_ps[] = { 0, 4000000, 30000000 };
    static const char *const clusters[] = { "dfa-2node", "hgx-h100", "bench-platform" };
    const uint32_t ranks = 2 + (uint32_t)(lh_rng_bits(seed, OF_PLAN, 6) % 7);
    g_autofree char *name = g_strdup_printf("seed %" G_GUINT64_FORMAT, seed);
    bool ended;
    Plan plan;
    World w;

    world_init(&w, clusters[lh_rng_bits(seed, OF_PLAN, 7) % 3], random_program(&plan, seed, ranks));
    w.device.kernel_launch_ps = launches_ps[lh_rng_bits(seed, OF_PLAN, 8) % 3];
    w.params.memory_limit_bytes = 20 << 20;
    if (lh_rng_bits(seed, OF_PLAN, 9) % 4 == 0)
        w.params.network_model = LH_NETWORK_FIFO;
    if (lh_rng_bits(seed, OF_PLAN, 10) % 4 == 0)
        w.params.jitter = 0.3;
    ended = check(&w, name);
    world_clear(&w);
    return ended;
}

/* LONGHAUL_TEST_FROM and LONGHAUL_TEST_CASES: other seeds, and more of them. */
START_TEST(random_programs_issued_late_are_the_same)
{
    const char *from = g_getenv("LONGHAUL_TEST_FROM"), *count = g_getenv("LONGHAUL_TEST_CASES");
    const uint64_t first = from != NULL ? g_ascii_strtoull(from, NULL, 10) : 1;
    const uint64_t cases = count != NULL ? g_ascii_strtoull(count, NULL, 10) : test_share(150);
    uint64_t ended = 0;

    for (uint64_t seed = first; seed < first + cases; seed++)
        ended += check_random(seed);
    if (cases >= 40) {
        ck_assert_uint_gt(ended, cases / 4);
        ck_assert_uint_gt(cases - ended, 0);
    }
}
END_TEST

/* ---- schedules ---- */

/* With that many ranks, most schedules have a stream that is not used for a while. */
START_TEST(schedules_issued_late_are_the_same)
{
    const LhSchedule *const *s = lh_schedules;
    const uint32_t ranks = 64;

    for (; *s != NULL; s++) {
        for (LhPass pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
            LhProgramParams params = attention(ranks, ranks * 256, 64, 64, 64);
            LhProgram *program;
            World w;

            params.pass = pass;
            params.mask.causal = pass != LH_PASS_FWD;
            program = lh_program_new(*s, &params, NULL);
            if (program == NULL)
                continue;
            world_init(&w, "hgx-h100", program);
            w.params.memory_limit_bytes = 10 << 20;
            ck_assert(check(&w, (*s)->name));
            world_clear(&w);
        }
    }
}
END_TEST

LH_TEST_MAIN("lookahead", random_programs_issued_late_are_the_same,
             schedules_issued_late_are_the_same)
