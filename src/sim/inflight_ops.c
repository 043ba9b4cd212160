/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/inflight_ops.h"

#define NODES_MIN 4

void
lh_nodes_clear(LhNodes *nodes)
{
    g_aligned_free(nodes->nodes);
    *nodes = (LhNodes){ 0 };
}

void
lh_nodes_grow(LhNodes *nodes)
{
    const uint32_t capacity = MAX(NODES_MIN, 2 * nodes->capacity);
    LhNode *larger = g_aligned_alloc(capacity, sizeof(LhNode), LH_CACHE_LINE_BYTES);

    for (uint32_t id = nodes->first; id < nodes->issued; id++)
        larger[id & (capacity - 1)] = *lh_node(nodes, id);
    g_aligned_free(nodes->nodes);
    nodes->nodes = larger;
    nodes->capacity = capacity;
    nodes->mask = capacity - 1;
}
