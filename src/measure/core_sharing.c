/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/core_sharing.h"

#include "runtime/thread_affinity.h"

#include <string.h>

LhCoreSharing
lh_core_sharing_of(char *const *texts, uint32_t count, uint32_t mine, uint32_t cores)
{
    LhCoreSharing found = { .turns = 1 };
    uint32_t sharing = 0, before = 0;

    g_assert(cores > 0);
    for (uint32_t r = 0; r < count; r++) {
        if (strcmp(texts[r], texts[mine]) != 0)
            continue;
        sharing++;
        before += r < mine;
    }
    if (sharing <= cores)
        return found;
    for (uint32_t r = 0; r < count; r++) {
        const bool first = r % sharing == 0;

        if (count % sharing != 0 || (!first && strcmp(texts[r], texts[r - 1]) != 0) ||
            (first && r > 0 && strcmp(texts[r], texts[r - 1]) == 0))
            return found;
    }
    found.turns = (sharing + cores - 1) / cores;
    found.turn = before / cores;
    found.ranks = sharing;
    found.cores = cores;
    return found;
}

bool
lh_core_sharing_find(const LhProcesses *processes, LhCoreSharing *cores, GError **error)
{
    g_autofree char *mine = lh_cores_text();
    g_auto(GStrv) texts = lh_processes_texts(processes, mine, error);
    g_autofree double *counts = g_new(double, processes->count);

    if (texts == NULL)
        return false;
    *cores = lh_core_sharing_of(texts, processes->count, processes->control.place.first,
                                lh_cores_count());
    if (!lh_processes_gather(processes, cores->cores, counts, error))
        return false;
    /* The machines differ: all processes call at the same time. */
    for (uint32_t r = 0; r < processes->count; r++) {
        if (counts[r] != cores->cores)
            *cores = (LhCoreSharing){ .turns = 1 };
    }
    return true;
}
