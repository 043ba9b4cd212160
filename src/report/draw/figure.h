/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures drawn by gnuplot. For FILE.svg, FILE.png or FILE.pdf, the script FILE.gp with all data is
 * written beside it, so that a figure can be edited and drawn again. A pipe or a device with
 * another name gets SVG, without a script.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Destination of a figure: one of the two. */
typedef struct {
    const char *path; /* a file that lh_figure_check_path() accepts */
    GString *svg;     /* receives SVG, without a script */
} LhFigureTo;

/* In points; figures over time are wider. */
#define LH_FIGURE_WIDTH 1100
#define LH_FIGURE_WIDTH_OF_TIME 1200
#define LH_FIGURE_HEIGHT 520

/* Content of a figure. */
typedef struct {
    LhFigureTo to;
    unsigned width, height; /* points */
    const char *data;       /* lines of the data block $data; only numbers and comments */
    const char *script;     /* gnuplot commands, after setting the terminal */
} LhFigure;

/* Whether @path ends in one of .svg, .png, .pdf. */
bool lh_figure_has_path(const char *path);

/* False (LH_ERROR_USAGE) unless @path ends in .svg, .png or .pdf or is a pipe or a device. */
bool lh_figure_check_path(const char *path, GError **error);

/* Path of the script of figure @path; NULL: none. Caller frees. */
char *lh_figure_script_path(const char *path);

/*
 * Writes the script, then runs gnuplot with a time limit of LONGHAUL_GNUPLOT_SECONDS seconds
 * (environment variable; default FIGURE_DEADLINE_S). The figure is written atomically.
 * LH_ERROR_RUNTIME names what is missing.
 */
bool lh_figure_draw(const LhFigure *figure, GError **error);

/* Appends "set title" with two lines, in large letters if they fit in @width; lines too long even
 * for small letters are cut. */
void lh_figure_append_title(GString *script, unsigned width, const char *line, const char *below);

/* Appends "set ytics (...)" for a logarithmic axis @axis ("y") from @low to @high. The shorter the
 * range, the more ticks between powers of ten, so that there are always several; nothing if powers
 * of ten suffice. */
void lh_figure_append_log_tics(GString *script, const char *axis, double low, double high);

/* Appends a quoted gnuplot string; a text longer than @letters_max is cut and ends in an
 * ellipsis. */
void lh_figure_append_text(GString *script, const char *text, glong letters_max);

/* Colours by meaning, from Okabe and Ito's palette; the same in every figure. */
#define LH_COLOUR_FORWARD "#0072B2"
#define LH_COLOUR_BACKWARD "#56B4E9"
#define LH_COLOUR_OTHER "#009E73"
#define LH_COLOUR_OTHER_BACKWARD "#84D0B8"
#define LH_COLOUR_OPTIMIZER "#8C6D31"
#define LH_COLOUR_IMBALANCE "#BBBBBB"
#define LH_COLOUR_HOST "#555555"
#define LH_COLOUR_WAITING "#E3E3E3"
#define LH_COLOUR_HELD "#888888" /* hatches */
#define LH_COLOUR_WORDS "#555555"
extern const char *const lh_tier_colours[]; /* by LhTier */

/* Colours of curves and points: the palette without yellow, which is illegible as a line, then
 * darker and lighter variants. Neighbours differ in lightness as well. */
#define LH_FIGURE_COLOURS 8U
extern const char *const lh_figure_colours[LH_FIGURE_COLOURS];
