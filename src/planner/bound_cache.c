/* See the header. There are as many of what is taken as threads have had at a time. */
#include "planner/bound_cache.h"

#include <pthread.h>

struct _LhPlanCalls {
    const LhSetup *setup;
    pthread_mutex_t lock; /* for what follows */
    GPtrArray *idle;      /* of LhLeastCalls * */
};

static void
least_calls_free(gpointer calls)
{
    lh_least_calls_free(calls);
}

LhPlanCalls *
lh_plan_calls_new(const LhSetup *setup)
{
    LhPlanCalls *calls = g_new(LhPlanCalls, 1);

    calls->setup = setup;
    calls->idle = g_ptr_array_new_with_free_func(least_calls_free);
    pthread_mutex_init(&calls->lock, NULL);
    return calls;
}

void
lh_plan_calls_free(LhPlanCalls *calls)
{
    if (calls == NULL)
        return;
    g_ptr_array_unref(calls->idle);
    pthread_mutex_destroy(&calls->lock);
    g_free(calls);
}

LhLeastCalls *
lh_plan_calls_take(LhPlanCalls *calls)
{
    LhLeastCalls *taken = NULL;

    pthread_mutex_lock(&calls->lock);
    if (calls->idle->len > 0)
        taken = g_ptr_array_steal_index(calls->idle, calls->idle->len - 1);
    pthread_mutex_unlock(&calls->lock);
    if (taken == NULL) {
        const LhSimParams params = { .network = &calls->setup->network,
                                     .device = calls->setup->device,
                                     .network_model = calls->setup->network_model,
                                     .collectives = calls->setup->collectives };

        taken = lh_least_calls_new(&params);
    }
    return taken;
}

void
lh_plan_calls_give_back(LhPlanCalls *calls, LhLeastCalls *taken)
{
    pthread_mutex_lock(&calls->lock);
    g_ptr_array_add(calls->idle, taken);
    pthread_mutex_unlock(&calls->lock);
}
