/*
 * Running gnuplot.
 */
#include "report/figure.h"

#include "base/error.h"
#include "report/output.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

const char *const lh_tier_colours[] = { "#F0E442", "#CC79A7", "#E69F00", "#D55E00" };

bool
lh_figure_check_path(const char *path, GError **error)
{
    if (g_str_has_suffix(path, ".svg") || g_str_has_suffix(path, ".png"))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--figure: \"%s\" is not allowed; allowed: a name that ends in .svg or .png", path);
    return false;
}

/* FILE.svg -> FILE + @suffix; caller frees. */
static char *
sibling(const char *path, const char *suffix)
{
    return g_strdup_printf("%.*s%s", (int)(strlen(path) - strlen(".svg")), path, suffix);
}

/* A gnuplot string: single quotes are doubled, nothing else is special. Caller frees. */
static char *
quote(const char *text)
{
    g_auto(GStrv) pieces = g_strsplit(text, "'", -1);
    g_autofree char *inner = g_strjoinv("''", pieces);

    return g_strdup_printf("'%s'", inner);
}

static char *
make_script(const LhFigure *figure, const char *data_name, const char *figure_name)
{
    const bool svg = g_str_has_suffix(figure->path, ".svg");
    const unsigned scale = svg ? 1 : 2; /* PNG for screens of high resolution */
    g_autofree char *data = quote(data_name);
    g_autofree char *output = quote(figure_name);

    return g_strdup_printf(
        "# Drawn by longhaul; run gnuplot in this folder to draw it again.\n"
        "data = %s\n"
        "if (!exists(\"target\")) target = %s\n"
        "set terminal %s size %u,%u font 'DejaVu Sans,%u' noenhanced background rgb '#FFFFFF' "
        "linewidth %u\n"
        "set encoding utf8\n"
        "title_font = 'DejaVu Sans,%u'\n"
        "set key outside top left horizontal Left reverse samplen 1 width 2 height 0.5\n"
        "set border 1\nset xtics nomirror out\nset grid xtics lc rgb '#DDDDDD' lw 0.5\n"
        "set output target\n"
        "%s",
        data, output, svg ? "svg" : "pngcairo", scale * figure->width, scale * figure->height,
        12 * scale, scale, 15 * scale, figure->script);
}

static bool
run_gnuplot(const char *folder, const char *script_name, const char *temporary, GError **error)
{
    g_autofree char *quoted = quote(temporary);
    g_autofree char *setting = g_strdup_printf("target = %s", quoted);
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autoptr(GSubprocess) process = NULL;
    g_autofree char *said = NULL;
    g_autoptr(GError) cause = NULL;

    g_subprocess_launcher_set_cwd(launcher, folder);
    process =
        g_subprocess_launcher_spawn(launcher, &cause, "gnuplot", "-e", setting, script_name, NULL);
    if (process == NULL ||
        !g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &said, &cause)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot run gnuplot: %s", cause->message);
        return false;
    }
    if (!g_subprocess_get_successful(process)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "gnuplot could not draw %s/%s: %s", folder,
                    script_name, g_strstrip(said));
        return false;
    }
    return true;
}

/* Draws into a temporary name beside @path and renames it. */
static bool
draw(const char *path, const char *script_path, GError **error)
{
    g_autofree char *program = g_find_program_in_path("gnuplot");
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *script_name = g_path_get_basename(script_path);
    g_autofree char *temporary = g_strdup_printf(".%s.part", name);
    g_autofree char *temporary_path = g_build_filename(folder, temporary, NULL);

    if (program == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "cannot draw %s: gnuplot is not installed (Debian: apt install gnuplot-nox); "
                    "its script is in %s",
                    path, script_path);
        return false;
    }
    if (!run_gnuplot(folder, script_name, temporary, error)) {
        g_unlink(temporary_path);
        return false;
    }
    if (g_rename(temporary_path, path) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot write %s", path);
        g_unlink(temporary_path);
        return false;
    }
    return true;
}

bool
lh_figure_draw(const LhFigure *figure, GError **error)
{
    g_autofree char *data_path = sibling(figure->path, ".dat");
    g_autofree char *script_path = sibling(figure->path, ".gp");
    g_autofree char *data_name = g_path_get_basename(data_path);
    g_autofree char *figure_name = g_path_get_basename(figure->path);
    g_autofree char *script = make_script(figure, data_name, figure_name);

    return lh_output_file(data_path, figure->data, strlen(figure->data), error) &&
           lh_output_file(script_path, script, strlen(script), error) &&
           draw(figure->path, script_path, error);
}
