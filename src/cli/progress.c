/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress line. It never affects simulated time.
 */
#include "cli/progress.h"

#include "base/escape.h"
#include "proof/run_time_estimate.h"

#include <stdio.h>
#include <unistd.h>

#define PATIENCE_US 2000000
#define INTERVAL_US 100000
#define LOG_US 60000000 /* without a terminal */
#define US_PER_S 1e6

void
lh_progress_start(LhProgressLine *line, double seconds)
{
    *line = (LhProgressLine){
        .terminal = isatty(STDERR_FILENO) != 0,
        .started_us = g_get_monotonic_time(),
        .estimate = lh_run_time_text(seconds),
    };
    if (!line->terminal || seconds * US_PER_S < PATIENCE_US)
        return;
    fprintf(stderr, "\r\033[K%s in all", line->estimate);
    line->shown = true;
}

bool
lh_progress_is_long(const LhProgressLine *line)
{
    const gint64 patience_us = line->terminal ? PATIENCE_US : LOG_US;

    return g_get_monotonic_time() - line->started_us >= patience_us;
}

bool
lh_progress_is_due(LhProgressLine *line)
{
    const gint64 interval_us = line->terminal ? INTERVAL_US : LOG_US;
    const gint64 clock_us = g_get_monotonic_time();

    if (!lh_progress_is_long(line) || clock_us - line->drawn_us < interval_us)
        return false;
    line->drawn_us = clock_us;
    return true;
}

bool
lh_progress_draw(void *data, const LhProgress *at)
{
    LhProgressLine *line = data;

    if (lh_progress_is_due(line)) {
        g_autofree char *count = lh_format_count(at->events);
        g_autofree char *simulated = lh_format_time(at->now_ps);
        g_autofree char *name = lh_escaped_line(at->what);
        g_autofree char *text = NULL;

        text = g_strdup_printf("%s: %s events, %s simulated; %s in all", name, count, simulated,
                               line->estimate);
        lh_progress_draw_text(line, text);
    }
    return true;
}

bool
lh_progress_draw_proof(void *data, const LhProgress *at)
{
    LhProgressLine *line = data;

    if (lh_progress_is_due(line)) {
        g_autofree char *count = lh_format_count(at->done);
        g_autofree char *name = lh_escaped_line(at->what);
        g_autofree char *text = NULL;

        text = g_strdup_printf("%s: %s programs; %s in all", name, count, line->estimate);
        lh_progress_draw_text(line, text);
    }
    return true;
}

void
lh_progress_draw_text(LhProgressLine *line, const char *text)
{
    fprintf(stderr, line->terminal ? "\r\033[K%s" : "longhaul: %s\n", text);
    line->shown = line->terminal;
}

void
lh_progress_say(LhProgressLine *line, const char *text)
{
    lh_progress_wipe(line);
    fprintf(stderr, line->terminal ? "%s\n" : "longhaul: %s\n", text);
}

void
lh_progress_wipe(LhProgressLine *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
}

void
lh_progress_end(LhProgressLine *line)
{
    lh_progress_wipe(line);
    g_clear_pointer(&line->estimate, g_free);
}
