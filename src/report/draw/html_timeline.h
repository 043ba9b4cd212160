/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines of many ranks for pages: a strip for each rank, kernels above and transfers below. Time
 * is cut into columns, of which a strip remembers how much each kind of op takes; so a timeline
 * needs the same memory however many ops there are, and what is drawn has a bound in bytes. Strips
 * that look the same are drawn once.
 */
#pragma once

#include "report/draw/lane_kinds.h"

#define LH_HTML_TIMELINE_RANKS_MAX 1024

typedef struct _LhHtmlTimeline LhHtmlTimeline;

/* For a run of @makespan_ps, of @ranks (of uint32_t, ascending, each once; at most
 * LH_HTML_TIMELINE_RANKS_MAX). @setup is borrowed. Caller frees. */
LhHtmlTimeline *lh_html_timeline_new(const LhSetup *setup, const GArray *ranks, LhTime makespan_ps);
void lh_html_timeline_free(LhHtmlTimeline *strips);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhHtmlTimeline, lh_html_timeline_free)

/* An LhTimelineSink; @data is the LhHtmlTimeline. Ops of other ranks are left out. */
void lh_html_timeline_add(void *data, const LhTimelineRecord *record);

/*
 * Appends the timeline as a piece of a page that can be looked at in two greater lengths, without a
 * script. @name is that of the page's parts (letters, digits); @last_rank is marked as the last to
 * finish, unless it is G_MAXUINT32; @words say what it shows to those who do not see it.
 */
void lh_html_timeline_html(const LhHtmlTimeline *strips, const char *name, uint32_t last_rank,
                           const char *words, GString *out);

/* The rules of style that it needs, for the page's. */
void lh_html_timeline_style(GString *out);
