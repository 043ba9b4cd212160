/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run_result.h"

#define RESULT_ALIGNMENT 8U /* alignment of the first part of a slot; no element is larger */

void
lh_run_result_free(LhRunResult *result)
{
    if (result == NULL)
        return;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        g_free(result->outputs[r]);
    g_free(result->outputs);
    g_free(result->ranks);
    g_free(result);
}

const unsigned char *
lh_run_output(const LhRunResult *result, const LhProgram *program, uint32_t rank, uint16_t slot,
              uint32_t part)
{
    return result->outputs[rank] + lh_run_output_bytes(program, slot) +
           part * program->slots[slot].part_bytes;
}

/* Counts also slots that a rank does not have, so that the results of all ranks have the same
 * layout. */
uint64_t
lh_run_output_bytes(const LhProgram *program, uint32_t slots)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < slots; i++) {
        if (lh_slot_is_result(&program->slots[i]))
            bytes += program->slots[i].parts * program->slots[i].part_bytes;
        bytes = (bytes + RESULT_ALIGNMENT - 1) / RESULT_ALIGNMENT * RESULT_ALIGNMENT;
    }
    return bytes;
}
