/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the room: a search for the critical path of a run, and its speed-ups.
 */
#pragma once

#include "critical_path/collective_calls.h"
#include "critical_path/critical.h"

/* An op on the critical path. */
typedef struct {
    uint32_t rank, op;
    LhTime path_ps; /* without time on the host, which faster ops do not shorten */
    LhTime host_ps;
    uint32_t group; /* set by label_all() of critical.c, for ops on streams */
    uint16_t layer, micro_batch;
    uint8_t phase;
    bool collective;
    LhCallId call; /* of a collective */
} LhOnPath;

typedef struct {
    LhCriticalOf of;
    const LhTask *task; /* may be NULL */
    LhCritical *answer;
    GArray *groups; /* of uint32_t: by call of the graph */
    GArray *ops;    /* of LhOnPath, by rank and op */
} LhPathSearch;

static inline LhCallGroup *
lh_critical_group(const LhCritical *c, uint32_t index)
{
    return &g_array_index(c->groups, LhCallGroup, index);
}

/* Orders ops by rank, and then by number. */
static inline int
lh_compare_ops(uint32_t rank, uint32_t op, uint32_t other_rank, uint32_t other_op)
{
    if (rank != other_rank)
        return rank < other_rank ? -1 : 1;
    return op < other_op ? -1 : op > other_op;
}

/* The same for LhOnPath. */
static inline int
lh_on_path_compare(gconstpointer a, gconstpointer b)
{
    const LhOnPath *x = a, *y = b;

    return lh_compare_ops(x->rank, x->op, y->rank, y->op);
}

/* Whether an op of @rank belongs to the group. */
bool lh_path_search_is_of_group(const LhPathSearch *s, const LhCallGroup *group, uint32_t rank,
                                const LhOp *op, const LhOpBuffer *buffer);

/* Sets the simulated savings of the answer's speed-ups, and why they differ from the predictions.
 * LH_ERROR_RUNTIME if a simulation fails or is interrupted. */
bool lh_speed_ups_play(const LhPathSearch *s, GError **error);
