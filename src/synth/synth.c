/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates are evaluated in batches. Candidates of a batch are independent, and the next batch
 * uses the best of all previous ones, so the number of threads does not change the result. The
 * first part of the budget explores the portfolio, the rest stays near the best.
 */
#include "synth/synth.h"

#include "base/error.h"
#include "base/threads.h"
#include "synth/candidates.h"
#include "synth/synth_judges.h"
#include "synth/synth_search.h"
#include "verify/verify.h"

#include <pthread.h>
#include <string.h>

static void
row_free(gpointer data)
{
    lh_compare_row_free(data);
}

static void
problem_free(gpointer data)
{
    lh_synth_problem_free(data);
}

void
lh_synthesis_free(LhSynthesis *s)
{
    if (s == NULL)
        return;
    g_clear_pointer(&s->rows, g_ptr_array_unref);
    lh_compare_row_free(s->best);
    g_clear_pointer(&s->cells, g_array_unref);
    g_clear_pointer(&s->homes, g_array_unref);
    g_free(s);
}

/* --- evaluation
 * --------------------------------------------------------------------------------- */

static bool
plays_on(void *data, const LhProgress *at)
{
    (void)at;
    return lh_synth_goes_on(data);
}

/* An interrupted simulation is not a row. */
static void
play_published(void *data, guint index)
{
    LhSynthSearch *s = data;
    const LhHooks hooks = { .task = { .progress = plays_on, .data = s } };
    LhCompareRow *row;

    if (!lh_synth_goes_on(s))
        return;
    row = lh_compare_run(s->setup, g_ptr_array_index(s->setup->schedules, index), &hooks);
    if (row->state == LH_ROW_FAILED && !lh_synth_goes_on(s))
        g_clear_pointer(&row, lh_compare_row_free);
    g_ptr_array_index(s->found->rows, index) = row;
}

static void
find_published(LhSynthSearch *s)
{
    LhSynthesis *f = s->found;

    g_ptr_array_set_size(f->rows, (int)s->setup->schedules->len);
    lh_on_threads_each("published", lh_synth_threads(s, f->rows->len), f->rows->len, play_published,
                       s);
    for (guint i = 0; i < f->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(f->rows, i);

        if (row != NULL && row->result != NULL && lh_synth_result_is_within(s, row->result) &&
            (f->published == NULL || row->result->makespan_ps < f->published->result->makespan_ps))
            f->published = row;
    }
}

/* --- the answer ---------------------------------------------------------------------------------
 */

bool
lh_synth_fits(const LhSetup *setup, const LhProgram *program, GError **error)
{
    const LhProgramParams *a = &setup->params, *b = &program->params;
    const LhAttention *x = &a->attention, *y = &b->attention;
    const char *differs = NULL;

    if (program->step != NULL || program->modules_count > 0 || y->linear)
        differs = "kind of attention";
    else if (lh_params_ranks(b) != setup->network.ranks || MAX(b->data_parallel_size, 1) > 1)
        differs = "number of ranks";
    else if (x->batch != y->batch || x->seq_length != y->seq_length)
        differs = "batch or length of the sequence";
    else if (x->heads != y->heads || x->groups != y->groups || x->head_dim != y->head_dim ||
             x->dtype != y->dtype || x->scale != y->scale)
        differs = "shape of the heads or type of the elements";
    else if (a->mask.causal != b->mask.causal || a->mask.window != b->mask.window ||
             a->mask.documents_count != b->mask.documents_count ||
             (a->mask.documents_count > 0 &&
              memcmp(a->mask.document_ends, b->mask.document_ends,
                     a->mask.documents_count * sizeof(uint64_t)) != 0))
        differs = "mask";
    else if (a->pass != b->pass || a->keep_saved != b->keep_saved)
        differs = "pass";
    if (differs == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "the program is for another %s than the scenario: the search cannot start from it",
                differs);
    return false;
}

/* Takes over @row if it is faster than the current best. */
static void
offer(LhSynthSearch *s, LhCompareRow *row, LhSynthOrigin origin)
{
    LhSynthesis *f = s->found;

    if (row->result == NULL || !lh_synth_result_is_within(s, row->result) ||
        (f->best != NULL && row->result->makespan_ps >= f->best->result->makespan_ps)) {
        lh_compare_row_free(row);
        return;
    }
    lh_compare_row_free(f->best);
    f->best = row;
    f->origin = origin;
}

static bool
prove(const LhCompareRow *best, GError **error)
{
    g_autoptr(LhVerdict) verdict = lh_verify(best->program);

    if (verdict->findings_total == 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "the best program found is not proven and is not written: %s",
                g_array_index(verdict->findings, LhFinding, 0).message);
    return false;
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* Records the assignment of the candidate's blocks. */
static void
tell_cells(LhSynthesis *f, const LhSynthAssignment *state)
{
    const LhSynthProblem *p = state->problem;

    f->cells = g_array_new(FALSE, FALSE, sizeof(LhSynthCell));
    f->homes = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_vals(f->homes, p->homes, p->chunks);
    for (uint32_t i = 0; i < p->blocks_count; i++) {
        const LhSynthBlock *b = &p->blocks[i];
        const uint32_t place = state->owners[i];
        const LhSynthCell cell = { .row = b->row,
                                   .column = b->column,
                                   .slice = b->slice,
                                   .place = place,
                                   .round =
                                       lh_synth_is_local(p, b, place) ? 0 : state->turns[i] + 1U,
                                   .pairs = b->pairs };

        g_array_append_val(f->cells, cell);
    }
}

static bool
settle(LhSynthSearch *s, GError **error)
{
    LhSynthesis *f = s->found;
    uint32_t kept = 0;

    if (f->published != NULL)
        offer(s, lh_synth_play(s, f->published->name, f->published->program), LH_SYNTH_PUBLISHED);
    if (s->options->from != NULL)
        offer(s, lh_synth_play(s, "from", s->options->from), LH_SYNTH_FROM);
    if (s->kept_count > 0)
        offer(s, lh_synth_play_kept(s, &s->kept[0], s->kept[0].recipe.style), LH_SYNTH_FOUND);
    if (f->best == NULL && s->interrupted) {
        g_set_error_literal(
            error, LH_ERROR, LH_ERROR_INTERRUPTED,
            "interrupted before any program that fits was found: nothing is decided");
        return false;
    }
    if (f->best == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "no published schedule and none of %u candidates ends and "
                    "fits in memory",
                    f->candidates);
        return false;
    }
    if (s->options->robust && !s->interrupted && f->published != NULL &&
        f->origin != LH_SYNTH_PUBLISHED)
        kept = lh_synth_ask_judges(s);
    if (s->kept_count > 0)
        tell_cells(f, s->kept[kept].state);
    return prove(f->best, error);
}

LhSynthesis *
lh_synth(const LhSetup *setup, const LhSynthOptions *options, GError **error)
{
    g_autoptr(LhSynthesis) found = g_new0(LhSynthesis, 1);
    LhSynthSearch s = { .setup = setup,
                        .options = options,
                        .found = found,
                        .problems = g_ptr_array_new_with_free_func(problem_free),
                        .portfolio = g_array_new(FALSE, FALSE, sizeof(LhSynthPortfolioEntry)),
                        .kept_most = options->robust ? LH_SYNTH_KEPT : 1,
                        .budget = options->budget > 0 ? options->budget : LH_SYNTH_BUDGET };
    bool ok;

    found->rows = g_ptr_array_new_with_free_func(row_free);
    found->candidate_ps = LH_TIME_NEVER;
    found->bound = lh_synth_bound(setup);
    pthread_mutex_init(&s.lock, NULL);
    if (!options->alone)
        find_published(&s);
    lh_synth_make_portfolio(&s);
    if (s.portfolio->len > 0)
        lh_synth_try_all(&s);
    ok = settle(&s, error);
    found->interrupted = s.interrupted;
    pthread_mutex_destroy(&s.lock);
    for (uint32_t i = 0; i < s.kept_count; i++)
        lh_synth_assignment_free(s.kept[i].state);
    g_array_unref(s.portfolio);
    g_ptr_array_unref(s.problems);
    return ok ? g_steal_pointer(&found) : NULL;
}
