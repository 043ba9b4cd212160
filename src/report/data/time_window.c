/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options --ranks-shown and --time-window.
 */
#include "report/data/time_window.h"

#include "base/error.h"
#include "base/escape.h"
#include "scenario/step/setup_step.h"

#include <string.h>

bool
lh_time_window_has(const LhTimeWindow *frame, uint32_t rank)
{
    for (guint i = 0; i < frame->ranks->len; i++) {
        if (g_array_index(frame->ranks, uint32_t, i) == rank)
            return true;
    }
    return false;
}

void
lh_time_window_add(LhTimeWindow *frame, uint32_t rank)
{
    guint i = 0;

    while (i < frame->ranks->len && g_array_index(frame->ranks, uint32_t, i) < rank)
        i++;
    if (i == frame->ranks->len || g_array_index(frame->ranks, uint32_t, i) != rank)
        g_array_insert_val(frame->ranks, i, rank);
}

static bool
refuse_option(const char *option, const char *found, const char *allowed, GError **error)
{
    g_autofree char *shown = lh_escaped_line(found);

    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--%s: \"%s\" is not allowed; allowed: %s", option,
                shown, allowed);
    return false;
}

/* Adds the ranks of one item, "3" or "0-7". */
static bool
add_item(LhTimeWindow *frame, const char *item, uint32_t ranks_count)
{
    g_auto(GStrv) ends = g_strsplit(item, "-", 2);
    guint64 first, last;

    if (ends[0] == NULL ||
        !g_ascii_string_to_unsigned(ends[0], 10, 0, ranks_count - 1, &first, NULL))
        return false;
    last = first;
    if (ends[1] != NULL &&
        !g_ascii_string_to_unsigned(ends[1], 10, first, ranks_count - 1, &last, NULL))
        return false;
    if (last - first >= LH_TIME_WINDOW_RANKS_MAX)
        return false;
    for (guint64 rank = first; rank <= last; rank++)
        lh_time_window_add(frame, (uint32_t)rank);
    return frame->ranks->len <= LH_TIME_WINDOW_RANKS_MAX;
}

static bool
read_ranks(LhTimeWindow *frame, const char *text, uint32_t ranks_count, GError **error)
{
    g_auto(GStrv) items = g_strsplit(text, ",", -1);
    bool ok = items[0] != NULL;

    for (guint i = 0; ok && items[i] != NULL; i++)
        ok = add_item(frame, items[i], ranks_count);
    if (!ok) {
        g_autofree char *allowed =
            g_strdup_printf("a list of ranks from 0 to %u, such as 0-3,6; at most %u of them",
                            ranks_count - 1, LH_TIME_WINDOW_RANKS_MAX);

        return refuse_option("ranks-shown", text, allowed, error);
    }
    return true;
}

/* Parses an end of the window; an empty text leaves @time unchanged. */
static bool
read_time(const char *text, LhTime *time)
{
    return *text == '\0' || lh_unit_parse(text, LH_UNIT_TIME, time, NULL);
}

static bool
read_window(LhTimeWindow *frame, const char *text, GError **error)
{
    g_auto(GStrv) ends = g_strsplit(text, ":", -1);

    if (g_strv_length(ends) == 2 && read_time(ends[0], &frame->from_ps) &&
        read_time(ends[1], &frame->to_ps) && frame->from_ps < frame->to_ps)
        return true;
    return refuse_option(
        "time-window", text,
        "FROM:TO, two times such as 2ms:3.5ms, the first one earlier; either may be omitted",
        error);
}

/* Adds ranks of all stages or, if there are too many, of the first, the last, and some in
 * between. */
static void
choose_ranks(LhTimeWindow *frame, LhTimeWindowRanks of)
{
    const uint32_t stages = MIN(of.stages, LH_TIME_WINDOW_RANKS_DEFAULT);
    const uint32_t of_stage = of.count / of.stages;
    const uint32_t shown =
        of.count <= LH_TIME_WINDOW_RANKS_DEFAULT ? of_stage : LH_TIME_WINDOW_RANKS_DEFAULT / stages;

    for (uint32_t i = 0; i < stages; i++) {
        const uint32_t stage = stages == 1 ? 0 : i * (of.stages - 1) / (stages - 1);

        for (uint32_t k = 0; k < MIN(shown, of_stage); k++)
            lh_time_window_add(frame, stage * of_stage + k);
    }
}

LhTimeWindowRanks
lh_time_window_ranks(const LhSetup *setup)
{
    return (LhTimeWindowRanks){ setup->network.ranks,
                                setup->step != NULL ? lh_step_stages(&setup->step->params) : 1 };
}

LhTimeWindowRanks
lh_time_window_ranks_of(const LhProgram *program)
{
    const LhStepParams *step = lh_step_params(program);

    return (LhTimeWindowRanks){ lh_program_ranks(program),
                                step != NULL ? lh_step_stages(step) : 1 };
}

bool
lh_time_window_init(LhTimeWindow *frame, const char *ranks, const char *window,
                    LhTimeWindowRanks of, GError **error)
{
    *frame = (LhTimeWindow){ .ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                             .to_ps = LH_TIME_NEVER };
    if (ranks == NULL)
        choose_ranks(frame, of);
    return (ranks == NULL || read_ranks(frame, ranks, of.count, error)) &&
           (window == NULL || read_window(frame, window, error));
}

void
lh_time_window_clear(LhTimeWindow *frame)
{
    g_clear_pointer(&frame->ranks, g_array_unref);
}

bool
lh_time_window_fit(LhTimeWindow *frame, LhTime makespan_ps, GError **error)
{
    g_autofree char *from = lh_format_time(frame->from_ps);
    g_autofree char *end = lh_format_time(makespan_ps);

    if (frame->from_ps > 0 && frame->from_ps >= makespan_ps) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "--time-window starts at %s, but the run ends at %s", from, end);
        return false;
    }
    frame->to_ps = MIN(frame->to_ps, makespan_ps);
    return true;
}
