/*
 * A line on standard error that shows the progress of a long run; on terminals only.
 */
#pragma once

#include "plan/setup.h"

typedef struct {
    bool terminal;
    bool shown;
    gint64 started_us, drawn_us; /* of the monotonic clock */
} LhProgressLine;

void lh_progress_start(LhProgressLine *line);
/* An LhProgress; @data is the line. Draws after two seconds, ten times a second. */
bool lh_progress_draw(void *data, const char *what, uint64_t events, LhTime now_ps);
/* Wipes the line. */
void lh_progress_end(LhProgressLine *line);
