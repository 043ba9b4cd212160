/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/synth_judges.h"

#include "synth/synth.h"

/* --- simulation
 * --------------------------------------------------------------------------------- */

LhCompareRow *
lh_synth_play(const LhSynthSearch *s, const char *name, const LhProgram *program)
{
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = name;
    row->program = program;
    lh_compare_play(row, s->setup, NULL);
    return row;
}

LhCompareRow *
lh_synth_play_kept(const LhSynthSearch *s, const LhSynthCandidate *c, LhSynthStyle style)
{
    LhProgram *program = lh_synth_emit(c->state, style);
    LhCompareRow *row = lh_synth_play(s, "synth", program);

    row->made = program;
    return row;
}

/* --- the judges ---------------------------------------------------------------------------------
 */

/* A program to be tested by the judges. */
typedef struct {
    LhCompareRow *row; /* owned */
    LhSynthOrigin origin;
    LhSynthRecipe recipe; /* if LH_SYNTH_FOUND, as is ... */
    uint32_t kept;        /* ... its index among the kept candidates */
} Contender;

static void
contender_clear(gpointer data)
{
    lh_compare_row_free(((Contender *)data)->row);
}

/* Adds a contender if it is faster than the published schedules and its time is new; otherwise
 * frees it. */
static void
add_contender(const LhSynthSearch *s, GArray *contenders, Contender c)
{
    const LhSimResult *result = c.row->result;
    bool is_new = result != NULL && lh_synth_result_is_within(s, result) &&
                  result->makespan_ps < s->found->published->result->makespan_ps;

    for (guint i = 0; i < contenders->len && is_new; i++)
        is_new =
            g_array_index(contenders, Contender, i).row->result->makespan_ps != result->makespan_ps;
    if (is_new)
        g_array_append_val(contenders, c);
    else
        contender_clear(&c);
}

/* Collects the contenders: the best program of the scenario first, then the other ones found. */
static GArray *
find_contenders(LhSynthSearch *s)
{
    GArray *contenders = g_array_new(FALSE, FALSE, sizeof(Contender));
    LhSynthesis *f = s->found;

    g_array_set_clear_func(contenders, contender_clear);
    add_contender(s, contenders, (Contender){ g_steal_pointer(&f->best), f->origin, f->recipe, 0 });
    if (s->options->from != NULL)
        add_contender(
            s, contenders,
            (Contender){ lh_synth_play(s, "from", s->options->from), LH_SYNTH_FROM, f->recipe, 0 });
    for (uint32_t i = 0; i < s->kept_count; i++) {
        const LhSynthCandidate *c = &s->kept[i];

        for (uint32_t k = 0; k < LH_SYNTH_STYLES; k++) {
            Contender other = { NULL, LH_SYNTH_FOUND, c->recipe, i };

            if (c->times_ps[k] == LH_TIME_NEVER || (i > 0 && c->times_ps[k] != c->time_ps))
                continue;
            other.recipe.style = lh_synth_styles[k];
            other.row = lh_synth_play_kept(s, c, other.recipe.style);
            add_contender(s, contenders, other);
        }
    }
    return contenders;
}

static bool
judges_go_on(void *data, const LhProgress *at)
{
    (void)at;
    return lh_synth_goes_on(data);
}

uint32_t
lh_synth_ask_judges(LhSynthSearch *s)
{
    LhSynthesis *f = s->found;
    g_autoptr(GArray) contenders = find_contenders(s);
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    Contender *chosen;
    const LhSynthCourt court = {
        .setup = s->setup,
        .seed = s->options->seed,
        .memory_limit_bytes = s->options->memory_limit_bytes,
        .task = { .jobs = s->options->task.jobs, .progress = judges_go_on, .data = s },
        .published = f->rows,
        .contenders = rows
    };

    for (guint i = 0; i < contenders->len; i++)
        g_ptr_array_add(rows, g_array_index(contenders, Contender, i).row);
    f->robust.fastest_ps = g_array_index(contenders, Contender, 0).row->result->makespan_ps;
    lh_synth_test_robustness(&court, &f->robust);
    chosen = &g_array_index(contenders, Contender, f->robust.chosen);
    f->best = g_steal_pointer(&chosen->row);
    f->origin = chosen->origin;
    f->recipe = chosen->recipe;
    return chosen->kept;
}
