/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times are exact decimal seconds of integer picoseconds; sums over ranks are exact too, means are
 * left to the reader.
 */
#include "report/data/result_json.h"

#include "report/data/constant_list.h"
#include "report/data/memory_fields.h"
#include "report/data/relief_fields.h"
#include "report/data/result_values.h"
#include "report/data/what_if_fields.h"

#include <string.h>

/* ---- one number for each rank ---- */

typedef struct {
    GArray *compute_ps, *comm_ps, *exposed_ps, *finish_ps;
    GArray *flops, *sent_bytes, *closed_form_bytes, *peak_bytes;
} PerRank;

static const LhField per_rank_fields[] = {
    LH_FIELD_SECONDS_ROW(UINTS, PerRank, compute_ps, "compute_s", ALWAYS,
                         .description = "Time in which a compute stream was running."),
    LH_FIELD_SECONDS_ROW(
        UINTS, PerRank, comm_ps, "comm_s", ALWAYS,
        .description = "Time in which a communication stream had an op running, waiting included."),
    LH_FIELD_SECONDS_ROW(UINTS, PerRank, exposed_ps, "exposed_s", ALWAYS,
                         .description = "Time in which the rank computed nothing because its data "
                                        "was in flight: exposed communication."),
    LH_FIELD_SECONDS_ROW(UINTS, PerRank, finish_ps, "finish_s", ALWAYS,
                         .description = "Completion time of its last op."),
    LH_FIELD_ROW(UINTS, PerRank, flops, "flops", ALWAYS, .description = "Flops of attention."),
    LH_FIELD_ROW(UINTS, PerRank, sent_bytes, "sent_bytes", ALWAYS, .description = "Bytes sent."),
    LH_FIELD_ROW(UINTS, PerRank, closed_form_bytes, "closed_form_bytes", ALWAYS,
                 .description = "Bytes sent by the program's closed form; empty if it has none."),
    LH_FIELD_ROW(UINTS, PerRank, peak_bytes, "peak_bytes", ALWAYS, .description = "Peak memory."),
    { .name = NULL },
};

static void
add_number(GArray **numbers, uint64_t number)
{
    if (*numbers == NULL)
        *numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_array_append_val(*numbers, number);
}

static uint64_t
exposed_ps(const LhRankResult *rank)
{
    uint64_t exposed = 0;

    for (int tier = 0; tier < LH_TIERS; tier++)
        exposed += (uint64_t)rank->idle_ps[LH_IDLE_COMM + tier];
    return exposed;
}

static void
add_rank(PerRank *p, const LhRankResult *rank)
{
    add_number(&p->compute_ps, (uint64_t)rank->busy_ps);
    add_number(&p->comm_ps, (uint64_t)rank->comm_ps);
    add_number(&p->exposed_ps, exposed_ps(rank));
    add_number(&p->finish_ps, (uint64_t)rank->finish_ps);
    add_number(&p->flops, rank->flops);
    add_number(&p->sent_bytes, rank->bytes_sent);
    add_number(&p->peak_bytes, rank->peak_bytes);
}

static PerRank *
find_per_rank(const LhCompareRow *row)
{
    PerRank *p = g_new0(PerRank, 1);
    uint64_t value;

    p->closed_form_bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (uint32_t i = 0; i < row->result->ranks_count; i++)
        add_rank(p, &row->result->ranks[i]);
    for (uint32_t i = 0; i < lh_program_ranks(row->program); i++)
        if (lh_program_claim(row->program, LH_CLAIM_BYTES_SENT, i, &value))
            add_number(&p->closed_form_bytes, value);
    return p;
}

/* ---- a schedule ---- */

typedef struct {
    LhRowValues values;
    PerRank *per_rank; /* owned, like what follows; NULL: no result */
    uint64_t peak_bytes_by_tensor[LH_TENSOR_KINDS];
    LhPeakValues *peak;
    LhOutOfMemoryValues *out_of_memory; /* NULL also if everything fits */
    LhOffloadValues *offload;           /* NULL also if nothing is offloaded */
} Row;

static const LhField row_fields[] = {
    LH_FIELD_ROW(INLINE, Row, values, "values", ALWAYS, .fields = lh_row_fields),
    LH_FIELD_ROW(POINTER, Row, per_rank, "per_rank", OR_NULL, .fields = per_rank_fields,
                 .description = "Numbers of each rank; null without a result."),
    LH_FIELD_ROW(COUNTS, Row, peak_bytes_by_tensor, "peak_bytes_by_tensor", OR_NULL,
                 .choices = lh_tensor_names,
                 .description = "Memory of the rank with the highest peak, at that moment, by kind "
                                "of tensor; null without a result."),
    LH_FIELD_ROW(POINTER, Row, peak, "peak", OR_NULL, .fields = lh_peak_fields,
                 .description =
                     "The op whose alloc makes the highest peak of all ranks (peak_rank, "
                     "peak_at_s), and the memory at that moment; null without a result."),
    LH_FIELD_ROW(POINTER, Row, out_of_memory, "out_of_memory", OR_NULL,
                 .fields = lh_out_of_memory_fields,
                 .description = "Memory needed beyond what is available; null if everything fits. "
                                "The simulation continues, so that times are known."),
    LH_FIELD_ROW(POINTER, Row, offload, "offload", IF_ANY, .fields = lh_offload_fields,
                 .description = "Host memory and copies of what is offloaded; absent without."),
    { .name = NULL },
};

static void
fill_memory(Row *r, const LhSimResult *result)
{
    r->peak = g_new(LhPeakValues, 1);
    *r->peak = lh_peak_values(result);
    memcpy(r->peak_bytes_by_tensor, result->ranks[r->values.peak_rank].peak->by_tensor,
           sizeof(r->peak_bytes_by_tensor));
    if (result->out_of_memory == NULL)
        return;
    r->out_of_memory = g_new(LhOutOfMemoryValues, 1);
    *r->out_of_memory = lh_out_of_memory_values(result);
}

static Row *
row_new(const LhSetup *setup, const LhCompareRow *row, LhTime best_ps)
{
    Row *r = g_new0(Row, 1);

    lh_json_set_none(row_fields, r);
    r->values = lh_row_values(setup, row, best_ps);
    if (row->result == NULL)
        return r;
    r->per_rank = find_per_rank(row);
    fill_memory(r, row->result);
    if (setup->step == NULL || row->step.host_memory.needed_bytes == 0)
        return r;
    r->offload = g_new(LhOffloadValues, 1);
    *r->offload = (LhOffloadValues){ .rank_bytes = row->step.host_peak_bytes,
                                     .node = row->step.host_memory,
                                     .exposed_s = row->step.exposed_s[LH_EXPOSED_OFFLOAD] };
    return r;
}

static void
row_free(gpointer data)
{
    Row *r = data;

    lh_row_values_clear(&r->values);
    if (r->per_rank != NULL)
        lh_json_clear(per_rank_fields, r->per_rank);
    g_free(r->per_rank);
    g_free(r->peak);
    g_free(r->out_of_memory);
    g_free(r->offload);
    g_free(r);
}

static GPtrArray *
find_rows(const LhSetup *setup, const LhComparison *c)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(row_free);

    for (guint i = 0; i < c->rows->len; i++)
        g_ptr_array_add(rows, row_new(setup, g_ptr_array_index(c->rows, i), lh_best_ps(c)));
    return rows;
}

/* ---- a comparison ---- */

typedef struct {
    char *of;
    LhTime time_ps;
    double fraction;
} Share;

static const LhField share_fields[] = {
    LH_FIELD_ROW(STRING, Share, of, "of", ALWAYS,
                 .description = "compute, latency, host, or kinds of links, joined by +."),
    LH_FIELD_SECONDS_ROW(INT, Share, time_ps, "time_s", ALWAYS, .max = -1,
                         .description = "Time of the critical path."),
    LH_FIELD_ROW(DOUBLE, Share, fraction, "fraction", ALWAYS, .max = -1,
                 .description = "Share of the makespan."),
    { .name = NULL },
};

static GArray *
find_path(const LhBottleneck *bound)
{
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(Share));

    for (guint i = 0; bound != NULL && i < bound->shares->len; i++) {
        const LhPathShare *s = &g_array_index(bound->shares, LhPathShare, i);
        const Share share = {
            .of = lh_resource_name(s->kind, s->tiers),
            .time_ps = s->time_ps,
            .fraction = (double)s->time_ps / (double)MAX(bound->makespan_ps, 1),
        };

        g_array_append_val(shares, share);
    }
    return shares;
}

/* Schedules tied with the winner. */
static GPtrArray *
find_tied(const LhComparison *c)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 1; i < c->fit_count; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (row->tied)
            g_ptr_array_add(names, g_strdup(row->name));
    }
    return names;
}

typedef struct {
    LhDocumentHead head;
    LhCaseValues of_case;
    char *winner;
    uint64_t left_out;
    GPtrArray *tied;
    bool interrupted;
    GArray *path, *what_ifs;  /* of Share, LhWhatIfValues */
    const LhReliefs *reliefs; /* borrowed */
    GArray *constants;        /* of LhConstantValues */
    GPtrArray *rows;          /* of Row *; owned */
} ResultDocument;

static const char *const result_schema[] = { LH_RESULT_SCHEMA, NULL };

#define RESULT_ROW(kind, member, key, when, ...)                                                   \
    LH_FIELD_ROW(kind, ResultDocument, member, key, when, __VA_ARGS__)

const LhField lh_result_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(ResultDocument, head, result_schema),
    LH_DOCUMENT_ASKED(ResultDocument, head),
    RESULT_ROW(OBJECT, of_case, "case", ALWAYS, .fields = lh_case_fields,
               .description = "The simulated case."),
    RESULT_ROW(STRING, winner, "winner", OR_NULL,
               .description = "The fastest schedule that fits; null: none does."),
    RESULT_ROW(UINT, left_out, "left_out", ALWAYS,
               .description = "Schedules for the other kind of attention that were not named."),
    RESULT_ROW(STRINGS, tied, "not_told_apart_from_winner", ALWAYS,
               .description = "Schedules tied with the winner: behind it by no more than the error "
                              "bar of the difference."),
    RESULT_ROW(BOOL, interrupted, "interrupted", ALWAYS,
               .description = "Interrupted before all schedules were done, or before the winner's "
                              "bottleneck was known."),
    RESULT_ROW(ARRAY, path, "winner_critical_path", ALWAYS, .fields = share_fields,
               .element_size = sizeof(Share),
               .description = "The winner's critical path by resource, largest part first; the "
                              "parts add up to its makespan. Written by compare only."),
    RESULT_ROW(ARRAY, what_ifs, "winner_with_10_percent_more", ALWAYS, .fields = lh_what_if_fields,
               .element_size = sizeof(LhWhatIfValues),
               .description = "The winner with one resource 10 % faster; the bottleneck first. "
                              "Written by compare only."),
    LH_RELIEF_ROW(ResultDocument, reliefs),
    RESULT_ROW(ARRAY, constants, "constants", ALWAYS, .fields = lh_constant_fields,
               .element_size = sizeof(LhConstantValues),
               .description = "Constants with their provenance; empty if none are used."),
    RESULT_ROW(POINTERS, rows, "results", ALWAYS, .fields = row_fields,
               .description = "The schedules: those that ran by time, then the others."),
    { .name = NULL },
};

void
lh_result_json(const LhSetup *setup, const LhComparison *c, const LhStamp *stamp, GString *out)
{
    const LhCompareRow *first = g_ptr_array_index(c->rows, 0);
    ResultDocument document = {
        .head = lh_document_head(result_schema[0], stamp, setup),
        .of_case = lh_case_values(setup),
        .winner = c->fit_count > 0 ? g_strdup(first->name) : NULL,
        .left_out = setup->left_out,
        .tied = find_tied(c),
        .interrupted = c->interrupted,
        .path = find_path(c->bound),
        .what_ifs = lh_what_if_values(setup->topology, c->bound),
        .reliefs = c->reliefs,
        .constants = lh_constant_values(setup),
        .rows = find_rows(setup, c),
    };

    lh_json_encode_text(lh_result_fields, &document, out);
    lh_json_clear(lh_result_fields, &document);
    lh_document_head_clear(&document.head);
    g_ptr_array_unref(document.rows);
}
