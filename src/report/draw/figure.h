/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures by gnuplot. For FILE.svg, FILE.png or FILE.pdf, the script FILE.gp is written beside it,
 * with the data in it, so that a figure can be changed and drawn again by hand. A pipe or a device
 * of another name gets SVG, without a script.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Where a figure goes: one of both. */
typedef struct {
    const char *path; /* a file: one that lh_figure_check_path() allows */
    GString *svg;     /* what it is appended to as SVG, without a script */
} LhFigureTo;

/* Points; figures of time are wider. */
#define LH_FIGURE_WIDTH 1100
#define LH_FIGURE_WIDTH_OF_TIME 1200
#define LH_FIGURE_HEIGHT 520

/* What a figure is made of. */
typedef struct {
    LhFigureTo to;
    unsigned width, height; /* points */
    const char *data;       /* the lines of the data block $data; numbers and comments only */
    const char *script;     /* gnuplot commands after the terminal is set */
} LhFigure;

/* Whether @path ends in one of .svg, .png, .pdf. */
bool lh_figure_has_path(const char *path);

/* False (LH_ERROR_USAGE) if @path ends in none of .svg, .png, .pdf and is no pipe or device. */
bool lh_figure_check_path(const char *path, GError **error);

/* The path of the script of figure @path; NULL: there is none. Caller frees. */
char *lh_figure_script_path(const char *path);

/*
 * Writes the script, then runs gnuplot, which has LONGHAUL_GNUPLOT_SECONDS seconds (an environment
 * variable; FIGURE_DEADLINE_S if it is not set). The figure appears whole or not at all.
 * LH_ERROR_RUNTIME names what is missing.
 */
bool lh_figure_draw(const LhFigure *figure, GError **error);

/* "set title": one line, and one below, in large letters if these have room in @width; each is cut
 * where smaller ones have none. */
void lh_figure_append_title(GString *script, unsigned width, const char *line, const char *below);

/* "set ytics (...)" of a logarithmic axis, @axis of it ("y"), between @low and @high: the closer
 * they are, the more marks between powers of ten, so that there are always several; nothing where
 * powers of ten are enough. */
void lh_figure_append_log_tics(GString *script, const char *axis, double low, double high);

/* Appends a string of gnuplot, in its quotes; of a text of more than @letters_max letters the last
 * one shown is "…". */
void lh_figure_append_text(GString *script, const char *text, glong letters_max);

/* Okabe and Ito's colours, by meaning: the same in every figure. */
#define LH_COLOUR_FORWARD "#0072B2"
#define LH_COLOUR_BACKWARD "#56B4E9"
#define LH_COLOUR_OTHER "#009E73"
#define LH_COLOUR_OTHER_BACKWARD "#84D0B8"
#define LH_COLOUR_OPTIMIZER "#8C6D31"
#define LH_COLOUR_IMBALANCE "#BBBBBB"
#define LH_COLOUR_HOST "#555555"
#define LH_COLOUR_WAITING "#E3E3E3"
#define LH_COLOUR_HELD "#888888" /* of hatches */
#define LH_COLOUR_WORDS "#555555"
extern const char *const lh_tier_colours[]; /* by LhTier */

/* Those of curves and points, without the yellow, which is no colour for lines; then darker and
 * lighter ones of these. Neighbours differ in lightness, too. */
#define LH_FIGURE_COLOURS 8U
extern const char *const lh_figure_colours[LH_FIGURE_COLOURS];
