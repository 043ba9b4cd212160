/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/microbenchmarks.h"

#include "program/emit.h"

#define DEADLINE_DEFAULT_US INT64_C(60000000)

static void
collect_record(void *data, const LhTimelineRecord *record)
{
    g_array_append_vals(data, record, 1);
}

static void
touch_slot(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *into)
{
    (void)data;
    (void)rank;
    (void)slot;
    (void)part;
    into[0] = 0; /* touch the memory; its content does not matter */
}

LhProgram *
lh_microbenchmark_new(const LhGenerator *generator, uint32_t ranks, void *plan)
{
    const LhProgramParams params = {
        .attention = { .batch = 1,
                       .heads = 1,
                       .groups = 1,
                       .head_dim = 1,
                       .seq_length = ranks,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = ranks,
        .mask.causal = true,
        .pass = LH_PASS_FWD,
    };
    LhProgram *program = lh_program_create("probe", generator, &params, LH_PLACE_CONTIGUOUS);

    program->plan = plan;
    return program;
}

void
lh_microbenchmark_add_slot(LhProgram *program, const char *name, LhSlotRole role, uint32_t parts,
                           uint64_t bytes)
{
    lh_program_add_slot(program, (LhSlotParams){ .name = name,
                                                 .kind = LH_TENSOR_HIDDEN,
                                                 .role = role,
                                                 .dtype = LH_DTYPE_FP32,
                                                 .parts = parts,
                                                 .part_bytes = bytes });
}

uint32_t
lh_microbenchmark_sender(const uint32_t *to, uint32_t ranks, uint32_t rank)
{
    uint32_t from = 0;

    while (from < ranks && to[from] != rank)
        from++;
    return from < ranks ? from : LH_RANKS_MAX;
}

void
lh_microbenchmark_emit_message(LhEmitter *e, bool send, uint32_t peer, uint16_t slot)
{
    lh_emit_part(e, send, peer, 0, e->program->slots[slot].part_bytes);
    lh_emit_region(e, slot, 0, 1);
}

static int64_t probe_deadline_us = DEADLINE_DEFAULT_US;

void
lh_microbenchmark_set_deadline(int64_t deadline_us)
{
    probe_deadline_us = deadline_us > 0 ? deadline_us : DEADLINE_DEFAULT_US;
}

GArray *
lh_microbenchmark_run(const LhProgram *program, const LhBackend *backend, LhCollectiveWay way,
                      const LhRunHooks *hooks, GError **error)
{
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhRunResult) result = NULL;
    const LhRunParams run = { .program = program,
                              .backend = backend,
                              .collectives = way,
                              .deadline_us = probe_deadline_us,
                              .unguarded = true,
                              .hooks = hooks,
                              .load = touch_slot,
                              .timeline = collect_record,
                              .timeline_data = records };

    result = lh_execute(&run, error);
    if (result == NULL)
        return NULL;
    if (!result->whole)
        g_array_set_size(records, 0);
    g_array_sort(records, lh_timeline_by_rank_and_op);
    return g_steal_pointer(&records);
}
