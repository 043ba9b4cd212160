/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines of many ranks for pages: a strip per rank, kernels above and transfers below. Time is
 * cut into columns; a strip stores the busy time of each kind of op per column. So memory does not
 * depend on the number of ops, and the size of the drawing is bounded. Equal strips are drawn once.
 */
#pragma once

#include "report/draw/lane_kinds.h"

#define LH_HTML_TIMELINE_RANKS_MAX 1024

typedef struct _LhHtmlTimeline LhHtmlTimeline;

/* Makes a timeline for a run of @makespan_ps with @ranks (of uint32_t, ascending, unique; at most
 * LH_HTML_TIMELINE_RANKS_MAX). @setup is borrowed. Caller frees. */
LhHtmlTimeline *lh_html_timeline_new(const LhSetup *setup, const GArray *ranks, LhTime makespan_ps);
void lh_html_timeline_free(LhHtmlTimeline *strips);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhHtmlTimeline, lh_html_timeline_free)

/* An LhTimelineSink; @data is the LhHtmlTimeline. Ops of other ranks are ignored. */
void lh_html_timeline_add(void *data, const LhTimelineRecord *record);

/*
 * Appends the timeline as part of a page, with two further zoom levels and without a script. @name
 * is the prefix of its ids (letters, digits); @last_rank is marked as the last to finish, unless it
 * is G_MAXUINT32; @words are the alternative text.
 */
void lh_html_timeline_html(const LhHtmlTimeline *strips, const char *name, uint32_t last_rank,
                           const char *words, GString *out);

/* Appends the CSS rules it needs. */
void lh_html_timeline_style(GString *out);
