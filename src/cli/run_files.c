/*
 * Timelines and Gantt charts of commands that run one schedule.
 */
#include "cli/run_files.h"

#include "base/error.h"

bool
lh_run_files_init(LhRunFiles *files, const LhRunFileOptions *options, uint32_t ranks_count,
                  bool keep_all, GError **error)
{
    *files = (LhRunFiles){ .options = options, .stamp = files->stamp };
    if (options->figure == NULL && (options->ranks_shown != NULL || options->time_window != NULL)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s is about a figure; give --figure FILE as well",
                    options->ranks_shown != NULL ? "--ranks-shown" : "--time-window");
        return false;
    }
    if (options->timeline != NULL && !lh_timeline_check_path(options->timeline, error))
        return false;
    if (!lh_frame_init(&files->frame, options->ranks_shown, options->time_window, ranks_count,
                       error))
        return false;
    if (options->timeline != NULL || (options->figure != NULL && keep_all))
        files->timeline = lh_timeline_new(NULL);
    else if (options->figure != NULL)
        files->timeline = lh_timeline_new(files->frame.ranks);
    return true;
}

void
lh_run_files_clear(LhRunFiles *files)
{
    lh_frame_clear(&files->frame);
    g_clear_pointer(&files->timeline, lh_timeline_free);
}

bool
lh_run_files_add_last(LhRunFiles *files, uint32_t last_rank)
{
    if (files->options->figure == NULL)
        return true;
    lh_frame_add(&files->frame, last_rank);
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
                              .program = gantt->program,
                              .stamp = &files->stamp };

    return files->options->timeline == NULL ||
           lh_timeline_write(files->timeline, &of, files->options->timeline, error);
}

bool
lh_run_files_write(LhRunFiles *files, LhGantt *gantt, GError **error)
{
    bool ok;

    if (files->timeline == NULL)
        return true;
    lh_timeline_sort(files->timeline);
    gantt->timeline = files->timeline;
    gantt->frame = &files->frame;
    ok = write_timeline(files, gantt, error);
    if (files->options->figure == NULL)
        return ok;
    return lh_frame_fit(&files->frame, gantt->makespan_ps, ok ? error : NULL) &&
           lh_gantt_draw(gantt, files->options->figure, ok ? error : NULL) && ok;
}
