/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/schedule_pairs.h"

#include "base/error.h"
#include "sched/pair.h"

bool
lh_pairs_wanted(const LhScenario *s, const LhModel *model)
{
    const uint64_t linear = s->step && model != NULL ? lh_model_count(model, LH_LAYER_LINEAR) : 0;

    return linear > 0 && linear < model->num_layers;
}

const LhSchedule *
lh_pairs_default(bool linear, const LhSchedule *other)
{
    for (guint i = 0; other != NULL && lh_schedules[i] != NULL; i++) {
        if (lh_schedule_takes(lh_schedules[i], linear) &&
            lh_schedules[i]->placement == other->placement)
            return lh_schedules[i];
    }
    return lh_schedule_find(linear ? "lasp2" : "ring", NULL);
}

/* ---- pairs to consider ---- */

typedef struct {
    GPtrArray *singles; /* the named schedules, or all */
    bool open[2];       /* none of this kind is named; indexed by `linear` */
    bool alone;         /* the sequence is on one rank */
    GPtrArray *pairs;
    guint left_out;
} Pairing;

static bool
is_named(const Pairing *p, const LhSchedule *schedule)
{
    return g_ptr_array_find(p->singles, schedule, NULL);
}

/* Whether a step can use the pair: both place tokens alike, and not by heads, which is tensor
 * parallelism. */
static bool
suits(const LhSchedule *linear, const LhSchedule *softmax)
{
    return linear->placement == softmax->placement && linear->placement != LH_PLACE_HEADS;
}

/* Whether @schedule has a partner in the table. */
static bool
has_partner(const LhSchedule *schedule, bool linear)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        if (lh_schedule_takes(lh_schedules[i], !linear) &&
            (linear ? suits(schedule, lh_schedules[i]) : suits(lh_schedules[i], schedule)))
            return true;
    }
    return false;
}

/* Whether @schedule, the side @linear of a pair, is considered beside @other. */
static bool
is_in_question(const Pairing *p, const LhSchedule *schedule, bool linear, const LhSchedule *other)
{
    if (!p->open[linear])
        return is_named(p, schedule);
    return p->alone || !has_partner(other, !linear) ? schedule == lh_pairs_default(linear, other)
                                                    : true;
}

/* Adds the pair if it suits; if not, drops it where something is left to choose, and keeps it where
 * both are named or one has no partner, so that its rejection is reported. */
static void
consider(Pairing *p, const LhSchedule *linear, const LhSchedule *softmax)
{
    const bool named = !p->open[0] && !p->open[1];
    const bool lonely = (!p->open[1] && !has_partner(linear, true)) ||
                        (!p->open[0] && !has_partner(softmax, false));

    if (!is_in_question(p, linear, true, softmax) || !is_in_question(p, softmax, false, linear))
        return;
    if (named || lonely || suits(linear, softmax))
        g_ptr_array_add(p->pairs, (gpointer)lh_schedule_pair(linear, softmax));
    else
        p->left_out++;
}

static void
pair_singles(Pairing *p)
{
    for (guint l = 0; p->singles->len > 0 && lh_schedules[l] != NULL; l++) {
        for (guint s = 0; lh_schedule_takes(lh_schedules[l], true) && lh_schedules[s] != NULL;
             s++) {
            if (lh_schedule_takes(lh_schedules[s], false))
                consider(p, lh_schedules[l], lh_schedules[s]);
        }
    }
}

static guint
place_in_table(const LhSchedule *schedule)
{
    guint i = 0;

    while (lh_schedules[i] != schedule)
        i++;
    return i;
}

/* Order: the schedule of linear attention, then that of softmax attention. */
static int
by_table(gconstpointer a, gconstpointer b)
{
    const LhSchedule *x = *(LhSchedule *const *)a, *y = *(LhSchedule *const *)b;

    for (int linear = 1; linear >= 0; linear--) {
        const guint first = place_in_table(lh_schedule_side(x, linear != 0));
        const guint second = place_in_table(lh_schedule_side(y, linear != 0));

        if (first != second)
            return first < second ? -1 : 1;
    }
    return 0;
}

static bool
takes_one(const GPtrArray *schedules, bool linear)
{
    for (guint i = 0; i < schedules->len; i++) {
        if (lh_schedule_takes(g_ptr_array_index(schedules, i), linear))
            return true;
    }
    return false;
}

static void
pair_up(const LhScenario *s, uint32_t context, GPtrArray *schedules, guint *left_out)
{
    g_autoptr(GPtrArray) singles = g_ptr_array_new(), pairs = g_ptr_array_new();
    Pairing p = { .singles = singles, .alone = context == 1, .pairs = pairs };

    for (guint i = 0; i < schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);

        g_ptr_array_add(schedule->pair != NULL ? pairs : singles, (gpointer)schedule);
    }
    p.open[0] = !takes_one(singles, false);
    p.open[1] = !takes_one(singles, true);
    if (s->schedule == NULL)
        p.open[1] = true, p.open[0] = !p.alone;
    pair_singles(&p);
    g_ptr_array_sort(pairs, by_table);
    g_ptr_array_set_size(schedules, 0);
    for (guint i = 0; i < pairs->len; i++) {
        if (i == 0 || pairs->pdata[i] != pairs->pdata[i - 1])
            g_ptr_array_add(schedules, pairs->pdata[i]);
    }
    if (left_out != NULL)
        *left_out = p.left_out;
}

/* ---- models without pairs ---- */

static bool
refuse_pair(const LhScenario *s, const LhModel *model, const LhSchedule *pair, GError **error)
{
    const bool linear = model != NULL && lh_model_count(model, LH_LAYER_LINEAR) > 0;

    if (!s->step)
        return lh_scenario_error(
            s, "schedule", error,
            "\"%s\" is a pair, for a step of a model with both kinds of attention, and this is one "
            "attention module: give %s or %s, or --step",
            pair->name, pair->pair[1]->name, pair->pair[0]->name);
    return lh_scenario_error(
        s, "schedule", error, "\"%s\" is a pair, but all layers of %s have %s attention: give %s",
        pair->name, model->name, lh_layer_kind_names[linear], pair->pair[linear]->name);
}

bool
lh_pairs_of(const LhScenario *s, const LhModel *model, uint32_t context, GPtrArray *schedules,
            guint *left_out, GError **error)
{
    if (lh_pairs_wanted(s, model)) {
        pair_up(s, context, schedules, left_out);
        return true;
    }
    for (guint i = 0; i < schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);

        if (schedule->pair != NULL)
            return refuse_pair(s, model, schedule, error);
    }
    return true;
}

/* ---- one pair ---- */

bool
lh_pairs_join(LhScenario *s, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = NULL;
    const LhSchedule *named[2], *pair;

    if (!s->step || s->schedule == NULL || s->schedule->len != G_N_ELEMENTS(named))
        return true;
    for (guint i = 0; i < G_N_ELEMENTS(named); i++) {
        named[i] = lh_schedule_find(g_ptr_array_index(s->schedule, i), &cause);
        if (named[i] == NULL)
            return lh_scenario_error(s, "schedule", error, "%s", cause->message);
    }
    if (named[0]->pair != NULL || named[1]->pair != NULL)
        return lh_scenario_error(s, "schedule", error,
                                 "found \"%s\" and \"%s\"; allowed: one schedule, or one pair",
                                 named[0]->name, named[1]->name);
    text = g_strdup_printf("%s + %s", named[0]->name, named[1]->name);
    pair = lh_schedule_find(text, &cause);
    if (pair == NULL)
        return lh_scenario_error(s, "schedule", error, "%s", cause->message);
    if (pair->pair != NULL && lh_schedule_takes(named[0], true) &&
        lh_schedule_takes(named[1], true) && lh_schedule_takes(named[0], false) &&
        lh_schedule_takes(named[1], false))
        return lh_scenario_error(s, "schedule", error,
                                 "it is ambiguous which of them computes linear attention; give %s "
                                 "+ %s or %s + %s, linear attention first",
                                 named[0]->name, named[1]->name, named[1]->name, named[0]->name);
    g_ptr_array_set_size(s->schedule, 0);
    g_ptr_array_add(s->schedule, g_strdup(pair->name));
    return true;
}

bool
lh_pairs_check_one(const LhScenario *s, const GPtrArray *schedules, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);

    if (schedules->len <= 1)
        return true;
    for (guint i = 0; i < schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);

        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", schedule->name);
    }
    return lh_scenario_error(s, "schedule", error,
                             "the model has layers of linear and of softmax attention, and this "
                             "command takes one pair of schedules; name one of these: %s",
                             names->str);
}
