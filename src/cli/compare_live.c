/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are shown together with the progress line: a comparison that ends before it appears prints
 * its table soon enough. Rows appear in order of completion and are cleared before the table is
 * printed.
 */
#include "cli/compare_live.h"

#include "base/error.h"
#include "cli/interrupt.h"

#include <stdio.h>

void
lh_compare_live_start(LhCompareLive *live, double seconds)
{
    *live = (LhCompareLive){ .rows = g_string_new(NULL) };
    lh_progress_start(&live->line, seconds);
    lh_interrupt_listen();
}

/* Prints new rows above the progress line, once that is shown. */
static void
show_rows(LhCompareLive *live)
{
    if (!live->line.shown || live->rows->len == 0)
        return;
    lh_progress_wipe(&live->line);
    for (gsize i = 0; i < live->rows->len; i++)
        live->shown += live->rows->str[i] == '\n';
    fputs(live->rows->str, stderr);
    g_string_truncate(live->rows, 0);
}

void
lh_compare_live_came(void *data, const LhCompareRow *row)
{
    LhCompareLive *live = data;
    g_autofree char *time = lh_format_time(row->result->makespan_ps);

    if (!live->line.terminal)
        return;
    g_string_append_printf(live->rows, "%s: %s%s\n", row->name, time,
                           row->state == LH_ROW_NO_MEMORY ? ", out of memory" : "");
    show_rows(live);
}

bool
lh_compare_live_progress(void *data, const LhProgress *at)
{
    LhCompareLive *live = data;

    lh_progress_draw(&live->line, at);
    show_rows(live);
    return !lh_interrupted();
}

void
lh_compare_live_end(LhCompareLive *live)
{
    lh_progress_end(&live->line);
    if (live->shown > 0)
        fprintf(stderr, "\033[%uA\033[J", live->shown);
    g_string_free(live->rows, TRUE);
}

LhComparison *
lh_compare_live(const LhSetup *setup, const LhCompareOptions *options, double seconds,
                GError **error)
{
    LhCompareLive live;
    LhCompareOptions how = *options;
    LhComparison *comparison;

    how.task.progress = lh_compare_live_progress;
    how.task.data = &live;
    how.came = lh_compare_live_came;
    how.came_data = &live;
    lh_compare_live_start(&live, seconds);
    comparison = lh_compare(setup, &how, error);
    lh_compare_live_end(&live);
    return comparison;
}

bool
lh_compare_live_check(const LhComparison *comparison, GError **error)
{
    const LhCompareRow *first = g_ptr_array_index(comparison->rows, 0);

    if (first->state != LH_ROW_FAILED)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s", first->name, first->reason);
    return false;
}
