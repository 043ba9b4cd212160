/*
 * A line on standard error that says how long a command takes, if it is more than two seconds, and
 * how far it is; on terminals only.
 */
#pragma once

#include "plan/setup.h"

typedef struct {
    bool terminal;
    bool shown;
    gint64 started_us, drawn_us; /* of the monotonic clock */
    char *estimate;              /* owned: how long all of it takes, about */
} LhProgressLine;

/* @seconds: what all of it takes, about; see plan/work.h. */
void lh_progress_start(LhProgressLine *line, double seconds);
/* An LhProgress; @data is the line. Draws after two seconds, ten times a second. */
bool lh_progress_draw(void *data, const char *what, uint64_t events, LhTime now_ps);
/* Likewise, of proofs: @programs of the schedule @what. */
bool lh_progress_draw_proof(void *data, const char *what, uint64_t programs, LhTime now_ps);
/* Whether it is time to draw, and then: a line of one's own, without its end. */
bool lh_progress_is_due(LhProgressLine *line);
void lh_progress_draw_text(LhProgressLine *line, const char *text);
/* Wipes the line until it is drawn again. */
void lh_progress_wipe(LhProgressLine *line);
/* Wipes the line, and frees what it has. */
void lh_progress_end(LhProgressLine *line);
