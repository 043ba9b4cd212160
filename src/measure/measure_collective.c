/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that time collectives (measure_collective.h). */
#include "measure/measure_collective.h"

#include "measure/fit.h"
#include "measure/microbenchmarks.h"
#include "program/emit.h"

#define COLLECTIVE_ROUNDS 5 /* after a warm-up */

enum { GIVEN, GOTTEN }; /* slots */

static void
emit_collective(LhEmitter *e, uint32_t step)
{
    const LhCollectiveProbe *probe = e->program->plan;
    const LhProgram *p = e->program;

    (void)step;
    if (e->rank >= probe->members)
        return;
    lh_emit_collective(e, 0, probe->kind, (LhGroup){ 0, 1, probe->members, 0, 1 });
    lh_emit_tensor(e, (LhRegion){ .slot = GIVEN, .count = p->slots[GIVEN].parts },
                   (LhRegion){ .slot = GOTTEN, .count = p->slots[GOTTEN].parts });
}

static uint32_t
collective_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return COLLECTIVE_ROUNDS + 1;
}

static const LhGenerator collective_generator = { .steps = collective_steps,
                                                  .emit = emit_collective };

LhProgram *
lh_collective_program(const LhCollectiveProbe *probe)
{
    LhProgram *program = lh_microbenchmark_new(&collective_generator, probe->ranks, (void *)probe);

    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_microbenchmark_add_slot(program, "given", LH_SLOT_INPUT,
                               probe->kind == LH_COLL_ALL_GATHER ? 1 : probe->members,
                               probe->shard_bytes);
    lh_microbenchmark_add_slot(program, "gotten", LH_SLOT_OUTPUT,
                               probe->kind == LH_COLL_REDUCE_SCATTER ? 1 : probe->members,
                               probe->shard_bytes);
    return program;
}

/* Duration of @round, from the last start to the last end. */
static double
round_seconds(const GArray *records, uint32_t members, guint round)
{
    LhTime start_ps = 0, end_ps = 0;

    for (uint32_t r = 0; r < members; r++) {
        const LhTimelineRecord *m =
            lh_microbenchmark_record(records, r * (COLLECTIVE_ROUNDS + 1) + round);

        start_ps = MAX(start_ps, m->start_ps);
        end_ps = MAX(end_ps, m->end_ps);
    }
    return (double)(end_ps - start_ps) / (double)LH_PS_PER_S;
}

double
lh_collective_seconds(const LhCollectiveProbe *probe, const GArray *records)
{
    double times[COLLECTIVE_ROUNDS];

    g_assert(records->len == probe->members * (COLLECTIVE_ROUNDS + 1));
    for (guint i = 0; i < COLLECTIVE_ROUNDS; i++)
        times[i] = round_seconds(records, probe->members, i + 1);
    return lh_median(times, COLLECTIVE_ROUNDS);
}

bool
lh_measure_collective(const LhCollectiveProbe *probe, double *seconds, GError **error)
{
    g_autoptr(LhProgram) program = lh_collective_program(probe);
    g_autoptr(GArray) records =
        lh_microbenchmark_run(program, probe->backend, probe->way, NULL, error);

    if (records == NULL)
        return false;
    *seconds = records->len == 0 ? 0 : lh_collective_seconds(probe, records);
    return true;
}
