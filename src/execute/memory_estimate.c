/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the memory of a run. Sums saturate. */
#include "execute/memory_estimate.h"

#include "base/available_memory.h"
#include "base/error.h"
#include "base/saturate.h"
#include "execute/step_numerics.h"
#include "program/live.h"
#include "reference/numerics.h"

#include <sys/resource.h>

#define COPIES_OF_RESULTS 3             /* packed, gathered, unpacked */
#define STACK_BYTES (UINT64_C(8) << 20) /* used if ulimit -s is unlimited */

static uint64_t
reference_bytes(const LhProgram *program, unsigned threads)
{
    const LhAttention *a = &program->params.attention;

    return lh_step_params(program) != NULL
               ? lh_step_numerics_bytes(program, threads)
               : lh_plus(lh_reference_bytes(a), lh_reference_work_bytes(a, threads));
}

static uint64_t
output_bytes(const LhProgram *program)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (lh_slot_is_result(slot))
            bytes = lh_plus(bytes, lh_times(slot->parts, slot->part_bytes));
    }
    return bytes;
}

static uint64_t
stack_bytes(void)
{
    struct rlimit most;

    if (getrlimit(RLIMIT_STACK, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
        return STACK_BYTES;
    return most.rlim_cur;
}

/* Number of threads that compute the reference in a process of @ranks ranks. */
static unsigned
reference_threads(const LhProgram *program, uint32_t ranks)
{
    return ranks < lh_program_ranks(program) || lh_step_params(program) != NULL
               ? ranks
               : lh_numerics_threads(&program->params);
}

/* Memory of a rank: that of the device, and what is offloaded from it. */
static uint64_t
bytes_of(const LhProgram *program, const LhVerdict *verdict, uint32_t rank)
{
    LhLive live;

    if (lh_step_params(program) == NULL || (lh_step_params(program)->offload_layers == 0 &&
                                            lh_step_params(program)->optimizer_offload <= 0))
        return verdict->peak_bytes[rank];
    lh_live_walk(&live, program, rank);
    return lh_plus(verdict->peak_bytes[rank], live.host_peak_bytes);
}

LhMemoryEstimate
lh_memory_estimate(const LhProgram *program, const LhVerdict *verdict, const LhBackend *backend)
{
    const bool alone = lh_control_resolve(backend->control) == &lh_control_single;
    const uint32_t ranks = alone ? verdict->ranks : 1;
    uint64_t sum = 0, largest = 0;

    for (uint32_t r = 0; r < verdict->ranks; r++) {
        const uint64_t bytes = bytes_of(program, verdict, r);

        sum = lh_plus(sum, bytes);
        largest = MAX(largest, bytes);
    }
    return (LhMemoryEstimate){
        .ranks_bytes = alone ? sum : largest,
        .results_bytes =
            lh_times(lh_times(output_bytes(program), verdict->ranks), COPIES_OF_RESULTS),
        .reference_bytes = reference_bytes(program, reference_threads(program, ranks)),
        .stacks_bytes = lh_times(lh_times(ranks, program->streams_count + 1), stack_bytes()),
    };
}

/* Whether @room suffices for the run plus @stacks_bytes of stacks. */
static bool
fits(const LhMemoryEstimate *need, uint64_t stacks_bytes, const LhRoom *room, GError **error)
{
    const uint64_t bytes = lh_plus(lh_plus(need->ranks_bytes, need->results_bytes),
                                   lh_plus(need->reference_bytes, stacks_bytes));
    g_autofree char *all = lh_format_bytes(bytes);
    g_autofree char *ranks = lh_format_bytes(need->ranks_bytes);
    g_autofree char *results = lh_format_bytes(need->results_bytes);
    g_autofree char *reference = lh_format_bytes(need->reference_bytes);
    g_autofree char *stacks = lh_format_bytes(stacks_bytes);
    g_autofree char *left = lh_format_bytes(room->bytes);

    if (bytes <= room->bytes)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the run needs about %s of memory (ranks %s, results %s, fp64 reference %s%s%s), "
                "but %s leaves %s; choose a shorter sequence, fewer heads or fewer ranks",
                all, ranks, results, reference, stacks_bytes > 0 ? ", thread stacks " : "",
                stacks_bytes > 0 ? stacks : "", room->limit, left);
    return false;
}

bool
lh_memory_estimate_check(const LhMemoryEstimate *need, GError **error)
{
    const LhAvailableMemory room = lh_available_memory("");

    return fits(need, 0, &room.memory, error) &&
           fits(need, need->stacks_bytes, &room.address, error);
}
