/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of schedules, and the steps common to all when a program is made.
 */
#include "sched/schedule.h"

#include "base/error.h"
#include "sched/common/single.h"
#include "sched/pair.h"

#include <inttypes.h>
#include <string.h>

#define LH_SCHEDULE(id) extern const LhSchedule lh_schedule_##id;
#include "schedules.def"
#undef LH_SCHEDULE

const LhSchedule *const lh_schedules[] = {
#define LH_SCHEDULE(id) &lh_schedule_##id,
#include "schedules.def"
#undef LH_SCHEDULE
    NULL,
};

const LhSchedule *
lh_schedule_find(const char *name, GError **error)
{
    const char *names[G_N_ELEMENTS(lh_schedules)] = { NULL };
    g_autofree char *list = NULL;
    const char *nearest;

    if (strpbrk(name, LH_SCHEDULE_PAIRS) != NULL)
        return lh_schedule_find_pair(name, error);
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (strcmp(lh_schedules[i]->name, name) == 0)
            return lh_schedules[i];
        names[i] = lh_schedules[i]->name;
    }
    list = g_strjoinv(", ", (char **)names);
    nearest = lh_nearest_word(name, names);
    if (nearest != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "unknown schedule \"%s\"; did you mean \"%s\"? (%s)", name, nearest, list);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "unknown schedule \"%s\"; known: %s", name,
                    list);
    return NULL;
}

bool
lh_schedule_takes(const LhSchedule *schedule, bool linear)
{
    const unsigned kinds = schedule->attention == 0 ? LH_ATTENTION_SOFTMAX : schedule->attention;

    return (kinds & (linear ? LH_ATTENTION_LINEAR : LH_ATTENTION_SOFTMAX)) != 0;
}

const char *
lh_schedule_attention(const LhSchedule *schedule)
{
    if (!lh_schedule_takes(schedule, true))
        return "softmax";
    return lh_schedule_takes(schedule, false) ? "softmax, linear" : "linear";
}

/* The names of the schedules that support linear attention. Caller frees. */
static char *
linear_names(void)
{
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        if (lh_schedule_takes(lh_schedules[i], true))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   lh_schedules[i]->name);
    }
    return g_string_free(names, FALSE);
}

static bool
refuse_kind(bool linear, GError **error)
{
    g_autofree char *names = NULL;

    if (!linear)
        return lh_program_refuse(error, "it supports only linear attention; this is softmax "
                                        "attention, which has no state to pass on");
    names = linear_names();
    return lh_program_refuse(
        error, "it supports only softmax attention; linear attention is supported by: %s", names);
}

/* Checks the kind of attention and the masks against the schedule's fields. */
static bool
check_kind(const LhSchedule *schedule, const LhProgramParams *p, GError **error)
{
    const LhMaskRule *rule = &p->mask;

    if (!lh_schedule_takes(schedule, p->attention.linear))
        return refuse_kind(p->attention.linear, error);
    if (!rule->causal && schedule->full_reason != NULL)
        return lh_program_refuse(error, "%s", schedule->full_reason);
    if (rule->window != 0 && (schedule->masks & LH_MASKS_WINDOW) == 0)
        return lh_program_refuse(error, "it does not support sliding windows: %s",
                                 schedule->masks_reason);
    if (rule->documents_count > 1 && (schedule->masks & LH_MASKS_DOCUMENTS) == 0)
        return lh_program_refuse(error, "it does not support packed documents: %s",
                                 schedule->masks_reason);
    return true;
}

static bool
check_options(const LhProgramParams *p, GError **error)
{
    for (uint32_t i = 0; i < p->options_count; i++) {
        const LhOption *option = p->options[i].option;

        if (option->check != NULL && !option->check(p, error))
            return false;
    }
    return true;
}

/* Appends the options of @schedule that are not yet in @options. */
static void
add_options(GPtrArray *options, const LhSchedule *schedule)
{
    for (unsigned i = 0; schedule->options != NULL && schedule->options[i] != NULL; i++) {
        if (!g_ptr_array_find(options, schedule->options[i], NULL))
            g_ptr_array_add(options, (gpointer)schedule->options[i]);
    }
}

const LhOption *const *
lh_schedule_options(void)
{
    static const LhOption *const *all = NULL;

    if (g_once_init_enter(&all)) {
        g_autoptr(GPtrArray) options = g_ptr_array_new();

        for (unsigned i = 0; lh_schedules[i] != NULL; i++)
            add_options(options, lh_schedules[i]);
        g_ptr_array_add(options, NULL);
        g_once_init_leave(&all, (const LhOption *const *)g_ptr_array_steal(options, NULL));
    }
    return all;
}

bool
lh_schedule_reads(const LhSchedule *schedule, const LhOption *option)
{
    for (unsigned i = 0; schedule->options != NULL && schedule->options[i] != NULL; i++) {
        if (schedule->options[i] == option)
            return true;
    }
    return false;
}

/* For a pair, the schedule that computes this attention; otherwise @schedule. */
static const LhSchedule *
side_of(const LhSchedule *schedule, const LhProgramParams *p)
{
    return schedule->pair != NULL ? lh_schedule_side(schedule, p->attention.linear) : schedule;
}

LhProgramParams
lh_schedule_params(const LhSchedule *schedule, const LhProgramParams *params)
{
    LhProgramParams p = *params;

    p.options_count = 0;
    for (uint32_t i = 0; i < params->options_count; i++) {
        if (lh_schedule_reads(schedule, params->options[i].option))
            p.options[p.options_count++] = params->options[i];
    }
    if (schedule->adapt != NULL)
        schedule->adapt(&p);
    return p;
}

static bool
is_single(const LhSchedule *schedule, const LhProgramParams *p)
{
    return p->ranks == 1 && !schedule->alone;
}

const LhClosedForms *
lh_closed_forms(const LhSchedule *schedule, const LhProgramParams *params)
{
    return is_single(schedule, params) ? &lh_single_closed : &side_of(schedule, params)->closed;
}

/* @p comes from lh_schedule_params. */
static bool
check_all(const LhSchedule *schedule, const LhProgramParams *p, GError **error)
{
    return lh_program_check(schedule->placement, p, error) && check_kind(schedule, p, error) &&
           check_options(p, error) && (schedule->check == NULL || schedule->check(p, error));
}

bool
lh_schedule_check(const LhSchedule *schedule, const LhProgramParams *params, GError **error)
{
    const LhSchedule *side = side_of(schedule, params);
    const LhProgramParams p = lh_schedule_params(side, params);

    return check_all(side, &p, error);
}

LhProgram *
lh_program_new(const LhSchedule *either, const LhProgramParams *params, GError **error)
{
    const LhSchedule *schedule = side_of(either, params);
    const LhProgramParams p = lh_schedule_params(schedule, params);
    LhProgram *program;

    if (!check_all(schedule, &p, error))
        return NULL;
    if (is_single(schedule, &p))
        return lh_program_new_single(schedule->name, schedule->placement, &p);
    program = lh_program_create(schedule->name, &schedule->generator, &p, schedule->placement);
    program->closed = &schedule->closed;
    program->plan_free = g_free;
    schedule->declare(program);
    return program;
}
