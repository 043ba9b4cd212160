/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of schedules, for models that mix layers of linear and of softmax attention. A pair has no
 * program of its own. Each pair is created once.
 */
#include "sched/pair.h"

#include "base/error.h"

#include <pthread.h>
#include <string.h>

#define SIDES 2 /* softmax, linear */

/* Indexed by `linear`, as in LhSchedule. */
typedef struct {
    LhSchedule schedule; /* the part that callers see; first */
    const LhSchedule *sides[SIDES];
} Pair;

/* The options that either side reads. Never freed. */
static const LhOption *const *
options_of(const LhSchedule *const sides[SIDES])
{
    GPtrArray *options = g_ptr_array_new();

    for (int side = 0; side < SIDES; side++) {
        const LhOption *const *own = sides[side]->options;

        for (guint i = 0; own != NULL && own[i] != NULL; i++) {
            if (!g_ptr_array_find(options, own[i], NULL))
                g_ptr_array_add(options, (gpointer)own[i]);
        }
    }
    g_ptr_array_add(options, NULL);
    return (const LhOption *const *)g_ptr_array_free(options, FALSE);
}

static Pair *
new_pair(const LhSchedule *linear, const LhSchedule *softmax)
{
    Pair *pair = g_new0(Pair, 1);

    pair->sides[0] = softmax;
    pair->sides[1] = linear;
    pair->schedule = (LhSchedule){
        .name = g_strdup_printf("%s + %s", linear->name, softmax->name),
        .summary = g_strdup_printf("Linear attention layers by %s, softmax attention layers by %s.",
                                   linear->name, softmax->name),
        .details = g_strdup_printf("See longhaul show %s and longhaul show %s.\n", linear->name,
                                   softmax->name),
        .options = options_of(pair->sides),
        .not_varied = softmax->not_varied != NULL ? softmax->not_varied : linear->not_varied,
        .placement = softmax->placement,
        .attention = LH_ATTENTION_ALL,
        .masks = softmax->masks,
        .masks_reason = softmax->masks_reason,
        .full_reason = softmax->full_reason,
        .pair = pair->sides,
    };
    return pair;
}

const LhSchedule *
lh_schedule_pair(const LhSchedule *linear, const LhSchedule *softmax)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static GPtrArray *pairs = NULL; /* of Pair * */
    Pair *found = NULL;

    g_assert(lh_schedule_takes(linear, true) && lh_schedule_takes(softmax, false));
    if (linear == softmax)
        return linear;
    pthread_mutex_lock(&lock);
    if (pairs == NULL)
        pairs = g_ptr_array_new();
    for (guint i = 0; i < pairs->len && found == NULL; i++) {
        Pair *pair = g_ptr_array_index(pairs, i);

        if (pair->sides[0] == softmax && pair->sides[1] == linear)
            found = pair;
    }
    if (found == NULL) {
        found = new_pair(linear, softmax);
        g_ptr_array_add(pairs, found);
    }
    pthread_mutex_unlock(&lock);
    return &found->schedule;
}

const LhSchedule *
lh_schedule_side(const LhSchedule *schedule, bool linear)
{
    if (schedule->pair != NULL)
        return schedule->pair[linear];
    return lh_schedule_takes(schedule, linear) ? schedule : NULL;
}

/* ---- by name ---- */

static const LhSchedule *
find_side(const char *text, gsize length, GError **error)
{
    g_autofree char *name = g_strstrip(g_strndup(text, length));

    return lh_schedule_find(name, error);
}

const LhSchedule *
lh_schedule_find_pair(const char *name, GError **error)
{
    const gsize before = strcspn(name, LH_SCHEDULE_PAIRS);
    const char *rest = name + before + 1;
    const LhSchedule *first, *second;

    if (strpbrk(rest, LH_SCHEDULE_PAIRS) != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "\"%s\" names more than two schedules; a pair has one for linear and one for "
                    "softmax attention",
                    name);
        return NULL;
    }
    first = find_side(name, before, error);
    second = first == NULL ? NULL : find_side(rest, strlen(rest), error);
    if (second == NULL)
        return NULL;
    if (lh_schedule_takes(first, true) && lh_schedule_takes(second, false))
        return lh_schedule_pair(first, second);
    if (lh_schedule_takes(second, true) && lh_schedule_takes(first, false))
        return lh_schedule_pair(second, first);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "\"%s\" is not a valid pair: both support only %s attention; a pair needs one "
                "schedule for linear and one for softmax attention",
                name, lh_schedule_attention(first));
    return NULL;
}
