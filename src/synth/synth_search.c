/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/synth_search.h"

#include "compare/compare_pool.h"

#include <pthread.h>

guint
lh_synth_threads(const LhSynthSearch *s, guint work)
{
    return lh_compare_threads(s->options->task.jobs, work, s->setup->network.ranks);
}

bool
lh_synth_goes_on(LhSynthSearch *s)
{
    LhProgress at = { .total = s->budget, .best_ps = s->found->candidate_ps };
    bool on;

    pthread_mutex_lock(&s->lock);
    at.done = s->done;
    s->interrupted = s->interrupted || !lh_task_tell(&s->options->task, &at);
    on = !s->interrupted;
    pthread_mutex_unlock(&s->lock);
    return on;
}

bool
lh_synth_result_is_within(const LhSynthSearch *s, const LhSimResult *result)
{
    return lh_synth_result_fits(result, s->options->memory_limit_bytes);
}
