/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines, traces and Gantt charts of commands that run one schedule.
 */
#include "cli/run_files.h"

#include "base/error.h"

const char *
lh_run_name(const LhSetup *setup)
{
    const LhSchedule *schedule;

    if (setup->program != NULL)
        return setup->program->name;
    schedule = g_ptr_array_index(setup->schedules, 0);
    return schedule->name;
}

bool
lh_run_files_init(LhRunFiles *files, const LhRunFileOptions *options, const LhSetup *setup,
                  bool keep_all, GError **error)
{
    *files = (LhRunFiles){ .options = options, .stamp = files->stamp };
    if (options->figure == NULL && options->trace == NULL &&
        (options->ranks_shown != NULL || options->time_window != NULL)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s has no effect without --figure or --trace",
                    options->ranks_shown != NULL ? "--ranks-shown" : "--time-window");
        return false;
    }
    if ((options->timeline != NULL && !lh_timeline_check_path(options->timeline, error)) ||
        (options->trace != NULL && !lh_trace_check_path(options->trace, error)))
        return false;
    if (!lh_time_window_init(&files->frame, options->ranks_shown, options->time_window,
                             lh_time_window_ranks(setup), error))
        return false;
    if (options->timeline != NULL ||
        ((options->figure != NULL || options->trace != NULL) && keep_all))
        files->timeline = lh_timeline_new(NULL);
    else if (options->figure != NULL)
        files->timeline = lh_timeline_new(files->frame.ranks);
    return true;
}

void
lh_run_files_clear(LhRunFiles *files)
{
    lh_time_window_clear(&files->frame);
    g_clear_pointer(&files->trace, lh_trace_free);
    g_clear_pointer(&files->timeline, lh_timeline_free);
}

bool
lh_run_files_add_last(LhRunFiles *files, uint32_t last_rank)
{
    if (files->options->figure == NULL)
        return true;
    lh_time_window_add(&files->frame, last_rank);
    if (lh_timeline_keeps(files->timeline, last_rank))
        return true;
    lh_timeline_free(files->timeline);
    files->timeline = lh_timeline_new(files->frame.ranks);
    return false;
}

static bool
write_timeline(const LhRunFiles *files, const LhGantt *gantt, GError **error)
{
    const LhTimelineOf of = { .setup = gantt->setup,
                              .name = gantt->name,
                              .program = gantt->program,
                              .stamp = &files->stamp };

    return files->options->timeline == NULL ||
           lh_timeline_write(files->timeline, &of, files->options->timeline, error);
}

bool
lh_run_files_begin_trace(LhRunFiles *files, const LhSetup *setup, const LhProgram *program,
                         GError **error)
{
    const LhTraceOf of = { .setup = setup,
                           .name = lh_run_name(setup),
                           .program = program,
                           .stamp = &files->stamp,
                           .ranks = files->options->ranks_shown != NULL ? files->frame.ranks : NULL,
                           .from_ps = files->frame.from_ps,
                           .to_ps = files->frame.to_ps };

    if (files->options->trace != NULL)
        files->trace = lh_trace_new(files->options->trace, &of, error);
    return files->options->trace == NULL || files->trace != NULL;
}

static bool
write_trace(LhRunFiles *files, const LhGantt *gantt, GError **error)
{
    if (files->options->trace == NULL)
        return true;
    if (files->trace == NULL) {
        if (!lh_run_files_begin_trace(files, gantt->setup, gantt->program, error))
            return false;
        for (guint i = 0; i < files->timeline->records->len; i++)
            lh_trace_add(files->trace,
                         &g_array_index(files->timeline->records, LhTimelineRecord, i));
    }
    return lh_time_window_fit(&files->frame, gantt->makespan_ps, error) &&
           lh_trace_finish(files->trace, error);
}

static bool
draw_figure(LhRunFiles *files, LhGantt *gantt, GError **error)
{
    if (files->options->figure == NULL)
        return true;
    gantt->frame = &files->frame;
    return lh_time_window_fit(&files->frame, gantt->makespan_ps, error) &&
           lh_gantt_draw(gantt, (LhFigureTo){ .path = files->options->figure }, error);
}

bool
lh_run_files_write(LhRunFiles *files, LhGantt *gantt, GError **error)
{
    bool ok;

    if (files->timeline != NULL)
        lh_timeline_sort(files->timeline);
    gantt->timeline = files->timeline;
    ok = write_timeline(files, gantt, error);
    ok = write_trace(files, gantt, ok ? error : NULL) && ok;
    return draw_figure(files, gantt, ok ? error : NULL) && ok;
}
