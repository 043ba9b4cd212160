/*
 * The progress line. Simulated time never depends on it.
 */
#include "cli/progress.h"

#include "base/escape.h"

#include <stdio.h>
#include <unistd.h>

#define PATIENCE_US 2000000
#define INTERVAL_US 100000

void
lh_progress_start(LhProgressLine *line)
{
    *line = (LhProgressLine){
        .terminal = isatty(STDERR_FILENO) != 0,
        .started_us = g_get_monotonic_time(),
    };
}

bool
lh_progress_draw(void *data, const char *what, uint64_t events, LhTime now_ps)
{
    LhProgressLine *line = data;
    gint64 clock_us;
    g_autofree char *count = NULL;
    g_autofree char *simulated = NULL;
    g_autofree char *name = NULL;

    if (!line->terminal)
        return true;
    clock_us = g_get_monotonic_time();
    if (clock_us - line->started_us < PATIENCE_US || clock_us - line->drawn_us < INTERVAL_US)
        return true;
    count = lh_format_count(events);
    simulated = lh_format_time(now_ps);
    name = lh_escaped_line(what);
    fprintf(stderr, "\r\033[K%s: %s events, %s simulated", name, count, simulated);
    line->drawn_us = clock_us;
    line->shown = true;
    return true;
}

void
lh_progress_end(LhProgressLine *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
}
