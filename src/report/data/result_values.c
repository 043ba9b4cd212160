/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/result_values.h"

#include "compare/error_bar.h"
#include "compare/totals.h"
#include "proof/proven.h"
#include "report/data/memory_limit.h"
#include "report/data/notes.h"
#include "scenario/setting.h"
#include "scenario/setup_weights.h"
#include "step/pipeline.h"

/* --- the case -----------------------------------------------------------------------------------
 */

static void
add_attention(LhRecord *v, const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;

    lh_record_integer(v, "seq_length", a->seq_length);
    lh_record_integer(v, "micro_batch_size", a->batch);
    lh_record_integer(v, "num_attention_heads", a->heads);
    lh_record_integer(v, "num_query_groups", a->groups);
    lh_record_integer(v, "kv_channels", a->head_dim);
    lh_record_integer(v, "hidden_size",
                      a->hidden_size != 0 ? a->hidden_size : (LhWide)a->heads * a->head_dim);
    lh_record_text(v, "dtype", lh_dtype_names[a->dtype]);
    lh_record_text(v, "attention", a->linear ? "linear" : "softmax");
    lh_record_real(v, "linear_decay", a->decay == 0 ? 1 : a->decay);
    lh_record_text(v, "mask", p->mask.causal ? "causal" : "full");
    lh_record_integer(v, "window_size", p->mask.window);
    lh_record_integer(v, "documents", MAX(p->mask.documents_count, 1));
    lh_record_text(v, "pass", lh_pass_names[p->pass - 1]);
}

/* Of a training step, how it is cut and run; of a module nothing. */
static void
add_step_case(LhRecord *v, const LhSetup *setup)
{
    const guint first = lh_record_count(v);
    const LhStepParams none = { .tensor_parallel = 1 };
    const LhStepParams *p = setup->step != NULL ? &setup->step->params : &none;

    lh_record_text(v, "framework", setup->framework != NULL ? setup->framework->name : NULL);
    lh_record_integer(v, "tensor_model_parallel_size", p->tensor_parallel);
    lh_record_integer(v, "context_parallel_size", p->module.ranks);
    lh_record_integer(v, "pipeline_model_parallel_size", lh_step_stages(p));
    lh_record_integer(v, "virtual_pipeline_model_parallel_size", lh_step_chunks(p));
    lh_record_text(v, "pipeline_schedule", lh_pipeline_order_names[p->pipeline_order]);
    lh_record_integer(v, "num_micro_batches", p->micro_batches);
    lh_record_text(v, "shard", lh_shard_names[p->shard]);
    lh_record_text(v, "checkpoint", lh_checkpoint_names[p->checkpoint]);
    if (setup->step == NULL)
        lh_record_blank(v, first);
}

/* What @option of the scenario lists. */
static void
add_list(LhRecord *v, const char *option, const LhScenario *s)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);

    lh_record_list(v, field, *(GArray *const *)(const void *)((const char *)s + field->offset));
}

/* @value, or nothing where it is 0. */
static void
add_rate(LhRecord *v, const char *key, double value)
{
    if (value > 0)
        lh_record_real(v, key, value);
    else
        lh_record_none(v, key);
}

/* Of the links, what a scenario may change. */
void
lh_add_links(LhRecord *v, const LhTopology *t)
{
    lh_record_integer(v, "nics", t->nics_per_node);
    add_rate(v, "nic_bytes_per_s", t->nics_per_node > 0 ? t->nic.bandwidth : 0);
    add_rate(v, "nvlink_bytes_per_s", t->scale_up == LH_SCALE_UP_NONE ? 0 : t->nvlink.bandwidth);
    add_rate(v, "oversubscription", t->fabric == LH_FABRIC_FAT_TREE ? t->oversubscription : 0);
}

LhRecord *
lh_case_values(const LhSetup *setup)
{
    const LhScenario *s = setup->scenario;
    g_autofree char *notes = lh_notes_text(setup->model);
    g_autofree char *of_links = lh_link_notes_text(setup);
    LhRecord *v = lh_record_new();

    lh_record_text(v, "cluster", setup->topology->name);
    lh_record_integer(v, "nodes", setup->network.nodes);
    lh_record_text(v, "device", setup->device->name);
    lh_add_links(v, setup->topology);
    lh_record_text(v, "model", setup->model != NULL ? setup->model->name : NULL);
    lh_record_integer(v, "ranks",
                      setup->step != NULL ? lh_step_ranks(&setup->step->params)
                                          : lh_params_ranks(&setup->params));
    lh_record_integer(v, "data_parallel_size", MAX(setup->params.data_parallel_size, 1));
    add_attention(v, &setup->params);
    add_step_case(v, setup);
    lh_record_text(v, "cost", lh_cost_mode_names[setup->cost]);
    lh_record_text(v, "network", lh_network_model_names[setup->network_model]);
    lh_record_text(v, "collectives", lh_collective_model_names[setup->collectives]);
    lh_record_real(v, "jitter", s->jitter);
    lh_record_integer(v, "seed", s->seed);
    add_list(v, "--straggler", s);
    add_list(v, "--link-fault", s);
    lh_record_text(v, "profile", s->profile);
    lh_record_integer(v, "memory_capacity_bytes", setup->device->memory_capacity);
    if (lh_setup_weight_bytes(setup) > 0)
        lh_record_integer(v, "model_weight_bytes", lh_setup_weight_bytes(setup));
    else
        lh_record_none(v, "model_weight_bytes");
    lh_record_text(v, "model_notes", notes);
    lh_record_text(v, "link_notes", of_links);
    return v;
}

/* --- a schedule ---------------------------------------------------------------------------------
 */

static const char *
state_name(const LhCompareRow *row)
{
    static const char *const names[] = { "ok",          "out-of-memory", "left-out",
                                         "interrupted", "failed",        "refused" };

    if (row->state == LH_ROW_RAN && lh_prove_is_unproven(row->program))
        return "unproven";
    return names[row->state];
}

/* Why the state is not "ok"; NULL if it is. Caller frees. */
static char *
reason_of_row(const LhSetup *setup, const LhCompareRow *row)
{
    if (row->result == NULL)
        return g_strdup(row->reason);
    if (row->state != LH_ROW_NO_MEMORY)
        return lh_prove_is_unproven(row->program) ? g_strdup("the program is not proven") : NULL;
    return lh_describe_memory_limit(setup, row->result);
}

/* Keys of what is said of each part of the time and of each kind of link. */
static const char *const idle_keys[LH_IDLE_PARTS] = {
    "imbalance_sum_s",   "exposed_nvlink_sum_s", "exposed_pcie_sum_s",
    "exposed_nic_sum_s", "exposed_fabric_sum_s", "host_sum_s",
};
static const char *const sent_keys[LH_TIERS] = {
    "sent_nvlink_bytes_sum",
    "sent_pcie_bytes_sum",
    "sent_nic_bytes_sum",
    "sent_fabric_bytes_sum",
};

/* What the program says that all ranks send; NULL says nothing. */
static void
add_claimed_bytes(LhRecord *v, const char *key, const LhProgram *program)
{
    LhWide sum = 0;

    for (uint32_t rank = 0; program != NULL && rank < lh_program_ranks(program); rank++) {
        uint64_t value;

        if (!lh_program_claim(program, LH_CLAIM_BYTES_SENT, rank, &value)) {
            lh_record_none(v, key);
            return;
        }
        sum += value;
    }
    lh_record_integer(v, key, sum);
}

static void
add_times(LhRecord *v, const LhSimResult *r, const LhTotals *totals)
{
    lh_record_real(v, "speedup",
                   r->makespan_ps > 0 ? (double)totals->busy_ps / (double)r->makespan_ps : 0);
    lh_record_real(v, "bubble_fraction", lh_sim_bubble_fraction(r));
    lh_record_seconds(v, "span_sum_s", totals->span_ps);
    lh_record_seconds(v, "compute_sum_s", totals->busy_ps);
    for (int part = 0; part < LH_IDLE_PARTS; part++)
        lh_record_seconds(v, idle_keys[part], totals->idle_ps[part]);
}

static void
add_counts(LhRecord *v, const LhCompareRow *row, const LhSimResult *r, const LhTotals *totals)
{
    lh_record_integer(v, "flops_sum", totals->flops);
    lh_record_integer(v, "sent_bytes_max", totals->sent_bytes_max);
    lh_record_integer(v, "sent_bytes_sum", totals->sent_bytes);
    add_claimed_bytes(v, "closed_form_bytes_sum", row->program);
    for (int tier = 0; tier < LH_TIERS; tier++)
        lh_record_integer(v, sent_keys[tier], totals->tier_bytes[tier]);
    lh_record_integer(v, "peak_bytes_max", totals->peak_bytes);
    lh_record_integer(v, "peak_rank", totals->peak_rank);
    lh_record_seconds(v, "peak_at_s", r->ranks[totals->peak_rank].peak_at_ps);
    lh_record_integer(v, "events", r->events);
    lh_record_integer(v, "ops", r->ops);
    lh_record_text(v, "provenance", lh_provenance_names[r->provenance]);
}

/* The link that is used most. */
static void
add_link(LhRecord *v, const LhSetup *setup, const LhSimResult *r)
{
    g_autofree char *name = r->busiest_link == UINT32_MAX
                                ? NULL
                                : lh_network_link_name(&setup->network, r->busiest_link);

    lh_record_real(v, "busiest_link_utilisation", r->busiest_link_utilisation);
    lh_record_text(v, "busiest_link", name);
}

static void
add_tokens(LhRecord *v, const char *key, double tokens)
{
    if (tokens > 0)
        lh_record_real(v, key, tokens);
    else
        lh_record_none(v, key);
}

void
lh_add_time_bar(LhRecord *v, double seconds, LhTimeError error)
{
    if (error.above > 0) {
        lh_record_real(v, "time_low_s", seconds / (1 + error.below));
        lh_record_real(v, "time_high_s", seconds * (1 + error.above));
        return;
    }
    lh_record_none(v, "time_low_s");
    lh_record_none(v, "time_high_s");
}

void
lh_add_peak_bar(LhRecord *v, uint64_t bytes, double error)
{
    if (error > 0) {
        lh_record_integer(v, "peak_bytes_low", (LhWide)((double)bytes / (1 + error)));
        lh_record_integer(v, "peak_bytes_high", (LhWide)((double)bytes * (1 + error)));
        return;
    }
    lh_record_none(v, "peak_bytes_low");
    lh_record_none(v, "peak_bytes_high");
}

/* What the row's distance to the best, and its kernel times, are good to; and blocks beyond those
 * that curves were fitted to. */
static void
add_trust(LhRecord *v, const LhCompareRow *row, const LhSimResult *r)
{
    if (row->error > 0)
        lh_record_real(v, "vs_best_good_to", row->error);
    else
        lh_record_none(v, "vs_best_good_to");
    lh_record_real(v, "compute_good_to", r->compute_error);
    add_tokens(v, "curves_fitted_from_tokens", r->beyond.fitted_from);
    add_tokens(v, "curves_used_from_tokens", r->beyond.shortest);
    add_tokens(v, "curves_fitted_to_tokens", r->beyond.fitted_to);
    add_tokens(v, "curves_used_to_tokens", r->beyond.longest);
}

/* What a training step comes to; of a module nothing. */
static void
add_step_answer(LhRecord *v, const LhSetup *setup, const LhStepAnswer *step)
{
    const guint first = lh_record_count(v);

    lh_record_real(v, "iteration_s", step->iteration_s);
    lh_record_real(v, "tokens_per_s", step->tokens_per_s);
    lh_record_real(v, "tokens_per_s_per_gpu", step->tokens_per_s_per_gpu);
    lh_record_real(v, "mfu", step->mfu);
    lh_record_real(v, "hfu", step->hfu);
    lh_record_real(v, "exposed_tp_s", step->exposed_s[LH_DIMENSION_TENSOR]);
    lh_record_real(v, "exposed_cp_s", step->exposed_s[LH_DIMENSION_CONTEXT]);
    lh_record_real(v, "exposed_dp_s", step->exposed_s[LH_DIMENSION_DATA]);
    lh_record_real(v, "exposed_pp_s", step->exposed_s[LH_DIMENSION_PIPELINE]);
    if (setup->step == NULL)
        lh_record_blank(v, first);
}

static void
add_numbers(LhRecord *v, const LhSetup *setup, const LhCompareRow *row, const LhSimResult *r,
            LhTime best_ps)
{
    LhTotals totals;

    lh_totals(r, &totals);
    lh_record_seconds(v, "makespan_s", r->makespan_ps);
    if (row->state == LH_ROW_RAN && best_ps > 0)
        lh_record_real(v, "vs_best", (double)r->makespan_ps / (double)best_ps);
    else
        lh_record_none(v, "vs_best");
    lh_add_time_bar(v, lh_row_seconds(setup, row), row->time_error);
    add_trust(v, row, r);
    add_times(v, r, &totals);
    add_counts(v, row, r, &totals);
    lh_add_peak_bar(v, totals.peak_bytes, lh_memory_error(setup));
    add_link(v, setup, r);
    add_step_answer(v, setup, &row->step);
}

LhRecord *
lh_row_values(const LhSetup *setup, const LhCompareRow *row, LhTime best_ps)
{
    LhRankResult idle = { 0 };
    const LhSimResult nothing = { .ranks = &idle, .ranks_count = 1, .busiest_link = UINT32_MAX };
    LhRecord *v = lh_record_new();
    g_autofree char *reason = reason_of_row(setup, row);
    guint first;

    lh_record_text(v, "schedule", row->name);
    lh_record_text(v, "state", state_name(row));
    first = lh_record_count(v);
    add_numbers(v, setup, row, row->result != NULL ? row->result : &nothing, best_ps);
    if (row->result == NULL)
        lh_record_blank(v, first);
    lh_record_options(v, "options", row->program != NULL ? &row->program->params : &setup->params,
                      &setup->params.attention);
    lh_record_text(v, "reason", reason);
    return v;
}

LhTime
lh_best_ps(const LhComparison *comparison)
{
    const LhCompareRow *first;

    if (comparison->fit_count == 0)
        return 0;
    first = g_ptr_array_index(comparison->rows, 0);
    return first->result->makespan_ps;
}

LhTable *
lh_result_table(const LhSetup *setup, const LhComparison *comparison)
{
    LhTable *table = lh_table_new();
    g_autoptr(LhRecord) of_case = lh_case_values(setup);

    for (guint i = 0; i < comparison->rows->len; i++) {
        g_autoptr(LhRecord) of_row =
            lh_row_values(setup, g_ptr_array_index(comparison->rows, i), lh_best_ps(comparison));

        if (i == 0) {
            lh_record_columns(of_case, table);
            lh_record_columns(of_row, table);
        }
        lh_table_row(table);
        lh_record_cells(of_case, table);
        lh_record_cells(of_row, table);
    }
    return table;
}
