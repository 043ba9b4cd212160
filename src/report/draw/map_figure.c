/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/map_figure.h"

#include "report/base/text.h"

#include <math.h>

#define WIDTH_BASE 190
#define WIDTH_LEAST 760 /* minimum, for the title */
#define HEIGHT_BESIDE_PANELS 210
#define SIDE 900 /* approximate width of all panels in a row */
#define UNIT_LEAST 5
#define UNIT_MOST 38
#define UNIT_LABELLED 15 /* minimum size of a unit that has room for a number, in points */
#define TITLE_POINTS 24  /* height of a panel's title */
#define KEYS_MOST 16     /* number of colours in the key */

/* Okabe and Ito's, and a grey in place of black. */
static const char *const few_colours[] = { "#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                           "#56B4E9", "#D55E00", "#BBBBBB", "#F0E442" };

/* Layout of the panels. */
typedef struct {
    const LhMap *map;
    uint32_t per_row;
    double step_across, step_down; /* from one panel to the next, in units */
    double unit;                   /* points */
    double title;                  /* height of a panel's title, in units; 0: none */
} Layout;

static Layout
lay_out(const LhMap *map)
{
    Layout l = { .map = map, .per_row = MIN(map->panels, map->per_row) };
    double across;

    l.step_across = map->width * 1.06 + 1.9;
    across = (l.per_row - 1) * l.step_across + map->width;
    l.unit = CLAMP(SIDE / across, UNIT_LEAST, UNIT_MOST);
    l.title = map->panel_titles != NULL ? TITLE_POINTS / l.unit : 0;
    l.step_down = map->height * 1.06 + 1.9 + l.title;
    return l;
}

static double
left_of(const Layout *l, uint32_t panel)
{
    return panel % l->per_row * l->step_across;
}

static double
top_of(const Layout *l, uint32_t panel)
{
    const uint32_t row = panel / l->per_row;

    return row * l->step_down;
}

static void
append_colour(GString *script, uint32_t colours, uint32_t colour)
{
    const double turn = 6.0 * colour / colours;
    const double part = fabs(fmod(turn, 2) - 1);
    const unsigned high = 200 + 40 * (colour % 2), low = 60,
                   middle = low + (unsigned)((high - low) * (1 - part));
    const unsigned wheel[6][3] = { { high, middle, low }, { middle, high, low },
                                   { low, high, middle }, { low, middle, high },
                                   { middle, low, high }, { high, low, middle } };

    if (colours <= G_N_ELEMENTS(few_colours))
        g_string_append(script, few_colours[colour]);
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

static void
append_box(const Layout *l, const LhMapBox *b, GString *data)
{
    const double left = left_of(l, b->panel) + b->x;
    const double top = top_of(l, b->panel) + b->y;
    const double box[] = { left + b->width / 2, top + b->height / 2, left, left + b->width, top,
                           top + b->height };

    append_numbers(data, box, G_N_ELEMENTS(box));
}

/* One data set for each colour, in one pass over the boxes. Caller frees. */
static GString *
boxes_by_colour(const Layout *l)
{
    const LhMap *map = l->map;
    GString *data = g_string_new(NULL);
    g_autoptr(GPtrArray) sets = g_ptr_array_new();

    for (uint32_t c = 0; c < map->colours; c++) {
        g_ptr_array_add(sets, g_string_new(NULL));
        g_string_append_printf(g_ptr_array_index(sets, c),
                               "# %s %u: x y x_low x_high y_low y_high\n",
                               map->colour_word != NULL ? map->colour_word : "colour", c);
    }
    for (guint i = 0; i < map->boxes->len; i++) {
        const LhMapBox *b = &g_array_index(map->boxes, LhMapBox, i);

        append_box(l, b, g_ptr_array_index(sets, b->colour));
    }
    for (uint32_t c = 0; c < map->colours; c++) {
        GString *set = g_ptr_array_index(sets, c);

        g_string_append_len(data, set->str, (gssize)set->len);
        g_string_append(data, "\n\n");
        g_string_free(set, TRUE);
    }
    return data;
}

/* The last data set: labels. */
static void
append_map_labels(const Layout *l, GString *data)
{
    g_string_append(data, "# labels: x y number\n");
    for (guint i = 0; i < l->map->labels->len; i++) {
        const LhMapLabel *label = &g_array_index(l->map->labels, LhMapLabel, i);
        const double row[] = { left_of(l, label->panel) + label->x + 0.5,
                               top_of(l, label->panel) + label->y + 0.5, label->number };

        append_numbers(data, row, G_N_ELEMENTS(row));
    }
}

static void
append_frame(GString *script, const Layout *l)
{
    const LhMap *map = l->map;
    char right[G_ASCII_DTOSTR_BUF_SIZE], bottom[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(right, sizeof(right), "%.6g",
                    (l->per_row - 1) * l->step_across + map->width + 0.3);
    g_ascii_formatd(bottom, sizeof(bottom), "%.6g", top_of(l, map->panels - 1) + map->height + 0.9);
    g_string_append_printf(script,
                           "set xrange [-1.2:%s]\nset yrange [%s:-1.2]\nset border 0\n"
                           "unset grid\nunset xtics\nunset ytics\nset xlabel '%s'\n"
                           "set ylabel '%s'\nset lmargin 6\nset rmargin 20\n"
                           "set key outside right center vertical Left reverse samplen 1.4 "
                           "width 1 spacing 1.3\n",
                           right, bottom, map->across, map->down);
    for (uint32_t panel = 0; panel < map->panels && map->panel_titles != NULL; panel++) {
        g_ascii_formatd(right, sizeof(right), "%.6g", left_of(l, panel) + map->width / 2.0);
        g_ascii_formatd(bottom, sizeof(bottom), "%.6g",
                        top_of(l, panel) + map->height + l->title / 2);
        g_string_append_printf(script, "set label '%s' at %s,%s center\n", map->panel_titles[panel],
                               right, bottom);
    }
}

static void
append_plots(GString *script, const LhMap *map)
{
    for (uint32_t c = 0; c < map->colours; c++) {
        g_string_append_printf(script,
                               "%s index %u using 1:2:3:4:5:6 with boxxyerror fillstyle solid 1 "
                               "border lc rgb '#FFFFFF' lw 0.6 fillcolor rgb '",
                               c == 0 ? "plot $data" : ", \\\n    $data", c);
        append_colour(script, map->colours, c);
        if (map->colour_word != NULL && map->colours <= KEYS_MOST)
            g_string_append_printf(script, "' title '%s %u'", map->colour_word, c);
        else
            g_string_append(script, "' notitle");
    }
    if (lh_map_has_labels(map))
        g_string_append_printf(script, ", \\\n    $data index %u using 1:2:3 with labels notitle",
                               map->colours);
    g_string_append_c(script, '\n');
}

char **
lh_map_slice_titles(uint32_t panels)
{
    char **titles = panels > 1 ? g_new0(char *, panels + 1) : NULL;

    for (uint32_t slice = 0; titles != NULL && slice < panels; slice++)
        titles[slice] = g_strdup_printf("heads, slice %u", slice);
    return titles;
}

bool
lh_map_has_labels(const LhMap *map)
{
    return map->labels != NULL && map->labels->len > 0 && lay_out(map).unit >= UNIT_LABELLED;
}

bool
lh_map_draw(const LhMap *map, LhFigureTo to, GError **error)
{
    const Layout l = lay_out(map);
    const double across = (l.per_row - 1) * l.step_across + map->width;
    const double down = top_of(&l, map->panels - 1) + map->height + l.title;
    g_autoptr(GString) script = g_string_new(NULL);
    LhFigure figure = { .to = to,
                        .width = MAX(WIDTH_LEAST, WIDTH_BASE + (unsigned)(across * l.unit)),
                        .height = HEIGHT_BESIDE_PANELS + (unsigned)(down * l.unit) };
    g_autoptr(GString) data = boxes_by_colour(&l);

    if (lh_map_has_labels(map))
        append_map_labels(&l, data);
    lh_figure_append_title(script, figure.width, map->title, map->below);
    append_frame(script, &l);
    append_plots(script, map);
    figure.data = data->str;
    figure.script = script->str;
    return lh_figure_draw(&figure, error);
}
