/*
 * Gantt charts: two lanes a rank, computing above, communication below. Ops narrower than a pixel
 * are joined with their neighbours, so that a figure stays small however long the program is.
 */
#include "report/gantt.h"

#include "report/describe_options.h"
#include "report/figure.h"
#include "report/text.h"

#define WIDTH 1200
#define HEIGHT_BASE 150
#define HEIGHT_RANK 40
#define PIXELS 1500 /* of the time axis; narrower boxes are joined */

/* Lanes, as distances from the rank's own line; up is negative. */
#define COMPUTE_TOP -0.42
#define COMPUTE_BOTTOM 0.10
#define COMM_TOP 0.14
#define COMM_BOTTOM 0.42

typedef enum {
    KIND_WAITING,
    KIND_FORWARD,
    KIND_BACKWARD,
    KIND_OTHER,
    KIND_TRANSFER, /* LH_TIERS consecutive kinds */
    KINDS = KIND_TRANSFER + LH_TIERS
} Kind;

static const char *const kind_titles[KINDS] = {
    "waiting",         "attention forward", "attention backward", "other kernels",
    "NVLink transfer", "PCIe transfer",     "NIC transfer",       "fabric transfer",
};

static const char *
kind_colour(Kind kind)
{
    static const char *const colours[] = { LH_COLOUR_WAITING, LH_COLOUR_FORWARD, LH_COLOUR_BACKWARD,
                                           LH_COLOUR_OTHER };

    return kind < KIND_TRANSFER ? colours[kind] : lh_tier_colours[kind - KIND_TRANSFER];
}

typedef struct {
    uint32_t rank;
    LhTime start_ps, end_ps;
} Box;

static Kind
kind_of(const LhTimelineRecord *r)
{
    LhEffect effect;

    if (r->kind != LH_OP_COMPUTE)
        return KIND_TRANSFER + (r->tier < LH_TIERS ? r->tier : LH_TIER_NVLINK);
    effect = lh_kernels[r->kernel]->effect;
    if (lh_kernels[r->kernel]->linear || effect == LH_EFFECT_SCORES ||
        effect == LH_EFFECT_SCORES_APPLY)
        return r->phase == LH_PHASE_BACKWARD ? KIND_BACKWARD : KIND_FORWARD;
    switch (effect) {
    case LH_EFFECT_ATTEND:
        return KIND_FORWARD;
    case LH_EFFECT_ATTEND_GRAD:
        return KIND_BACKWARD;
    default:
        return KIND_OTHER;
    }
}

static bool
is_drawn(const LhTimelineRecord *r)
{
    return (r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE) &&
           r->end_ps > r->start_ps;
}

static void
add_box(GArray *boxes, Box box, LhTime pixel_ps)
{
    Box *last = boxes->len == 0 ? NULL : &g_array_index(boxes, Box, boxes->len - 1);

    if (last != NULL && last->rank == box.rank && box.start_ps - last->end_ps < pixel_ps &&
        box.end_ps - box.start_ps < pixel_ps)
        last->end_ps = MAX(last->end_ps, box.end_ps);
    else
        g_array_append_val(boxes, box);
}

static int
by_rank_and_start(gconstpointer a, gconstpointer b)
{
    const LhTimelineRecord *x = *(const LhTimelineRecord *const *)a;
    const LhTimelineRecord *y = *(const LhTimelineRecord *const *)b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return 0;
}

/* Fills boxes[kind]. Stray records of ranks that are not drawn are left out. */
static void
collect_boxes(const LhTimeline *timeline, uint32_t ranks, LhTime makespan_ps, GArray **boxes)
{
    g_autoptr(GPtrArray) ordered = g_ptr_array_new();
    const LhTime pixel_ps = makespan_ps / PIXELS;

    for (guint i = 0; i < timeline->records->len; i++) {
        LhTimelineRecord *r = &g_array_index(timeline->records, LhTimelineRecord, i);

        if (r->rank < ranks && is_drawn(r))
            g_ptr_array_add(ordered, r);
    }
    g_ptr_array_sort(ordered, by_rank_and_start);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const Box whole = { rank, 0, makespan_ps };

        g_array_append_val(boxes[KIND_WAITING], whole);
    }
    for (guint i = 0; i < ordered->len; i++) {
        const LhTimelineRecord *r = g_ptr_array_index(ordered, i);
        const Box box = { r->rank, r->start_ps, r->end_ps };

        add_box(boxes[kind_of(r)], box, pixel_ps);
    }
}

static void
append_boxes(GString *data, Kind kind, const GArray *boxes, double unit_ps)
{
    const double top = kind < KIND_TRANSFER ? COMPUTE_TOP : COMM_TOP;
    const double bottom = kind < KIND_TRANSFER ? COMPUTE_BOTTOM : COMM_BOTTOM;

    g_string_append_printf(data, "# %s: x y x_low x_high y_low y_high\n", kind_titles[kind]);
    for (guint i = 0; i < boxes->len; i++) {
        const Box *box = &g_array_index(boxes, Box, i);
        const double start = (double)box->start_ps / unit_ps;
        const double end = (double)box->end_ps / unit_ps;

        lh_text_append(data, (start + end) / 2);
        lh_text_append(data, box->rank);
        lh_text_append(data, start);
        lh_text_append(data, end);
        lh_text_append(data, box->rank + top);
        lh_text_append(data, box->rank + bottom);
        data->str[data->len - 1] = '\n';
    }
    g_string_append(data, "\n\n"); /* ends gnuplot's data set */
}

static void
append_axes(GString *script, const LhGantt *gantt, uint32_t ranks, LhTimeScale scale)
{
    const LhProgramParams *p = &gantt->program->params;

    char bubble[LH_TEXT_SIZE];
    char right[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *tokens = lh_format_count(p->attention.seq_length);
    g_autofree char *makespan = lh_format_time(gantt->makespan_ps);
    g_autofree char *groups = lh_describe_groups(p);

    g_ascii_formatd(right, sizeof(right), "%.7g",
                    (double)gantt->makespan_ps / (double)scale.unit_ps);
    lh_text_percent(gantt->bubble, bubble);
    g_string_append_printf(script,
                           "set title \"%s: %s tokens on %s, %s, %s of it not computing\" "
                           "font title_font\n"
                           "set xrange [0:%s]\nset yrange [%u - 0.5:-0.5]\n"
                           "set xlabel 'time (%s)'\nset ytics 1 scale 0 format 'rank %%g'\n"
                           "set lmargin 10\nset rmargin 4\n",
                           gantt->program->name, tokens, groups, makespan, bubble, right, ranks,
                           scale.unit);
}

static bool
has_rim(Kind kind)
{
    return kind != KIND_WAITING && kind != KIND_OTHER;
}

static void
append_plots(GString *script, GArray *const *boxes)
{
    guint index = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        if (boxes[kind]->len == 0)
            continue;
        /* A white rim parts neighbours; the background has none, nor what is hardly wider than a
         * rim. */
        g_string_append_printf(script,
                               "%s data index %u using 1:2:3:4:5:6 with boxxyerror fillstyle "
                               "solid 1 border lc rgb '%s' fillcolor rgb '%s' title '%s'",
                               index == 0 ? "plot" : ", \\\n    ", index,
                               has_rim((Kind)kind) ? "#FFFFFF" : kind_colour((Kind)kind),
                               kind_colour((Kind)kind), kind_titles[kind]);
        index++;
    }
    g_string_append_c(script, '\n');
}

bool
lh_gantt_draw(const LhGantt *gantt, const char *path, GError **error)
{
    const uint32_t ranks = MIN(lh_program_ranks(gantt->program), LH_GANTT_RANKS_MAX);
    const LhTimeScale scale = lh_text_scale(gantt->makespan_ps);
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    GArray *boxes[KINDS];
    LhFigure figure = { .path = path, .width = WIDTH, .height = HEIGHT_BASE + HEIGHT_RANK * ranks };

    for (int kind = 0; kind < KINDS; kind++)
        boxes[kind] = g_array_new(FALSE, FALSE, sizeof(Box));
    collect_boxes(gantt->timeline, ranks, gantt->makespan_ps, boxes);
    append_axes(script, gantt, ranks, scale);
    append_plots(script, boxes);
    for (int kind = 0; kind < KINDS; kind++) {
        if (boxes[kind]->len > 0)
            append_boxes(data, (Kind)kind, boxes[kind], (double)scale.unit_ps);
        g_array_unref(boxes[kind]);
    }
    figure.script = script->str;
    figure.data = data->str;
    return lh_figure_draw(&figure, error);
}
