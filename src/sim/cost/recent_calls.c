/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/recent_calls.h"

#include <glib.h>
#include <string.h>

#define PLACE_BITS 6

struct _LhRecentCalls {
    LhRecentCall places[1 << PLACE_BITS]; /* operands.element_bytes 0: empty */
};

LhRecentCalls *
lh_recent_calls_new(void)
{
    return g_new0(LhRecentCalls, 1);
}

void
lh_recent_calls_free(LhRecentCalls *calls)
{
    g_free(calls);
}

/* By the sizes that every kind of arguments begins with. */
static uint32_t
place_of(const LhKernelArgs *args, uint32_t kernel)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t sizes[3], mixed;

    memcpy(sizes, args, sizeof(sizes));
    mixed = ((sizes[0] * odd ^ sizes[1]) * odd ^ sizes[2]) * odd ^ kernel;
    return (uint32_t)(mixed * odd >> (64 - PLACE_BITS));
}

LhRecentCall *
lh_recent_calls_find(LhRecentCalls *calls, const LhKernelArgs *args, const LhCallOperands *operands,
                     bool *known)
{
    LhRecentCall *place = &calls->places[place_of(args, operands->kernel)];

    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): other padding is another call */
    *known = memcmp(&place->args, args, sizeof(*args)) == 0 &&
             memcmp(&place->operands, operands, sizeof(*operands)) == 0;
    if (!*known) {
        memcpy(&place->args, args, sizeof(*args)); /* with its padding */
        place->operands = *operands;
    }
    return place;
}
