/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps: coloured boxes in one or several panels beside each other, such as which rank computes
 * which block of attention, or which GPUs form a group.
 */
#pragma once

#include "report/draw/figure.h"

#include <stdint.h>

/* Covers [x, x + width) and [y, y + height) of a panel, whose upper left corner is (0, 0). */
typedef struct {
    uint32_t panel, colour;
    double x, y, width, height;
} LhMapBox;

/* A number in the middle of a unit square at (x, y). */
typedef struct {
    uint32_t panel, number;
    double x, y;
} LhMapLabel;

/* A strip of boxes beside the rows or above the columns of a panel begins at this coordinate and
 * has this thickness. */
#define LH_MAP_STRIP (-0.95)
#define LH_MAP_STRIP_THICKNESS 0.6

typedef struct {
    const char *title, *below; /* lines above the map; cut if too long */
    const char *across, *down; /* titles of the axes */
    const char *colour_word;   /* "GPU": the key lists "GPU 0" and so on; NULL: no key */
    uint32_t colours;
    uint32_t panels, per_row;
    char **panel_titles;    /* [panels], below each; NULL: none */
    uint32_t width, height; /* of a panel, in units */
    GArray *boxes;          /* of LhMapBox */
    GArray *labels;         /* of LhMapLabel, left out where boxes are too small; NULL: none */
} LhMap;

/* "heads, slice 0" and so on; NULL for a single panel. Caller frees. */
char **lh_map_slice_titles(uint32_t panels);

/* Whether a unit of the map is large enough for its labels. */
bool lh_map_has_labels(const LhMap *map);

/* @to: a path accepted by lh_figure_check_path(), or a string. */
bool lh_map_draw(const LhMap *map, LhFigureTo to, GError **error);
