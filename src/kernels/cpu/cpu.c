/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the level that the fast kernels run on.
 */
#include "kernels/cpu/cpu.h"

#include <stdatomic.h>

#define LH_LEVEL_(level) extern const LhCpuLevel lh_cpu_##level;
LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_

const LhCpuLevel *const lh_cpu_levels[] = {
#define LH_LEVEL_(level) &lh_cpu_##level,
    LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_
        NULL,
};

static _Atomic(const LhCpuLevel *) current;

static const LhCpuLevel *
widest(void)
{
    const LhCpuLevel *best = lh_cpu_levels[0];

    for (unsigned i = 1; lh_cpu_levels[i] != NULL; i++) {
        if (lh_cpu_levels[i]->has())
            best = lh_cpu_levels[i];
    }
    return best;
}

const LhCpuLevel *
lh_cpu(void)
{
    const LhCpuLevel *level = atomic_load_explicit(&current, memory_order_acquire);

    /* Concurrent threads compute the same value. */
    if (level == NULL) {
        level = widest();
        atomic_store_explicit(&current, level, memory_order_release);
    }
    return level;
}

bool
lh_cpu_set(const LhCpuLevel *level)
{
    if (level != NULL && !level->has())
        return false;
    atomic_store_explicit(&current, level, memory_order_release);
    return true;
}
