/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of the engine for a program, and the results of a run. */
#include "base/error.h"
#include "sim/cost/provenance.h"
#include "sim/sim_private.h"

#include <string.h>

#define OVERUSE_MAX 1e-9 /* tolerance of a link's utilisation, for rounding of sums */
#define EQUAL_USE 1e-6   /* relative difference of equally used links */

static void
init_ranks(LhEngine *e)
{
    const uint32_t queues = e->ranks_count << e->streams_shift;
    uint32_t played = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++)
        played += lh_engine_plays(e, r);
    e->ranks = g_aligned_alloc0(e->ranks_count, sizeof(LhSimRank), LH_CACHE_LINE_BYTES);
    e->queues = g_new(LhQueue, queues);
    e->cursor_bytes = lh_cursor_bytes(e->program);
    e->cursors = g_aligned_alloc(e->ranks_count, e->cursor_bytes, LH_CACHE_LINE_BYTES);
    e->memory = lh_live_states_new(e->program, played);
    e->memory_states = g_new(uint32_t, e->ranks_count);
    e->results = g_new0(LhRankResult, e->ranks_count);
    for (uint32_t i = 0; i < queues; i++)
        e->queues[i] = (LhQueue){ LH_NO_NODE, LH_NO_NODE };
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        LhSimRank *rank = &e->ranks[r];

        rank->index = r;
        rank->queues = &e->queues[r << e->streams_shift];
        if (lh_engine_plays(e, r)) {
            lh_cursor_init(lh_engine_cursor(e, r), e->program, r);
            e->memory_states[r] = lh_live_states_begin(e->memory, r);
        }
        rank->empty = e->all_streams;
        rank->gate = LH_NO_NODE;
        rank->speed = 1;
        rank->account.why = LH_IDLE_IMBALANCE;
    }
}

/* Of ranks that are alike, only the simulated one is measured. */
static void
init_exposed(LhEngine *e)
{
    const uint32_t stride = e->params->exposed_stride;

    if (stride > 0)
        e->exposed = g_new0(LhExposed *, e->ranks_count);
    for (uint32_t r = 0; stride > 0 && r < e->ranks_count; r += stride) {
        const uint32_t like = lh_engine_like(e, r);

        if (e->exposed[like] == NULL)
            e->exposed[like] = g_new0(LhExposed, 1);
    }
}

static void
clear_exposed(LhEngine *e)
{
    for (uint32_t r = 0; e->exposed != NULL && r < e->ranks_count; r++) {
        if (e->exposed[r] != NULL)
            lh_exposed_clear(e->exposed[r]);
        g_free(e->exposed[r]);
    }
    g_free(e->exposed);
}

/* In collectives over rows only ranks a shift apart are equivalent, and vice versa. */
static void
init_aparts(LhEngine *e)
{
    if (!e->folded)
        return;
    for (uint32_t i = 0; i < LH_APARTS; i++) {
        LhApart *apart = &e->apart[i];

        apart->fold = e->fold;
        if (i != LH_APART_SHIFTS)
            apart->fold.of.row = 1;
        if (i != LH_APART_ROWS)
            apart->fold.of.shifts = apart->fold.of.shift = apart->fold.kept = 1;
        apart->sent_bytes = g_new0(uint64_t, (gsize)e->ranks_count * LH_TIERS);
        apart->link_bytes = g_new0(uint64_t, e->network->links_count);
    }
    e->whole_bytes = g_new0(uint64_t, e->network->links_count);
}

static void
init_news(LhEngine *e)
{
    while (e->news.mask + 1 < e->ranks_count)
        e->news.mask = 2 * e->news.mask + 1;
    e->news.ranks = g_new(uint32_t, e->news.mask + 1);
}

static void
init_tails(LhEngine *e)
{
    const GArray *tails = e->params->tails;

    if (tails != NULL)
        e->tails_ps = g_new0(const GArray *, e->ranks_count);
    for (uint32_t i = 0; tails != NULL && i < tails->len; i++) {
        const LhRankTails *t = &g_array_index(tails, LhRankTails, i);

        e->tails_ps[t->rank] = t->tails_ps;
    }
}

static void
init_stragglers(LhEngine *e)
{
    const GArray *stragglers = e->params->stragglers;

    if (stragglers == NULL || stragglers->len == 0)
        return;
    e->slowdown = g_new(double, e->ranks_count);
    for (uint32_t r = 0; r < e->ranks_count; r++)
        e->slowdown[r] = 1;
    for (uint32_t i = 0; i < stragglers->len; i++) {
        const LhStraggler *s = &g_array_index(stragglers, LhStraggler, i);

        if (s->rank < e->ranks_count)
            e->slowdown[s->rank] = lh_sim_slowdown(e->params, (uint32_t)s->rank);
    }
}

static void
init_network(LhEngine *e)
{
    const LhSimParams *params = e->params;
    const uint32_t queues = e->ranks_count << e->streams_shift;

    if (!e->free_network && params->device->machine_ranks > 0)
        e->machines = g_new0(LhMachine, e->ranks_count / params->device->machine_ranks + 1);
    e->contention = !e->free_network && params->device->messages_hold > 0;
    for (uint32_t i = 0; i < LH_ROUTE_CLASSES && !e->free_network; i++)
        e->contention |= e->network->classes[i].ctas[LH_SPAN_NODE] > 0;
    lh_heap_reserve(&e->heap, queues);
    e->moving.flows = lh_flows_new(e->network, params->network_model, &e->heap, queues);
    e->collectives =
        lh_collectives_new(e->network, params->device,
                           e->free_network ? LH_COLLECTIVES_CLOSED_FORM : params->collectives,
                           params->network_model == LH_NETWORK_FAIR, e->folded ? &e->fold : NULL);
    if (params->links != NULL) {
        e->moving.load =
            lh_link_utilization_new(e->network->links_count, params->links, params->links_data);
        lh_flows_load(e->moving.flows, e->moving.load);
    }
    if (params->path)
        e->causes = lh_path_recorder_new(e->network, e->moving.flows,
                                         params->network_model == LH_NETWORK_FAIR,
                                         e->folded ? &e->fold : NULL, params->precedence);
    lh_matcher_init(&e->matcher, e->ranks_count);
}

void
lh_engine_init(LhEngine *e, const LhSimParams *params, const LhSymmetryGroups *fold)
{
    const LhProgram *program = params->program;

    e->params = params;
    e->fold = *fold;
    e->folded = lh_symmetry_is_any(fold);
    e->program = program;
    e->network = params->network;
    e->ranks_count = lh_program_ranks(program);
    e->streams_count = program->streams_count;
    while (1u << e->streams_shift < e->streams_count)
        e->streams_shift++;
    e->all_streams = (uint16_t)((1u << e->streams_count) - 1);
    for (uint32_t s = 0; s < e->streams_count; s++)
        if (program->streams[s].kind == LH_STREAM_COMPUTE)
            e->compute_streams |= (uint16_t)(1u << s);
    e->free_network = params->cost != LH_COST_DEVICE;
    e->launch_ps = e->free_network ? 0 : params->device->kernel_launch_ps;
    e->sync_ps = e->free_network ? 0 : params->device->stream_sync_ps;
    lh_sim_begin_cost(&e->cost, params);
    init_ranks(e);
    init_exposed(e);
    init_aparts(e);
    init_news(e);
    init_network(e);
    init_stragglers(e);
    init_tails(e);
    lh_transit_init(e);
    lh_memory_begins(e);
    e->repeat = lh_fast_forward_new(e);
    lh_lookahead_init(e);
}

void
lh_engine_clear(LhEngine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++)
        lh_nodes_clear(&e->ranks[r].nodes);
    clear_exposed(e);
    lh_transit_clear(e);
    g_aligned_free(e->ranks);
    g_free(e->queues);
    g_aligned_free(e->cursors);
    lh_live_states_free(e->memory);
    g_free(e->memory_states);
    g_free(e->results);
    for (uint32_t i = 0; i < LH_APARTS; i++) {
        g_free(e->apart[i].sent_bytes);
        g_free(e->apart[i].link_bytes);
    }
    g_free(e->whole_bytes);
    g_free(e->out_of_memory);
    g_free(e->slowdown);
    g_free(e->machines);
    g_free(e->moving.ends);
    g_free(e->moving.hops);
    g_free(e->news.ranks);
    g_free(e->tails_ps);
    lh_path_recorder_free(e->causes);
    lh_fast_forward_free(e->repeat, e->ranks_count);
    lh_lookahead_clear(e);
    lh_matcher_clear(&e->matcher);
    lh_flows_free(e->moving.flows);
    lh_link_utilization_free(e->moving.load);
    lh_collectives_free(e->collectives);
    lh_heap_clear(&e->heap);
    lh_cost_clear(&e->cost);
    lh_op_buffer_clear(&e->buffer);
}

/* Bytes carried by a link. */
static LhWide
link_bytes(const LhEngine *e, uint32_t link)
{
    const uint32_t like = e->folded ? lh_symmetry_link(&e->fold, e->network, link) : link;
    LhWide bytes = lh_flows_link_bytes(e->moving.flows, like);

    if (!e->folded)
        return bytes;
    bytes -= e->whole_bytes[like];
    for (uint32_t i = 0; i < LH_APARTS; i++)
        bytes += e->apart[i].link_bytes[lh_symmetry_link(&e->apart[i].fold, e->network, link)];
    return bytes;
}

/* Whether a link is used more than another: links of equivalent ranks differ by the bytes that are
 * left over when a message is cut, which ranks may share out differently in a folded run. */
static bool
is_busier(LhLinkUse use, LhLinkUse than)
{
    return use.used > than.used * (1 + EQUAL_USE);
}

/* Inserts the link among the busiest; of equal ones the first stays in front. */
static void
rank_link(LhSimResult *result, LhLinkUse use)
{
    uint32_t at = result->busy_links_count;

    while (at > 0 && is_busier(use, result->busy_links[at - 1]))
        at--;
    if (at == LH_BUSY_LINKS)
        return;
    result->busy_links_count = MIN(result->busy_links_count + 1, LH_BUSY_LINKS);
    for (uint32_t i = result->busy_links_count - 1; i > at; i--)
        result->busy_links[i] = result->busy_links[i - 1];
    result->busy_links[at] = use;
}

static void
add_use(LhTierUse *tier, LhLinkUse use)
{
    tier->links++;
    tier->used_sum += use.used;
    if (is_busier(use, tier->busiest))
        tier->busiest = use;
}

/* Traffic over these links also crosses the GPUs' own links, which count it. */
static bool
is_of_tree(const LhNetwork *n, uint32_t id)
{
    return id >= n->tree.first && id < n->nic_first;
}

/* Whether messages share links, so that none can exceed its bandwidth. Closed forms, which are
 * independent of each other, and the alpha-beta model, where each message is alone, may overlap. */
static bool
shares_links(const LhEngine *e)
{
    return !e->free_network && e->params->network_model != LH_NETWORK_ALPHA_BETA &&
           e->params->collectives != LH_COLLECTIVES_CLOSED_FORM;
}

/* Utilisation may exceed 1 only by rounding: of sums, and of the end of every message to a
 * picosecond. */
static void
check_use(LhEngine *e, const LhSimResult *result, LhLinkUse use)
{
    const double rounded = (double)(e->events + 1) / (double)MAX(result->makespan_ps, 1);
    g_autofree char *name = NULL;

    if (use.used <= 1 + OVERUSE_MAX + rounded || !shares_links(e) || e->error != NULL)
        return;
    name = lh_network_link_name(e->network, use.link);
    g_set_error(
        &e->error, LH_ERROR, LH_ERROR_RUNTIME,
        "internal: utilisation of link %s is %.4g, more than its bandwidth allows; please report "
        "this command and its files",
        name, use.used);
}

static void
summarise_links(LhEngine *e, LhSimResult *result)
{
    const double span_s = (double)result->makespan_ps / (double)LH_PS_PER_S;

    result->busiest_link = UINT32_MAX;
    for (uint32_t i = 0; i < e->network->links_count; i++) {
        const LhLink link = lh_network_link(e->network, i);
        const LhWide bytes = link_bytes(e, i);
        const double takes_s = bytes > 0 ? (double)bytes / link.bandwidth_bytes_per_s : 0;
        const LhLinkUse use = { i, span_s > 0 ? takes_s / span_s : 0 };

        check_use(e, result, use);
        if (i < e->network->collective_first) { /* the NICs count the others */
            if (!is_of_tree(e->network, i))
                result->link_bytes[link.tier] += bytes;
            add_use(&result->tier_use[link.tier], use);
        }
        if (use.used > 0)
            rank_link(result, use);
    }
    if (result->busy_links_count > 0) {
        result->busiest_link = result->busy_links[0].link;
        result->busiest_link_utilisation = result->busy_links[0].used;
    }
}

static LhProvenance
link_provenance(const LhTopology *topology, uint32_t tier)
{
    const LhLinkClass *const classes[LH_TIERS] = { &topology->nvlink, &topology->pcie,
                                                   &topology->nic, &topology->nic };

    const int weakest = lh_link_provenance(classes[tier]);

    return (LhProvenance)(tier == LH_TIER_PCIE ? MAX(weakest, lh_pcie_provenance(&topology->tree))
                                               : weakest);
}

/* Weakest provenance of constants other than those of kernels: links, hosts, and constants of this
 * cluster alone. */
static LhProvenance
outside_provenance(const LhEngine *e)
{
    const LhTopology *t = e->network->topology;
    const bool between = e->tiers_used & (1u << LH_TIER_NIC | 1u << LH_TIER_FABRIC);
    int weakest = LH_PROVENANCE_MEASURED;

    if (e->free_network)
        return LH_PROVENANCE_MEASURED;
    for (uint32_t tier = 0; tier < LH_TIERS; tier++)
        if (e->tiers_used & 1u << tier)
            weakest = MAX(weakest, (int)link_provenance(t, tier));
    if (between && t->collective_bandwidth > 0)
        weakest = MAX(weakest, t->collective_from.provenance);
    return (LhProvenance)MAX(weakest, e->host_provenance);
}

/* Accounts for the time of all ranks until the last one is done. */
static void
close_accounts(LhEngine *e, LhSimResult *result)
{
    uint32_t last = 0;

    for (uint32_t r = 1; r < e->ranks_count; r++)
        if (e->results[r].finish_ps > e->results[last].finish_ps)
            last = r;
    result->makespan_ps = e->results[last].finish_ps;
    e->now = result->makespan_ps - e->skipped_ps;
    for (uint32_t r = 0; r < e->ranks_count; r++)
        if (r != last && lh_engine_plays(e, r))
            lh_idle_accounting_wait(&e->ranks[r].account, &e->results[r], &e->ranks[last].account,
                                    &e->results[last], e->now);
    lh_idle_accounting_take(&e->ranks[last].account, &e->results[last], e->now);
}

/* Fills in the results of ranks that were not simulated, and adds the bytes that were counted per
 * rank. */
static void
summarise_likes(LhEngine *e)
{
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        if (!lh_engine_plays(e, r))
            e->results[r] = e->results[lh_engine_like(e, r)];
    }
    for (uint32_t k = 0; e->folded && k < LH_APARTS; k++) {
        const LhApart *apart = &e->apart[k];

        for (uint32_t i = 0; i < e->ranks_count * LH_TIERS; i++) {
            const uint32_t r = i / LH_TIERS, tier = i % LH_TIERS;
            const uint64_t bytes =
                apart->sent_bytes[lh_symmetry_rank(&apart->fold, r) * LH_TIERS + tier];

            e->results[r].bytes_sent += bytes;
            e->results[r].bytes_by_tier[tier] += bytes;
        }
    }
}

/* The contents at the peak are stored once for all ranks with the same. */
static void
summarise_memory(LhEngine *e, LhSimResult *result)
{
    const uint32_t end = lh_live_states_end(e->memory);
    g_autofree const LhMemoryPeak **peaks = g_new0(const LhMemoryPeak *, end);
    LhMemoryPeak *next;

    next = result->peaks = g_new(LhMemoryPeak, lh_live_states_count(e->memory));
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        const LhLive *live;

        if (!lh_engine_plays(e, r))
            continue;
        live = lh_memory_now(e, r);
        if (peaks[e->memory_states[r]] == NULL) {
            memcpy(next->by_tensor, live->peak_by_tensor, sizeof(next->by_tensor));
            memcpy(next->by_category, live->peak_by_category, sizeof(next->by_category));
            peaks[e->memory_states[r]] = next++;
        }
        e->results[r].peak_bytes = live->peak_bytes;
        e->results[r].host_peak_bytes = live->host_peak_bytes;
        e->results[r].peak = peaks[e->memory_states[r]];
    }
}

static void
summarise_host_memory(const LhEngine *e, LhSimResult *result)
{
    const LhTopology *topology = e->network->topology;
    const uint32_t ranks = (uint32_t)MAX(topology->gpus_per_node, 1);
    uint64_t bytes = 0;

    result->host_memory.limit_bytes = topology->host_memory;
    for (uint32_t r = 0; r < result->ranks_count; r++) {
        bytes = (r % ranks == 0 ? 0 : bytes) + result->ranks[r].host_peak_bytes;
        if (bytes <= result->host_memory.needed_bytes)
            continue;
        result->host_memory.node = r / ranks;
        result->host_memory.needed_bytes = bytes;
    }
}

static void
summarise_exposed(const LhEngine *e, LhSimResult *result)
{
    const uint32_t stride = e->params->exposed_stride;

    for (uint32_t r = 0; e->exposed != NULL && r < e->ranks_count; r++) {
        if (e->exposed[r] != NULL)
            lh_exposed_close(e->exposed[r]);
    }
    for (uint32_t r = 0; stride > 0 && r < e->ranks_count; r += stride) {
        const LhExposed *exposed = e->exposed[lh_engine_like(e, r)];

        for (uint32_t d = 0; d < LH_EXPOSED_DIMENSIONS; d++)
            result->exposed_ps[d] += exposed->exposed_ps[d];
        result->exposed_ranks++;
    }
}

LhSimResult *
lh_engine_summarise(LhEngine *e)
{
    LhSimResult *result = g_new0(LhSimResult, 1);

    close_accounts(e, result);
    summarise_memory(e, result);
    summarise_likes(e);
    for (uint32_t r = 0; r < e->ranks_count; r++)
        result->simulated_ranks += lh_engine_plays(e, r);
    result->ranks_count = e->ranks_count;
    result->ranks = g_steal_pointer(&e->results);
    result->out_of_memory = g_steal_pointer(&e->out_of_memory);
    summarise_host_memory(e, result);
    result->events = e->events;
    result->ops = e->ops;
    for (uint32_t r = 0; r < e->ranks_count; r++)
        result->skipped_ops +=
            lh_engine_plays(e, r) ? (uint64_t)e->ranks[r].skipped_ops * lh_engine_weight(e, r) : 0;
    result->provenance = e->cost.provenance;
    result->compute_error =
        e->cost.spent_s > 0 ? e->cost.uncertain_s / e->cost.spent_s : LH_MODEL_ERROR;
    result->compute_judged = e->cost.spent_s > 0 ? e->cost.judged_s / e->cost.spent_s : 0;
    result->beyond = e->cost.beyond;
    summarise_exposed(e, result);
    result->provenance = MAX(result->provenance, outside_provenance(e));
    if (e->causes != NULL)
        result->path = lh_path_recorder_path(e->causes);
    if (e->causes != NULL)
        result->precedence = lh_path_recorder_take_slack(e->causes);
    summarise_links(e, result);
    return result;
}
