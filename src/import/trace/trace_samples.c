/* SPDX-License-Identifier: Apache-2.0 */
/* Measured durations of ops; of ops that meet, the shortest one. */
#include "import/trace/alignment_private.h"

#include "measure/fit.h"

#include <math.h>

static const GArray *
durations_of(const LhTraceMatch *job, guint record)
{
    return g_ptr_array_index(job->durations, record);
}

/* Takes the shortest member of each repeat and the median of these. False if none was traced. */
static bool
measure(const LhTraceMatch *job, const guint *members, guint count, LhSample *sample)
{
    g_autoptr(GArray) shortest = NULL;

    for (guint i = 0; i < count; i++) {
        const GArray *seconds = durations_of(job, members[i]);

        if (seconds == NULL)
            continue;
        if (shortest == NULL) {
            shortest = g_array_copy((GArray *)seconds);
            continue;
        }
        g_array_set_size(shortest, MIN(shortest->len, seconds->len));
        for (guint k = 0; k < shortest->len; k++)
            g_array_index(shortest, double, k) =
                fmin(g_array_index(shortest, double, k), g_array_index(seconds, double, k));
    }
    if (shortest == NULL || shortest->len == 0)
        return false;
    sample->repeats = shortest->len;
    sample->measured_s = lh_median((double *)(void *)shortest->data, shortest->len);
    if (!(sample->measured_s > 0))
        return false;
    sample->spread =
        (g_array_index(shortest, double, shortest->len - 1) - g_array_index(shortest, double, 0)) /
        sample->measured_s;
    return true;
}

static void
add_sample(LhTraceMatch *job, const guint *members, guint count)
{
    LhTraceAlignment *m = job->match;
    const LhTimelineRecord *r = lh_match_record(m->records, members[0]);
    const LhTraceBlock *block = &g_array_index(m->blocks, LhTraceBlock, members[0]);
    LhSample sample = { .kind = r->kind,
                        .kernel = r->kernel,
                        .triangle = block->triangle,
                        .keys = block->keys,
                        .tier = LH_TIMELINE_NO_TIER,
                        .transfer = LH_GPU_TRACE_MESSAGES,
                        .first = m->members->len };

    if (!measure(job, members, count, &sample))
        return;
    for (guint i = 0; i < count; i++) {
        if (durations_of(job, members[i]) != NULL)
            g_array_append_val(m->members, members[i]);
    }
    sample.count = m->members->len - sample.first;
    g_array_append_val(m->samples, sample);
}

/* Highest tier on the path of a message. */
static uint8_t
tier_of(const LhNetwork *network, uint32_t from, uint32_t to)
{
    LhRoute route;

    if (from == to)
        return LH_TIMELINE_NO_TIER;
    lh_network_route(network, from, to, &route);
    return route.tier;
}

static uint8_t
tier_of_group(const LhNetwork *network, const LhGroup *group)
{
    const uint32_t first = (uint32_t)lh_group_member(group, 0);
    uint8_t tier = LH_TIMELINE_NO_TIER;

    for (uint64_t i = 1; i < lh_group_size(group); i++) {
        const uint8_t one = tier_of(network, first, (uint32_t)lh_group_member(group, i));

        tier = tier == LH_TIMELINE_NO_TIER ? one : MAX(tier, one);
    }
    return tier;
}

static void
add_meeting(LhTraceMatch *job, const LhTraceMeeting *meeting)
{
    const GArray *members = g_hash_table_lookup(job->meetings, meeting);
    const guint had = job->match->samples->len;
    const LhGroup *g = &meeting->key.group;
    LhSample *sample;

    add_sample(job, &g_array_index(members, guint, 0), members->len);
    if (job->match->samples->len == had)
        return;
    sample = &g_array_index(job->match->samples, LhSample, had);
    sample->tier = meeting->message ? tier_of(&job->setup->network, g->base, g->stride)
                                    : tier_of_group(&job->setup->network, g);
}

static double
median_of(const GArray *seconds)
{
    g_autoptr(GArray) copy = seconds == NULL ? NULL : g_array_copy((GArray *)seconds);

    return copy == NULL ? 0 : lh_median((double *)(void *)copy->data, copy->len);
}

void
lh_match_samples(LhTraceMatch *job)
{
    LhTraceAlignment *m = job->match;

    for (guint i = 0; i < m->records->len; i++) {
        const double median = median_of(durations_of(job, i));

        g_array_append_val(m->measured, median);
        if (lh_match_record(m->records, i)->kind == LH_OP_COMPUTE)
            add_sample(job, &i, 1);
    }
    for (guint i = 0; i < job->order->len; i++)
        add_meeting(job, g_ptr_array_index(job->order, i));
}
