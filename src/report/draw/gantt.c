/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gantt charts: two lanes per rank, compute above, communication below. Ops narrower than a pixel
 * are merged with their neighbours, so that a figure stays small however long the program is. A
 * merged box is lowered in proportion to the gaps in it, so that its area is busy time. Boxes have
 * no outline, which would be wider than many of them.
 */
#include "report/draw/gantt.h"

#include "report/base/text.h"
#include "report/data/labels.h"
#include "report/draw/figure.h"
#include "report/draw/lane_kinds.h"

#include <string.h>

#define HEIGHT_BESIDE_RANKS 170
#define HEIGHT_RANK 40
#define PIXELS 1500 /* width of the time axis; narrower boxes are merged */
#define WIDE 5      /* box width in pixels from which a gap separates it from the next */
#define BOX_GAP 0.8 /* pixels */
#define HATCHED "pattern 4"

/* Lanes, as offsets from the rank's line; up is negative. */
#define COMPUTE_TOP -0.42
#define COMPUTE_BOTTOM 0.10
#define COMM_TOP 0.14
#define COMM_BOTTOM 0.42

/* Whether low boxes of this kind are at the bottom of their lane, so that two kinds that share time
 * do not cover each other. */
static bool
stands_low(int kind)
{
    return kind == LH_LANE_OTHER_FORWARD || kind == LH_LANE_OTHER_BACKWARD ||
           kind == LH_LANE_TIERS + LH_TIER_NIC;
}

typedef struct {
    uint32_t row; /* of the figure */
    LhTime start_ps, end_ps;
    LhTime busy_ps; /* busy part of that time */
} Box;

/* A figure being drawn. */
typedef struct {
    const LhGantt *gantt;
    LhTimeScale scale;
    LhTime pixel_ps;
    GArray *boxes[LH_LANE_KINDS]; /* of Box */
} Chart;

static bool
is_drawn(const LhTimelineRecord *r, const LhTimeWindow *frame)
{
    return lh_lane_has(r) && r->end_ps > frame->from_ps && r->start_ps < frame->to_ps &&
           lh_time_window_has(frame, r->rank);
}

/* --- boxes --------------------------------------------------------------------------------------
 */

static int
by_row_and_start(gconstpointer a, gconstpointer b)
{
    const Box *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return x->end_ps < y->end_ps ? -1 : x->end_ps > y->end_ps;
}

/* Sorts the boxes and merges those narrower than a pixel. */
static void
join_boxes(const Chart *chart, GArray *boxes)
{
    guint count = 0;

    g_array_sort(boxes, by_row_and_start);
    for (guint i = 0; i < boxes->len; i++) {
        const Box box = g_array_index(boxes, Box, i);
        Box *last = count == 0 ? NULL : &g_array_index(boxes, Box, count - 1);

        if (last != NULL && last->row == box.row && box.start_ps - last->end_ps < chart->pixel_ps &&
            box.end_ps - box.start_ps < chart->pixel_ps) {
            last->busy_ps += MAX(0, box.end_ps - MAX(last->end_ps, box.start_ps));
            last->end_ps = MAX(last->end_ps, box.end_ps);
        } else {
            g_array_index(boxes, Box, count++) = box;
        }
    }
    g_array_set_size(boxes, count);
}

/* Adds the part of an op within the time window. */
static void
add_pieces(Chart *chart, uint32_t row, const LhTimelineRecord *r)
{
    const LhTimeWindow *frame = chart->gantt->frame;
    const int kind = lh_lane_kind(r, chart->gantt->setup);
    LhTimelinePiece piece = { .motion = 0 };

    while (lh_timeline_next_piece(r, &piece)) {
        const LhTime start = MAX(piece.from_ps, frame->from_ps);
        const LhTime end = MIN(piece.to_ps, frame->to_ps);

        const Box box = { row, start, end, end - start };

        if (start < end)
            g_array_append_val(chart->boxes[piece.waits ? LH_LANE_HELD : kind], box);
    }
}

static void
collect_boxes(Chart *chart)
{
    const LhTimeWindow *frame = chart->gantt->frame;
    const GArray *records = chart->gantt->timeline->records;
    uint32_t row = 0;

    for (uint32_t i = 0; i < frame->ranks->len; i++) {
        const Box whole = { i, frame->from_ps, frame->to_ps, frame->to_ps - frame->from_ps };

        g_array_append_val(chart->boxes[LH_LANE_WAITING], whole);
    }
    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);

        while (row < frame->ranks->len && g_array_index(frame->ranks, uint32_t, row) < r->rank)
            row++;
        if (is_drawn(r, frame))
            add_pieces(chart, row, r);
    }
    for (int kind = LH_LANE_FORWARD; kind < LH_LANE_KINDS; kind++)
        join_boxes(chart, chart->boxes[kind]);
}

static void
append_lane_box(GString *data, const Chart *chart, int kind, const Box *box)
{
    const double unit = (double)chart->scale.unit_ps;
    const LhTime length = box->end_ps - box->start_ps;
    const bool parted = kind != LH_LANE_WAITING && length >= WIDE * chart->pixel_ps;
    const double start = (double)box->start_ps / unit;
    const double end =
        ((double)box->end_ps - (parted ? BOX_GAP * (double)chart->pixel_ps : 0)) / unit;
    const double share = length == 0 ? 1 : (double)box->busy_ps / (double)length;
    double top = lh_lane_is_transfer(kind) ? COMM_TOP : COMPUTE_TOP;
    double bottom = lh_lane_is_transfer(kind) ? COMM_BOTTOM : COMPUTE_BOTTOM;

    if (stands_low(kind))
        top = bottom - (bottom - top) * share;
    else
        bottom = top + (bottom - top) * share;
    lh_text_append(data, (start + end) / 2);
    lh_text_append(data, box->row);
    lh_text_append(data, start);
    lh_text_append(data, end);
    lh_text_append(data, box->row + top);
    lh_text_append(data, box->row + bottom);
    data->str[data->len - 1] = '\n';
}

static void
append_lane_boxes(GString *data, const Chart *chart, int kind)
{
    g_autofree char *title = lh_lane_title(chart->gantt->setup, kind);

    g_string_append_printf(data, "# %s: x y x_low x_high y_low y_high\n", title);
    for (guint i = 0; i < chart->boxes[kind]->len; i++)
        append_lane_box(data, chart, kind, &g_array_index(chart->boxes[kind], Box, i));
    g_string_append(data, "\n\n"); /* ends gnuplot's data set */
}

/* --- script -------------------------------------------------------------------------------------
 */

static void
append_program_title(GString *script, const LhGantt *gantt)
{
    const LhTimeWindow *frame = gantt->frame;
    char bubble[LH_TEXT_SIZE];
    g_autofree char *line = lh_describe_program(gantt->setup, gantt->name, gantt->program);
    g_autofree char *makespan = lh_format_time(gantt->makespan_ps);
    g_autofree char *from = lh_format_time(frame->from_ps);
    g_autofree char *to = lh_format_time(frame->to_ps);
    g_autoptr(GString) below = g_string_new(NULL);

    lh_text_percent(gantt->bubble, bubble);
    g_string_append_printf(below, "%s, %s of it not computing", makespan, bubble);
    if (frame->from_ps > 0 || frame->to_ps < gantt->makespan_ps)
        g_string_append_printf(below, "; shown: %s to %s", from, to);
    if (frame->ranks->len < lh_program_ranks(gantt->program))
        g_string_append_printf(below, "; %u of the ranks", frame->ranks->len);
    lh_figure_append_title(script, LH_FIGURE_WIDTH_OF_TIME, line, below->str);
}

/* Returns "rank 3" or "stage 1, rank 12, ends last"; caller frees. */
static char *
row_name(const LhGantt *gantt, uint32_t rank)
{
    const LhTimeWindowRanks of = lh_time_window_ranks_of(gantt->program);
    const char *last = rank == gantt->last_rank ? ", ends last" : "";

    if (of.stages > 1)
        return g_strdup_printf("stage %u, rank %u%s", lh_time_window_stage(of, rank), rank, last);
    return g_strdup_printf("rank %u%s", rank, last);
}

/* Draws a line below the last row of each pipeline stage. */
static void
append_stage_lines(GString *script, const LhGantt *gantt)
{
    const LhTimeWindowRanks of = lh_time_window_ranks_of(gantt->program);
    const GArray *ranks = gantt->frame->ranks;

    for (guint i = 0; i + 1 < ranks->len; i++) {
        if (lh_time_window_stage(of, g_array_index(ranks, uint32_t, i)) !=
            lh_time_window_stage(of, g_array_index(ranks, uint32_t, i + 1)))
            g_string_append_printf(script,
                                   "set arrow from graph 0, first %u.49 to graph 1, first %u.49 "
                                   "nohead lw 0.5 lc rgb '" LH_COLOUR_HOST "' front\n",
                                   i, i);
    }
}

static void
append_rank_axes(GString *script, const Chart *chart)
{
    const LhGantt *gantt = chart->gantt;
    const GArray *ranks = gantt->frame->ranks;
    const double unit = (double)chart->scale.unit_ps;
    g_autoptr(GString) names = g_string_new(NULL);
    gsize longest = 0;
    char left[G_ASCII_DTOSTR_BUF_SIZE], right[G_ASCII_DTOSTR_BUF_SIZE];

    for (guint i = 0; i < ranks->len; i++) {
        g_autofree char *name = row_name(gantt, g_array_index(ranks, uint32_t, i));

        longest = MAX(longest, strlen(name));
        g_string_append_printf(names, "%s'%s' %u", i > 0 ? ", " : "", name, i);
    }
    g_ascii_formatd(left, sizeof(left), "%.9g", (double)gantt->frame->from_ps / unit);
    g_ascii_formatd(right, sizeof(right), "%.9g", (double)gantt->frame->to_ps / unit);
    g_string_append_printf(script,
                           "set xrange [%s:%s]\nset yrange [%u - 0.5:-0.5]\n"
                           "set xlabel 'time (%s)'\nset lmargin %u\nset rmargin 4\n"
                           "set ytics scale 0 (%s)\n",
                           left, right, ranks->len, chart->scale.unit, (unsigned)longest + 2,
                           names->str);
    append_stage_lines(script, gantt);
}

static void
append_lane_plots(GString *script, const Chart *chart)
{
    guint index = 0;

    for (int kind = 0; kind < LH_LANE_KINDS; kind++) {
        g_autofree char *title = lh_lane_title(chart->gantt->setup, kind);

        if (chart->boxes[kind]->len == 0)
            continue;
        g_string_append_printf(script,
                               "%s index %u using 1:2:3:4:5:6 with boxxyerror fillstyle %s "
                               "noborder fillcolor rgb '%s' title '%s'",
                               index == 0 ? "plot $data" : ", \\\n    $data", index,
                               kind == LH_LANE_HELD ? HATCHED : "solid 1", lh_lane_colour(kind),
                               title);
        index++;
    }
    g_string_append_c(script, '\n');
}

bool
lh_gantt_draw(const LhGantt *gantt, LhFigureTo to, GError **error)
{
    const LhTimeWindow *frame = gantt->frame;
    Chart chart = { .gantt = gantt,
                    .scale = lh_text_scale(gantt->makespan_ps),
                    .pixel_ps = (frame->to_ps - frame->from_ps) / PIXELS };
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    LhFigure figure = { .to = to,
                        .width = LH_FIGURE_WIDTH_OF_TIME,
                        .height = HEIGHT_BESIDE_RANKS + HEIGHT_RANK * frame->ranks->len };

    for (int kind = 0; kind < LH_LANE_KINDS; kind++)
        chart.boxes[kind] = g_array_new(FALSE, FALSE, sizeof(Box));
    collect_boxes(&chart);
    append_program_title(script, gantt);
    append_rank_axes(script, &chart);
    append_lane_plots(script, &chart);
    for (int kind = 0; kind < LH_LANE_KINDS; kind++) {
        if (chart.boxes[kind]->len > 0)
            append_lane_boxes(data, &chart, kind);
        g_array_unref(chart.boxes[kind]);
    }
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}

uint32_t
lh_gantt_last_rank(const LhSimResult *result, const LhTimeWindow *frame)
{
    uint32_t last = 0;

    for (uint32_t r = 1; r < result->ranks_count; r++) {
        const LhTime finish = result->ranks[r].finish_ps, latest = result->ranks[last].finish_ps;

        if (finish > latest ||
            (finish == latest && !lh_time_window_has(frame, last) && lh_time_window_has(frame, r)))
            last = r;
    }
    return last;
}
