/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster, a device and a program to simulate, for tests: programs of schedules, or handwritten
 * ops on the bench platform.
 */
#pragma once

#include "base/error.h"
#include "checking.h"
#include "options.h"
#include "sched/common/pass.h"
#include "sim/sim.h"

#include <string.h>

#define US INT64_C(1000000)
#define MS INT64_C(1000000000)

/* ---- a cluster, a device and a program ---- */

typedef struct {
    LhTopology *loaded_topology;
    LhDevice *loaded_device;
    LhTopology topology; /* copies that a test may change */
    LhDevice device;
    LhNetwork network;
    LhProgram *program;
    GArray *faults;
    LhSimParams params;
} World;

/* Takes ownership of the program. */
static inline void
world_init(World *w, const char *topology, LhProgram *program)
{
    g_autoptr(GError) error = NULL;

    *w = (World){ .program = program };
    w->loaded_topology = lh_topology_load(topology, &error);
    ck_assert_msg(w->loaded_topology != NULL, "%s", error != NULL ? error->message : "");
    w->loaded_device = lh_device_load(w->loaded_topology->device_name, &error);
    ck_assert_msg(w->loaded_device != NULL, "%s", error != NULL ? error->message : "");
    w->topology = *w->loaded_topology;
    w->device = *w->loaded_device;
    w->params = (LhSimParams){ .program = program, .network = &w->network, .device = &w->device };
}

static inline void
world_clear(World *w)
{
    lh_topology_free(w->loaded_topology);
    lh_device_free(w->loaded_device);
    lh_program_free(w->program);
    if (w->faults != NULL)
        g_array_unref(w->faults);
}

static inline LhSimResult *
world_try(World *w, GError **error)
{
    const uint32_t ranks = lh_program_ranks(w->program);
    const uint32_t gpus = (uint32_t)w->topology.gpus_per_node;
    g_autoptr(GError) misfit = NULL;
    const bool fits = lh_network_init(&w->network, &w->topology, (ranks + gpus - 1) / gpus, ranks,
                                      w->faults, &misfit);

    ck_assert_msg(fits, "%s", misfit != NULL ? misfit->message : "");
    return lh_simulate(&w->params, error);
}

/* Asserts that every rank's busy and idle time fill the makespan and that the parts of its idle
 * time add up. */
static inline void
check_accounting(const World *w, const LhSimResult *result)
{
    LhTime idle = 0, finish = 0;

    for (uint32_t r = 0; r < result->ranks_count; r++) {
        const LhRankResult *rank = &result->ranks[r];
        LhTime sum = rank->busy_ps;
        uint64_t bytes = 0;

        for (uint32_t part = 0; part < LH_IDLE_PARTS; part++) {
            ck_assert_int_ge(rank->idle_ps[part], 0);
            sum += rank->idle_ps[part];
            idle += rank->idle_ps[part];
            if (w->params.cost != LH_COST_DEVICE && part != LH_IDLE_IMBALANCE)
                ck_assert_int_eq(rank->idle_ps[part], 0);
        }
        ck_assert_int_eq(sum, result->makespan_ps);
        finish = MAX(finish, rank->finish_ps);
        for (uint32_t tier = 0; tier < LH_TIERS; tier++)
            bytes += rank->bytes_by_tier[tier];
        ck_assert_uint_eq(bytes, rank->bytes_sent);
    }
    ck_assert_int_eq(finish, result->makespan_ps);
    if (result->makespan_ps > 0)
        ck_assert_double_eq_tol(
            lh_sim_bubble_fraction(result),
            (double)idle / ((double)result->ranks_count * (double)result->makespan_ps), 1e-12);
}

static inline LhSimResult *
world_run(World *w)
{
    g_autoptr(GError) error = NULL;
    LhSimResult *result = world_try(w, &error);

    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    check_accounting(w, result);
    return result;
}

/* ---- programs by hand ---- */

static inline LhProgramParams
attention(uint32_t ranks, uint64_t seq_length, uint32_t heads, uint32_t groups, uint32_t head_dim)
{
    return (LhProgramParams){ .attention = { .batch = 1,
                                             .seq_length = seq_length,
                                             .heads = heads,
                                             .groups = groups,
                                             .head_dim = head_dim,
                                             .dtype = LH_DTYPE_BF16 },
                              .ranks = ranks,
                              .mask.causal = true,
                              .pass = LH_PASS_BOTH };
}

typedef struct {
    bool send;
    uint32_t peer;
    uint16_t tag;
    uint64_t bytes;
} Note;

/* One op of a rank; its id is its index among the rank's ops. */
typedef struct {
    LhTime time_ps; /* compute */
    const LhKernelArgs *args;
    uint64_t bytes; /* collective: bytes of one rank */
    Note notes[3];  /* exchange: up to the first without bytes */
    uint32_t rank;
    LhOpKind kind;
    LhKernelId kernel; /* compute timed by the device if it has args; otherwise takes time_ps */
    LhCollectiveKind collective;
    uint32_t group;    /* collective over ranks 0 .. group - 1 ... */
    LhGroup ranks;     /* ... or over these */
    uint32_t after[2]; /* 1 + id; 0: none */
    uint16_t slot;     /* alloc, free */
    uint8_t stream;    /* 0: by kind */
} Line;

typedef struct {
    const Line *lines;
    uint32_t count;
    bool apart; /* every op is a step of its own */
} Script;

enum { COMPUTE, COMM, COMM2, COMPUTE2 };
enum { SLOT_INPUT, SLOT_LARGE, SLOT_SMALL };

static inline uint32_t
script_steps(const LhProgram *program, uint32_t rank)
{
    const Script *script = program->plan;
    uint32_t count = 0;

    for (uint32_t i = 0; i < script->count; i++)
        count += script->lines[i].rank == rank;
    return script->apart ? count : 1;
}

static inline void
emit_line(LhEmitter *e, const Line *line)
{
    const LhKernelArgs args = { .batch = 1, .heads = 1, .groups = 1, .head_dim = 1 };

    switch (line->kind) {
    case LH_OP_COMPUTE:
        lh_emit_compute(e, line->stream, line->args != NULL ? line->kernel : LH_KERNEL_ID_copy,
                        line->args != NULL ? line->args : &args);
        break;
    case LH_OP_SYNC:
        lh_emit_sync(e);
        break;
    case LH_OP_ALLOC:
        lh_emit_alloc(e, line->slot);
        break;
    case LH_OP_FREE:
        lh_emit_free(e, line->slot);
        break;
    case LH_OP_COLLECTIVE:
        lh_emit_collective(e, line->stream != 0 ? line->stream : COMM, line->collective,
                           line->group > 0 ? (LhGroup){ 0, 1, line->group, 0, 1 } : line->ranks);
        lh_emit_last(e)->collective.wire_bytes = line->bytes;
        break;
    default:
        lh_emit_exchange(e, line->stream != 0 ? line->stream : COMM);
        for (uint32_t i = 0; i < G_N_ELEMENTS(line->notes) && line->notes[i].bytes > 0; i++)
            lh_emit_part(e, line->notes[i].send, line->notes[i].peer, line->notes[i].tag,
                         line->notes[i].bytes);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(line->after); i++)
        if (line->after[i] > 0)
            lh_emit_after(e, line->after[i] - 1);
}

static inline void
script_emit(LhEmitter *e, uint32_t step)
{
    const Script *script = e->program->plan;
    uint32_t position = 0;

    for (uint32_t i = 0; i < script->count; i++) {
        if (script->lines[i].rank != e->rank)
            continue;
        if (!script->apart || position == step)
            emit_line(e, &script->lines[i]);
        position++;
    }
}

static inline LhTime
script_time(void *data, uint32_t rank, const LhOp *op)
{
    const Script *script = data;
    uint32_t id = 0;

    for (uint32_t i = 0; i < script->count; i++)
        if (script->lines[i].rank == rank && id++ == op->id)
            return script->lines[i].time_ps;
    g_assert_not_reached();
}

static const LhGenerator script_generator = { .steps = script_steps, .emit = script_emit };

/* Sets up the bench platform: NVLink 300 GB/s, 2 us; NICs 12.5 GB/s, 3 us, reached over NVLink; no
 * SMs held by communication; hosts cost nothing. */
static inline void
script_init(World *w, Script *script, uint32_t ranks)
{
    const LhProgramParams params = attention(ranks, ranks, 1, 1, 1);
    LhProgram *program =
        lh_program_create("script", &script_generator, &params, LH_PLACE_CONTIGUOUS);

    program->plan = script;
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_program_add_stream(program, "comm2", LH_STREAM_COMM);
    lh_program_add_stream(program, "compute2", LH_STREAM_COMPUTE);
    lh_pass_add_slot(program, "input", LH_TENSOR_Q, LH_SLOT_INPUT, 7, 10, 2);
    lh_pass_add_slot(program, "large", LH_TENSOR_KV, LH_SLOT_TEMP, 1, 1000, 2);
    lh_pass_add_slot(program, "small", LH_TENSOR_Q, LH_SLOT_TEMP, 2, 150, 2);
    world_init(w, "bench-platform", program);
    w->device.kernel_launch_ps = 0;
    w->device.stream_sync_ps = 0;
    w->params.compute_time = script_time;
    w->params.compute_time_data = script;
}

#define SCRIPT(...)                                                                                \
    {                                                                                              \
        .lines = (const Line[]){ __VA_ARGS__ },                                                    \
        .count = sizeof((const Line[]){ __VA_ARGS__ }) / sizeof(Line)                              \
    }

static inline LhTime
script_makespan(Script *script, uint32_t ranks)
{
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, script, ranks);
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

/* ---- faults and failures ---- */

static inline void
add_fault(World *w, LhTier tier, uint64_t node, double factor)
{
    const LhLinkFault fault = { (int)tier, node, factor };

    if (w->faults == NULL)
        w->faults = g_array_new(FALSE, FALSE, sizeof(LhLinkFault));
    g_array_append_val(w->faults, fault);
}

static inline void
check_failure(World *w, LhErrorCode code, const char *const *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSimResult) result = world_try(w, &error);

    ck_assert_ptr_null(result);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, (int)code);
    for (; *words != NULL; words++)
        ck_assert_msg(strstr(error->message, *words) != NULL, "\"%s\" does not contain \"%s\"",
                      error->message, *words);
    world_clear(w);
}
