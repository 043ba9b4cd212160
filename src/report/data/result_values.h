/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of each schedule of a simulated case, as fields for programs.
 */
#pragma once

#include "compare/compare.h"
#include "report/base/table.h"
#include "report/data/case_values.h"

/* Error bars of a time and of a peak; none if the relative error is 0. */
typedef struct {
    double time_low_s, time_high_s;
} LhTimeBarValues;

typedef struct {
    uint64_t peak_bytes_low, peak_bytes_high;
} LhPeakBarValues;

LhTimeBarValues lh_time_bar_values(double seconds, LhTimeError error);
LhPeakBarValues lh_peak_bar_values(uint64_t bytes, double error);

#define LH_TIME_BAR_ROWS(of, member)                                                               \
    LH_FIELD_ROW(                                                                                  \
        DOUBLE, of, member.time_low_s, "time_low_s", OR_NULL, .max = -1,                           \
        .description =                                                                             \
            "Lower end of the time's error bar, which contains four of five measured times (of a " \
            "step's iteration_s, else of makespan_s); null for a cost model."),                    \
        LH_FIELD_ROW(                                                                              \
            DOUBLE, of, member.time_high_s, "time_high_s", OR_NULL, .max = -1,                     \
            .description =                                                                         \
                "Upper end of the time's error bar, which contains four of five measured times "   \
                "(of a step's iteration_s, else of makespan_s); null for a cost model.")

#define LH_PEAK_BAR_ROWS(of, member)                                                               \
    LH_FIELD_ROW(UINT, of, member.peak_bytes_low, "peak_bytes_low", OR_NULL,                       \
                 .description =                                                                    \
                     "Lower end of the error bar of peak_bytes_max, which contains four of five "  \
                     "measured peaks; null for attention alone, whose buffers are exact."),        \
        LH_FIELD_ROW(UINT, of, member.peak_bytes_high, "peak_bytes_high", OR_NULL,                 \
                     .description = "Upper end of that error bar.")

/* One schedule: its state, and if it ran, times, bytes, flops and memory; strings are owned. */
typedef struct {
    char *schedule;
    int state;
    LhTime makespan_ps;
    double vs_best;
    LhTimeBarValues time_bar;
    double vs_best_good_to;
    double compute_good_to;
    double curves_fitted_from_tokens;
    double curves_used_from_tokens;
    double curves_fitted_to_tokens;
    double curves_used_to_tokens;
    double speedup;
    double bubble_fraction;
    LhWide span_sum_ps;
    LhWide compute_sum_ps;
    LhWide idle_sum_ps[LH_IDLE_PARTS];
    LhWide flops_sum;
    uint64_t sent_bytes_max;
    LhWide sent_bytes_sum;
    LhWide closed_form_bytes_sum;
    LhWide sent_tier_bytes_sum[LH_TIERS];
    uint64_t peak_bytes_max;
    uint64_t peak_rank;
    LhTime peak_at_ps;
    uint64_t events;
    uint64_t ops;
    int provenance;
    LhPeakBarValues peak_bar;
    double busiest_link_utilisation;
    char *busiest_link;
    double iteration_s;
    double tokens_per_s;
    double tokens_per_s_per_gpu;
    double mfu;
    double hfu;
    double exposed_tp_s;
    double exposed_cp_s;
    double exposed_dp_s;
    double exposed_pp_s;
    GArray *options;
    char *reason;
} LhRowValues;

extern const LhField lh_row_fields[];

/* @best_ps is the makespan of the fastest one that fits, 0 if there is none. Caller clears. */
LhRowValues lh_row_values(const LhSetup *setup, const LhCompareRow *row, LhTime best_ps);
void lh_row_values_clear(LhRowValues *values);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhRowValues, lh_row_values_clear)

/* Makespan of the winner; 0 without one. */
LhTime lh_best_ps(const LhComparison *comparison);

/* Table with a row per schedule, including the case: for LH_FORMAT_CSV. Caller frees. */
LhTable *lh_result_table(const LhSetup *setup, const LhComparison *comparison);
