/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/trace_names.h"

const char *
lh_trace_name(uint32_t name)
{
    static const char *const others[] = { "exchange", "send", "receive" };

    if (name < LH_KERNELS_COUNT)
        return lh_kernels[name]->name;
    if (name < LH_TRACE_COLLECTIVES)
        return others[name - LH_TRACE_EXCHANGE];
    if (name < LH_TRACE_ARRIVE)
        return lh_collective_names[name - LH_TRACE_COLLECTIVES];
    return name == LH_TRACE_ARRIVE ? "arrive" : "wait";
}
