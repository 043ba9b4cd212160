/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul.result/3: schemas/result.schema.json. Times are exact decimal seconds of integer
 * picoseconds; sums over ranks are exact too, means are left to the reader.
 */
#include "report/data/result_json.h"

#include "report/data/constants.h"
#include "report/data/document.h"

#include "compare/totals.h"
#include "report/data/relief_json.h"
#include "report/data/result_values.h"

/* --- the case -----------------------------------------------------------------------------------
 */

static void
write_case(LhJsonWriter *w, const LhSetup *setup)
{
    g_autoptr(LhRecord) values = lh_case_values(setup);

    lh_jsonw_object_begin(w, "case");
    lh_record_json(values, w);
    lh_jsonw_object_end(w);
}

static void
write_constant(LhJsonWriter *w, const char *name, int provenance, const char *source)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "constant", name);
    lh_jsonw_string(w, "provenance", lh_provenance_names[provenance]);
    lh_jsonw_string(w, "source", source);
    lh_jsonw_object_end(w);
}

static void
write_link_constant(LhJsonWriter *w, const char *name, const LhLinkClass *link)
{
    g_autofree char *latency = g_strconcat(name, " latency", NULL);
    g_autofree char *ctas = g_strconcat(name, " SMs", NULL);

    if (link->bandwidth == 0)
        return;
    write_constant(w, name, link->from.provenance, link->from.source);
    write_constant(w, latency, link->latency_provenance, link->from.source);
    write_constant(w, ctas, link->ctas_provenance, link->from.source);
}

static void
write_tree_constants(LhJsonWriter *w, const LhPcieTree *tree)
{
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        const LhPcieLevel *level = &g_array_index(tree->levels, LhPcieLevel, i);
        g_autofree char *name = g_strconcat("pcie ", level->name, NULL);

        if (level->from.source != NULL)
            write_constant(w, name, level->from.provenance, level->from.source);
    }
    if (tree->memory_from.source != NULL)
        write_constant(w, "pcie memory", tree->memory_from.provenance, tree->memory_from.source);
}

static void
write_all_constants(LhJsonWriter *w, const LhSetup *setup)
{
    const LhDevice *d = setup->device;

    write_constant(w, "memory bandwidth", d->memory_provenance, d->source);
    write_constant(w, "host", d->host_provenance, d->source);
    for (guint i = 0; i < d->kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(d->kernels, LhKernelRate, i);
        g_autofree char *name =
            g_strdup_printf("%s %s d%" G_GUINT64_FORMAT, rate->kernel,
                            rate->mask != 0 ? "causal" : "full", rate->head_dim);

        write_constant(w, name, rate->from.provenance, rate->from.source);
    }
    for (guint i = 0; d->attention != NULL && i < d->attention->len; i++) {
        const LhAttentionRow *row = &g_array_index(d->attention, LhAttentionRow, i);
        g_autofree char *name = lh_attention_row_name(row);

        write_constant(w, name, row->from.provenance, row->from.source);
    }
    write_link_constant(w, "nvlink", &setup->topology->nvlink);
    write_link_constant(w, "pcie", &setup->topology->pcie);
    write_tree_constants(w, &setup->topology->tree);
    write_link_constant(w, "nic", &setup->topology->nic);
    if (setup->topology->nic_overhead_ps > 0)
        write_constant(w, "nic overhead", setup->topology->nic.latency_provenance,
                       setup->topology->nic.from.source);
}

static void
write_constants(LhJsonWriter *w, const LhSetup *setup)
{
    lh_jsonw_array_begin(w, "constants");
    if (setup->cost == LH_COST_DEVICE)
        write_all_constants(w, setup);
    lh_jsonw_array_end(w);
}
/* --- one run ------------------------------------------------------------------------------------
 */

typedef uint64_t (*RankNumber)(const LhRankResult *rank);

static uint64_t
rank_sent(const LhRankResult *rank)
{
    return rank->bytes_sent;
}

static uint64_t
rank_flops(const LhRankResult *rank)
{
    return rank->flops;
}

static uint64_t
rank_peak(const LhRankResult *rank)
{
    return rank->peak_bytes;
}

static uint64_t
rank_busy(const LhRankResult *rank)
{
    return (uint64_t)rank->busy_ps;
}

static uint64_t
rank_comm(const LhRankResult *rank)
{
    return (uint64_t)rank->comm_ps;
}

static uint64_t
rank_finish(const LhRankResult *rank)
{
    return (uint64_t)rank->finish_ps;
}

static uint64_t
rank_exposed(const LhRankResult *rank)
{
    uint64_t exposed = 0;

    for (int tier = 0; tier < LH_TIERS; tier++)
        exposed += (uint64_t)rank->idle_ps[LH_IDLE_COMM + tier];
    return exposed;
}

static void
write_numbers(LhJsonWriter *w, const char *key, const LhSimResult *r, RankNumber number)
{
    lh_jsonw_array_begin(w, key);
    for (uint32_t i = 0; i < r->ranks_count; i++)
        lh_jsonw_uint(w, NULL, number(&r->ranks[i]));
    lh_jsonw_array_end(w);
}

static void
write_times(LhJsonWriter *w, const char *key, const LhSimResult *r, RankNumber time_ps)
{
    lh_jsonw_array_begin(w, key);
    for (uint32_t i = 0; i < r->ranks_count; i++)
        lh_jsonw_seconds(w, NULL, time_ps(&r->ranks[i]));
    lh_jsonw_array_end(w);
}

static void
write_claimed_bytes(LhJsonWriter *w, const LhProgram *program)
{
    uint64_t value;

    lh_jsonw_array_begin(w, "closed_form_bytes");
    for (uint32_t i = 0; i < lh_program_ranks(program); i++) {
        if (lh_program_claim(program, LH_CLAIM_BYTES_SENT, i, &value))
            lh_jsonw_uint(w, NULL, value);
    }
    lh_jsonw_array_end(w);
}

static void
write_ranks(LhJsonWriter *w, const LhCompareRow *row)
{
    const LhSimResult *r = row->result;

    lh_jsonw_object_begin(w, "per_rank");
    write_times(w, "compute_s", r, rank_busy);
    write_times(w, "comm_s", r, rank_comm);
    write_times(w, "exposed_s", r, rank_exposed);
    write_times(w, "finish_s", r, rank_finish);
    write_numbers(w, "flops", r, rank_flops);
    write_numbers(w, "sent_bytes", r, rank_sent);
    write_claimed_bytes(w, row->program);
    write_numbers(w, "peak_bytes", r, rank_peak);
    lh_jsonw_object_end(w);
}

/* Of the rank with the largest peak, at that moment. */
static void
write_peak(LhJsonWriter *w, const LhSimResult *r)
{
    LhTotals totals;

    lh_totals(r, &totals);
    lh_jsonw_object_begin(w, "peak_bytes_by_tensor");
    for (int kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        const uint64_t bytes = r->ranks[totals.peak_rank].peak_by_tensor[kind];

        if (bytes != 0)
            lh_jsonw_uint(w, lh_tensor_names[kind], bytes);
    }
    lh_jsonw_object_end(w);
}

void
lh_memory_op_json(LhJsonWriter *w, const LhMemoryOp *op)
{
    if (op->op == LH_OP_NONE) {
        lh_jsonw_string(w, "op", NULL);
        lh_jsonw_string(w, "layer", NULL);
        lh_jsonw_string(w, "micro_batch", NULL);
        lh_jsonw_string(w, "phase", NULL);
        return;
    }
    lh_jsonw_uint(w, "op", op->op);
    lh_jsonw_uint(w, "layer", op->layer);
    lh_jsonw_uint(w, "micro_batch", op->micro_batch);
    lh_jsonw_string(w, "phase", lh_phase_names[op->phase]);
}

static void
write_categories(LhJsonWriter *w, const uint64_t by_category[LH_CATEGORIES])
{
    lh_jsonw_object_begin(w, "by_category");
    for (int c = 0; c < LH_CATEGORIES; c++) {
        if (by_category[c] != 0)
            lh_jsonw_uint(w, lh_category_names[c], by_category[c]);
    }
    lh_jsonw_object_end(w);
}

/* The moment of that peak. */
static void
write_moment(LhJsonWriter *w, const LhSimResult *r)
{
    LhTotals totals;
    const LhRankResult *rank;

    lh_totals(r, &totals);
    rank = &r->ranks[totals.peak_rank];
    lh_jsonw_object_begin(w, "peak");
    lh_memory_op_json(w, &rank->peak_op);
    write_categories(w, rank->peak_by_category);
    lh_jsonw_object_end(w);
}

/* The first op that does not fit. */
static void
write_first(LhJsonWriter *w, const LhOutOfMemory *oom)
{
    lh_jsonw_object_begin(w, "first");
    lh_jsonw_uint(w, "rank", oom->rank);
    lh_jsonw_seconds(w, "time_s", oom->time_ps);
    lh_memory_op_json(w, &oom->op);
    lh_jsonw_string(w, "category",
                    oom->op.op != LH_OP_NONE ? lh_category_names[oom->op.category] : NULL);
    lh_jsonw_uint(w, "held_bytes", oom->needed_bytes);
    lh_jsonw_object_end(w);
}

/* What is needed is the peak. */
static void
write_out_of_memory(LhJsonWriter *w, const LhSimResult *r)
{
    LhTotals totals;

    if (r == NULL || r->out_of_memory == NULL) {
        lh_jsonw_string(w, "out_of_memory", NULL);
        return;
    }
    lh_totals(r, &totals);
    lh_jsonw_object_begin(w, "out_of_memory");
    lh_jsonw_uint(w, "rank", totals.peak_rank);
    lh_jsonw_uint(w, "needed_bytes", totals.peak_bytes);
    lh_jsonw_uint(w, "limit_bytes", r->out_of_memory->limit_bytes);
    write_categories(w, r->ranks[totals.peak_rank].peak_by_category);
    write_first(w, r->out_of_memory);
    lh_jsonw_object_end(w);
}

static void
write_row(LhJsonWriter *w, const LhSetup *setup, const LhCompareRow *row, LhTime best_ps)
{
    g_autoptr(LhRecord) values = lh_row_values(setup, row, best_ps);

    lh_jsonw_object_begin(w, NULL);
    lh_record_json(values, w);
    if (row->result == NULL) {
        lh_jsonw_string(w, "per_rank", NULL);
        lh_jsonw_string(w, "peak_bytes_by_tensor", NULL);
        lh_jsonw_string(w, "peak", NULL);
        write_out_of_memory(w, NULL);
    } else {
        write_ranks(w, row);
        write_peak(w, row->result);
        write_moment(w, row->result);
        write_out_of_memory(w, row->result);
    }
    lh_jsonw_object_end(w);
}

/* --- a comparison -------------------------------------------------------------------------------
 */

static void
write_path(LhJsonWriter *w, const LhBottleneck *bound)
{
    lh_jsonw_array_begin(w, "winner_critical_path");
    for (guint i = 0; bound != NULL && i < bound->shares->len; i++) {
        const LhPathShare *share = &g_array_index(bound->shares, LhPathShare, i);
        g_autofree char *name = lh_resource_name(share->kind, share->tiers);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "of", name);
        lh_jsonw_seconds(w, "time_s", share->time_ps);
        lh_jsonw_double(w, "fraction", (double)share->time_ps / (double)MAX(bound->makespan_ps, 1));
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

void
lh_what_if_more_json(LhJsonWriter *w, const LhTopology *topology, const LhWhatIf *what_if)
{
    g_autofree char *edit = lh_what_if_edit(topology, what_if);

    lh_jsonw_double(w, "saved_fraction_low", what_if->least_share);
    lh_jsonw_double(w, "saved_fraction_high", what_if->most_share);
    lh_jsonw_string(w, "edit", edit);
}

/* What binds the winner first. */
static void
write_what_ifs(LhJsonWriter *w, const LhSetup *setup, const LhBottleneck *bound)
{
    lh_jsonw_array_begin(w, "winner_with_10_percent_more");
    for (guint i = 0; bound != NULL && i < bound->what_ifs->len; i++) {
        const LhWhatIf *what_if = &g_array_index(bound->what_ifs, LhWhatIf, i);
        const LhTime saved_ps = bound->makespan_ps - what_if->makespan_ps;
        const double makespan_ps = (double)MAX(bound->makespan_ps, 1);
        g_autofree char *name = lh_resource_name(what_if->kind, what_if->tiers);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "of", name);
        lh_jsonw_double(w, "critical_path_fraction", (double)what_if->path_ps / makespan_ps);
        lh_jsonw_seconds(w, "makespan_s", what_if->makespan_ps);
        lh_jsonw_double(w, "saved_fraction", (double)saved_ps / makespan_ps);
        lh_what_if_more_json(w, setup->topology, what_if);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* Schedules that are behind the winner by no more than their difference is good to. */
static void
write_tied(LhJsonWriter *w, const LhComparison *c)
{
    lh_jsonw_array_begin(w, "not_told_apart_from_winner");
    for (guint i = 1; i < c->fit_count; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (row->tied)
            lh_jsonw_string(w, NULL, row->name);
    }
    lh_jsonw_array_end(w);
}

void
lh_result_json(const LhSetup *setup, const LhComparison *c, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    const LhCompareRow *first = g_ptr_array_index(c->rows, 0);

    lh_document_begin(w, LH_RESULT_SCHEMA, stamp, setup, true);
    write_case(w, setup);
    lh_jsonw_string(w, "winner", c->fit_count > 0 ? first->name : NULL);
    lh_jsonw_uint(w, "left_out", setup->left_out);
    write_tied(w, c);
    lh_jsonw_bool(w, "interrupted", c->interrupted);
    write_path(w, c->bound);
    write_what_ifs(w, setup, c->bound);
    lh_reliefs_json(w, c->reliefs);
    write_constants(w, setup);
    lh_jsonw_array_begin(w, "results");
    for (guint i = 0; i < c->rows->len; i++)
        write_row(w, setup, g_ptr_array_index(c->rows, i), lh_best_ps(c));
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}
