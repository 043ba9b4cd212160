/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs over NCCL without GPUs: the backend's own code runs on a stand-in for NCCL and one for
 * CUDA streams, with the CPU kernels. Any finding of the stand-ins fails the test, and so does any
 * bit that differs from a CPU run.
 */
#include "built.h"
#include "over_links.h"
#include "recording.h"
#include "running.h"
#include "runtime/gpu/nccl_api.h"
#include "runtime/gpu/nccl_communicators.h"
#include "standin.h"
#include "virtual_time.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#define SLACK_S 6 /* tolerance beyond the deadline, for loaded machines */

#ifdef INTERPRETED
#define HEAD_DIM 64
#define HEADS 2
static const uint32_t ranks_of_runs[] = { 4 };
#else
#define HEAD_DIM 32
#define HEADS 8
/* tests/mutants/engine.py runs many programs. */
#ifdef FEW_RUNS
static const uint32_t ranks_of_runs[] = { 3, 4 };
static const bool few_runs = true;
#else
static const uint32_t ranks_of_runs[] = { 2, 3, 4, 5, 8 };
static const bool few_runs = false;
#endif
#endif

/* Number of communicators not destroyed yet. */
static unsigned
end_of_nccl(void)
{
    unsigned (*end)(void);
    void *library = dlopen(g_getenv("LONGHAUL_NCCL"), RTLD_NOW | RTLD_NOLOAD);
    void *function;

    if (library == NULL)
        return 0;
    function = dlsym(library, "standin_nccl_end");
    memcpy(&end, &function, sizeof(function));
    dlclose(library);
    return function == NULL ? 0 : end();
}

static LhExecuted *
run_with(const LhBackend *on, LhCollectiveModel collectives, LhProgram *program, GError **error)
{
    const LhExecuteParams params = { .backend = on, .deadline_ps = 20 * LH_PS_PER_S };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;

    scenario->ranks = lh_program_ranks(program);
    scenario->collectives = (int)collectives;
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

static LhExecuted *
run_on(const LhBackend *on, LhProgram *program, GError **error)
{
    return run_with(on, LH_COLLECTIVES_DIRECT, program, error);
}

/* Behaviour of the stand-in. */
typedef struct {
    uint32_t queues, eager;
    uint64_t seed;
} Way;

static const Way ways[] = {
    { 0, 0, 1 },
#ifndef INTERPRETED
    { 1, 0, 2 },
    { 4, 40, 3 },
    { 0, 100, 4 },
#endif
};

static void
check_run(const char *name, LhProgram *program, const char *digest, const Way *way)
{
    const StandinOptions options = { .seed = way->seed,
                                     .devices = lh_program_ranks(program),
                                     .queues = way->queues,
                                     .eager = way->eager,
                                     .alike = true };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    standin_start(&options);
    executed = run_on(&lh_backend_nccl, program, &error);
    ck_assert_msg(executed != NULL, "%s, %u queues, %u %% eager: %s\n%s", name, way->queues,
                  way->eager, error != NULL ? error->message : "", standin_findings());
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    ck_assert_msg(standin_findings()[0] == '\0', "%s: %s", name, standin_findings());
    ck_assert(lh_executed_ok(executed));
    ck_assert_str_eq(executed->digest, digest);
    executed->same_bits = false;
    ck_assert(!lh_executed_ok(executed));
}

/* The expected outputs. */
static char *
digest_of(LhProgram *program)
{
    const StandinOptions options = { .seed = 8, .devices = 1, .alike = true };
#ifdef INTERPRETED
    const LhBackend *other = &lh_backend_cuda;
#else
    const LhBackend *other = &lh_backend_cpu;
#endif
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    standin_start(&options);
    executed = run_on(other, program, &error);
    standin_end();
    ck_assert_msg(executed != NULL, "%s: %s", program->name, error != NULL ? error->message : "");
    return g_strdup(executed->digest);
}

START_TEST(schedules_give_the_same_bits)
{
    const LhSchedule *schedule = lh_schedules[_i];
    uint32_t runs = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++) {
        Case c = small_case(schedule, ranks_of_runs[i]);
        g_autoptr(LhProgram) program = NULL;
        g_autofree char *digest = NULL;

        c.wanted.attention.heads = HEADS;
        c.wanted.attention.groups = HEADS;
        c.wanted.attention.head_dim = HEAD_DIM;
        program = program_of(&c);
        if (program == NULL)
            continue;
        digest = digest_of(program);
        for (size_t k = 0; k < G_N_ELEMENTS(ways); k++)
            check_run(schedule->name, program, digest, &ways[k]);
        runs++;
    }
    ck_assert_uint_gt(runs, 0);
}
END_TEST

#ifndef INTERPRETED
/* ---- collectives lowered in other ways, and NCCL's own ---- */

static bool
has_collectives(const LhProgram *program)
{
    g_autoptr(LhNcclComms) lanes = lh_nccl_comms_new(program, NULL);
    bool any = false;

    for (uint32_t i = 0; i < lh_nccl_comms_count(lanes); i++)
        any = any || lh_nccl_comms_at(lanes, i)->collectives;
    return any;
}

/* NCCL guarantees no order of a sum: such results must be within the gates. All others must be
 * bit-identical to those of threads. */
static void
check_collectives(LhProgram *program, LhCollectiveModel model, const Way *way)
{
    const StandinOptions options = { .seed = way->seed,
                                     .devices = lh_program_ranks(program),
                                     .queues = way->queues,
                                     .eager = way->eager,
                                     .alike = true };
    const bool own = model == LH_COLLECTIVES_NCCL;
    g_autoptr(LhExecuted) threads =
        run_with(&lh_backend_cpu, own ? LH_COLLECTIVES_DIRECT : model, program, NULL);
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(GError) error = NULL;

    standin_start(&options);
    executed = run_with(&lh_backend_nccl, model, program, &error);
    ck_assert_msg(executed != NULL, "%s, %s: %s\n%s", program->name,
                  lh_collective_model_names[model], error != NULL ? error->message : "",
                  standin_findings());
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    ck_assert_msg(standin_findings()[0] == '\0', "%s, %s: %s", program->name,
                  lh_collective_model_names[model], standin_findings());
    ck_assert_msg(lh_executed_ok(executed), "%s, %s", program->name,
                  lh_collective_model_names[model]);
    if (!own)
        ck_assert_str_eq(executed->digest, threads->digest);
}

START_TEST(collectives_are_made_in_every_way)
{
    static const LhCollectiveModel models[] = { LH_COLLECTIVES_RING, LH_COLLECTIVES_PAIRWISE,
                                                LH_COLLECTIVES_NCCL };

    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++) {
        Case c = small_case(lh_schedules[_i], ranks_of_runs[i]);
        g_autoptr(LhProgram) program = NULL;

        c.wanted.attention.heads = HEADS;
        c.wanted.attention.groups = HEADS;
        c.wanted.attention.head_dim = HEAD_DIM;
        program = program_of(&c);
        if (program == NULL || !has_collectives(program))
            continue;
        for (size_t k = 0; k < G_N_ELEMENTS(models); k++)
            check_collectives(program, models[k], &ways[(i + k) % G_N_ELEMENTS(ways)]);
    }
}
END_TEST

/* ---- messages of several pieces ---- */

enum { SMALL, LARGE, GATHERED_SMALL, GATHERED_LARGE, TEMP };
#define PIECES 2 /* parts contributed by each rank */
#define SMALL_BYTES 64
#define LARGE_BYTES 4096

static void
gather(LhEmitter *e, uint16_t from, uint16_t into)
{
    const uint32_t ranks = lh_program_ranks(e->program);

    lh_emit_collective(e, 1, LH_COLL_ALL_GATHER, (LhGroup){ 0, 1, ranks, 0, 1 });
    lh_emit_tensor(e, (LhRegion){ from, 0, PIECES }, (LhRegion){ into, 0, PIECES * ranks });
}

/* Gathers small pieces, then large ones; allocates and frees a buffer before the next small
 * ones. */
static LhProgram *
program_of_pieces(uint32_t ranks)
{
    const LhProgramParams params = built_params(ranks);
    Built b = built_new("pieces", &params);
    const LhSlotParams slots[] = {
        [SMALL] = { "small", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = PIECES,
                    .part_bytes = SMALL_BYTES },
        [LARGE] = { "large", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = PIECES,
                    .part_bytes = LARGE_BYTES },
        [GATHERED_SMALL] = { "gathered small", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32,
                             .parts = PIECES * ranks, .part_bytes = SMALL_BYTES },
        [GATHERED_LARGE] = { "gathered large", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32,
                             .parts = PIECES * ranks, .part_bytes = LARGE_BYTES },
        [TEMP] = { "temp", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = 1,
                   .part_bytes = SMALL_BYTES },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(slots); i++)
        lh_program_add_slot(b.program, slots[i]);
    lh_program_add_stream(b.program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(b.program, "comm", LH_STREAM_COMM);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        LhEmitter *e = &b.emitters[rank];

        gather(e, SMALL, GATHERED_SMALL);
        gather(e, LARGE, GATHERED_LARGE);
        lh_emit_alloc(e, TEMP);
        lh_emit_free(e, TEMP);
        gather(e, SMALL, GATHERED_SMALL);
    }
    return built_end(&b);
}

static void
load_numbers(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    const uint64_t bytes = slot == SMALL ? SMALL_BYTES : LARGE_BYTES;

    (void)data;
    for (uint64_t i = 0; i < bytes; i++)
        into[i] = (unsigned char)(100 * rank + 40 * part + 20 * slot + i);
}

/* An allocator of one device allocation per request: freed memory is really freed, so that the
 * stand-in detects any later use. */
static unsigned char *
alloc_alone(LhDeviceState *device, uint64_t bytes, GError **error)
{
    void *memory = NULL;

    (void)device;
    (void)error;
    ck_assert_int_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

static void
release_alone(LhDeviceState *device, unsigned char *memory)
{
    (void)device;
    ck_assert_int_eq(cudaFree(memory), cudaSuccess);
}

typedef void (*Load)(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into);

static LhRunResult *
run_loaded(const LhBackend *on, const LhProgram *program, LhCollectiveWay way, Load load)
{
    const LhRunParams params = { .program = program,
                                 .backend = on,
                                 .collectives = way,
                                 .deadline_us = 20 * G_USEC_PER_SEC,
                                 .load = load };
    g_autoptr(GError) error = NULL;
    LhRunResult *result = lh_execute(&params, &error);

    ck_assert_msg(result != NULL, "%s\n%s", error != NULL ? error->message : "",
                  standin_findings());
    return result;
}

START_TEST(messages_of_several_pieces)
{
    const uint32_t ranks = 3;
    const StandinOptions options = { .seed = 6 + (uint64_t)_i, .devices = ranks, .eager = 10 };
    g_autoptr(LhProgram) program = program_of_pieces(ranks);
    g_autoptr(LhRunResult) threads =
        run_loaded(&lh_backend_cpu, program, LH_WAY_DIRECT, load_numbers);
    g_autoptr(LhRunResult) result = NULL;
    LhRunDevice alone = lh_device_cuda;
    LhBackend backend = lh_backend_nccl;

    alone.alloc = alloc_alone;
    alone.release = release_alone;
    backend.device = &alone;
    standin_start(&options);
    result = run_loaded(&backend, program, (LhCollectiveWay)_i, load_numbers);
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    ck_assert_msg(standin_findings()[0] == '\0', "%s", standin_findings());
    for (uint32_t rank = 0; rank < ranks; rank++)
        ck_assert_mem_eq(result->outputs[rank], threads->outputs[rank], result->output_bytes);
}
END_TEST

/* ---- every collective on its own, including those that no schedule uses ---- */

enum { GIVEN, GOTTEN };

/* Every member of @group has one part of the given tensor, or as many parts as there are
 * members. */
static LhProgram *
program_of_kind(LhCollectiveKind kind, uint32_t ranks, LhGroup group)
{
    const LhProgramParams params = built_params(ranks);
    const uint32_t given = kind == LH_COLL_ALL_GATHER ? 1 : group.count;
    const uint32_t gotten = kind == LH_COLL_REDUCE_SCATTER ? 1 : group.count;
    Built b = built_new(lh_collective_names[kind], &params);

    lh_program_add_slot(b.program,
                        (LhSlotParams){ "given", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32,
                                        .parts = given, .part_bytes = SMALL_BYTES });
    lh_program_add_slot(b.program,
                        (LhSlotParams){ "gotten", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32,
                                        .parts = gotten, .part_bytes = SMALL_BYTES });
    lh_program_add_stream(b.program, "comm", LH_STREAM_COMM);
    for (uint32_t i = 0; i < group.count; i++) {
        LhEmitter *e = &b.emitters[lh_group_member(&group, i)];

        lh_emit_collective(e, 0, kind, group);
        lh_emit_tensor(e, (LhRegion){ GIVEN, 0, given }, (LhRegion){ GOTTEN, 0, gotten });
    }
    return built_end(&b);
}

/* All ranks, or all except the first and the last. */
static LhGroup
group_of(uint32_t ranks, bool inner)
{
    return inner ? (LhGroup){ 1, 1, ranks - 2, 0, 1 } : (LhGroup){ 0, 1, ranks, 0, 1 };
}

/* Integers: their sums are the same in any order. */
static void
load_integers(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    (void)data;
    (void)slot;
    for (uint32_t i = 0; i < SMALL_BYTES / sizeof(float); i++)
        ((float *)(void *)into)[i] = (float)(1000 * rank + 100 * part + i);
}

static void
check_kind(LhCollectiveKind kind, LhCollectiveWay way, LhGroup group, uint32_t ranks)
{
    const StandinOptions options = { .seed = 7 + (uint64_t)way, .devices = ranks, .eager = 10 };
    g_autoptr(LhProgram) program = program_of_kind(kind, ranks, group);
    g_autoptr(LhRunResult) threads =
        run_loaded(&lh_backend_cpu, program, LH_WAY_DIRECT, load_integers);
    g_autoptr(LhRunResult) result = NULL;

    standin_start(&options);
    result = run_loaded(&lh_backend_nccl, program, way, load_integers);
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    ck_assert_msg(standin_findings()[0] == '\0', "%s", standin_findings());
    for (uint32_t i = 0; i < group.count; i++) {
        const uint32_t rank = (uint32_t)lh_group_member(&group, i);

        ck_assert_msg(memcmp(result->outputs[rank], threads->outputs[rank], result->output_bytes) ==
                          0,
                      "%s, way %d, %u of %u ranks: rank %u has other bits", program->name, way,
                      group.count, ranks, rank);
        ck_assert_uint_eq(result->ranks[rank].bytes_sent, threads->ranks[rank].bytes_sent);
    }
}

START_TEST(kinds_give_the_same_bits)
{
    for (int way = LH_WAY_DIRECT; way <= LH_WAY_NATIVE; way++) {
        check_kind((LhCollectiveKind)_i, (LhCollectiveWay)way, group_of(4, false), 4);
        check_kind((LhCollectiveKind)_i, (LhCollectiveWay)way, group_of(5, true), 5);
    }
}
END_TEST

START_TEST(collectives_of_a_library_need_one)
{
    const Case c = small_case(lh_schedule_find("ulysses", NULL), 4);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(run_with(&lh_backend_cpu, LH_COLLECTIVES_NCCL, program, &error));
    ck_assert_msg(strstr(error->message, "only backend \"nccl\" runs collectives") != NULL, "%s",
                  error->message);
}
END_TEST

/* ---- times ---- */

static LhTime
run_time(const LhProgram *program, LhCollectiveWay way, const StandinTimes *times)
{
    const StandinOptions options = { .seed = 3, .devices = lh_program_ranks(program), .eager = 20 };
    const LhRunHooks hooks = { .call = call_with_time };
    const LhRunParams params = { .program = program,
                                 .backend = &lh_backend_nccl,
                                 .collectives = way,
                                 .deadline_us = 20 * G_USEC_PER_SEC,
                                 .hooks = &hooks,
                                 .load = load_zeros };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhRunResult) result = NULL;

    standin_start(&options);
    standin_times(times);
    result = lh_execute(&params, &error);
    end_of_nccl();
    standin_end();
    ck_assert_msg(result != NULL, "%s: %s", program->name, error != NULL ? error->message : "");
    ck_assert_str_eq(standin_findings(), "");
    return result->makespan_ps;
}

/* The time of messages over links of this latency and bandwidth. */
static LhTime
sim_time(const LhProgram *program, LhCollectiveModel model, const StandinTimes *times)
{
    const Links links = { .message_s = times->message_s,
                          .bytes_per_s = times->message_bytes_per_s,
                          .compute_time = unit_time };
    g_autoptr(LhSimResult) result = simulate_over(program, &links, model, NULL, NULL);

    return result->makespan_ps;
}

START_TEST(times_are_those_of_the_simulator)
{
    static const uint32_t ranks[] = { 2, 3, 4, 5, 8 };
    static const double bandwidths[] = { 2048, 65536 };

    for (size_t i = 0; i < G_N_ELEMENTS(ranks) * G_N_ELEMENTS(bandwidths); i++) {
        Case c = small_case(lh_schedules[_i], ranks[i / 2]);
        const StandinTimes times = { NULL, 0.25, bandwidths[i % 2] };
        g_autoptr(LhProgram) program = NULL;
        LhTime ran, simulated;

        set_option(&c.wanted, "no_overlap", i / 2 % 2 != 0);
        program = program_of(&c);
        if (program == NULL)
            continue;
        ran = run_time(program, LH_WAY_DIRECT, &times);
        simulated = sim_time(program, LH_COLLECTIVES_DIRECT, &times);
        ck_assert_msg(fabs((double)ran / (double)simulated - 1) < 1e-5,
                      "%s, P %u, %g bytes/s: %g s, simulated %g s", program->name, ranks[i / 2],
                      bandwidths[i % 2], (double)ran / LH_PS_PER_S,
                      (double)simulated / LH_PS_PER_S);
    }
}
END_TEST

/* As many rounds as in the simulator: the messages of one round start together. */
START_TEST(times_of_collectives_are_those_of_the_simulator)
{
    static const struct {
        LhCollectiveWay way;
        LhCollectiveModel model;
    } pairs[] = { { LH_WAY_DIRECT, LH_COLLECTIVES_DIRECT },
                  { LH_WAY_RING, LH_COLLECTIVES_RING },
                  { LH_WAY_PAIRWISE, LH_COLLECTIVES_PAIRWISE } };
    const StandinTimes times = { NULL, 0.25, 2048 };

    for (uint32_t ranks = 2; ranks <= 5; ranks++) {
        g_autoptr(LhProgram) program =
            program_of_kind((LhCollectiveKind)_i, ranks, group_of(ranks, false));

        for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
            const LhTime ran = run_time(program, pairs[i].way, &times);
            const LhTime simulated = sim_time(program, pairs[i].model, &times);

            ck_assert_msg(fabs((double)ran / (double)simulated - 1) < 1e-5,
                          "%s, %s, P %u: %g s, simulated %g s", program->name,
                          lh_collective_model_names[pairs[i].model], ranks,
                          (double)ran / LH_PS_PER_S, (double)simulated / LH_PS_PER_S);
        }
    }
}
END_TEST

/* ---- failures ---- */

typedef struct {
    const char *schedule, *inject, *standin; /* STANDIN_NCCL */
    uint32_t ranks;
    double deadline_s;
} Trouble;

/* Runs a program that must fail, within its deadline and with no thread left running. */
static GError *
expect_failure(const Trouble *t, const LhBackend *on)
{
    const Case c = small_case(lh_schedule_find(t->schedule, NULL), t->ranks);
    const StandinOptions options = { .seed = 5, .devices = t->ranks, .eager = 30 };
    const LhExecuteParams params = { .backend = on,
                                     .inject = t->inject,
                                     .deadline_ps = (LhTime)(t->deadline_s * LH_PS_PER_S) };
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    const gint64 began_us = g_get_monotonic_time();
    GError *error = NULL;

    if (t->standin != NULL)
        g_setenv("STANDIN_NCCL", t->standin, TRUE);
    scenario->ranks = t->ranks;
    setup = lh_setup_new(scenario, &error);
    standin_start(&options);
    executed = lh_execute_program(setup, program, &params, &error);
    ck_assert_ptr_null(executed);
    ck_assert_msg(
        g_get_monotonic_time() - began_us < (gint64)((t->deadline_s + SLACK_S) * G_USEC_PER_SEC),
        "it took %.1f s: %s", (double)(g_get_monotonic_time() - began_us) / 1e6, error->message);
    ck_assert_uint_eq(end_of_nccl(), 0);
    standin_end();
    g_unsetenv("STANDIN_NCCL");
    return error;
}

static void
expect_words(const Trouble *t, const char *const *words)
{
    g_autoptr(GError) error = expect_failure(t, &lh_backend_nccl);

    ck_assert_msg(error->code == LH_ERROR_RUNTIME, "%s", error->message);
    for (; *words != NULL; words++)
        ck_assert_msg(strstr(error->message, *words) != NULL, "no \"%s\" in: %s", *words,
                      error->message);
    ck_assert_msg(standin_findings()[0] == '\0', "%s", standin_findings());
}

START_TEST(rank_that_sends_nothing)
{
    expect_words(&(Trouble){ "ring", "stall:2", NULL, 4, 1 },
                 (const char *const[]){ "no op and no message has completed for 1 s", "rank 3, op ",
                                        "receives from rank 2, slot ", NULL });
}
END_TEST

START_TEST(asynchronous_error)
{
    expect_words(&(Trouble){ "zigzag", NULL, "error=1:6", 3, 20 },
                 (const char *const[]){ "rank 1: NCCL: ", "communicator 0 of ranks 0, 1, 2",
                                        "remote process exited", NULL });
}
END_TEST

START_TEST(rank_that_never_connects)
{
    expect_words(&(Trouble){ "ring", NULL, "silent=1", 3, 1 },
                 (const char *const[]){ "in the connections of communicator 0 "
                                        "of ranks 0, 1, 2",
                                        NULL });
}
END_TEST

START_TEST(rank_that_never_joins)
{
    expect_words(&(Trouble){ "ulysses", NULL, "hang=2", 3, 1 },
                 (const char *const[]){ "in the communicator of all ranks", NULL });
}
END_TEST

/* A rank may have a device to itself. */
static LhDeviceState *
open_first(const LhDeviceParams *params, GError **error)
{
    LhDeviceParams first = *params;

    first.ordinal = 0;
    return lh_device_cuda.open(&first, error);
}

START_TEST(device_of_two_ranks)
{
    LhRunDevice device = lh_device_cuda;
    LhBackend shared = lh_backend_nccl;
    g_autoptr(GError) error = NULL;

    device.open = open_first;
    shared.device = &device;
    error = expect_failure(&(Trouble){ "ring", NULL, NULL, 2, 5 }, &shared);
    ck_assert_ptr_nonnull(strstr(error->message, "Duplicate GPU detected"));
}
END_TEST

static void
expect_no_library(const char *file, const char *words)
{
    const Trouble t = { "ring", NULL, NULL, 2, 5 };
    g_autofree char *right = g_strdup(g_getenv("LONGHAUL_NCCL"));
    g_autoptr(GError) error = NULL;

    g_setenv("LONGHAUL_NCCL", file, TRUE);
    error = expect_failure(&t, &lh_backend_nccl);
    ck_assert_int_eq(error->code, LH_ERROR_RUNTIME);
    ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
    g_setenv("LONGHAUL_NCCL", right, TRUE);
}

/* A ring in which all ranks send first. */
START_TEST(program_that_needs_streams_at_once)
{
    Case c = small_case(lh_schedule_find("te-p2p", NULL), 3);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GError) error = NULL;
    Recording *r;
    LhOp *ops, first;

    c.wanted.pass = LH_PASS_FWD;
    program = program_of(&c);
    r = recording_new(program);
    ops = recording_op(r, 1, 0);
    first = ops[4];
    ops[4] = ops[5];
    ops[5] = first;
    ops[4].id = 4;
    ops[5].id = 5;
    for (uint32_t i = 6; i < recording_count(r, 1); i++) {
        for (uint32_t k = 0; k < ops[i].after_count; k++) {
            if (ops[i].after[k] == 4 || ops[i].after[k] == 5)
                ops[i].after[k] = 9 - ops[i].after[k];
        }
    }
    standin_start(&(StandinOptions){ .devices = 3 });
    ck_assert_ptr_null(run_on(&lh_backend_nccl, &r->program, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_msg(strstr(error->message, "is not proven free of deadlock over nccl") != NULL, "%s",
                  error->message);
    recording_free(r);
}
END_TEST

START_TEST(library_that_is_not_there)
{
    expect_no_library("/nowhere/libnccl.so.2", "NCCL: cannot load /nowhere/libnccl.so.2 (");
}
END_TEST

START_TEST(library_that_is_another)
{
    expect_no_library("libm.so.6", "NCCL: libm.so.6 has no function ncclGetVersion");
}
END_TEST

/* ---- mutants: alter the backend's calls of NCCL on their way ---- */

/* A send or receive, held back until its group ends. */
typedef struct {
    bool send;
    void *memory;
    size_t bytes;
    int peer;
    ncclComm_t comm;
    cudaStream_t stream;
} Call;

typedef struct {
    uint32_t number;  /* groups that this thread has ended since it joined, counted from 0 */
    bool joining;     /* the current group exchanges bytes before the run */
    GArray *calls;    /* of Call */
    GArray *previous; /* the group before, if it was held back */
} Group;

typedef struct {
    const char *name, *schedule;
    uint32_t ranks;
    /* Alters a group of rank 1; NULL: the mutant replaces another function. */
    void (*change)(Group *group);
    void (*replace)(LhNccl *nccl);
    bool everywhere;   /* alter the groups of all ranks */
    const char *found; /* part of the error or finding that detects it; "": the numbers */
} Mutant;

static LhNccl right;
static const Mutant *mutant;
static __thread Group group;
static __thread bool is_rank_1;

#define CHANGED_GROUP 2 /* index among the groups of the run */

static ncclResult_t
hold_send(const void *memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream)
{
    const Call call = { true, (void *)memory, count, peer, comm, stream };

    ck_assert_int_eq(type, ncclUint8);
    g_array_append_val(group.calls, call);
    return ncclSuccess;
}

static ncclResult_t
hold_receive(void *memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
             cudaStream_t stream)
{
    const Call call = { false, memory, count, peer, comm, stream };

    ck_assert_int_eq(type, ncclUint8);
    g_array_append_val(group.calls, call);
    return ncclSuccess;
}

static ncclResult_t
hold_start(void)
{
    if (group.calls == NULL) {
        group.calls = g_array_new(FALSE, FALSE, sizeof(Call));
        group.previous = g_array_new(FALSE, FALSE, sizeof(Call));
    }
    g_array_set_size(group.calls, 0);
    return ncclSuccess;
}

static ncclResult_t
make_calls(const GArray *calls)
{
    ncclResult_t result = right.GroupStart(), end;

    for (guint i = 0; i < calls->len && result == ncclSuccess; i++) {
        const Call *c = &g_array_index(calls, Call, i);

        result = c->send ? right.Send(c->memory, c->bytes, ncclUint8, c->peer, c->comm, c->stream)
                         : right.Recv(c->memory, c->bytes, ncclUint8, c->peer, c->comm, c->stream);
    }
    end = right.GroupEnd();
    return result != ncclSuccess ? result : end;
}

static ncclResult_t
hold_end(void)
{
    ncclResult_t result;

    group.joining = group.calls->len > 0 && g_array_index(group.calls, Call, 0).bytes == 1;
    if ((is_rank_1 || mutant->everywhere) && mutant->change != NULL)
        mutant->change(&group);
    result = make_calls(group.calls);
    if (!group.joining)
        group.number++;
    return result;
}

static ncclResult_t
note_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    is_rank_1 = rank == 1;
    group.number = 0;
    return right.CommInitRankConfig(comm, ranks, id, rank, config);
}

static bool
is_changed(const Group *g)
{
    return !g->joining && g->number == CHANGED_GROUP && g->calls->len > 0;
}

static Call *
first_call(const Group *g, bool send)
{
    for (guint i = 0; i < g->calls->len; i++) {
        Call *c = &g_array_index(g->calls, Call, i);

        if (c->send == send)
            return c;
    }
    return NULL;
}

/* Two messages of one size to one rank. */
static void
swap_messages(Group *g)
{
    Call *a = first_call(g, true);
    void *memory;

    for (guint i = 0; is_changed(g) && i < g->calls->len; i++) {
        Call *b = &g_array_index(g->calls, Call, i);

        if (b == a || !b->send || b->peer != a->peer || b->bytes != a->bytes)
            continue;
        memory = a->memory;
        a->memory = b->memory;
        b->memory = memory;
        return;
    }
}

static void
drop_send(Group *g)
{
    const Call *c = first_call(g, true);

    if (is_changed(g) && c != NULL)
        g_array_remove_index(g->calls, (guint)(c - &g_array_index(g->calls, Call, 0)));
}

static void
drop_receive(Group *g)
{
    const Call *c = first_call(g, false);

    if (is_changed(g) && c != NULL)
        g_array_remove_index(g->calls, (guint)(c - &g_array_index(g->calls, Call, 0)));
}

static void
send_twice(Group *g)
{
    if (is_changed(g)) {
        const Call c = *first_call(g, true);

        g_array_append_val(g->calls, c);
    }
}

static void
send_half(Group *g)
{
    if (is_changed(g))
        first_call(g, true)->bytes /= 2;
}

static void
receive_half(Group *g)
{
    if (is_changed(g))
        first_call(g, false)->bytes /= 2;
}

static void
other_place(Group *g)
{
    if (is_changed(g))
        first_call(g, true)->memory = first_call(g, false)->memory;
}

static void
other_peer(Group *g)
{
    if (is_changed(g))
        first_call(g, true)->peer = first_call(g, false)->peer;
}

static void
peer_of_nobody(Group *g)
{
    if (is_changed(g))
        first_call(g, true)->peer = 99;
}

static void
sends_for_receives(Group *g)
{
    for (guint i = 0; is_changed(g) && i < g->calls->len; i++)
        g_array_index(g->calls, Call, i).send ^= true;
}

/* The host's stream, on which the first group ran. */
static void
other_stream(Group *g)
{
    static __thread cudaStream_t host;

    if (g->joining)
        host = g_array_index(g->calls, Call, 0).stream;
    for (guint i = 0; is_changed(g) && i < g->calls->len; i++)
        g_array_index(g->calls, Call, i).stream = host;
}

/* The communicator connected first, or the one connected last. */
static void
other_communicator(Group *g)
{
    static __thread ncclComm_t first, last;
    const ncclComm_t own = g_array_index(g->calls, Call, 0).comm;

    if (g->joining) {
        first = first == NULL ? own : first;
        last = own;
    }
    for (guint i = 0; is_changed(g) && i < g->calls->len; i++)
        g_array_index(g->calls, Call, i).comm = own == first ? last : first;
}

/* Runs this group after the next one. */
static void
later(Group *g)
{
    if (is_changed(g)) {
        g_array_append_vals(g->previous, g->calls->data, g->calls->len);
        g_array_set_size(g->calls, 0);
        return;
    }
    if (g->previous->len > 0 && !g->joining && g->calls->len > 0) {
        make_calls(g->calls);
        g_array_set_size(g->calls, 0);
        g_array_append_vals(g->calls, g->previous->data, g->previous->len);
        g_array_set_size(g->previous, 0);
    }
}

/* Runs every call on its own. */
static void
no_group(Group *g)
{
    GArray *one = g_array_new(FALSE, FALSE, sizeof(Call));

    for (guint i = 0; is_changed(g) && i < g->calls->len; i++) {
        g_array_set_size(one, 0);
        g_array_append_vals(one, &g_array_index(g->calls, Call, i), 1);
        make_calls(one);
    }
    if (is_changed(g))
        g_array_set_size(g->calls, 0);
    g_array_unref(one);
}

static void
no_connections(Group *g)
{
    if (g->joining)
        g_array_set_size(g->calls, 0);
}

static ncclResult_t
other_color(ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config)
{
    return right.CommSplit(comm, is_rank_1 ? color + 7 : color, key, child, config);
}

static ncclResult_t
other_key(ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config)
{
    return right.CommSplit(comm, color, -key, child, config);
}

static ncclResult_t
other_id(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    if (rank == 1)
        right.GetUniqueId(&id);
    return right.CommInitRankConfig(comm, ranks, id, rank, config);
}

static ncclResult_t
blocking_config(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    config->blocking = 1;
    return right.CommInitRankConfig(comm, ranks, id, rank, config);
}

static ncclResult_t
always_ready(ncclComm_t comm, ncclResult_t *state)
{
    (void)comm;
    *state = ncclSuccess;
    return ncclSuccess;
}

static ncclResult_t /* NOLINTNEXTLINE(readability-function-size): NCCL's own */
no_meeting(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream)
{
    return is_rank_1 ? ncclSuccess : right.AllReduce(from, to, count, type, op, comm, stream);
}

static ncclResult_t /* NOLINTNEXTLINE(readability-function-size): NCCL's own */
larger_meeting(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream)
{
    return right.AllReduce(from, to, is_rank_1 ? 2 * count : count, type, op, comm, stream);
}

static ncclResult_t
no_finalize(ncclComm_t comm)
{
    (void)comm;
    return ncclSuccess;
}

#define REPLACE(function, member)                                                                  \
    static void replace_##function(LhNccl *nccl)                                                   \
    {                                                                                              \
        nccl->member = function;                                                                   \
    }
REPLACE(other_color, CommSplit)
REPLACE(other_key, CommSplit)
REPLACE(other_id, CommInitRankConfig)
REPLACE(blocking_config, CommInitRankConfig)
REPLACE(always_ready, CommGetAsyncError)
REPLACE(no_meeting, AllReduce)
REPLACE(larger_meeting, AllReduce)
REPLACE(no_finalize, CommFinalize)

static const Mutant mutants[] = {
    { "two messages of a group swapped", "zigzag", 4, swap_messages, .found = "NUMBERS" },
    { "a message not sent", "ring", 3, drop_send, .found = "receives from rank 1" },
    { "a message not received", "ring", 3, drop_receive, .found = "which receives" },
    { "a message sent twice", "ring", 3, send_twice, .found = "which receives" },
    { "half of a message sent", "zigzag", 4, send_half, .found = "which receives 4096" },
    { "half of a message received", "zigzag", 4, receive_half, .found = "which receives 2048" },
    { "sent from where it receives", "zigzag", 4, other_place, .found = "NUMBERS" },
    { "sent to another rank", "zigzag", 4, other_peer, .found = "in a group of messages" },
    { "sent to nobody", "zigzag", 4, peer_of_nobody, .found = "invalid peer" },
    { "sends and receives exchanged", "striped", 3, sends_for_receives,
      .found = "in a group of messages" },
    { "on another stream", "zigzag", 4, other_stream, .found = "RACE: " },
    { "on another communicator", "tokenring", 4, other_communicator, .found = "" },
    { "two groups in another order", "zigzag", 4, later, .found = "" },
    { "messages without a group", "ring", 3, no_group, .everywhere = true,
      .found = "no op and no message has completed" },
    { "connections left out", "ring", 3, no_connections, .everywhere = true,
      .found = "only when it needs it" },
    { "another colour of a split", "tokenring", 4, .replace = replace_other_color,
      .found = "invalid peer" },
    { "another order of a split", "ring", 4, .replace = replace_other_key,
      .found = "in the connections of" },
    { "another unique id", "ring", 3, .replace = replace_other_id,
      .found = "in the communicator of all ranks" },
    { "communicators that block", "ring", 3, .replace = replace_blocking_config,
      .found = "whose calls block" },
    { "never waiting for NCCL", "ring", 3, .replace = replace_always_ready, .found = "not ready" },
    { "a rank that does not meet the others", "ring", 3, .replace = replace_no_meeting,
      .found = "in the initial barrier of all ranks" },
    { "another size of a collective", "ring", 3, .replace = replace_larger_meeting,
      .found = "rank 1 all-reduce of 2" },
    { "communicators not finalized", "ring", 3, .replace = replace_no_finalize,
      .found = "not finalized" },
};

static void
mutate(const Mutant *m)
{
    LhNccl *nccl = (LhNccl *)lh_nccl_load(NULL); /* not const where it is stored */

    ck_assert_ptr_nonnull(nccl);
    right = *nccl;
    mutant = m;
    nccl->Send = hold_send;
    nccl->Recv = hold_receive;
    nccl->GroupStart = hold_start;
    nccl->GroupEnd = hold_end;
    nccl->CommInitRankConfig = note_rank;
    if (m->replace != NULL)
        m->replace(nccl);
}

/* Returns what a run of the mutant reports: an error, findings, or that numbers differ; "" if
 * nothing. */
static char *
run_mutant(const Mutant *m, const char *digest, LhProgram *program)
{
    const StandinOptions options = { .seed = 9, .devices = m->ranks };
    const LhExecuteParams params = { .backend = &lh_backend_nccl, .deadline_ps = LH_PS_PER_S };
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(GError) error = NULL;
    GString *said = g_string_new(NULL);

    scenario->ranks = m->ranks;
    setup = lh_setup_new(scenario, &error);
    standin_start(&options);
    executed = lh_execute_program(setup, program, &params, &error);
    if (error != NULL)
        g_string_append_printf(said, "ERROR: %s\n", error->message);
    else if (strcmp(executed->digest, digest) != 0 || !executed->errors.ok)
        g_string_append_printf(said, "NUMBERS\n");
    end_of_nccl();
    standin_end();
    g_string_append(said, standin_findings());
    return g_string_free(said, FALSE);
}

START_TEST(mutants_are_found)
{
    const Mutant *m = &mutants[_i];
    const Case c = small_case(lh_schedule_find(m->schedule, NULL), m->ranks);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(LhExecuted) here = run_on(&lh_backend_cpu, program, NULL);
    g_autofree char *said = NULL;

    mutate(m);
    said = run_mutant(m, here->digest, program);
    ck_assert_msg(strstr(said, m->found) != NULL && said[0] != '\0', "%s: %s", m->name, said);
}
END_TEST

#endif

static int
count_schedules(void)
{
    int count = 0;

    while (lh_schedules[count] != NULL)
        count++;
    return count;
}

int
main(void)
{
    Suite *suite = suite_create("nccl");
    TCase *cases = tcase_create("nccl");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(cases, schedules_give_the_same_bits, 0, count_schedules());
#ifndef INTERPRETED
    tcase_add_loop_test(cases, collectives_are_made_in_every_way, 0, count_schedules());
    tcase_add_test(cases, collectives_of_a_library_need_one);
    tcase_add_loop_test(cases, messages_of_several_pieces, LH_WAY_DIRECT, LH_WAY_NATIVE + 1);
    tcase_add_loop_test(cases, kinds_give_the_same_bits, 0, LH_COLL_KINDS);
    tcase_add_loop_test(cases, times_of_collectives_are_those_of_the_simulator, 0, LH_COLL_KINDS);
    if (!few_runs) {
        tcase_add_loop_test(cases, times_are_those_of_the_simulator, 0, count_schedules());
        tcase_add_loop_test(cases, mutants_are_found, 0, G_N_ELEMENTS(mutants));
    }
    tcase_add_test(cases, rank_that_sends_nothing);
    tcase_add_test(cases, asynchronous_error);
    tcase_add_test(cases, rank_that_never_connects);
    tcase_add_test(cases, rank_that_never_joins);
    tcase_add_test(cases, device_of_two_ranks);
    tcase_add_test(cases, library_that_is_not_there);
    tcase_add_test(cases, library_that_is_another);
    tcase_add_test(cases, program_that_needs_streams_at_once);
#endif
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
