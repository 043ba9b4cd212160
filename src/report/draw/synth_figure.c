/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries go down and keys go right, in the order of tokens; each slice of the heads has a panel.
 * Strips beside the rows and above the columns have the colour of the place that holds their
 * tokens.
 */
#include "report/draw/synth_figure.h"

#include "report/draw/map_figure.h"

static void
add_cells(LhMap *map, const LhSynthesis *s)
{
    for (guint i = 0; i < s->cells->len; i++) {
        const LhSynthCell *c = &g_array_index(s->cells, LhSynthCell, i);
        const LhMapBox box = { c->slice, c->place, c->column, c->row, 1, 1 };
        const LhMapLabel label = { c->slice, c->round, c->column, c->row };

        map->panels = MAX(map->panels, c->slice + 1);
        g_array_append_val(map->boxes, box);
        if (c->round > 0)
            g_array_append_val(map->labels, label);
    }
}

static void
add_place_strips(LhMap *map, const GArray *homes)
{
    const double strip = LH_MAP_STRIP, thickness = LH_MAP_STRIP_THICKNESS;

    for (uint32_t panel = 0; panel < map->panels; panel++) {
        for (uint32_t chunk = 0; chunk < homes->len; chunk++) {
            const uint32_t place = g_array_index(homes, uint32_t, chunk);
            const LhMapBox boxes[] = { { panel, place, chunk, strip, 1, thickness },
                                       { panel, place, strip, chunk, thickness, 1 } };

            g_array_append_vals(map->boxes, boxes, G_N_ELEMENTS(boxes));
        }
    }
}

bool
lh_synth_figure_draw(const LhSetup *setup, const LhSynthesis *s, const char *path, GError **error)
{
    const LhSynthPlaces at = lh_synth_places(setup);
    const char *model = setup->model != NULL ? setup->model->name : NULL;
    g_autoptr(GArray) boxes = g_array_new(FALSE, FALSE, sizeof(LhMapBox));
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(LhMapLabel));
    LhMap map = { .across = "keys",
                  .down = "queries",
                  .colour_word = at.gpus == 1 ? "GPU" : "node",
                  .colours = at.places,
                  .per_row = 4,
                  .width = s->homes->len,
                  .height = s->homes->len,
                  .boxes = boxes,
                  .labels = labels };
    g_autofree char *title =
        g_strdup_printf("Which %s computes which block of attention%s%s", map.colour_word,
                        model != NULL ? " of " : "", model != NULL ? model : "");
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length / map.width);
    g_autofree char *below = NULL;
    g_auto(GStrv) titles = NULL;

    add_cells(&map, s);
    add_place_strips(&map, s->homes);
    titles = map.panel_titles = lh_map_slice_titles(map.panels);
    below = g_strdup_printf("%s tokens a square; edges: the %s that holds the tokens%s", tokens,
                            map.colour_word,
                            lh_map_has_labels(&map) ? "; numbers: rounds of arrival" : "");
    map.title = title;
    map.below = below;
    return lh_map_draw(&map, (LhFigureTo){ .path = path }, error);
}
