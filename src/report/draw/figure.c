/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs gnuplot. It reads the whole script from standard input and writes the figure to standard
 * output: it opens no file of ours, and no file name is part of a command.
 */
#include "report/draw/figure.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "base/files/subprocess.h"
#include "report/base/text.h"

#include <math.h>
#include <string.h>

#define FIGURE_DEADLINE_S 120
#define DEADLINE_S_MAX 86400
#define FONT_POINTS 12
#define TITLE_POINTS 15
#define DECADES_LABELLED 3.2 /* of a logarithmic axis, from which powers of ten suffice */
#define KEY_POINTS 9         /* size of keys within the plot */
#define LETTER_WIDTH 0.72    /* mean width, relative to the letter height */
#define MARGINS 170 /* total margin beside a title, in points; titles are centred on the plot */

const char *const lh_tier_colours[] = { "#F0E442", "#CC79A7", "#E69F00", "#D55E00" };
const char *const lh_figure_colours[] = { "#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                          "#56B4E9", "#D55E00", "#444444", "#999999" };

/* --- formats ------------------------------------------------------------------------------------
 */

/* Figure format: file ending, gnuplot terminal, and first and last bytes. */
typedef struct {
    const char *suffix, *terminal;
    unsigned scale; /* pixels per point: PNG is for high-resolution screens */
    const char *begin, *end;
    gsize end_length;
    bool inches; /* unit of the terminal's size */
} PictureKind;

#define PNG_BEGIN "\x89PNG\r\n\x1a\n"
#define PNG_END "\0\0\0\0IEND\xae\x42\x60\x82"
#define POINTS_PER_INCH 72.0

static const PictureKind picture_kinds[] = {
    { ".svg", "svg", 1, "<?xml", "</svg>", sizeof("</svg>") - 1, false },
    { ".png", "pngcairo", 2, PNG_BEGIN, PNG_END, sizeof(PNG_END) - 1, false },
    { ".pdf", "pdfcairo fontscale 1", 1, "%PDF-", "%%EOF", sizeof("%%EOF") - 1, true },
};

/* By file ending; NULL if it is none of a figure. */
static const PictureKind *
kind_of_name(const char *path)
{
    for (guint i = 0; i < G_N_ELEMENTS(picture_kinds); i++) {
        if (g_str_has_suffix(path, picture_kinds[i].suffix))
            return &picture_kinds[i];
    }
    return NULL;
}

/* By file ending; SVG for other endings and without a file. */
static const PictureKind *
kind_of(const char *path)
{
    const PictureKind *kind = path == NULL ? NULL : kind_of_name(path);

    return kind != NULL ? kind : &picture_kinds[0];
}

bool
lh_figure_has_path(const char *path)
{
    return kind_of_name(path) != NULL;
}

bool
lh_figure_check_path(const char *path, GError **error)
{
    if (kind_of_name(path) != NULL || lh_output_is_stream(path))
        return true;
    return lh_output_refuse("--figure", path,
                            "a name that ends in .svg, .png or .pdf, a pipe or a device", error);
}

char *
lh_figure_script_path(const char *path)
{
    const PictureKind *kind = kind_of_name(path);
    const gsize suffix = kind == NULL ? 0 : strlen(kind->suffix);

    if (kind == NULL)
        return NULL;
    return g_strdup_printf("%.*s.gp", (int)(strlen(path) - suffix), path);
}

/* Whether @picture is complete: it has the format's first and last bytes, apart from trailing white
 * space. */
static bool
is_whole(const PictureKind *kind, const GString *picture)
{
    gsize length = picture->len;

    while (length > 0 && g_ascii_isspace(picture->str[length - 1]))
        length--;
    return length >= kind->end_length && g_str_has_prefix(picture->str, kind->begin) &&
           memcmp(picture->str + length - kind->end_length, kind->end, kind->end_length) == 0;
}

/* --- script -------------------------------------------------------------------------------------
 */

void
lh_figure_append_text(GString *script, const char *text, glong letters_max)
{
    g_autofree char *line = lh_escaped_line(text);
    g_autofree char *cut = NULL;

    if (g_utf8_strlen(line, -1) > letters_max) {
        g_autofree char *begin = g_utf8_substring(line, 0, letters_max - 1);

        cut = g_strconcat(begin, "…", NULL);
    }
    lh_escape_gnuplot(script, cut != NULL ? cut : line);
}

/* Number of letters that fit in @width. */
static glong
letters_within(unsigned width, unsigned points)
{
    return (glong)((width - MARGINS) / (points * LETTER_WIDTH));
}

/* Uses smaller letters if large ones do not fit. */
void
lh_figure_append_title(GString *script, unsigned width, const char *line, const char *below)
{
    const glong longest = MAX(g_utf8_strlen(line, -1), g_utf8_strlen(below, -1));
    const bool large = longest <= letters_within(width, TITLE_POINTS);
    const glong letters_max = letters_within(width, large ? TITLE_POINTS : FONT_POINTS);

    g_string_append(script, "set title ");
    lh_figure_append_text(script, line, letters_max);
    g_string_append(script, ".\"\\n\".");
    lh_figure_append_text(script, below, letters_max);
    g_string_append(script, large ? " font title_font\n" : " font text_font\n");
}

/* Appends ticks within one power of ten, at 1 to 9 times it. */
static void
append_tics_of(GString *tics, int exponent, double decades)
{
    static const struct {
        double decades; /* largest number of decades with this tick */
        double mantissa;
    } marks[] = { { INFINITY, 1 }, { 0.7, 1.2 }, { 0.7, 1.5 }, { INFINITY, 2 },
                  { 0.7, 2.5 },    { 1, 3 },     { 1, 4 },     { INFINITY, 5 },
                  { 1, 6 },        { 1, 7 },     { 1, 8 } };

    for (guint i = 0; i < G_N_ELEMENTS(marks); i++) {
        if (decades > marks[i].decades)
            continue;
        g_string_append(tics, tics->len > 0 ? ", " : "");
        lh_text_append(tics, marks[i].mantissa * pow(10, exponent));
    }
}

void
lh_figure_append_log_tics(GString *script, const char *axis, double low, double high)
{
    g_autoptr(GString) tics = g_string_new(NULL);

    if (log10(high / low) > DECADES_LABELLED)
        return;
    for (int exponent = (int)floor(log10(low)); exponent <= (int)floor(log10(high)); exponent++)
        append_tics_of(tics, exponent, log10(high / low));
    g_string_append_printf(script, "set %stics (%s)\n", axis, tics->str);
}

static void
append_terminal(GString *script, const LhFigure *figure, const PictureKind *kind)
{
    char width[G_ASCII_DTOSTR_BUF_SIZE], height[G_ASCII_DTOSTR_BUF_SIZE];
    const double unit = kind->inches ? 1 / POINTS_PER_INCH : kind->scale;

    g_ascii_formatd(width, sizeof(width), "%.6g", figure->width * unit);
    g_ascii_formatd(height, sizeof(height), "%.6g", figure->height * unit);
    g_string_append_printf(script,
                           "set terminal %s size %s,%s font 'DejaVu Sans,%u' noenhanced "
                           "background rgb '#FFFFFF' linewidth %u\n",
                           kind->terminal, width, height, FONT_POINTS * kind->scale, kind->scale);
}

/* Makes the script. As a file, it draws into a file in gnuplot's working folder unless told to
 * print. */
static GString *
make_script(const LhFigure *figure, const PictureKind *kind)
{
    GString *script = g_string_new("# Drawn by longhaul; run gnuplot in this folder to draw it "
                                   "again.\n");
    g_autofree char *name =
        g_path_get_basename(figure->to.path != NULL ? figure->to.path : "figure.svg");
    g_autofree char *here =
        g_strconcat("./", name, NULL); /* gnuplot takes a leading | for a command */

    append_terminal(script, figure, kind);
    g_string_append(script, "if (!exists(\"print_picture\")) set output ");
    lh_escape_gnuplot(script, here);
    g_string_append_printf(
        script,
        "\nset encoding utf8\n"
        "title_font = 'DejaVu Sans,%u'\ntext_font = 'DejaVu Sans,%u'\n"
        "key_font = 'DejaVu Sans,%u'\n"
        "set key outside top left horizontal Left reverse samplen 1 width 2 height 0.5\n"
        "set border 1\nset xtics nomirror out\nset grid xtics lc rgb '#DDDDDD' lw 0.5\n"
        "$data << END\n%sEND\n%s",
        TITLE_POINTS * kind->scale, FONT_POINTS * kind->scale, KEY_POINTS * kind->scale,
        figure->data, figure->script);
    return script;
}

/* --- drawing ------------------------------------------------------------------------------------
 */

static unsigned
deadline_s(void)
{
    const char *text = g_getenv("LONGHAUL_GNUPLOT_SECONDS");
    guint64 seconds;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 1, DEADLINE_S_MAX, &seconds, NULL))
        return FIGURE_DEADLINE_S;
    return (unsigned)seconds;
}

static bool
fail_to_draw(const char *path, const char *cause, GError **error)
{
    g_autofree char *script_path = path == NULL ? NULL : lh_figure_script_path(path);
    g_autofree char *figure = lh_escaped_line(path == NULL ? "a figure" : path);
    g_autofree char *script = script_path == NULL ? NULL : lh_escaped_line(script_path);

    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot draw %s: %s%s%s", figure, cause,
                script == NULL ? "" : "; its script is in ", script == NULL ? "" : script);
    return false;
}

/* Runs gnuplot; -d ignores the user's gnuplot settings. */
static bool
draw(const LhFigure *figure, const GString *script, GString *picture, GError **error)
{
    static const char *const argv[] = { "gnuplot", "-d", "-e", "print_picture = 1", "-", NULL };
    const LhSubprocess gnuplot = {
        .argv = argv, .input = script->str, .input_length = script->len, .deadline_s = deadline_s()
    };
    g_autoptr(GError) cause = NULL;

    if (!lh_subprocess_run(&gnuplot, picture, &cause)) {
        g_autofree char *advice = g_strconcat(cause->message,
                                              g_str_has_suffix(cause->message, "is not installed")
                                                  ? " (Debian: apt install gnuplot-nox)"
                                                  : "",
                                              NULL);

        return fail_to_draw(figure->to.path, advice, error);
    }
    if (is_whole(kind_of(figure->to.path), picture))
        return true;
    return fail_to_draw(figure->to.path, "gnuplot's output is not a complete figure", error);
}

/* Writes the script first, so that it exists even without gnuplot. */
static bool
write_script(const LhFigure *figure, const GString *script, GError **error)
{
    g_autofree char *path = figure->to.path == NULL ? NULL : lh_figure_script_path(figure->to.path);

    return path == NULL || lh_output_file(path, script->str, script->len, error);
}

static bool
write_picture(const LhFigure *figure, const GString *picture, GError **error)
{
    if (figure->to.path != NULL)
        return lh_output_file(figure->to.path, picture->str, picture->len, error);
    g_string_append_len(figure->to.svg, picture->str, (gssize)picture->len);
    return true;
}

bool
lh_figure_draw(const LhFigure *figure, GError **error)
{
    GString *script = make_script(figure, kind_of(figure->to.path));
    GString *picture = g_string_new(NULL);
    const bool ok = write_script(figure, script, error) && draw(figure, script, picture, error) &&
                    write_picture(figure, picture, error);

    g_string_free(script, TRUE);
    g_string_free(picture, TRUE);
    return ok;
}
