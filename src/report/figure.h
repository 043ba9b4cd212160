/*
 * Figures by gnuplot. For FILE.svg or FILE.png, the script FILE.gp and the data FILE.dat are
 * written beside it and kept, so that a figure can be redrawn by hand.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What a figure is made of. */
typedef struct {
    const char *path;       /* *.svg or *.png */
    unsigned width, height; /* points */
    const char *
        script; /* gnuplot commands after the terminal is set; the data is in the variable `data` */
    const char *data;
} LhFigure;

/* False (LH_ERROR_USAGE) if @path ends neither in .svg nor in .png. */
bool lh_figure_check_path(const char *path, GError **error);

/*
 * Writes data and script, then runs gnuplot; the figure appears whole or not at all.
 * LH_ERROR_RUNTIME names what is missing.
 */
bool lh_figure_draw(const LhFigure *figure, GError **error);

/* Okabe and Ito's colours, by meaning: the same in every figure. */
#define LH_COLOUR_FORWARD "#0072B2"
#define LH_COLOUR_BACKWARD "#56B4E9"
#define LH_COLOUR_OTHER "#009E73"
#define LH_COLOUR_IMBALANCE "#BBBBBB"
#define LH_COLOUR_HOST "#555555"
#define LH_COLOUR_WAITING "#E3E3E3"
extern const char *const lh_tier_colours[]; /* by LhTier */
