/* SPDX-License-Identifier: Apache-2.0 */
/* Calls are made as large as the layout allows: runs of columns of a row, then rows with the
 * same runs. With masks by position they must also be runs of tokens. */
#include "synth/layout.h"

#include <stddef.h>

static uint32_t *
new_table(const LhSynthProblem *p)
{
    const gsize entries = (gsize)p->grain.slices * p->chunks;
    uint32_t *table = g_new(uint32_t, entries);

    for (gsize i = 0; i < entries; i++)
        table[i] = LH_SYNTH_NONE;
    return table;
}

/* Finds the round in which @place first needs each chunk, by @counts. */
static void
find_turns(const LhSynthAssignment *s, const uint32_t *counts, uint32_t place, uint32_t *turns)
{
    const LhSynthProblem *p = s->problem;

    for (uint32_t slice = 0; slice < p->grain.slices; slice++) {
        for (uint32_t c = 0; c < p->chunks; c++) {
            const uint32_t *at =
                &counts[((place * p->chunks + c) * p->grain.slices + slice) * s->rounds];

            for (uint32_t t = s->rounds; t-- > 0;)
                if (at[t] > 0)
                    turns[slice * p->chunks + c] = t;
        }
    }
}

/* Lists the chunks that are needed, slice by slice, and assigns parts to them. Returns the
 * number of parts. */
static uint32_t
list_chunks(const LhSynthProblem *p, const uint32_t *turns, uint32_t *list, uint32_t *counts,
            uint32_t *at)
{
    uint32_t parts = 0;

    for (uint32_t slice = 0; slice < p->grain.slices; slice++) {
        for (uint32_t c = 0; c < p->chunks; c++) {
            if (turns[slice * p->chunks + c] == LH_SYNTH_NONE)
                continue;
            list[slice * p->chunks + counts[slice]++] = c;
            at[slice * p->chunks + c] = parts;
            parts += p->pieces;
        }
    }
    return parts;
}

/* --- calls --------------------------------------------------------------------------------------
 */

typedef struct {
    const LhSynthLayout *layout;
    LhSynthSite *site;
    uint32_t place, slice, turn;
    guint first; /* first call of this slice and turn */
} Gather;

static uint32_t
row_of(const Gather *g, uint32_t index)
{
    return g->site->rows[g->slice * g->layout->problem->chunks + index];
}

static uint32_t
column_of(const Gather *g, uint32_t index)
{
    const LhSynthProblem *p = g->layout->problem;

    return g->site->columns[lh_synth_kv_slice(p, g->slice) * p->chunks + index];
}

/* Whether @chunk, which follows @before in the layout, may be in the same call. */
static bool
continues_call(const Gather *g, uint32_t before, uint32_t chunk)
{
    return !lh_synth_by_position(g->layout->problem) || chunk == before + 1;
}

/* Whether a block is on the diagonal of a causal mask; it is a call of its own. */
static bool
is_triangle(const Gather *g, uint32_t row, uint32_t column)
{
    const LhSynthProblem *p = g->layout->problem;

    return row == column && p->form->params.mask.causal && !lh_synth_by_position(p);
}

/* Adds a run of columns of one row: to a call with the same run of the previous row, if there is
 * one. */
static void
add_run(Gather *g, LhSynthCall run)
{
    GArray *calls = g->site->calls;
    const uint32_t row = row_of(g, run.row);
    const bool alone = run.columns == 1 && is_triangle(g, row, column_of(g, run.column));

    for (guint i = g->first; i < calls->len && !alone; i++) {
        LhSynthCall *c = &g_array_index(calls, LhSynthCall, i);
        const uint32_t last = row_of(g, c->row + c->rows - 1);
        const bool triangle =
            c->columns == 1 && c->rows == 1 && is_triangle(g, last, column_of(g, c->column));

        if (!triangle && c->column == run.column && c->columns == run.columns &&
            c->row + c->rows == run.row && continues_call(g, last, row)) {
            c->rows++;
            return;
        }
    }
    g_array_append_val(calls, run);
}

/* Collects the columns, by list index, of row @index in this turn. */
static void
gather_row(Gather *g, uint32_t index)
{
    const LhSynthProblem *p = g->layout->problem;
    const LhSynthAssignment *s = g->layout->state;
    const uint32_t kv = lh_synth_kv_slice(p, g->slice);
    const uint32_t line = row_of(g, index) * p->grain.slices + g->slice;
    LhSynthCall run = { .slice = g->slice, .row = index, .rows = 1 };
    uint32_t place = 0;

    for (uint32_t b = p->row_first[line]; b < p->row_first[line + 1]; b++) {
        const uint32_t block = p->row_blocks[b], column = p->blocks[block].column;
        const bool triangle = is_triangle(g, p->blocks[block].row, column);

        if (s->owners[block] != g->place || s->turns[block] != g->turn)
            continue;
        while (place < g->site->columns_count[kv] && column_of(g, place) != column)
            place++;
        if (run.columns > 0 && (triangle || place != run.column + run.columns ||
                                !continues_call(g, column_of(g, place - 1), column))) {
            add_run(g, run);
            run.columns = 0;
        }
        if (run.columns == 0)
            run.column = place;
        run.columns++;
        if (triangle) {
            add_run(g, run);
            run.columns = 0;
        }
    }
    if (run.columns > 0)
        add_run(g, run);
}

/* Finds what a call waits for: no other place, or its round. */
static void
find_wait(const Gather *g, LhSynthCall *call)
{
    const LhSynthProblem *p = g->layout->problem;
    uint32_t rows = 0, columns = 0;

    for (uint32_t i = 0; i < call->rows; i++)
        rows += p->homes[row_of(g, call->row + i)] != g->place;
    for (uint32_t j = 0; j < call->columns; j++)
        columns += p->homes[column_of(g, call->column + j)] != g->place;
    call->forward = (LhSynthWhen){ .turn = rows + columns == 0 ? LH_SYNTH_LOCAL : (int)g->turn,
                                   .remote = (double)rows / call->rows };
}

/* Sorts by turn; within a turn calls with remote results come first. @offset: of the pass's
 * LhSynthWhen in a call. */
static int
by_turn(gconstpointer a, gconstpointer b, gpointer offset)
{
    const LhSynthWhen *x = G_STRUCT_MEMBER_P(a, GPOINTER_TO_SIZE(offset));
    const LhSynthWhen *y = G_STRUCT_MEMBER_P(b, GPOINTER_TO_SIZE(offset));

    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    if (x->remote != y->remote)
        return x->remote > y->remote ? -1 : 1;
    return 0;
}

static LhSynthWhen *
when_of(GArray *calls, guint index, gsize offset)
{
    return G_STRUCT_MEMBER_P(&g_array_index(calls, LhSynthCall, index), offset);
}

/* g_array_sort is a merge sort, so equal calls keep their order. Each turn is split into stages
 * of about equally many calls. */
static void
sort_calls(GArray *calls, gsize offset, uint32_t stages)
{
    guint first = 0, end;

    g_array_sort_with_data(calls, by_turn, GSIZE_TO_POINTER(offset));
    for (; first < calls->len; first = end) {
        const int turn = when_of(calls, first, offset)->turn;

        for (end = first + 1; end < calls->len && when_of(calls, end, offset)->turn == turn;)
            end++;
        for (guint i = first; i < end; i++)
            when_of(calls, i, offset)->stage =
                (uint32_t)(turn + 1) * stages + (i - first) * stages / (end - first);
    }
}

static void
gather_calls(const LhSynthLayout *layout, uint32_t place)
{
    Gather g = { .layout = layout, .site = &layout->sites[place], .place = place };

    for (g.slice = 0; g.slice < layout->problem->grain.slices; g.slice++) {
        for (g.turn = 0; g.turn < layout->state->rounds; g.turn++) {
            g.first = g.site->calls->len;
            for (uint32_t i = 0; i < g.site->rows_count[g.slice]; i++)
                gather_row(&g, i);
            for (guint i = g.first; i < g.site->calls->len; i++)
                find_wait(&g, &g_array_index(g.site->calls, LhSynthCall, i));
        }
    }
    sort_calls(g.site->calls, offsetof(LhSynthCall, forward), layout->stages);
}

/* Assigns outputs: per call, or per row. */
static void
place_results(const LhSynthLayout *layout, LhSynthSite *site)
{
    const LhSynthProblem *p = layout->problem;

    for (guint i = 0; i < site->calls->len; i++) {
        LhSynthCall *c = &g_array_index(site->calls, LhSynthCall, i);

        c->out =
            layout->kernels == LH_SYNTH_BLOCKS
                ? site->out_parts
                : site->row_at[c->slice * p->chunks + site->rows[c->slice * p->chunks + c->row]];
        for (uint32_t k = 0; k < c->rows; k++) {
            const uint32_t entry =
                c->slice * p->chunks + site->rows[c->slice * p->chunks + c->row + k];

            if (site->result_at[entry] == LH_SYNTH_NONE)
                site->result_at[entry] = c->out + k * p->pieces;
            site->result_stage[entry] = c->forward.stage; /* calls are ordered by stage */
        }
        if (layout->kernels == LH_SYNTH_BLOCKS)
            site->out_parts += c->rows * p->pieces;
    }
    if (layout->kernels == LH_SYNTH_ACCUMULATE)
        site->out_parts = site->q_parts;
}

/* When a call may run in the backward pass. k and v are kept from the forward pass, so it waits
 * only for its rows. */
static LhSynthWhen
backward_of(const LhSynthProblem *p, const LhSynthSite *site, uint32_t place, const LhSynthCall *c)
{
    const uint32_t rows = c->slice * p->chunks;
    const uint32_t columns = lh_synth_kv_slice(p, c->slice) * p->chunks;
    int turn = LH_SYNTH_LOCAL;
    uint32_t remote = 0;

    for (uint32_t k = 0; k < c->rows; k++) {
        const uint32_t row = site->rows[rows + c->row + k];

        if (p->homes[row] != place)
            turn = MAX(turn, (int)site->row_turn[rows + row]);
    }
    for (uint32_t k = 0; k < c->columns; k++)
        remote += p->homes[site->columns[columns + c->column + k]] != place;
    return (LhSynthWhen){ .turn = turn, .remote = c->forward.remote + (double)remote / c->columns };
}

static void
lay_out_backward(const LhSynthProblem *p, LhSynthSite *site, uint32_t place, uint32_t stages)
{
    const gsize entries = (gsize)p->grain.slices * p->chunks;

    site->dq_stage = g_new0(uint32_t, entries);
    site->dkv_stage = g_new0(uint32_t, entries);
    for (guint i = 0; i < site->calls->len; i++) {
        LhSynthCall *c = &g_array_index(site->calls, LhSynthCall, i);

        c->backward = backward_of(p, site, place, c);
    }
    site->back_calls = g_array_copy(site->calls);
    sort_calls(site->back_calls, offsetof(LhSynthCall, backward), stages);
    for (guint i = 0; i < site->back_calls->len; i++) {
        const LhSynthCall *c = &g_array_index(site->back_calls, LhSynthCall, i);
        const uint32_t rows = c->slice * p->chunks;
        const uint32_t columns = lh_synth_kv_slice(p, c->slice) * p->chunks;

        for (uint32_t k = 0; k < c->rows; k++)
            site->dq_stage[rows + site->rows[rows + c->row + k]] = c->backward.stage;
        for (uint32_t k = 0; k < c->columns; k++)
            site->dkv_stage[columns + site->columns[columns + c->column + k]] = c->backward.stage;
    }
}

static void
lay_out(const LhSynthLayout *layout, uint32_t place)
{
    const LhSynthProblem *p = layout->problem;
    LhSynthSite *site = &layout->sites[place];

    site->rows = new_table(p);
    site->columns = new_table(p);
    site->row_at = new_table(p);
    site->column_at = new_table(p);
    site->row_turn = new_table(p);
    site->column_turn = new_table(p);
    site->result_at = new_table(p);
    site->result_stage = g_new0(uint32_t, (gsize)p->grain.slices * p->chunks);
    site->rows_count = g_new0(uint32_t, p->grain.slices);
    site->columns_count = g_new0(uint32_t, p->grain.slices);
    site->calls = g_array_new(FALSE, FALSE, sizeof(LhSynthCall));
    find_turns(layout->state, layout->state->rows, place, site->row_turn);
    find_turns(layout->state, layout->state->columns, place, site->column_turn);
    site->q_parts = list_chunks(p, site->row_turn, site->rows, site->rows_count, site->row_at);
    site->kv_parts =
        list_chunks(p, site->column_turn, site->columns, site->columns_count, site->column_at);
    gather_calls(layout, place);
    place_results(layout, site);
    if (p->backward)
        lay_out_backward(p, site, place, layout->stages);
}

LhSynthLayout *
lh_synth_layout_new(const LhSynthAssignment *state, LhSynthKernels kernels, uint32_t stages)
{
    LhSynthLayout *layout = g_new0(LhSynthLayout, 1);

    layout->state = state;
    layout->problem = state->problem;
    layout->kernels = kernels;
    layout->stages = stages;
    layout->sites = g_new0(LhSynthSite, state->problem->places);
    for (uint32_t place = 0; place < state->problem->places; place++)
        lay_out(layout, place);
    return layout;
}

void
lh_synth_layout_free(LhSynthLayout *layout)
{
    if (layout == NULL)
        return;
    for (uint32_t place = 0; place < layout->problem->places; place++) {
        LhSynthSite *site = &layout->sites[place];

        g_free(site->rows);
        g_free(site->columns);
        g_free(site->rows_count);
        g_free(site->columns_count);
        g_free(site->row_at);
        g_free(site->column_at);
        g_free(site->row_turn);
        g_free(site->column_turn);
        g_free(site->result_at);
        g_free(site->result_stage);
        g_free(site->dq_stage);
        g_free(site->dkv_stage);
        g_array_unref(site->calls);
        g_clear_pointer(&site->back_calls, g_array_unref);
    }
    g_free(layout->sites);
    g_free(layout);
}
