/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line on standard error that says how long a command takes, if it is more than two seconds, and
 * how far it is. Where that is no terminal (a file, the log of a job), a line a minute.
 */
#pragma once

#include "base/task.h"

typedef struct {
    bool terminal;
    bool shown;
    gint64 started_us, drawn_us; /* of the monotonic clock */
    char *estimate;              /* owned: how long all of it takes, about */
} LhProgressLine;

/* @seconds: what all of it takes, about; see proof/run_time_estimate.h. */
void lh_progress_start(LhProgressLine *line, double seconds);
/* The progress of an LhTask that simulates, never false; @data is the line. Draws when it is due.
 */
bool lh_progress_draw(void *data, const LhProgress *at);
/* Likewise, of one that proves. */
bool lh_progress_draw_proof(void *data, const LhProgress *at);
/* Whether it takes so long that something is shown: two seconds, off a terminal a minute. */
bool lh_progress_is_long(const LhProgressLine *line);
/* Whether it is time to draw: if it is long, ten times a second, off a terminal once a minute.
 * Then: a line of one's own, without its end. */
bool lh_progress_is_due(LhProgressLine *line);
void lh_progress_draw_text(LhProgressLine *line, const char *text);
/* A line that stays, above the one that is drawn. */
void lh_progress_say(LhProgressLine *line, const char *text);
/* Wipes the line until it is drawn again. */
void lh_progress_wipe(LhProgressLine *line);
/* Wipes the line, and frees what it has. */
void lh_progress_end(LhProgressLine *line);
