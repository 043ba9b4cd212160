/* SPDX-License-Identifier: Apache-2.0 */
/* Contains as many caches as were ever in use at the same time. */
#include "planner/bound_cache.h"

#include <pthread.h>

struct _LhBoundCache {
    const LhSetup *setup;
    pthread_mutex_t lock; /* guards the members below */
    GPtrArray *idle;      /* of LhLowerBoundCalls * */
};

static void
least_calls_free(gpointer calls)
{
    lh_lower_bound_calls_free(calls);
}

LhBoundCache *
lh_bound_cache_new(const LhSetup *setup)
{
    LhBoundCache *calls = g_new(LhBoundCache, 1);

    calls->setup = setup;
    calls->idle = g_ptr_array_new_with_free_func(least_calls_free);
    pthread_mutex_init(&calls->lock, NULL);
    return calls;
}

void
lh_bound_cache_free(LhBoundCache *calls)
{
    if (calls == NULL)
        return;
    g_ptr_array_unref(calls->idle);
    pthread_mutex_destroy(&calls->lock);
    g_free(calls);
}

LhLowerBoundCalls *
lh_bound_cache_take(LhBoundCache *calls)
{
    LhLowerBoundCalls *taken = NULL;

    pthread_mutex_lock(&calls->lock);
    if (calls->idle->len > 0)
        taken = g_ptr_array_steal_index(calls->idle, calls->idle->len - 1);
    pthread_mutex_unlock(&calls->lock);
    if (taken == NULL) {
        const LhSimParams params = { .network = &calls->setup->network,
                                     .device = calls->setup->device,
                                     .network_model = calls->setup->network_model,
                                     .collectives = calls->setup->collectives };

        taken = lh_lower_bound_calls_new(&params);
    }
    return taken;
}

void
lh_bound_cache_give_back(LhBoundCache *calls, LhLowerBoundCalls *taken)
{
    pthread_mutex_lock(&calls->lock);
    g_ptr_array_add(calls->idle, taken);
    pthread_mutex_unlock(&calls->lock);
}
