/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/search_pool.h"

#include "planner/distributed_search.h"

#include <pthread.h>

LhPlanOutcome *
lh_search_outcome(const LhSearchPool *pool, guint index)
{
    return &pool->search->outcomes[index];
}

bool
lh_search_report(LhSearchPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (!pool->interrupted)
        pool->interrupted = !lh_task_tell(&pool->options->task, &pool->progress);
    pthread_mutex_unlock(&pool->lock);
    return !pool->interrupted;
}

bool
lh_search_share(LhSearchPool *pool, LhPlanOutcome *outcomes, guint turns, const GArray *told)
{
    const LhProcesses *processes = pool->options->processes;
    LhPlanSearch *search = pool->search;
    LhDistributedSearch deal = { .interrupted = pool->interrupted,
                                 .limit_bytes = search->limit_bytes };

    if (processes != NULL &&
        !lh_distributed_search_share(processes, outcomes, turns, told, &deal, &search->failure))
        deal.interrupted = true;
    pool->interrupted = deal.interrupted;
    search->limit_bytes = deal.limit_bytes;
    return search->failure == NULL;
}
