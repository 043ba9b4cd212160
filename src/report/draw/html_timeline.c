/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/html_timeline.h"

#include "base/escape.h"
#include "report/data/time_window.h"
#include "report/data/timeline.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MAX 8192      /* time columns */
#define COLUMNS_MIN 64        /* with fewer columns, nothing is merged */
#define CELLS_MAX (1U << 20)  /* ranks x columns: 36 bytes each */
#define BYTES_MAX (400 << 10) /* limit of the drawn strips */
#define LEVELS 4              /* fill levels of a partly busy column */
#define FULL 0.98             /* busy share from which a column counts as full */
#define STRIP_HEIGHT 10       /* height of a strip, in drawing units */
#define AXIS_HEIGHT 22        /* pixels, for times above the strips */
#define LABEL_PIXELS 13       /* height of a rank's name */
#define NAMES_RANKS 110       /* pixels, for names beside the strips */
#define NAMES_STAGES 164      /* the same with pipeline stages */
#define HATCHES 256           /* over the width of a run that only waits */
#define NEAR_END 0.06         /* share of the width: a time this near the end is left of its line */

/* Lanes of a strip: centre and height, in its units. */
static const struct {
    double middle, height;
} lanes[] = { { 3.2, 5.6 }, { 8, 3 } };

/* Zoom levels: length in page widths, and approximate number of axis labels. */
static const struct {
    unsigned factor, ticks;
    const char *title;
} lengths[] = { { 1, 6, "whole run" }, { 4, 24, "4 times zoom" }, { 16, 96, "16 times zoom" } };

/* Busy time of each kind of op within a column. */
typedef struct {
    float share[LH_LANE_KINDS];
} Cell;

struct _LhHtmlTimeline {
    const LhSetup *setup;
    GArray *ranks;
    uint32_t *rows;    /* by rank: its row + 1; 0: none */
    uint32_t rows_max; /* number of ranks in `rows` */
    uint32_t columns;
    LhTime makespan_ps;
    Cell *cells; /* ranks x columns */
};

LhHtmlTimeline *
lh_html_timeline_new(const LhSetup *setup, const GArray *ranks, LhTime makespan_ps)
{
    LhHtmlTimeline *s = g_new0(LhHtmlTimeline, 1);

    g_assert(ranks->len > 0 && ranks->len <= LH_HTML_TIMELINE_RANKS_MAX);
    s->setup = setup;
    s->ranks = g_array_copy((GArray *)ranks);
    s->makespan_ps = MAX(makespan_ps, 1);
    s->columns = COLUMNS_MAX;
    while (s->columns * ranks->len > CELLS_MAX)
        s->columns /= 2;
    s->cells = g_new0(Cell, (gsize)s->columns * ranks->len);
    s->rows_max = g_array_index(ranks, uint32_t, ranks->len - 1) + 1;
    s->rows = g_new0(uint32_t, s->rows_max);
    for (uint32_t i = 0; i < ranks->len; i++)
        s->rows[g_array_index(ranks, uint32_t, i)] = i + 1;
    return s;
}

void
lh_html_timeline_free(LhHtmlTimeline *s)
{
    if (s == NULL)
        return;
    g_array_unref(s->ranks);
    g_free(s->rows);
    g_free(s->cells);
    g_free(s);
}

static void
add_time(LhHtmlTimeline *s, Cell *row, int kind, LhTime start_ps, LhTime end_ps)
{
    const double width_ps = (double)s->makespan_ps / s->columns;
    const uint32_t first = MIN((uint32_t)((double)start_ps / width_ps), s->columns - 1);
    const uint32_t last = MIN((uint32_t)((double)end_ps / width_ps), s->columns - 1);

    for (uint32_t i = first; i <= last; i++) {
        const double from = fmax((double)start_ps / width_ps, i);
        const double to = fmin((double)end_ps / width_ps, i + 1);

        row[i].share[kind] += (float)fmax(to - from, 0);
    }
}

void
lh_html_timeline_add(void *data, const LhTimelineRecord *r)
{
    LhHtmlTimeline *s = data;
    LhTimelinePiece piece = { .motion = 0 };
    int kind;

    if (!lh_lane_has(r) || r->rank >= s->rows_max || s->rows[r->rank] == 0)
        return;
    kind = lh_lane_kind(r, s->setup);
    while (lh_timeline_next_piece(r, &piece)) {
        const LhTime end_ps = MIN(piece.to_ps, s->makespan_ps);

        if (piece.from_ps < end_ps)
            add_time(s, &s->cells[(gsize)(s->rows[r->rank] - 1) * s->columns],
                     piece.waits ? LH_LANE_HELD : kind, piece.from_ps, end_ps);
    }
}

/* --- drawn columns -----------------------------------------------------------------------------
 */

/* Appearance of a column of a lane: its main kind, and a fill level of LEVELS. */
typedef struct {
    int kind; /* 0: nothing */
    int level;
} Look;

/* Merges @joined columns of one lane. */
static Look
look_at(const Cell *cells, uint32_t joined, int lane)
{
    double all = 0, most = 0;
    Look look = { 0, 0 };

    for (int kind = LH_LANE_FORWARD; kind < LH_LANE_KINDS; kind++) {
        double share = 0;

        if (lh_lane_is_transfer(kind) != (lane == 1))
            continue;
        for (uint32_t i = 0; i < joined; i++)
            share += (double)cells[i].share[kind];
        all += share;
        if (share > most) {
            most = share;
            look.kind = kind;
        }
    }
    all /= joined;
    if (all > 0)
        look.level = all >= FULL ? LEVELS : CLAMP((int)ceil(all * LEVELS), 1, LEVELS);
    return look;
}

/* Rounds a partly busy column at the start or end of an op to full or empty, so that a long op is
 * one box. */
static void
snap(Look *looks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool after =
            i > 0 && looks[i - 1].level == LEVELS && looks[i - 1].kind == looks[i].kind;
        const bool before =
            i + 1 < count && looks[i + 1].level == LEVELS && looks[i + 1].kind == looks[i].kind;

        if (looks[i].level < LEVELS && after != before)
            looks[i] =
                looks[i].level > LEVELS / 2 ? (Look){ looks[i].kind, LEVELS } : (Look){ 0, 0 };
    }
}

/* Draws waiting as dashes, scaled to a strip with @columns columns. */
static void
append_hatches(GString *out, int kind, uint32_t columns)
{
    char dash[G_ASCII_DTOSTR_BUF_SIZE];

    if (kind != LH_LANE_HELD)
        return;
    g_ascii_formatd(dash, sizeof(dash), "%.4g", (double)columns / (2 * HATCHES));
    g_string_append_printf(out, " stroke-dasharray=\"%s\"", dash);
}

/* Appends the boxes of one appearance as a path; nothing without boxes. */
static void
append_path(GString *out, const Look *looks, uint32_t count, Look wanted, int lane)
{
    const gsize from = out->len;
    uint32_t at = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = i;

        while (end < count && looks[end].kind == wanted.kind && looks[end].level == wanted.level)
            end++;
        if (end == i)
            continue;
        if (out->len == from) {
            g_string_append_printf(out, "<path class=\"k%d l%d%d\"", wanted.kind, lane,
                                   wanted.level);
            append_hatches(out, wanted.kind, count);
            g_string_append_printf(out, " d=\"M%u %.4gh%u", i, lanes[lane].middle, end - i);
        } else {
            g_string_append_printf(out, "m%u 0h%u", i - at, end - i);
        }
        at = end;
        i = end - 1;
    }
    if (out->len > from)
        g_string_append(out, "\"/>");
}

/* Draws the paths of one strip. Caller frees. */
static char *
draw_strip(const LhHtmlTimeline *s, uint32_t row, uint32_t joined)
{
    const uint32_t count = s->columns / joined;
    g_autofree Look *looks = g_new(Look, count);
    GString *out = g_string_new(NULL);

    for (int lane = 0; lane < (int)G_N_ELEMENTS(lanes); lane++) {
        for (uint32_t i = 0; i < count; i++)
            looks[i] =
                look_at(&s->cells[(gsize)row * s->columns + (gsize)i * joined], joined, lane);
        snap(looks, count);
        for (int kind = LH_LANE_FORWARD; kind < LH_LANE_KINDS; kind++) {
            for (int level = 1; level <= LEVELS; level++)
                append_path(out, looks, count, (Look){ kind, level }, lane);
        }
    }
    return g_string_free(out, FALSE);
}

/* Draws all strips in rows; a strip equal to an earlier one refers to it. */
static GString *
draw_strips(const LhHtmlTimeline *s, const char *name, uint32_t joined)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GString *out = g_string_new(NULL);

    for (uint32_t row = 0; row < s->ranks->len; row++) {
        char *strip = draw_strip(s, row, joined);
        const uint32_t like = GPOINTER_TO_UINT(g_hash_table_lookup(seen, strip));

        if (like > 0 && *strip != '\0') {
            g_string_append_printf(out, "<use href=\"#%s-%u\" y=\"%u\"/>", name, like - 1,
                                   (row - (like - 1)) * STRIP_HEIGHT);
            g_free(strip);
            continue;
        }
        g_string_append_printf(out, "<g id=\"%s-%u\" transform=\"translate(0 %u)\">%s</g>\n", name,
                               row, row * STRIP_HEIGHT, strip);
        g_hash_table_insert(seen, strip, GUINT_TO_POINTER(row + 1));
    }
    return out;
}

/* --- axis and key ------------------------------------------------------------------------------
 */

static unsigned
strip_pixels(uint32_t ranks)
{
    static const struct {
        uint32_t ranks;
        unsigned pixels;
    } heights[] = { { 16, 26 }, { 32, 20 }, { 64, 14 }, { 128, 8 }, { 256, 5 }, { 512, 3 } };

    for (guint i = 0; i < G_N_ELEMENTS(heights); i++) {
        if (ranks <= heights[i].ranks)
            return heights[i].pixels;
    }
    return 2;
}

/* A step of 1, 2 or 5 times a power of ten, giving about @ticks ticks per run. */
static LhTime
tick_step(LhTime makespan_ps, unsigned ticks)
{
    static const LhTime steps[] = { 1, 2, 5, 10 };
    LhTime power = 1;

    while (makespan_ps / (power * 10) > ticks)
        power *= 10;
    for (guint i = 0; i < G_N_ELEMENTS(steps) - 1; i++) {
        if (makespan_ps / (power * steps[i]) <= ticks)
            return power * steps[i];
    }
    return power * steps[G_N_ELEMENTS(steps) - 1];
}

/* Appends times and their lines for one zoom level. */
static void
append_time_ticks(GString *out, const LhHtmlTimeline *s, guint length, unsigned height)
{
    const LhTime step = tick_step(s->makespan_ps, lengths[length].ticks);

    g_string_append_printf(out, "<g class=\"t%u\">", lengths[length].factor);
    for (LhTime at = 0; at < s->makespan_ps; at += step) {
        const double share = (double)at / (double)s->makespan_ps;
        const bool near_end = (1 - share) * lengths[length].factor < NEAR_END;
        g_autofree char *text = at == 0 ? g_strdup("0") : lh_format_time(at);
        char where[G_ASCII_DTOSTR_BUF_SIZE];

        g_ascii_formatd(where, sizeof(where), "%.4f", 100 * share);
        g_string_append_printf(out,
                               "<line x1=\"%s%%\" x2=\"%s%%\" y1=\"4\" y2=\"%u\"/>"
                               "<text x=\"%s%%\" dx=\"%s\" y=\"14\"%s>%s</text>",
                               where, where, height, where, near_end ? "-3" : "3",
                               near_end ? " text-anchor=\"end\"" : "", text);
    }
    g_string_append(out, "</g>\n");
}

static void
append_rank_labels(GString *out, const LhHtmlTimeline *s, uint32_t last_rank, unsigned height)
{
    const unsigned pixels = strip_pixels(s->ranks->len);
    const uint32_t every = MAX((LABEL_PIXELS + pixels - 1) / pixels, 1);
    const LhTimeWindowRanks of = lh_time_window_ranks(s->setup);
    const unsigned width = of.stages > 1 ? NAMES_STAGES : NAMES_RANKS;

    g_string_append_printf(out,
                           "<svg class=\"names\" width=\"%u\" height=\"%u\" role=\"presentation\">",
                           width, height);
    for (uint32_t i = 0; i < s->ranks->len; i++) {
        const uint32_t rank = g_array_index(s->ranks, uint32_t, i);
        const unsigned y =
            AXIS_HEIGHT + i * pixels + MIN(pixels, LABEL_PIXELS) / 2 + LABEL_PIXELS / 3;

        if (i % every != 0)
            continue;
        g_string_append_printf(out, "<text x=\"0\" y=\"%u\">", y);
        if (of.stages > 1)
            g_string_append_printf(out, "stage %u, ", lh_time_window_stage(of, rank));
        g_string_append_printf(out, "rank %u%s</text>", rank,
                               rank == last_rank ? ", ends last" : "");
    }
    g_string_append(out, "</svg>\n");
}

static bool
has_kind(const LhHtmlTimeline *s, int kind)
{
    for (gsize i = 0; i < (gsize)s->columns * s->ranks->len; i++) {
        if (s->cells[i].share[kind] > 0)
            return true;
    }
    return false;
}

static void
append_key(GString *out, const LhHtmlTimeline *s)
{
    g_string_append(out, "<p class=\"key\">");
    for (int kind = LH_LANE_FORWARD; kind < LH_LANE_KINDS; kind++) {
        g_autofree char *title = NULL;

        if (!has_kind(s, kind))
            continue;
        title = lh_lane_title(s->setup, kind);
        g_string_append_printf(out,
                               "<span><svg width=\"14\" height=\"14\" role=\"presentation\">"
                               "<path class=\"k%d\"%s d=\"M0 7h14\"/></svg> ",
                               kind, kind == LH_LANE_HELD ? " stroke-dasharray=\"2\"" : "");
        lh_escape_html(out, title);
        g_string_append(out, "</span> ");
    }
    g_string_append(out, "</p>\n");
}

static void
append_choice(GString *out, const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++)
        g_string_append_printf(out,
                               "<input type=\"radio\" class=\"z%u\" name=\"%s\" id=\"%s-z%u\"%s>"
                               "<label for=\"%s-z%u\">%s</label>\n",
                               lengths[i].factor, name, name, lengths[i].factor,
                               i == 0 ? " checked" : "", name, lengths[i].factor, lengths[i].title);
}

/* Draws as finely as BYTES_MAX allows. Caller frees. */
static GString *
draw_within_bound(const LhHtmlTimeline *s, const char *name, uint32_t *joined)
{
    for (*joined = 1;; *joined *= 2) {
        GString *out = draw_strips(s, name, *joined);

        if (out->len <= BYTES_MAX || s->columns / *joined <= COLUMNS_MIN)
            return out;
        g_string_free(out, TRUE);
    }
}

void
lh_html_timeline_html(const LhHtmlTimeline *s, const char *name, uint32_t last_rank,
                      const char *words, GString *out)
{
    const unsigned rows_height = s->ranks->len * strip_pixels(s->ranks->len);
    const unsigned height = AXIS_HEIGHT + rows_height;
    uint32_t joined;
    g_autoptr(GString) strips = draw_within_bound(s, name, &joined);

    g_string_append(out, "<figure class=\"strips\">\n");
    append_choice(out, name);
    g_string_append(out, "<div class=\"ranks\">");
    append_rank_labels(out, s, last_rank, height);
    g_string_append(out,
                    "<div class=\"run\" tabindex=\"0\" role=\"region\" aria-label=\"timeline\">\n"
                    "<svg role=\"img\" aria-label=\"");
    lh_escape_html(out, words);
    g_string_append_printf(out, "\" width=\"100%%\" height=\"%u\">\n", height);
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++)
        append_time_ticks(out, s, i, height);
    g_string_append_printf(out,
                           "<svg y=\"%d\" width=\"100%%\" height=\"%u\" viewBox=\"0 0 %u %u\" "
                           "preserveAspectRatio=\"none\">\n%s</svg>\n</svg></div></div>\n",
                           AXIS_HEIGHT, rows_height, s->columns / joined,
                           s->ranks->len * STRIP_HEIGHT, strips->str);
    append_key(out, s);
    g_string_append(out, "<figcaption>");
    lh_escape_html(out, words);
    g_string_append(out, "</figcaption></figure>\n");
}

void
lh_html_timeline_style(GString *out)
{
    g_string_append(out, "\n.strips{overflow:visible}"
                         "\n.strips input{margin:0 .3em 0 0}.strips label{margin-right:1em}"
                         "\n.ranks{display:flex;margin:.5em 0}.names{flex:none}"
                         "\n.run{overflow-x:auto;flex:1;min-width:0}.run>svg{display:block}"
                         "\n.strips text{font-size:11px;fill:#333}.strips line{stroke:#ccc}"
                         "\n.strips path{fill:none}"
                         "\n.key{display:flex;flex-wrap:wrap;gap:0 1.2em;font-size:.875em}"
                         "\n.key path{stroke-width:10}"
                         "\nfigcaption{font-size:.875em;color:#555;max-width:60em}");
    for (int kind = LH_LANE_FORWARD; kind < LH_LANE_KINDS; kind++)
        g_string_append_printf(out, "\n.k%d{stroke:%s}", kind, lh_lane_colour(kind));
    for (guint lane = 0; lane < G_N_ELEMENTS(lanes); lane++) {
        for (int level = 1; level <= LEVELS; level++)
            g_string_append_printf(out, "\n.l%u%d{stroke-width:%.4g}", lane, level,
                                   lanes[lane].height * level / LEVELS);
    }
    for (guint i = 1; i < G_N_ELEMENTS(lengths); i++)
        g_string_append_printf(out,
                               "\n.t%u{display:none}.z%u:checked~.ranks .run>svg{width:%u%%}"
                               ".z%u:checked~.ranks .t%u{display:inline}"
                               ".z%u:checked~.ranks .t1{display:none}",
                               lengths[i].factor, lengths[i].factor, 100 * lengths[i].factor,
                               lengths[i].factor, lengths[i].factor, lengths[i].factor);
    g_string_append(out, "\n@media print{.strips input,.strips label{display:none}"
                         ".strips .ranks .run>svg{width:100%}.strips .ranks .t1{display:inline}"
                         ".strips .ranks .t4,.strips .ranks .t16{display:none}"
                         ".run{overflow:visible}}");
}
