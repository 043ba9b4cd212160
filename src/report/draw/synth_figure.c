/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries go down and keys go right, in the order of tokens; each slice of the heads has a square
 * of its own. Beside its rows and above its columns, a strip has the colour of the place where
 * their tokens live.
 */
#include "report/draw/synth_figure.h"

#include "report/base/text.h"
#include "report/draw/figure.h"

#include <math.h>

#define WIDTH_BASE 190
#define WIDTH_LEAST 760 /* for the title */
#define HEIGHT_BESIDE_SQUARES 210
#define SIDE 900 /* of all squares in a row, about */
#define CELL_LEAST 5
#define CELL_MOST 38
#define CELL_NUMBERED 15 /* from so many points on, a block has room for a number */
#define ROW_MOST 4       /* squares beside each other */
#define KEYS_MOST 16     /* places that the key names */
#define STRIP_NEAR -0.35
#define STRIP_FAR -0.95

/* Okabe and Ito's, and a grey in place of black. */
static const char *const place_colours[] = { "#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                             "#56B4E9", "#D55E00", "#BBBBBB", "#F0E442" };

/* A figure being drawn. */
typedef struct {
    const LhSynthesis *s;
    uint32_t places, chunks, slices, per_row;
    double step; /* from one square to the next, in chunks */
    double cell; /* points */
    const char *place_word;
    GString *data;
} Map;

/* Where the square of @slice begins. */
static double
left_of(const Map *m, uint32_t slice)
{
    const uint32_t column = slice % m->per_row;

    return column * m->step;
}

static double
top_of(const Map *m, uint32_t slice)
{
    const uint32_t row = slice / m->per_row;

    return row * m->step;
}

static void
append_colour(GString *script, const Map *m, uint32_t place)
{
    const double turn = 6.0 * place / m->places;
    const double part = fabs(fmod(turn, 2) - 1);
    const unsigned high = 200 + 40 * (place % 2), low = 60,
                   middle = low + (unsigned)((high - low) * (1 - part));
    const unsigned wheel[6][3] = { { high, middle, low }, { middle, high, low },
                                   { low, high, middle }, { low, middle, high },
                                   { middle, low, high }, { high, low, middle } };

    if (m->places <= G_N_ELEMENTS(place_colours))
        g_string_append(script, place_colours[place]);
    else
        g_string_append_printf(script, "#%02X%02X%02X", wheel[(unsigned)turn][0],
                               wheel[(unsigned)turn][1], wheel[(unsigned)turn][2]);
}

static void
append_numbers(GString *data, const double *numbers, guint count)
{
    for (guint i = 0; i < count; i++)
        lh_text_append(data, numbers[i]);
    data->str[data->len - 1] = '\n';
}

/* A box that covers [@x, @x + @width) and [@y, @y + @height), which begin at 0 in the square of
 * @slice. */
static void
append_box(const Map *m, uint32_t slice, double x, double y, double width, double height)
{
    const double left = left_of(m, slice) + x;
    const double top = top_of(m, slice) + y;
    const double box[] = {
        left + width / 2, top + height / 2, left, left + width, top, top + height
    };

    append_numbers(m->data, box, G_N_ELEMENTS(box));
}

/* One data set: what is a place's. */
static void
append_place(const Map *m, uint32_t place)
{
    const double strip = STRIP_NEAR - STRIP_FAR;

    g_string_append_printf(m->data, "# %s %u: x y x_low x_high y_low y_high\n", m->place_word,
                           place);
    for (guint i = 0; i < m->s->cells->len; i++) {
        const LhSynthCell *c = &g_array_index(m->s->cells, LhSynthCell, i);

        if (c->place == place)
            append_box(m, c->slice, c->column, c->row, 1, 1);
    }
    for (uint32_t chunk = 0; chunk < m->chunks; chunk++) {
        if (g_array_index(m->s->homes, uint32_t, chunk) != place)
            continue;
        for (uint32_t slice = 0; slice < m->slices; slice++) {
            append_box(m, slice, chunk, STRIP_FAR, 1, strip);
            append_box(m, slice, STRIP_FAR, chunk, strip, 1);
        }
    }
    g_string_append(m->data, "\n\n");
}

/* The last data set: the rounds of blocks whose inputs travel. False if there is none. */
static bool
append_rounds(const Map *m)
{
    bool any = false;

    if (m->cell < CELL_NUMBERED)
        return false;
    g_string_append(m->data, "# rounds: x y round\n");
    for (guint i = 0; i < m->s->cells->len; i++) {
        const LhSynthCell *c = &g_array_index(m->s->cells, LhSynthCell, i);
        const double label[] = { left_of(m, c->slice) + c->column + 0.5,
                                 top_of(m, c->slice) + c->row + 0.5, c->round };

        if (c->round > 0)
            append_numbers(m->data, label, G_N_ELEMENTS(label));
        any = any || c->round > 0;
    }
    return any;
}

static void
append_frame(GString *script, const Map *m)
{
    char right[G_ASCII_DTOSTR_BUF_SIZE], bottom[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(right, sizeof(right), "%.6g", (m->per_row - 1) * m->step + m->chunks + 0.3);
    g_ascii_formatd(bottom, sizeof(bottom), "%.6g", top_of(m, m->slices - 1) + m->chunks + 0.9);
    g_string_append_printf(script,
                           "set xrange [-1.2:%s]\nset yrange [%s:-1.2]\nset border 0\n"
                           "unset grid\nunset xtics\nunset ytics\nset xlabel 'keys'\n"
                           "set ylabel 'queries'\nset lmargin 6\nset rmargin 20\n"
                           "set key outside right center vertical Left reverse samplen 1.4 "
                           "width 1 spacing 1.3\n",
                           right, bottom);
    for (uint32_t slice = 0; slice < m->slices && m->slices > 1; slice++) {
        g_ascii_formatd(right, sizeof(right), "%.6g", left_of(m, slice) + m->chunks / 2.0);
        g_ascii_formatd(bottom, sizeof(bottom), "%.6g", top_of(m, slice) + m->chunks + 0.5);
        g_string_append_printf(script, "set label 'slice %u' at %s,%s center\n", slice, right,
                               bottom);
    }
}

static void
append_place_plots(GString *script, const Map *m, bool numbered)
{
    for (uint32_t place = 0; place < m->places; place++) {
        g_string_append_printf(script,
                               "%s index %u using 1:2:3:4:5:6 with boxxyerror fillstyle solid 1 "
                               "border lc rgb '#FFFFFF' lw 0.6 fillcolor rgb '",
                               place == 0 ? "plot $data" : ", \\\n    $data", place);
        append_colour(script, m, place);
        if (m->places <= KEYS_MOST)
            g_string_append_printf(script, "' title '%s %u'", m->place_word, place);
        else
            g_string_append(script, "' notitle");
    }
    if (numbered)
        g_string_append_printf(script, ", \\\n    $data index %u using 1:2:3 with labels notitle",
                               m->places);
    g_string_append_c(script, '\n');
}

static uint32_t
slices_of(const LhSynthesis *s)
{
    uint32_t last = 0;

    for (guint i = 0; i < s->cells->len; i++)
        last = MAX(last, g_array_index(s->cells, LhSynthCell, i).slice);
    return last + 1;
}

static void
append_blocks_title(GString *script, const LhSetup *setup, const Map *m, unsigned width,
                    bool numbered)
{
    const char *model = setup->model != NULL ? setup->model->name : NULL;
    g_autofree char *line =
        g_strdup_printf("Which %s computes which block of attention%s%s", m->place_word,
                        model != NULL ? " of " : "", model != NULL ? model : "");
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length / m->chunks);
    g_autofree char *below =
        g_strdup_printf("%s tokens a side; edges: whose the tokens are%s", tokens,
                        numbered ? "; numbers: rounds of arrival" : "");

    lh_figure_append_title(script, width, line, below);
}

bool
lh_synth_figure_draw(const LhSetup *setup, const LhSynthesis *s, const char *path, GError **error)
{
    const LhSynthPlaces at = lh_synth_places(setup);
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    Map m = { .s = s,
              .places = at.places,
              .chunks = s->homes->len,
              .slices = slices_of(s),
              .place_word = at.gpus == 1 ? "GPU" : "node",
              .data = data };
    LhFigure figure = { .to = { .path = path } };
    double across;
    bool numbered;

    m.per_row = MIN(m.slices, ROW_MOST);
    m.step = m.chunks * 1.06 + 1.9;
    across = (m.per_row - 1) * m.step + m.chunks;
    m.cell = CLAMP(SIDE / across, CELL_LEAST, CELL_MOST);
    figure.width = MAX(WIDTH_LEAST, WIDTH_BASE + (unsigned)(across * m.cell));
    figure.height =
        HEIGHT_BESIDE_SQUARES + (unsigned)((top_of(&m, m.slices - 1) + m.chunks) * m.cell);
    for (uint32_t place = 0; place < m.places; place++)
        append_place(&m, place);
    numbered = append_rounds(&m);
    append_blocks_title(script, setup, &m, figure.width, numbered);
    append_frame(script, &m);
    append_place_plots(script, &m, numbered);
    figure.data = data->str;
    figure.script = script->str;
    return lh_figure_draw(&figure, error);
}
