/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/host_copy.c: both memories are the machine's. */
#include "kernels/cpu/kernels.h"

#include <string.h>

static uint64_t
held_bytes(const LhView *view)
{
    return view->held_bytes > 0 ? view->held_bytes : view->part_bytes;
}

static enum lh_status
copy_parts(const LhCall *call)
{
    const LhView *from = &call->operands[0], *to = &call->operands[1];
    const uint64_t bytes = held_bytes(from);

    if (from->parts != to->parts || held_bytes(to) != bytes ||
        bytes * from->parts != call->args->copy.bytes)
        return LH_STATUS_UNSUPPORTED;
    for (uint32_t part = 0; part < from->parts; part++)
        memcpy(to->data + part * to->part_bytes, from->data + part * from->part_bytes, bytes);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_to_host = { .reference = copy_parts, .fast = copy_parts };
const LhCpuKernel lh_cpu_kernel_from_host = { .reference = copy_parts, .fast = copy_parts };
