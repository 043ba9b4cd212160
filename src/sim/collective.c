/*
 * Ring algorithms on an idle network: n ranks in group order, each step one hop to the next rank.
 * With s bytes per rank and t the slowest hop's latency + bytes/bandwidth: all-gather and
 * reduce-scatter (n-1) t(s); all-reduce 2 (n-1) t(s); all-to-all (n-1) t(s/n); broadcast a pipeline
 * of n-1 hops, t(s) + (n-2) latency. What is left out: sharing of links between collectives and
 * with other messages.
 */
#include "sim/collective.h"

#include <math.h>
#include <string.h>

struct _LhMeetings {
    const LhNetwork *network;
    LhOp *ops; /* by handle */
    uint32_t ops_count, ops_capacity;
    uint32_t *free; /* handles */
    uint32_t free_count;
    GPtrArray *open; /* of LhMeeting, oldest first */
};

static void
meeting_free(void *data)
{
    LhMeeting *meeting = data;

    g_free(meeting->members);
    g_free(meeting);
}

LhMeetings *
lh_meetings_new(const LhNetwork *network)
{
    LhMeetings *m = g_new0(LhMeetings, 1);

    m->network = network;
    m->open = g_ptr_array_new_with_free_func(meeting_free);
    return m;
}

void
lh_meetings_free(LhMeetings *m)
{
    if (m == NULL)
        return;
    g_ptr_array_unref(m->open);
    g_free(m->ops);
    g_free(m->free);
    g_free(m);
}

uint32_t
lh_meetings_add(LhMeetings *m, const LhOp *op)
{
    uint32_t handle;

    if (m->free_count > 0) {
        handle = m->free[--m->free_count];
    } else {
        if (m->ops_count == m->ops_capacity) {
            m->ops_capacity = MAX(16, m->ops_capacity * 2);
            m->ops = g_renew(LhOp, m->ops, m->ops_capacity);
            m->free = g_renew(uint32_t, m->free, m->ops_capacity);
        }
        handle = m->ops_count++;
    }
    m->ops[handle] = *op;
    return handle;
}

/* The slowest hop of the ring: its latency, its narrowest link, its highest tier. */
static void
slowest_hop(const LhNetwork *network, LhMeeting *meeting, double *latency_s, double *bytes_per_s)
{
    *latency_s = 0;
    *bytes_per_s = INFINITY;
    for (uint64_t i = 0; i < meeting->size; i++) {
        uint32_t from = (uint32_t)lh_group_member(&meeting->group, i);
        uint32_t to = (uint32_t)lh_group_member(&meeting->group, (i + 1) % meeting->size);
        LhRoute route;

        if (from == to)
            continue;
        lh_network_route(network, from, to, &route);
        meeting->tier = MAX(meeting->tier, route.tier);
        *latency_s = fmax(*latency_s, (double)route.latency_ps / (double)LH_PS_PER_S);
        for (uint32_t l = 0; l < route.links_count; l++) {
            double rate = lh_network_link(network, route.links[l]).bandwidth_bytes_per_s;

            *bytes_per_s = fmin(*bytes_per_s, rate);
            if (rate > 0 || meeting->failed_link != UINT32_MAX)
                continue;
            meeting->failed_link = route.links[l];
            meeting->failed_from = from;
            meeting->failed_to = to;
        }
    }
}

static void
plan(const LhNetwork *network, LhMeeting *meeting)
{
    double n = meeting->size, s = (double)meeting->shard_bytes, latency, bandwidth, seconds = 0;

    slowest_hop(network, meeting, &latency, &bandwidth);
    if (meeting->failed_link != UINT32_MAX)
        return;
    switch (meeting->kind) {
    case LH_COLL_ALL_GATHER:
    case LH_COLL_REDUCE_SCATTER:
        seconds = (n - 1) * (latency + s / bandwidth);
        break;
    case LH_COLL_ALL_REDUCE:
        seconds = 2 * (n - 1) * (latency + s / bandwidth);
        break;
    case LH_COLL_ALL_TO_ALL:
        seconds = (n - 1) * (latency + s / n / bandwidth);
        break;
    default:
        seconds = n > 1 ? (n - 1) * latency + s / bandwidth : 0;
    }
    meeting->duration_ps = lh_time_from_ps(seconds * (double)LH_PS_PER_S);
}

static bool
same_collective(const LhMeeting *meeting, const LhOp *op)
{
    const LhGroup *a = &meeting->group, *b = &op->collective.group;

    return meeting->kind == op->collective.kind && a->base == b->base && a->stride == b->stride &&
           a->count == b->count && a->outer_stride == b->outer_stride &&
           a->outer_count == b->outer_count;
}

static bool
has_joined(const LhMeeting *meeting, uint32_t rank)
{
    for (uint32_t i = 0; i < meeting->arrived; i++)
        if (meeting->members[i].rank == rank)
            return true;
    return false;
}

static LhMeeting *
meeting_for(LhMeetings *m, const LhOp *op, uint32_t rank)
{
    LhMeeting *meeting;

    for (uint32_t i = 0; i < m->open->len; i++) {
        meeting = g_ptr_array_index(m->open, i);
        if (same_collective(meeting, op) && !has_joined(meeting, rank))
            return meeting;
    }
    meeting = g_new0(LhMeeting, 1);
    meeting->kind = op->collective.kind;
    meeting->group = op->collective.group;
    meeting->size = (uint32_t)lh_group_size(&op->collective.group);
    meeting->members = g_new(LhMember, meeting->size);
    meeting->shard_bytes = op->collective.wire_bytes;
    meeting->failed_link = UINT32_MAX;
    plan(m->network, meeting);
    g_ptr_array_add(m->open, meeting);
    return meeting;
}

LhMeeting *
lh_meetings_join(LhMeetings *m, uint32_t handle, uint32_t rank, uint32_t op)
{
    LhMeeting *meeting = meeting_for(m, &m->ops[handle], rank);

    m->free[m->free_count++] = handle;
    meeting->members[meeting->arrived++] = (LhMember){ rank, op };
    return meeting;
}

void
lh_meetings_close(LhMeetings *m, LhMeeting *meeting)
{
    g_ptr_array_remove(m->open, meeting);
}
