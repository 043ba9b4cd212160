/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/result_values.h"

#include "base/json/json_decode.h"
#include "base/json/json_encode.h"
#include "compare/error_bar.h"
#include "compare/totals.h"
#include "proof/proven.h"
#include "report/base/field_cells.h"
#include "report/data/describe_options.h"
#include "report/data/memory_limit.h"

#include <math.h>

/* LhRowState, followed by a state for programs that ran without being proven. */
static const char *const state_names[] = { "ok",     "out-of-memory", "left-out", "interrupted",
                                           "failed", "refused",       "unproven", NULL };
#define UNPROVEN (LH_ROW_REFUSED + 1)

#define ROW_SECONDS(kind, member, key, when, ...)                                                  \
    LH_FIELD_SECONDS_ROW(kind, LhRowValues, member, key, when, __VA_ARGS__)

#define ROW_FIELD(kind, member, key, when, ...)                                                    \
    LH_FIELD_ROW(kind, LhRowValues, member, key, when, __VA_ARGS__)

const LhField lh_row_fields[] = {
    ROW_FIELD(STRING, schedule, "schedule", ALWAYS,
              .description = "Name of the schedule, or of the program's file."),
    ROW_FIELD(CHOICE, state, "state", ALWAYS, .choices = state_names,
              .description =
                  "ok; unproven: ran, but the program is not proven; out-of-memory: ran, but needs "
                  "more memory than a GPU has; left-out: slower than --within allows; interrupted: "
                  "not done when the comparison was interrupted; failed: could not complete; "
                  "refused: the case is not supported. Without a result, all numbers are null."),
    ROW_SECONDS(INT, makespan_ps, "makespan_s", OR_NULL,
                .description = "Time until the last rank is done."),
    ROW_FIELD(
        DOUBLE, vs_best, "vs_best", OR_NULL, .max = -1,
        .description =
            "Makespan over that of the fastest schedule that fits; null if this one does not fit."),
    LH_TIME_BAR_ROWS(LhRowValues, time_bar),
    ROW_FIELD(DOUBLE, vs_best_good_to, "vs_best_good_to", OR_NULL, .max = -1,
              .description = "Error bar of vs_best, as a fraction; null for the fastest schedule, "
                             "for one without a time, and with free communication."),
    ROW_FIELD(DOUBLE, compute_good_to, "compute_good_to", OR_NULL, .max = -1,
              .description = "Relative error of the kernel times."),
    ROW_FIELD(DOUBLE, curves_fitted_from_tokens, "curves_fitted_from_tokens", OR_NULL, .max = -1,
              .description = "If blocks are shorter than those that the attention curves were "
                             "fitted to: the shortest fitted block; else null."),
    ROW_FIELD(DOUBLE, curves_used_from_tokens, "curves_used_from_tokens", OR_NULL, .max = -1,
              .description =
                  "The shortest block, if the curves are extrapolated to it; else null."),
    ROW_FIELD(DOUBLE, curves_fitted_to_tokens, "curves_fitted_to_tokens", OR_NULL, .max = -1,
              .description = "If blocks are longer than those that the attention curves were "
                             "fitted to: the longest fitted block; else null."),
    ROW_FIELD(DOUBLE, curves_used_to_tokens, "curves_used_to_tokens", OR_NULL, .max = -1,
              .description = "The longest block, if the curves are extrapolated to it; else null."),
    ROW_FIELD(DOUBLE, speedup, "speedup", OR_NULL, .max = -1,
              .description = "Speed-up: compute of all ranks over the makespan, relative to one "
                             "GPU that runs the same kernels one after another."),
    ROW_FIELD(DOUBLE, bubble_fraction, "bubble_fraction", OR_NULL, .max = -1,
              .description = "Idle fraction: 1 - compute / (ranks x makespan)."),
    ROW_SECONDS(WIDE, span_sum_ps, "span_sum_s", OR_NULL,
                .description =
                    "Ranks x makespan: the sum of compute, imbalance, exposed and host."),
    ROW_SECONDS(WIDE, compute_sum_ps, "compute_sum_s", OR_NULL,
                .description = "Time in which a compute stream was running, summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[0], "imbalance_sum_s", OR_NULL,
                .description = "Time in which ranks waited for other ranks without data in flight, "
                               "summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[1], "exposed_nvlink_sum_s", OR_NULL,
                .description = "Exposed communication over links of this kind: time in which ranks "
                               "computed nothing because data was in flight, summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[2], "exposed_pcie_sum_s", OR_NULL,
                .description = "Exposed communication over links of this kind: time in which ranks "
                               "computed nothing because data was in flight, summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[3], "exposed_nic_sum_s", OR_NULL,
                .description = "Exposed communication over links of this kind: time in which ranks "
                               "computed nothing because data was in flight, summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[4], "exposed_fabric_sum_s", OR_NULL,
                .description = "Exposed communication over links of this kind: time in which ranks "
                               "computed nothing because data was in flight, summed over ranks."),
    ROW_SECONDS(WIDE, idle_sum_ps[5], "host_sum_s", OR_NULL,
                .description =
                    "Time in which the host had not issued the next op, summed over ranks."),
    ROW_FIELD(WIDE, flops_sum, "flops_sum", OR_NULL,
              .description = "Flops of attention, summed over ranks."),
    ROW_FIELD(UINT, sent_bytes_max, "sent_bytes_max", OR_NULL,
              .description = "Most bytes sent by a rank."),
    ROW_FIELD(WIDE, sent_bytes_sum, "sent_bytes_sum", OR_NULL,
              .description = "Bytes sent, summed over ranks."),
    ROW_FIELD(
        WIDE, closed_form_bytes_sum, "closed_form_bytes_sum", OR_NULL,
        .description =
            "Bytes sent by the program's closed form, summed over ranks; null if it has none."),
    ROW_FIELD(WIDE, sent_tier_bytes_sum[0], "sent_nvlink_bytes_sum", OR_NULL,
              .description = "Bytes sent over routes whose highest tier is links of this kind."),
    ROW_FIELD(WIDE, sent_tier_bytes_sum[1], "sent_pcie_bytes_sum", OR_NULL,
              .description = "Bytes sent over routes whose highest tier is links of this kind."),
    ROW_FIELD(WIDE, sent_tier_bytes_sum[2], "sent_nic_bytes_sum", OR_NULL,
              .description = "Bytes sent over routes whose highest tier is links of this kind."),
    ROW_FIELD(WIDE, sent_tier_bytes_sum[3], "sent_fabric_bytes_sum", OR_NULL,
              .description = "Bytes sent over routes whose highest tier is links of this kind."),
    ROW_FIELD(UINT, peak_bytes_max, "peak_bytes_max", OR_NULL,
              .description = "Highest peak memory of a rank."),
    ROW_FIELD(UINT, peak_rank, "peak_rank", OR_NULL, .description = "Rank with the highest peak."),
    ROW_SECONDS(INT, peak_at_ps, "peak_at_s", OR_NULL, .description = "Time of that peak."),
    ROW_FIELD(UINT, events, "events", OR_NULL,
              .description = "Simulated completions of kernels and messages."),
    ROW_FIELD(UINT, ops, "ops", OR_NULL, .description = "Ops of all ranks."),
    ROW_FIELD(CHOICE, provenance, "provenance", OR_NULL, .choices = lh_provenance_names,
              .description = "Weakest provenance of the constants used."),
    LH_PEAK_BAR_ROWS(LhRowValues, peak_bar),
    ROW_FIELD(DOUBLE, busiest_link_utilisation, "busiest_link_utilisation", OR_NULL, .max = -1,
              .description =
                  "Utilization of the busiest link: bytes carried over bandwidth x makespan."),
    ROW_FIELD(STRING, busiest_link, "busiest_link", OR_NULL,
              .description = "Busiest link; null: none carries anything."),
    ROW_FIELD(DOUBLE, iteration_s, "iteration_s", OR_NULL, .max = -1,
              .description = "Seconds of a training step, including the framework's overhead; null "
                             "for one attention module, as are the next seven."),
    ROW_FIELD(DOUBLE, tokens_per_s, "tokens_per_s", OR_NULL, .max = -1,
              .description = "Tokens per second of all GPUs."),
    ROW_FIELD(DOUBLE, tokens_per_s_per_gpu, "tokens_per_s_per_gpu", OR_NULL, .max = -1,
              .description = "Tokens per second per GPU."),
    ROW_FIELD(DOUBLE, mfu, "mfu", OR_NULL, .max = -1,
              .description = "Model flops utilization: model flops over the flops of all GPUs' "
                             "peak in the step's time."),
    ROW_FIELD(
        DOUBLE, hfu, "hfu", OR_NULL, .max = -1,
        .description =
            "Hardware flops utilization: executed flops, recomputation included, over the same."),
    ROW_FIELD(DOUBLE, exposed_tp_s, "exposed_tp_s", OR_NULL, .max = -1,
              .description = "Exposed tensor-parallel communication, seconds; mean over ranks."),
    ROW_FIELD(DOUBLE, exposed_cp_s, "exposed_cp_s", OR_NULL, .max = -1,
              .description = "Exposed context-parallel communication of attention, likewise."),
    ROW_FIELD(DOUBLE, exposed_dp_s, "exposed_dp_s", OR_NULL, .max = -1,
              .description =
                  "Exposed data-parallel communication of weights and gradients, likewise."),
    ROW_FIELD(DOUBLE, exposed_pp_s, "exposed_pp_s", OR_NULL, .max = -1,
              .description =
                  "Exposed pipeline communication, likewise; includes waiting for a stage."),
    ROW_FIELD(MEMBERS, options, "options", ALWAYS,
              .description = "Options of the schedule that were given, or chosen by it; a text in "
                             "CSV. Includes heads if the schedule pads them."),
    ROW_FIELD(STRING, reason, "reason", OR_NULL,
              .description = "Why the state is not ok; null if it is."),
    { .name = NULL },
};

/* ---- error bars ---- */

LhTimeBarValues
lh_time_bar_values(double seconds, LhTimeError error)
{
    if (error.above <= 0)
        return (LhTimeBarValues){ NAN, NAN };
    return (LhTimeBarValues){ seconds / (1 + error.below), seconds * (1 + error.above) };
}

LhPeakBarValues
lh_peak_bar_values(uint64_t bytes, double error)
{
    if (error <= 0)
        return (LhPeakBarValues){ LH_FIELD_NO_UINT, LH_FIELD_NO_UINT };
    return (LhPeakBarValues){ (uint64_t)((double)bytes / (1 + error)),
                              (uint64_t)((double)bytes * (1 + error)) };
}

/* ---- a row ---- */

static int
state_of(const LhCompareRow *row)
{
    if (row->state == LH_ROW_RAN && lh_prove_is_unproven(row->program))
        return UNPROVEN;
    return (int)row->state;
}

/* Reason why the state is not "ok"; NULL if it is. Caller frees. */
static char *
reason_of_row(const LhSetup *setup, const LhCompareRow *row)
{
    if (row->result == NULL)
        return g_strdup(row->reason);
    if (row->state != LH_ROW_NO_MEMORY)
        return lh_prove_is_unproven(row->program) ? g_strdup("the program is not proven") : NULL;
    return lh_describe_memory_limit(setup, row->result);
}

/* Bytes sent by all ranks, by the program's closed form. */
static LhWide
claimed_bytes(const LhProgram *program)
{
    LhWide sum = 0;

    for (uint32_t rank = 0; program != NULL && rank < lh_program_ranks(program); rank++) {
        uint64_t value;

        if (!lh_program_claim(program, LH_CLAIM_BYTES_SENT, rank, &value))
            return LH_FIELD_NO_INT;
        sum += value;
    }
    return sum;
}

/* NAN if it is 0. */
static double
positive(double value)
{
    return value > 0 ? value : NAN;
}

/* Adds the error bars of the row's difference from the best and of its kernel times, and the blocks
 * that curves were extrapolated to. */
static void
fill_trust(LhRowValues *v, const LhCompareRow *row, const LhSimResult *r)
{
    v->vs_best_good_to = positive(row->error);
    v->compute_good_to = r->compute_error;
    v->curves_fitted_from_tokens = positive(r->beyond.fitted_from);
    v->curves_used_from_tokens = positive(r->beyond.shortest);
    v->curves_fitted_to_tokens = positive(r->beyond.fitted_to);
    v->curves_used_to_tokens = positive(r->beyond.longest);
}

static void
fill_times(LhRowValues *v, const LhSimResult *r, const LhTotals *totals)
{
    v->speedup = r->makespan_ps > 0 ? (double)totals->busy_ps / (double)r->makespan_ps : 0;
    v->bubble_fraction = lh_sim_bubble_fraction(r);
    v->span_sum_ps = totals->span_ps;
    v->compute_sum_ps = totals->busy_ps;
    for (int part = 0; part < LH_IDLE_PARTS; part++)
        v->idle_sum_ps[part] = totals->idle_ps[part];
}

static void
fill_counts(LhRowValues *v, const LhCompareRow *row, const LhSimResult *r, const LhTotals *totals)
{
    v->flops_sum = totals->flops;
    v->sent_bytes_max = totals->sent_bytes_max;
    v->sent_bytes_sum = totals->sent_bytes;
    v->closed_form_bytes_sum = claimed_bytes(row->program);
    for (int tier = 0; tier < LH_TIERS; tier++)
        v->sent_tier_bytes_sum[tier] = totals->tier_bytes[tier];
    v->peak_bytes_max = totals->peak_bytes;
    v->peak_rank = totals->peak_rank;
    v->peak_at_ps = r->ranks[totals->peak_rank].peak_at_ps;
    v->events = r->events;
    v->ops = r->ops;
    v->provenance = (int)r->provenance;
}

/* The busiest link. */
static void
fill_link(LhRowValues *v, const LhSetup *setup, const LhSimResult *r)
{
    v->busiest_link_utilisation = r->busiest_link_utilisation;
    if (r->busiest_link != UINT32_MAX)
        v->busiest_link = lh_network_link_name(&setup->network, r->busiest_link);
}

/* Results of a training step. */
static void
fill_step_answer(LhRowValues *v, const LhStepAnswer *step)
{
    v->iteration_s = step->iteration_s;
    v->tokens_per_s = step->tokens_per_s;
    v->tokens_per_s_per_gpu = step->tokens_per_s_per_gpu;
    v->mfu = step->mfu;
    v->hfu = step->hfu;
    v->exposed_tp_s = step->exposed_s[LH_DIMENSION_TENSOR];
    v->exposed_cp_s = step->exposed_s[LH_DIMENSION_CONTEXT];
    v->exposed_dp_s = step->exposed_s[LH_DIMENSION_DATA];
    v->exposed_pp_s = step->exposed_s[LH_DIMENSION_PIPELINE];
}

static void
fill_numbers(LhRowValues *v, const LhSetup *setup, const LhCompareRow *row, LhTime best_ps)
{
    const LhSimResult *r = row->result;
    LhTotals totals;

    lh_totals(r, &totals);
    v->makespan_ps = r->makespan_ps;
    if (row->state == LH_ROW_RAN && best_ps > 0)
        v->vs_best = (double)r->makespan_ps / (double)best_ps;
    v->time_bar = lh_time_bar_values(lh_row_seconds(setup, row), row->time_error);
    fill_trust(v, row, r);
    fill_times(v, r, &totals);
    fill_counts(v, row, r, &totals);
    v->peak_bar = lh_peak_bar_values(totals.peak_bytes, lh_memory_error(setup));
    fill_link(v, setup, r);
    if (setup->step != NULL)
        fill_step_answer(v, &row->step);
}

LhRowValues
lh_row_values(const LhSetup *setup, const LhCompareRow *row, LhTime best_ps)
{
    const LhProgramParams base = { .attention = setup->params.attention };
    LhRowValues v = { .schedule = NULL };

    lh_json_set_none(lh_row_fields, &v);
    v.schedule = g_strdup(row->name);
    v.state = state_of(row);
    if (row->result != NULL)
        fill_numbers(&v, setup, row, best_ps);
    v.options =
        lh_option_members(row->program != NULL ? &row->program->params : &setup->params, &base);
    v.reason = reason_of_row(setup, row);
    return v;
}

void
lh_row_values_clear(LhRowValues *values)
{
    lh_json_clear(lh_row_fields, values);
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
    g_auto(LhCaseValues) of_case = lh_case_values(setup);
    g_autofree LhField *columns = lh_case_columns(setup->scenario);

    lh_field_columns(columns, &of_case, table);
    lh_field_columns(lh_row_fields, NULL, table);
    for (guint i = 0; i < comparison->rows->len; i++) {
        g_auto(LhRowValues) of_row =
            lh_row_values(setup, g_ptr_array_index(comparison->rows, i), lh_best_ps(comparison));

        lh_table_row(table);
        lh_field_cells(columns, &of_case, table);
        lh_field_cells(lh_row_fields, &of_row, table);
    }
    return table;
}
