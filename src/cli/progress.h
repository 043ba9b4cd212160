/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress line on standard error: estimated duration and progress of a command that takes more
 * than two seconds. If standard error is no terminal (a file, the log of a job), one line a minute.
 */
#pragma once

#include "base/task.h"

typedef struct {
    bool terminal;
    bool shown;
    gint64 started_us, drawn_us; /* monotonic clock */
    char *estimate;              /* owned: estimated total duration, as text */
} LhProgressLine;

/* @seconds: estimated total duration; see proof/run_time_estimate.h. */
void lh_progress_start(LhProgressLine *line, double seconds);
/* Progress callback for an LhTask that simulates; always true. @data is the line; draws when
 * due. */
bool lh_progress_draw(void *data, const LhProgress *at);
/* Likewise, for one that proves. */
bool lh_progress_draw_proof(void *data, const LhProgress *at);
/* Whether the command has run long enough to show progress: two seconds, or a minute off a
 * terminal. */
bool lh_progress_is_long(const LhProgressLine *line);
/* Whether it is time to draw: once long, ten times a second, or once a minute off a terminal. If
 * so, the caller draws a text of its own, without a newline, with lh_progress_draw_text(). */
bool lh_progress_is_due(LhProgressLine *line);
void lh_progress_draw_text(LhProgressLine *line, const char *text);
/* Prints a line that stays, above the progress line. */
void lh_progress_say(LhProgressLine *line, const char *text);
/* Clears the line until it is drawn again. */
void lh_progress_wipe(LhProgressLine *line);
/* Clears the line and frees its memory. */
void lh_progress_end(LhProgressLine *line);
